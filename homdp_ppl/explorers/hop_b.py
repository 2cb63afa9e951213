"""HOP-B: optimism by count bonuses (Algorithm 1)."""

from __future__ import annotations

from homdp_ppl.confidence.bonuses import hop_b_bonus
from homdp_ppl.confidence.estimates import empirical
from homdp_ppl.confidence.radii import hop_b_radii
from homdp_ppl.confidence.rewards import with_optimistic_rewards
from homdp_ppl.core.arguments import check_arguments
from homdp_ppl.core.bound import bind
from homdp_ppl.core.checked import checked
from homdp_ppl.explorers._rooted import planned_moves
from homdp_ppl.explorers._supports import support_if
from homdp_ppl.explorers.explorer import Deployment, Explorer, Objective, changed, with_bonus_scale
from homdp_ppl.explorers.state import Proposal, State, init_bounded, one
from homdp_ppl.precision import Array


@checked
def hop_b(delta: float = 0.1, scale: float = 1.0, known: bool = True) -> Explorer:
    """Plan in T-hat and O-hat with rewards r-hat = r + H eps(x) + eps(x, a).

    Lee, Agarwal, Dann and Zhang (2023), Algorithm 1. At scale 1, the rule is optimistic for pi* in
    all rounds with probability 1 - 2 delta. The defaults are not Algorithm 1: known rows have no
    bonus, and the rule plans again only when a count has doubled. Optimism holds for them too; the
    regret bound :func:`homdp_ppl.theory.hop_b_tv_bound` is about Algorithm 1 as printed,
    ``replan_every_episode(hop_b(known=False))``. The paper's bound, of a better order in X, has a
    gap in its proof (:func:`homdp_ppl.theory.hop_b_bound`).

    The bonuses stay above the trivial value for 10^5 and more episodes on small problems. With a
    smaller scale the rule learns faster, but there is no guarantee.

    The paper treats stationary models with a known initial distribution. Rows of other tables have
    radii of their own, see :func:`homdp_ppl.confidence.hop_b_bonus` for where they are added. An
    initial distribution with sites adds H eps to the optimistic value and one more event, so that
    optimism holds with probability 1 - 3 delta. Random rewards are replaced by their averages plus
    their radii, at most the largest reward, which is one more event; their law must be inside
    ``reward_range``. There is no regret bound for these models.

    Parameters
    ----------
    delta
        Allowed probability of error.
    scale
        Factor of the square roots in the bonuses, not of the caps; 1 is the paper's choice.
    known
        Whether to use exact values without a bonus for known rows; False follows the paper.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models
    >>> rule, tiger = hop_b(), models.load("tiger", horizon=2).homdp
    >>> proposal = rule.propose(jax.random.key(0), rule.init(tiger, 100))
    >>> (proposal.models.reward[0, :, :, 0] - tiger.reward)[
    ...     0
    ... ]  # before any data: H eps(x) = 2 * 2; eps(x, a) = 0, because transitions are known
    array([[4., 4., 4.],
           [4., 4., 4.]])
    """
    check_arguments("hop_b", delta=delta, scale=scale)
    options = changed(hop_b, delta=delta, scale=scale, known=known)
    return Explorer(
        with_bonus_scale("hop_b", options, scale),
        init=init_bounded,
        propose=bind(_propose, delta=delta, scale=scale, known=known),
        objective=Objective(support=support_if(known)),
        deployment=Deployment(replan="doubled"),
    )


def _propose(key: Array, state: State, delta: float, scale: float, known: bool) -> Proposal:
    homdp = state.homdp
    radii = hop_b_radii(homdp, state.counts, state.episodes, delta, scale, known)
    model = empirical(homdp, state.counts, known)
    bonus = hop_b_bonus(radii, homdp.horizon, planned_moves(model))
    return one(with_optimistic_rewards(model, radii.reward).with_bonus(bonus))

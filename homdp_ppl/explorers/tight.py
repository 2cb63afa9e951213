"""A tight frequentist baseline: Weissman radii, centred bonuses, clipped values."""

from __future__ import annotations

from homdp_ppl.confidence.estimates import empirical
from homdp_ppl.confidence.radii import weissman_radii
from homdp_ppl.core.arguments import check_arguments
from homdp_ppl.core.bound import bind
from homdp_ppl.core.checked import checked
from homdp_ppl.core.optimism import remaining_steps
from homdp_ppl.explorers._rooted import capped_root, with_bonuses
from homdp_ppl.explorers._supports import support_if
from homdp_ppl.explorers.explorer import About, Deployment, Explorer, Objective, changed
from homdp_ppl.explorers.state import Proposal, State, init_bounded
from homdp_ppl.precision import Array


@checked
def tight(delta: float = 0.1, known: bool = True) -> Explorer:
    """Plan in T-hat and O-hat with tighter bonuses than HOP-B.

    The bonus at step h is (H-h)/2 [eps_T(x, a) + sum_x' T-hat(x'|x, a) eps_O(x')]. The proof is the
    induction of Algorithm 1 without its slack: Weissman's L1 radii on the declared support, halved
    because values can be centred; values clipped at H - h + 1; and the term of the first
    observation at the root. Optimistic in all rounds with probability 1 - delta. Planners other
    than the history tree do not clip values, which is sound but looser.

    If tables depend on the step or the previous action, eps_T is that of T_h, and eps_O that of
    O_{h+1}(. | x', a). An initial distribution with sites adds (H/2) eps at the root, see
    :func:`homdp_ppl.confidence.start_bonus`. Random rewards are replaced by their averages plus
    Hoeffding's radius, at most the largest reward; their law must be inside ``reward_range``.

    Parameters
    ----------
    delta
        Allowed probability of error.
    known
        Whether to use exact values without a bonus for known rows.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models
    >>> rule, tiger = tight(), models.load("tiger", horizon=2).homdp
    >>> proposal = rule.propose(jax.random.key(0), rule.init(tiger, 100))
    >>> (proposal.models.reward[0, :, :, 0] - tiger.reward)[
    ...     :, 0, 0
    ... ]  # before any data: 1/2 * 2, and 0 at the last step; hop_b adds 4
    array([1., 0.])
    >>> proposal.parameters  # H/2 * 2 at the root
    array([2.])
    """
    check_arguments("tight", delta=delta)
    options = changed(tight, delta=delta, known=known)
    return Explorer(
        About("tight", options, guarantee="frequentist", needs_episodes=True),
        init=init_bounded,
        propose=bind(_propose, delta=delta, known=known),
        objective=Objective(root=capped_root, support=support_if(known), caps=remaining_steps),
        deployment=Deployment(replan="doubled"),
    )


def _propose(key: Array, state: State, delta: float, known: bool) -> Proposal:
    radii = weissman_radii(state.homdp, state.counts, state.episodes, delta, known)
    return with_bonuses(empirical(state.homdp, state.counts, known), radii)

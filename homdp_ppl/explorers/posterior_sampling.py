"""Posterior sampling (Thompson): act as if one draw were true."""

from __future__ import annotations

from homdp_ppl.explorers._believing import believe, closed, draw_models, learn_more
from homdp_ppl.explorers._sampled_worlds import sampling_rule
from homdp_ppl.explorers.explorer import Explorer, Proposal, Replan, State, changed
from homdp_ppl.precision import Array


def posterior_sampling(replan: Replan = "every episode") -> Explorer:
    """Draw one model from the posterior, plan, deploy.

    Optimistic in exactly half of the rounds if the prior is right: draw and truth are exchangeable.
    No guarantee for any single round. One plan a round.

    Parameters
    ----------
    replan
        Redrawing only when counts have doubled harms this rule; it can be had.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models
    >>> rule, tiger = posterior_sampling(), models.load("tiger", horizon=2).homdp
    >>> draw = rule.propose(jax.random.key(0), rule.init(tiger, episodes=100)).models.shows(0)[0]
    >>> (
    ...     bool(draw[0, 0] == draw[1, 1]),
    ...     bool(draw[0, 0] == 0.8),
    ... )  # one accuracy for both sides, as declared, but not its mean
    (True, False)
    """

    def propose(key: Array, state: State) -> Proposal:
        return Proposal(draw_models(key, state, 1))

    options = changed(posterior_sampling, replan=replan)
    return Explorer(
        "posterior_sampling",
        propose,
        "none",
        options,
        init=believe,
        update=learn_more,
        replan=replan,
        compilable=closed,
        continuous=sampling_rule(),
    )

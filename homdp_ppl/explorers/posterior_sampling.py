"""Posterior sampling (Thompson sampling): act as if one draw were the true model."""

from __future__ import annotations

from homdp_ppl.explorers._believing import draw_models, init_belief, update_belief
from homdp_ppl.explorers.explorer import About, Explorer
from homdp_ppl.explorers.state import Proposal, State
from homdp_ppl.precision import Array


def posterior_sampling() -> Explorer:
    """Draw one model from the posterior, plan for it and deploy the plan.

    If the prior is correct, a round is optimistic with probability 1/2, because the draw and the
    true model are exchangeable. There is no guarantee for any single round. The rule computes one
    plan per round and supports finite and real-valued spaces.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models
    >>> rule, tiger = posterior_sampling(), models.load("tiger", horizon=2).homdp
    >>> draw = rule.propose(jax.random.key(0), rule.init(tiger, 100)).models.shows(0)[0]
    >>> (
    ...     bool(draw[0, 0] == draw[1, 1]),
    ...     bool(draw[0, 0] == 0.8),
    ... )  # the same accuracy on both sides, as declared, and not its mean
    (True, False)
    """
    return Explorer(
        About("posterior_sampling", uses_prior=True, coverage=0.5),
        init=init_belief,
        propose=_propose,
        update=update_belief,
    )


def _propose(key: Array, state: State) -> Proposal:
    if state.counts is None:
        return Proposal(state.memory.worlds(key, 1)[0])
    return Proposal(draw_models(key, state, 1))

"""Posterior sampling (Thompson): act as if one draw were true."""

from __future__ import annotations

from homdp_ppl.explorers._believing import draw_models, init_belief, update_belief
from homdp_ppl.explorers.explorer import About, Explorer
from homdp_ppl.explorers.state import Proposal, State
from homdp_ppl.precision import Array


def posterior_sampling() -> Explorer:
    """Draw one model from the posterior, plan, deploy.

    Optimistic in exactly half of the rounds if the prior is right: draw and truth are exchangeable.
    No guarantee for any single round. One plan per round. Serves finite and real-valued spaces.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models
    >>> rule, tiger = posterior_sampling(), models.load("tiger", horizon=2).homdp
    >>> draw = rule.propose(jax.random.key(0), rule.init(tiger, 100)).models.shows(0)[0]
    >>> (
    ...     bool(draw[0, 0] == draw[1, 1]),
    ...     bool(draw[0, 0] == 0.8),
    ... )  # one accuracy for both sides, as declared, but not its mean
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

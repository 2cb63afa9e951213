"""Uniform actions: a baseline that does not learn."""

from __future__ import annotations

from homdp_ppl.explorers.explorer import About, Deployment, Explorer
from homdp_ppl.explorers.greedy import certainty_equivalent
from homdp_ppl.explorers.state import Proposal, State, init_state
from homdp_ppl.precision import Array


def uniform() -> Explorer:
    """Take every action with the same probability: a baseline without optimism.

    In finite spaces, the rule computes one plan per run, which is not played. In real-valued spaces
    it computes none.

    Examples
    --------
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> learn(models.load("tiger", horizon=2), uniform(), history_tree(), episodes=3).values.round(
    ...     4
    ... )  # 2 * (0.9 + 0 + 1) / 3
    array([1.2667, 1.2667, 1.2667])
    """
    return Explorer(
        About("uniform"),
        init=init_state,
        propose=_propose,
        deployment=Deployment(replan="once", random_actions=1.0),
    )


def _propose(key: Array, state: State) -> Proposal:
    if state.counts is None:
        return Proposal(None)
    return certainty_equivalent(key, state, known=True)

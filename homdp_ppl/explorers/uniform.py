"""Uniform actions: the baseline that learns nothing from what it sees."""

from __future__ import annotations

from homdp_ppl.explorers.explorer import About, Deployment, Explorer
from homdp_ppl.explorers.greedy import certainty_equivalent
from homdp_ppl.explorers.state import Proposal, State, init_state
from homdp_ppl.precision import Array


def uniform() -> Explorer:
    """Every action with the same probability, in every episode: a baseline without optimism.

    Costs one plan in the whole run, which is not played; none in real-valued spaces.

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

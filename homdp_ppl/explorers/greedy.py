"""Certainty equivalence: plan in the estimates as if they were true."""

from __future__ import annotations

from collections.abc import Callable

from homdp_ppl.confidence.counts import empirical
from homdp_ppl.explorers.explorer import (
    Explorer,
    Proposal,
    Replan,
    State,
    anything,
    changed,
    declared,
    one,
)
from homdp_ppl.precision import Array


def greedy(known: bool = True, replan: Replan = "every episode") -> Explorer:
    """Plan in T-hat, O-hat; unvisited rows are uniform on their declared support.

    A baseline without optimism. It ties or wins where no exploration is needed, and can fail for
    ever behind a gate.

    Parameters
    ----------
    known
        Whether known rows are exact.
    replan
        "every episode", or "doubled" (when some n(x, a) has doubled).

    Examples
    --------
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> run = learn(models.load("tiger", horizon=2), greedy(), history_tree(), episodes=3)
    >>> (
    ...     run.optimistic[:1].round(4),
    ...     round(run.optimum, 4),
    ... )  # when growls say nothing yet: listen twice, 0.9 each
    (array([1.8]), 1.852)
    """
    options = changed(greedy, known=known, replan=replan)
    return Explorer(
        "greedy",
        certainty_equivalent(known),
        "none",
        options,
        support=declared if known else anything,
        replan=replan,
    )


def certainty_equivalent(known: bool) -> Callable[[Array, State], Proposal]:
    """Propose the estimates themselves."""

    def propose(key: Array, state: State) -> Proposal:
        return one(empirical(state.homdp, state.counts, known))

    return propose

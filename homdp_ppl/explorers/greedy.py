"""Certainty equivalence: plan in the estimated model as if it were the true one."""

from __future__ import annotations

from homdp_ppl.confidence.estimates import empirical
from homdp_ppl.core.bound import bind
from homdp_ppl.core.checked import checked
from homdp_ppl.explorers._supports import support_if
from homdp_ppl.explorers.explorer import About, Explorer, Objective, changed
from homdp_ppl.explorers.state import Proposal, State, one
from homdp_ppl.precision import Array


@checked
def greedy(known: bool = True) -> Explorer:
    """Plan in T-hat and O-hat; unvisited rows are uniform on their declared support.

    A baseline without optimism. It performs well where no exploration is needed. Where exploration
    is needed, it can stay suboptimal forever.

    Parameters
    ----------
    known
        Whether to use the exact values of known rows.

    Examples
    --------
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> run = learn(models.load("tiger", horizon=2), greedy(), history_tree(), episodes=3)
    >>> (
    ...     run.optimistic[:1].round(4),
    ...     round(run.optimum, 4),
    ... )  # growls are not informative yet: listen twice, 0.9 each
    (array([1.8]), 1.852)
    """
    return Explorer(
        About("greedy", changed(greedy, known=known)),
        propose=bind(certainty_equivalent, known=known),
        objective=Objective(support=support_if(known)),
    )


def certainty_equivalent(key: Array, state: State, known: bool) -> Proposal:
    """Propose the estimated model."""
    return one(empirical(state.homdp, state.counts, known))

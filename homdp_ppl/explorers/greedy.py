"""Certainty equivalence: plan in the estimates as if they were true."""

from __future__ import annotations

from homdp_ppl.confidence.counts import empirical
from homdp_ppl.core.bound import bind
from homdp_ppl.core.checked import checked
from homdp_ppl.explorers._supports import support_if
from homdp_ppl.explorers.explorer import About, Explorer, Objective, changed
from homdp_ppl.explorers.state import Proposal, State, one
from homdp_ppl.precision import Array


@checked
def greedy(known: bool = True) -> Explorer:
    """Plan in T-hat, O-hat; unvisited rows are uniform on their declared support.

    A baseline without optimism. It ties or wins where no exploration is needed, and can fail
    forever behind a gate.

    Parameters
    ----------
    known
        Whether known rows are exact.

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
    return Explorer(
        About("greedy", changed(greedy, known=known)),
        propose=bind(certainty_equivalent, known=known),
        objective=Objective(support=support_if(known)),
    )


def certainty_equivalent(key: Array, state: State, known: bool) -> Proposal:
    """Propose the estimates themselves."""
    return one(empirical(state.homdp, state.counts, known))

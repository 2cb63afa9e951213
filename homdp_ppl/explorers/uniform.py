"""Uniform actions: the baseline that learns nothing from what it sees."""

from __future__ import annotations

from homdp_ppl.explorers._sampled_worlds import uniform_rule
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.explorers.greedy import certainty_equivalent


def uniform() -> Explorer:
    """Every action with the same probability, in every episode: a baseline without optimism.

    Costs one plan in the whole run, which is not played; in continuous worlds none.

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
        "uniform",
        certainty_equivalent(True),
        "none",
        explore=1.0,
        replan="once",
        continuous=uniform_rule(),
    )

"""Small studies in memory, with worlds and rules as objects and without a directory."""

from __future__ import annotations

from collections.abc import Sequence

from homdp_ppl.core.checked import checked
from homdp_ppl.declare.model import World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers import Explorer
from homdp_ppl.learning.learn import learn
from homdp_ppl.learning.planning import Planner
from homdp_ppl.learning.run import Run


@checked
def side_by_side(
    world: World, rules: Sequence[Explorer], planner: Planner, episodes: int, seeds: Sequence[int]
) -> dict[str, list[Run]]:
    """Run several rules in one world with the same seeds.

    For each seed, all rules use the same random numbers of the world.

    Parameters
    ----------
    world
        The true world.
    rules
        The exploration rules.
    planner
        The planner.
    episodes
        Episodes per run.
    seeds
        The seeds; each rule has one run per seed.

    Examples
    --------
    >>> from homdp_ppl import explorers, models, study
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> runs = side_by_side(
    ...     world,
    ...     [explorers.oracle(world), explorers.uniform()],
    ...     history_tree(),
    ...     episodes=3,
    ...     seeds=[0, 1],
    ... )
    >>> {name: len(several) for name, several in runs.items()}
    {'oracle': 2, 'uniform': 2}
    >>> [row.rule for row in study.summarise(runs) if row.less > 0]  # more regret than the first
    ['uniform']
    """
    names = [rule.name for rule in rules]
    if len(set(names)) < len(names):
        raise ParameterError(
            "side_by_side", [Problem("rules", ", ".join(names), "rules with different names")]
        )
    return {rule.name: learn(world, rule, planner, episodes, list(seeds)) for rule in rules}

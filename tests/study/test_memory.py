"""Small studies in memory: the runs of each rule, on the same luck, and rules that are told apart
by their names.
"""

import numpy as np
import pytest

from homdp_ppl import ParameterError, explorers, learn
from homdp_ppl.study.memory import side_by_side
from tests.runs import TREE, small


def test_rules_side_by_side_share_the_luck_of_the_world():
    """First states and first observations.

    And each run is what the loop makes of that rule and seed.
    """
    world, rules = small("tiger"), [explorers.uniform(), explorers.oracle(small("tiger"))]
    runs = side_by_side(world, rules, TREE, 5, [3, 4])
    assert list(runs) == ["uniform", "oracle"]
    assert [[run.task.seed for run in several] for several in runs.values()] == [[3, 4], [3, 4]]
    for one, other in zip(*runs.values(), strict=True):
        np.testing.assert_array_equal(one.episodes.states[:, 0], other.episodes.states[:, 0])
        np.testing.assert_array_equal(
            one.episodes.observations[:, 0], other.episodes.observations[:, 0]
        )
    assert not np.array_equal(*(run.episodes.states for run in runs["uniform"]))
    assert runs["uniform"][1].record.same_as(learn(world, rules[0], TREE, 5, 4).record)


def test_a_rule_twice_is_refused():
    with pytest.raises(ParameterError, match="rules: got greedy, greedy; expected every rule once"):
        side_by_side(small("tiger"), [explorers.greedy(), explorers.greedy()], TREE, 5, [0])

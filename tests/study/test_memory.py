"""Small studies in memory: common random numbers, and rules with different names."""

import numpy as np

from homdp_ppl import ParameterError, explorers, learn
from homdp_ppl.study.memory import side_by_side
from tests.raising import raises
from tests.runs import TREE, small


def test_rules_use_common_random_numbers():
    """First states and observations agree, and each run equals that of `learn`."""
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


def test_duplicate_rules_are_an_error():
    with raises(ParameterError, "rules"):
        side_by_side(small("tiger"), [explorers.greedy(), explorers.greedy()], TREE, 5, [0])

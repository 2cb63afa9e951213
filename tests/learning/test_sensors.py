"""Learning with several sensors: both loops agree, and rules stay optimistic."""

import numpy as np
import pytest

from homdp_ppl import explorers, learn
from homdp_ppl.planners import history_tree
from tests.sensors import worlds

RULES = [explorers.tight(), explorers.hop_b(), explorers.quantile_backup()]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["answers", "ended"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.about.name)
def test_both_loops_agree(kind, rule):
    runs = [
        learn(worlds(kind)[0], rule, history_tree(), episodes=6, seed=1, compiled=compiled)
        for compiled in (False, True)
    ]
    assert np.allclose(runs[0].values, runs[1].values, atol=1e-9)
    assert np.allclose(runs[0].optimistic, runs[1].optimistic, atol=1e-9)
    assert runs[0].episodes.same_as(runs[1].episodes)


def test_rules_that_guarantee_optimism_are_optimistic():
    world = worlds("plain")[0]
    for rule in (explorers.tight(), explorers.hop_b(), explorers.quantile_bonus()):
        run = learn(world, rule, history_tree(), episodes=5, seed=0, compiled=False)
        assert (run.optimistic >= run.optimum - 1e-9).all()


def test_known_sensors_cost_nothing():
    """A rule that knows all parameters plans like the oracle, whatever the number of sensors."""
    world, encoded = worlds("plain")
    runs = [
        learn(each, explorers.oracle(each), history_tree(), episodes=2, seed=0, compiled=False)
        for each in (world, encoded)
    ]
    assert np.allclose(runs[0].values, runs[1].values, atol=1e-9)
    assert runs[0].episodes.same_as(runs[1].episodes)

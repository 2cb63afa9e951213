"""Every rule learns step- and action-dependent declarations and those with an unknown start."""

import numpy as np
import pytest

from homdp_ppl import learn
from homdp_ppl.explorers import EXPLORERS
from tests import rules
from tests.richer import richer
from tests.runs import TREE, differences

EPISODES = 30
FEWER = {"value_quantile": {"draws": 3}, "quantile_bonus": {"bound": True}}
MODELS = ("answers", "tables", "steps", "start")
SAME = [("tight", "answers"), ("hop_b", "tables"), ("quantile_backup", "start")]  # by default


def run(name, rule, compiled):
    world = richer(name)
    options = FEWER.get(rule, {})
    return learn(world, rules.example(rule, world, **options), TREE, EPISODES, 3, compiled=compiled)


@pytest.mark.slow
@pytest.mark.parametrize("rule", EXPLORERS)
@pytest.mark.parametrize("name", MODELS)
def test_every_rule_learns(name, rule):
    """In the readable loop; the compiled loop takes the same decisions."""
    found = run(name, rule, compiled=False)
    assert np.isfinite(found.optimistic).all()
    assert found.gaps.min() >= -1e-9
    if found.task.explorer.about.guarantee == "frequentist":
        assert (found.optimistic >= found.optimum - 1e-9).all()
    if rule != "hop_v" and (rule, name) not in SAME:
        assert differences(found, run(name, rule, compiled=True), EPISODES, 1e-9) == []


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["greedy", "tight", "oracle", "uniform", "posterior_sampling"])
def test_rules_learn_parameters_without_closed_form(rule):
    assert run("everything", rule, compiled=False).gaps.min() >= -1e-9


@pytest.mark.parametrize(("rule", "name"), SAME)
def test_the_compiled_loop_takes_the_same_decisions(rule, name):
    plain, fast = (run(name, rule, compiled) for compiled in (False, True))
    assert differences(plain, fast, EPISODES, 1e-9) == []

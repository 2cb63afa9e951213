"""Invalid arguments of ``learn`` raise errors before the first episode."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import Kernels, explorers, homdp, learn, models, posterior, tabular
from homdp_ppl.errors import ParameterError, PlanningError
from homdp_ppl.explorers import Proposal
from homdp_ppl.learning.learner import Learner
from homdp_ppl.planners import alpha_vectors, bounded_search, history_tree
from tests.raising import raises
from tests.runs import TREE, differences, hearing, small


def unknown_start():
    """A tiger with an unknown initial distribution."""
    tiger = small("tiger")

    @homdp(**tiger.spaces._asdict(), reward=tiger.homdp.reward[0])
    def unknown_start():
        p = numpyro.sample("p", dist.Beta(1, 1))
        return Kernels(jnp.array([p, 1 - p]), tiger.pomdp.moves(0), tiger.pomdp.shows(0))

    return unknown_start


def other_tiger(**changes):
    """The tiger's tables with other rewards, names or horizon."""
    tiger = small("tiger")
    spaces = dict(zip(("states", "observations", "actions", "horizon"), tiger.spaces, strict=False))
    parts = {"T": tiger.pomdp.moves(0), "O": tiger.pomdp.shows(0), "initial": tiger.pomdp.initial}
    return tabular(**{**parts, **spaces, "reward": tiger.homdp.reward[0], **changes})


INVALID = [
    ({"world": "homdp"}, "world", "a HOMDP"),
    ({"explorer": explorers.greedy}, "explorer", "a function"),
    ({"explorer": "greedy"}, "explorer", "a str"),
    ({"planner": history_tree}, "planner", "history_tree"),
    ({"planner": bounded_search}, "planner", "bounded_search"),
    ({"planner": "tree"}, "planner", "a str"),
    ({"planner": max}, "planner", "<built-in function max>"),
    ({"episodes": 0}, "episodes", "0"),
    ({"episodes": 2.5}, "episodes", "2.5"),
    ({"seed": -1}, "seed", "[-1]"),
    ({"seed": []}, "seed", "[]"),
    ({"seed": 1.5}, "seed", "[1.5]"),
    ({"seed": [0, "1"]}, "seed", "[0, '1']"),
    ({"seed": None}, "seed", "[None]"),
    ({"seed": 2**63}, "seed", "[9223372036854775808]"),
    ({"stop_after": -1}, "stop_after", "-1"),
    ({"stop_after": 2.5}, "stop_after", "2.5"),
    ({"model": "world"}, "model", "a World"),
    ({"model": {"horizon": 4}}, "model", "horizon=4"),
    ({"model": {"states": ("links", "rechts")}}, "model", "links"),
    ({"model": {"reward": np.zeros((2, 3))}}, "model", "rewards"),
    ({"explorer": hearing(), "episodes": 2}, "episodes", "2"),
]


@pytest.mark.parametrize(
    ("wrong", "where", "got"), INVALID, ids=[f"{where}: {got}" for _, where, got in INVALID]
)
def test_invalid_arguments(wrong, where, got):
    tiger = small("tiger")
    wrong = dict(wrong)
    if "world" in wrong:
        wrong["world"] = tiger.homdp
    if "model" in wrong:
        wrong["model"] = tiger if wrong["model"] == "world" else other_tiger(**wrong["model"])
    arguments = {
        "world": tiger,
        "explorer": explorers.greedy(),
        "planner": TREE,
        "episodes": 10,
    } | wrong
    with raises(ParameterError, where) as caught:
        learn(**arguments)
    (problem,) = caught.value.problems
    assert got in problem.got


def test_all_problems_are_reported_together():
    with raises(ParameterError, "world", "explorer", "planner"):
        learn(small("tiger").homdp, explorers.greedy, history_tree, 0, seed=-1)


def planner_never_called(model):
    """A planner that must not be called."""
    raise AssertionError("planned before all problems were reported")


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        ({"stop_after": -1}, "stop_after"),
        ({"explorer": hearing(), "episodes": 2}, "episodes"),
        (
            {"world": models.load("gaussian_tiger", horizon=2)},
            "explorer",
        ),
    ],
)
def test_problems_are_reported_before_planning(wrong, where):
    arguments = {
        "world": small("tiger"),
        "explorer": explorers.greedy(),
        "planner": planner_never_called,
        "episodes": 10,
    } | wrong
    with raises(ParameterError, where):
        learn(**arguments)


def test_an_unknown_initial_distribution_is_learned():
    run = learn(small("tiger"), explorers.greedy(), TREE, 10, model=unknown_start())
    assert run.state.counts.initial.sum() == 10


def test_incompatible_rules_and_planners():
    with raises(PlanningError, "planner"):
        learn(small("tiger"), explorers.quantile_backup(), alpha_vectors(), 10)
    with raises(PlanningError, "planner"):
        learn(small("tiger_table"), explorers.value_quantile(draws=3), bounded_search(gap=0.9), 10)
    run = learn(small("tiger_table"), explorers.value_quantile(draws=3), alpha_vectors(), 3)
    assert (
        differences(
            run,
            learn(small("tiger_table"), explorers.value_quantile(draws=3), TREE, 3),
            tolerance=1e-8,
        )
        == []
    )


def test_flags_are_true_or_false():
    """Text is not accepted, although it is truthy in Python."""
    for name in ("compiled", "foresight", "progress"):
        with pytest.raises(ParameterError) as caught:
            learn(small("tiger"), explorers.greedy(), TREE, 3, **{name: "yes"})
        assert [problem.where for problem in caught.value.problems] == [name]


def test_a_run_stops_within_its_episodes():
    with pytest.raises(ParameterError) as caught:
        learn(small("tiger"), explorers.greedy(), TREE, 3, stop_after=4)
    assert [problem.where for problem in caught.value.problems] == ["stop_after"]
    assert len(learn(small("tiger"), explorers.greedy(), TREE, 3, stop_after=3).values) == 3


def test_learners_reject_factories_and_invalid_states():
    model = small("tiger").homdp
    with pytest.raises(ParameterError) as caught:
        Learner(model, explorers.tight, TREE, 10)
    assert [(p.where, p.got) for p in caught.value.problems] == [("explorer", "the function tight")]
    assert "tight(" in caught.value.problems[0].remedy
    learner = Learner(model, explorers.tight(), TREE, 10)
    with pytest.raises(ParameterError) as caught:
        learner.decide(0, None)
    assert [problem.where for problem in caught.value.problems] == ["state"]


def propose_by_posterior(key, state):
    belief = posterior(state.homdp, state.counts)
    return Proposal(belief.draws(key, 1))


def test_the_error_names_functions_that_can_be_traced():
    rule = explorers.Explorer(explorers.About("sampler"), propose=propose_by_posterior)
    with pytest.raises(ParameterError) as caught:
        learn(small("tiger"), rule, TREE, 3, compiled=True)
    (problem,) = caught.value.problems
    assert problem.where == "compiled"
    assert "It calls posterior" in problem.remedy
    assert "draw_models" in problem.remedy
    assert "jnp.asarray" not in problem.remedy
    assert len(learn(small("tiger"), rule, TREE, 3).values) == 3
    assert "readable loop" in learn(small("tiger"), rule, TREE, 1001, stop_after=1).loop

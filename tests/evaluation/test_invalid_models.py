"""Evaluation functions raise the same errors for invalid models as planners."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from homdp_ppl import PlanningError, PolicyError, evaluate, models, uniform_policy
from homdp_ppl.evaluation import (
    best_blind,
    best_memoryless,
    fast_informed_bound,
    mdp_values,
    occupancy,
    qmdp,
    root_value,
    simulation_lemma,
    trajectory_distance,
    uniform_at,
)
from homdp_ppl.planners import history_tree
from tests.planners.exact import random_pomdp

MODEL = random_pomdp(0, 2, 2, 2, 2)
POLICY = uniform_policy(MODEL)
VECTORS = np.ones((1, 2))
FUNCTIONS = {
    "history_tree": lambda m: history_tree()(m),
    "evaluate": lambda m: evaluate(POLICY, m),
    "occupancy": lambda m: occupancy(POLICY, m),
    "mdp_values": mdp_values,
    "qmdp": qmdp,
    "fast_informed_bound": fast_informed_bound,
    "root_value": lambda m: root_value(m, VECTORS),
    "best_blind": best_blind,
    "best_memoryless": best_memoryless,
    "simulation_lemma": lambda m: simulation_lemma(POLICY, m, MODEL),
    "simulation_lemma, other": lambda m: simulation_lemma(POLICY, MODEL, m),
    "trajectory_distance": lambda m: trajectory_distance(POLICY, m, MODEL),
    "trajectory_distance, other": lambda m: trajectory_distance(POLICY, MODEL, m),
}


def masked(table):
    mask = np.zeros(table.shape, dtype=bool)
    mask.flat[0] = True
    return np.ma.array(table, mask=mask)


WRONG = {
    "half a start": ("initial", MODEL.initial / 2),
    "a negative emission": (
        "emission",
        MODEL.emission * np.array([1.5, 1.0]) - np.array([0.5, 0.0]),
    ),
    "an emission of nan": ("emission", MODEL.emission * np.nan),
    "a transition of nan": ("transition", MODEL.transition * np.array([np.nan, 1.0])),
    "a reward of nan": ("reward", MODEL.reward * np.nan),
    "an infinite reward": ("reward", MODEL.reward * np.inf),
    "masked rewards": ("reward", masked(MODEL.reward)),
    "masked transitions": ("transition", masked(MODEL.transition)),
    "rewards in text": ("reward", MODEL.reward.astype(str)),
    "another shape": ("initial", np.ones(3) / 3),
    "an infinite scale": ("scale", np.inf),
    "no shift": ("shift", None),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_invalid_tables_raise(function, wrong):
    field, table = WRONG[wrong]
    with pytest.raises(PlanningError) as caught:
        FUNCTIONS[function](MODEL._replace(**{field: table}))
    assert field in {problem.where for problem in caught.value.problems}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("wrong", [None, "tiger", models.load("tiger"), np.eye(2)], ids=str)
def test_values_that_are_not_models_raise(function, wrong):
    with pytest.raises(PlanningError) as caught:
        FUNCTIONS[function](wrong)
    assert caught.value.problems[0].where == "model"


def test_valid_models_are_accepted():
    for function in FUNCTIONS.values():
        function(MODEL)
        function(type(MODEL)(*(np.ma.array(part) for part in MODEL)))  # nothing is masked
    assert evaluate(POLICY, type(MODEL)(*map(jnp.asarray, MODEL))) == pytest.approx(
        evaluate(POLICY, MODEL), abs=1e-6
    )


def test_traced_models_are_accepted():
    assert np.isfinite(jax.jit(qmdp)(MODEL)).all()
    assert np.isfinite(jax.jit(root_value)(MODEL, VECTORS))


@pytest.mark.parametrize("vectors", [np.ones(2), np.ones((1, 3)), np.ones((1, 3, 2)), 1.0])
def test_vectors_of_another_shape(vectors):
    with pytest.raises(PlanningError) as caught:
        root_value(MODEL, vectors)
    assert caught.value.problems[0].where == "vectors"


def test_models_of_different_sizes():
    for other in (random_pomdp(0, 3, 2, 2, 2), random_pomdp(0, 2, 2, 2, 3)):
        for function in (simulation_lemma, trajectory_distance):
            with pytest.raises(PlanningError) as caught:
                function(POLICY, MODEL, other)
            assert caught.value.problems[0].where == "other"


@pytest.mark.parametrize(
    ("given", "where"),
    [((POLICY, 0, 2), "step"), ((POLICY, 3, 2), "step"), ((POLICY, 1, "a"), "horizon")],
)
def test_steps(given, where):
    with pytest.raises(PolicyError) as caught:
        uniform_at(*given)
    assert caught.value.problems[0].where == where

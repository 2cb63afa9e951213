"""The memory budget: inputs that would need huge arrays raise before anything is allocated."""

import sys

import pytest

from homdp_ppl import HOMDPError
from homdp_ppl.memory import amount, count, memory_budget, memory_problems, require_memory
from tests.children import attacked

LIMIT = 300_000_000  # bytes by which memory may grow before the error
SETUP = """
import jax, numpy as np
import homdp_ppl
from homdp_ppl import (
    Counts, Episode, Episodes, GraphPolicy, Kernels, POMDP, Spaces, explorers, homdp, learn, models,
    posterior, rollout, uniform_policy,
)
from homdp_ppl.evaluation import estimate, trajectory_distance
from homdp_ppl.planners import (
    alpha_vectors, history_tree, particle_tree, plan_on_cells, quantised,
)
from homdp_ppl.posteriors import Sampling

tiger = models.load("tiger")
belief = posterior(tiger.homdp, Counts.zero(tiger))
key = jax.random.key(0)
gaussian = models.load("gaussian_tiger", horizon=2)
plan_on_cells(gaussian, [0.0])  # compiling takes more memory than the attack
E = np.eye(2)
huge = Spaces(("a", "b"), ("c", "d"), ("e",), 10**9)
wide = Spaces(tuple(map(str, range(20_000))), ("y",), ("a", "b"), 2)
lamp = dict(observations=2, actions=1, reward=[[0.0], [1.0]])
chain = POMDP.of([1.0], [[[1.0]]], [[1.0]], [[1.0]], horizon=300_000)

def declared(**changes):
    return homdp(**{**lamp, "states": 2, "horizon": 2, **changes})(
        lambda: Kernels([1, 0], E[:, None], E)
    )

class Stays:
    def act(self, observations, actions):
        return np.ones(1)
"""
ATTACKS = {
    "horizon of a declaration": ("declared(horizon=10**9)", "DeclarationError", "horizon"),
    "a horizon of 5,000 digits": ("declared(horizon=10**5000)", "DeclarationError", "horizon"),
    "a negative one": ("declared(horizon=-10**5000)", "DeclarationError", "horizon"),
    "states of a declaration": ("declared(states=10**9)", "DeclarationError", "states"),
    "states that fit, tables that do not": ("declared(states=10**5)", "DeclarationError", "states"),
    "horizon of densities": (
        "models.load('light_dark', horizon=10**9)",
        "DeclarationError",
        "horizon",
    ),
    "another horizon": ("tiger.with_horizon(10**9)", "DeclarationError", "horizon"),
    "a long lock": ("models.load('lock', length=100_000)", "DeclarationError", "states"),
    "a lock of 5,000 digits": (
        "models.load('lock', length=10**5000)",
        "DeclarationError",
        "states",
    ),
    "rocksample": (
        "models.load('rocksample', size=5, rocks=[(k, k) for k in range(5)])",
        "DeclarationError",
        "states",
    ),
    "horizon of arrays": (
        "POMDP.of([1.0], [[[1.0]]], [[1.0]], [[1.0]], horizon=10**9)",
        "PlanningError",
        "horizon",
    ),
    "draws of a rule": ("explorers.value_quantile(draws=10**9)", "ParameterError", "draws"),
    "draws of a rule in a model": (
        "learn(tiger, explorers.value_quantile(draws=10**8), alpha_vectors(), episodes=1)",
        "ParameterError",
        "draws",
    ),
    "plans of a rule": (
        "learn(tiger, explorers.value_quantile(draws=10**6), history_tree(), episodes=1)",
        "ParameterError",
        "candidates",
    ),
    "draws of a posterior": ("belief.draws(key, 10**9)", "InferenceError", "draws"),
    "parameters of a posterior": ("belief.parameters(key, 10**9)", "InferenceError", "draws"),
    "worlds of a posterior": ("belief.worlds(key, 10**9)", "InferenceError", "draws"),
    "chains": (
        "posterior(tiger.homdp, Counts.zero(tiger), method='nuts', sampling=Sampling(draws=10**9))",
        "InferenceError",
        "sampling.draws",
    ),
    "particles": ("particle_tree(particles=10**9)(tiger)", "PlanningError", "particles"),
    "particles of a tree": (
        "particle_tree(simulations=10**6, tree_particles=10**6)(tiger)",
        "PlanningError",
        "simulations",
    ),
    "simulations": ("particle_tree(simulations=10**5000)(tiger)", "PlanningError", "simulations"),
    "episodes to simulate": (
        "estimate(uniform_policy(tiger), tiger, key, 10**10)",
        "HOMDPError",
        "episodes",
    ),
    "keys": (
        "rollout(np.zeros((40_000_000, 2), dtype=np.uint32), tiger, uniform_policy(tiger))",
        "DataError",
        "key",
    ),
    "a policy of a long horizon": ("uniform_policy(huge)", "PolicyError", "horizon"),
    "padding": (
        "Episodes.of([Episode.of(['c'], ['e'], ['a', 'b'], huge, ended='truncated')], huge)",
        "DataError",
        "observations",
    ),
    "counts": ("Counts.zero(wide)", "DataError", "states"),
    "a tree of 10^1000 histories": (
        "history_tree()(tiger.with_horizon(100_000).pomdp)",
        "PlanningError",
        "horizon 100000",
    ),
    "long histories": (
        "GraphPolicy.from_policy(Stays(), chain, max_nodes=10**6)",
        "PolicyError",
        "policy",
    ),
    "trajectories": (
        "trajectory_distance(uniform_policy(tiger), *[tiger.with_horizon(30).pomdp] * 2)",
        "PlanningError",
        "horizon",
    ),
    "cells": (
        "quantised(max_cells=10**9)(gaussian)",
        "PlanningError",
        "max_cells",
    ),
    "cells between given edges": (
        "plan_on_cells(gaussian, np.linspace(-1, 1, 10**6))",
        "PlanningError",
        "max_cells",
    ),
    "quantiles": (
        "homdp_ppl.confidence.quantile_radii(belief, key, 1e-9)",
        "InferenceError",
        "delta",
    ),
}


@pytest.fixture(scope="module")
def outcomes():
    if sys.platform != "linux":
        pytest.skip("memory limits need Linux")
    return attacked(SETUP, {name: attack for name, (attack, _, _) in ATTACKS.items()})


@pytest.mark.parametrize("name", ATTACKS)
def test_errors_are_raised_before_allocation(name, outcomes):
    _, error, where = ATTACKS[name]
    found, places, grown = outcomes[name]
    assert found == error
    assert where in places
    assert grown < LIMIT


def test_the_budget_is_four_gigabytes_by_default(monkeypatch):
    monkeypatch.delenv("HOMDP_MEMORY", raising=False)
    assert memory_budget() == 4 * 10**9
    monkeypatch.setenv("HOMDP_MEMORY", "0.5")
    assert memory_budget() == 5 * 10**8
    assert memory_problems("draws", "5", 5 * 10**8) == []
    (problem,) = memory_problems("draws", "5", 5 * 10**8 + 1, "Use fewer.")
    assert (problem.where, problem.remedy) == ("draws", "Use fewer.")


@pytest.mark.parametrize("given", ["much", "-1", "0", "nan", "inf"])
def test_an_invalid_budget_raises(given, monkeypatch):
    monkeypatch.setenv("HOMDP_MEMORY", given)
    with pytest.raises(HOMDPError) as caught:
        require_memory(HOMDPError, "test", "x", "1", 1)
    assert [problem.where for problem in caught.value.problems] == ["HOMDP_MEMORY"]


def test_sizes_are_formatted():
    assert [amount(n) for n in (0, 999, 1500, 10**7, 2 * 10**12, 10**5000)] == [
        "0 bytes",
        "999 bytes",
        "1.5 kB",
        "10 MB",
        "2 TB",
        "10^5000 bytes",
    ]
    assert [count(n) for n in (0, 1234, -(10**5000))] == ["0", "1,234", "about -10^5000"]

"""Float64 precision inside the library without changes of global settings."""

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from homdp_ppl import x64
from homdp_ppl.precision import in_x64
from tests.worlds import world

# Compares global settings before and after the library is imported and used.
CHILD = """
import json, jax, numpyro, numpy
from numpyro.distributions import distribution

def settings():
    values = {k: repr(v) for k, v in jax.config.values.items()}
    validation = repr(distribution._VALIDATION_ENABLED)
    return {**values, "numpyro": validation, "numpy": repr(numpy.geterr())}

before = settings()
import homdp_ppl
for name in homdp_ppl.__all__:
    getattr(homdp_ppl, name)
imported = settings()
from homdp_ppl import models, rollout, uniform_policy
world = models.load("tiger")
rollout(jax.random.key(0), world, uniform_policy(world))
try:
    world.homdp.at(accuracy=2.0)
except ValueError:
    pass
after = settings()
print(json.dumps([before == imported, imported == after, str(jax.numpy.ones(1).dtype)]))
"""


def test_importing_and_using_changes_no_global_setting():
    out = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, check=True)
    assert json.loads(out.stdout) == [True, True, "float32"]


def test_numbers_are_float64_numpy_arrays():
    made = world("tiger")
    models = made.pomdp, made.homdp.tables({"accuracy": 0.3})
    for value in (*models[0], *models[1], made.parameters["accuracy"]):
        assert isinstance(value, np.ndarray)
        assert value.dtype == (bool if any(value is model.terminal for model in models) else float)
    assert made.pomdp.shows(0)[0, 0] == 0.85  # in float32 it would be 0.8500000238


def test_transformations_by_the_caller_use_float64():
    tables = world("tiger").homdp.tables
    for batch in (np.array([0.25, 0.75]), jnp.array([0.25, 0.75])):
        assert jax.vmap(tables)({"accuracy": batch}).emission.dtype == np.float64
    assert jax.jit(tables)({"accuracy": 0.25}).emission.dtype == np.float64


def test_the_context_ends_with_the_block_and_after_errors():
    with x64():
        assert jnp.ones(1).dtype == jnp.float64
    assert jnp.ones(1).dtype == jnp.float32

    @in_x64
    def fails():
        raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert jnp.ones(1).dtype == jnp.float32

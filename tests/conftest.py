"""What all tests share. Float64 is not switched on here: the library must bring its own."""

import os
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from hypothesis import settings

# Most of the time goes into compiling, and many tests declare the same models: what was compiled is
# kept for the next run. Each worker has its own folder, because JAX writes entries in place and
# another process could read one that is half written.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
CACHE = {
    "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).parents[1] / ".pytest_cache" / "jax" / WORKER),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
# Programs of tests are small: what optimising them takes, running them does not repay. `make
# test-slow` runs them as users do.
for name, value in {**CACHE, "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}.items():
    os.environ.setdefault(name, value)

matplotlib.use("Agg")
settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=25, print_blob=False
)
settings.load_profile("steady")


@pytest.fixture(autouse=True)
def figures_are_closed():
    """After every test: an open picture keeps its memory, and beyond twenty matplotlib warns."""
    yield
    plt.close("all")

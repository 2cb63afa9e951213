"""What all tests share. Float64 is not switched on here: the library must bring its own."""

import os
from pathlib import Path

# Programs of tests are small: what optimising them takes, running them does not repay. `make
# test-slow` runs them as users do. JAX reads these when it is imported.
SETTINGS = {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
for name, value in SETTINGS.items():
    os.environ.setdefault(name, value)

import jax  # noqa: E402
import matplotlib  # noqa: E402
import matplotlib.pyplot as plt  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

# Most of the time goes into compiling, and many tests declare the same models: what was compiled is
# kept for the next run. JAX writes entries in place, and reading one that is half written can crash
# the process. So each worker has its own folder, and the processes that tests start, and kill, have
# another one. A worker inherits the environment of the process that started it: set, not default.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
COMPILED = Path(__file__).parents[1] / ".pytest_cache" / "jax"
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(COMPILED / f"{WORKER}-children")
jax.config.update("jax_compilation_cache_dir", str(COMPILED / WORKER))
matplotlib.use("Agg")
settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=25, print_blob=False
)
settings.load_profile("steady")
collect_ignore = ["study/marks"]  # changes the storage layer of processes that tests kill


@pytest.fixture(autouse=True)
def figures_are_closed():
    """After every test: an open picture keeps its memory, and beyond twenty matplotlib warns."""
    yield
    plt.close("all")


@pytest.fixture(autouse=True, scope="module")
def compiled_programs_are_released():
    """After a module, if there are many.

    Each compiled program takes memory maps. Linux grants a process 65,530 by default, and the
    compiler crashes when none are left.
    """
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > 20_000:
        jax.clear_caches()

"""Settings of all tests. Float64 is not enabled here, because the library must do so itself."""

import os
from pathlib import Path

# Programs in tests are small, so optimising them takes longer than running them. `make test-slow`
# uses the default settings. JAX reads these variables when it is imported.
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

# Most of the time is spent on compilation, and many tests declare the same models, so compiled
# programs are kept for the next run. JAX writes cache entries in place, and reading a partial entry
# can crash the process. Each worker therefore has its own folder, and the processes that tests
# start and kill use another one. Workers inherit the environment: set the variable, always.
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "main")
COMPILED = Path(__file__).parents[1] / ".pytest_cache" / "jax"
os.environ["JAX_COMPILATION_CACHE_DIR"] = str(COMPILED / f"{WORKER}-children")
jax.config.update("jax_compilation_cache_dir", str(COMPILED / WORKER))
matplotlib.use("Agg")
settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=25, print_blob=False
)
settings.load_profile("steady")
collect_ignore = ["study/marks"]  # it changes the storage layer of processes that tests kill


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Close figures after every test: they use memory, and matplotlib warns beyond twenty."""
    yield
    plt.close("all")


@pytest.fixture(autouse=True, scope="module")
def compiled_programs_are_released():
    """Clear JAX's caches after a module if there are many compiled programs.

    Each compiled program uses memory maps. By default, Linux allows 65,530 per process, and the
    compiler crashes if none are left.
    """
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > 20_000:
        jax.clear_caches()

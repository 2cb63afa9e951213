"""Digests of arrays for golden.json, and descriptions of how an array differs from its digest."""

from __future__ import annotations

import json
import os
import platform
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from homdp_ppl import x64
from jax.scipy.special import gammaln

from tests.golden import cases

HERE = Path(__file__).parent
FILES = {"default": HERE / "golden.json", "slow": HERE / "golden_slow.json"}
SETTINGS = ("JAX_DISABLE_MOST_OPTIMIZATIONS", "XLA_FLAGS")  # they change the last bits
SUITES = {"default": cases.CASES, "slow": cases.SLOW}
LIBRARIES = ("jax", "jaxlib", "numpy", "numpyro", "scipy", "numba")
KEPT = 64  # largest number of entries of an array that are recorded
CLOSE = 1e-9  # relative
ROUNDING = "values agree to 1e-9"  # in a description: rounding explains the difference
SMALL = 1e-3  # errors of smaller numbers are relative to this: 1e-17 instead of 0 is rounding


def describe(value: Any) -> dict[str, Any]:
    """Kind, shape and digest of an array, and some of its entries to measure differences.

    Floats are converted to float64, integers to int64; -0.0 becomes 0.0, and all nans are equal.
    """
    if isinstance(value, str):
        return {"kind": "str", "text": value}
    array = _plain(value)
    flat = array.ravel()
    found: dict[str, Any] = {
        "kind": array.dtype.kind,
        "shape": list(array.shape),
        "sha256": sha256(np.ascontiguousarray(array).tobytes()).hexdigest(),
    }
    if flat.size:
        rounded = [flat.sum(), flat[0], flat[-1]]
        found["sum, first, last"] = [_written(f"{float(number):.6g}") for number in rounded]
    if array.dtype.kind == "f":
        found["kept"] = [_written(number) for number in kept(flat)]
    return found


def kept(flat: np.ndarray) -> np.ndarray:
    """All entries of a short array; of a long one, evenly spaced entries including both ends."""
    if flat.size <= KEPT:
        return flat
    return flat[np.linspace(0, flat.size - 1, KEPT).astype(int)]


def difference(golden: dict[str, Any], now: dict[str, Any]) -> str | None:
    """Describe how an array differs from the recorded one; None if it is equal to the last bit."""
    if golden == now:
        return None
    for what in ("kind", "shape"):
        if golden.get(what) != now.get(what):
            return f"{what} was {golden.get(what)}, is {now.get(what)}"
    if golden["kind"] == "str":
        return f"text was {golden['text']!r}, is {now['text']!r}"
    sums = f"sum, first, last were {golden['sum, first, last']}, are {now['sum, first, last']}"
    if golden["kind"] != "f":
        return f"integers differ; {sums}"
    was, are = (np.array(found["kept"], dtype=float) for found in (golden, now))
    with np.errstate(invalid="ignore"):
        error = np.abs(was - are) / np.maximum(np.maximum(np.abs(was), np.abs(are)), SMALL)
    same = (was == are) | (np.isnan(was) & np.isnan(are))
    error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
    largest = float(error.max(initial=0.0))
    count = "all" if np.prod(golden["shape"], dtype=int) <= KEPT else f"{KEPT} of all"
    if largest <= CLOSE:
        return f"{ROUNDING} (by {largest:.1e}, {count} entries compared); {sums}"
    return f"values differ by {largest:.3g} relative ({count} entries compared); {sums}"


def read(suite: str) -> dict[str, Any]:
    """Read the recorded digests."""
    found: dict[str, Any] = json.loads(FILES[suite].read_text())
    return found


def write(suite: str, found: dict[str, dict[str, Any]]) -> None:
    """Write the digests to a file, one line per array."""
    about = {**settings(), **versions(), "arithmetic": arithmetic(), "processor": processor()}
    lines = [f' "about": {json.dumps(about)}']
    for name, arrays in found.items():
        rows = [f"  {json.dumps(array)}: {json.dumps(digest)}" for array, digest in arrays.items()]
        lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(rows) + "\n }")
    FILES[suite].write_text("{\n" + ",\n".join(lines) + "\n}\n")


def settings() -> dict[str, str]:
    """Settings of the compiler."""
    return {name: os.environ.get(name, "") for name in SETTINGS}


def versions() -> dict[str, str]:
    """Versions of the libraries that compute the results."""
    return {library: version(library) for library in LIBRARIES}


def arithmetic() -> str:
    """A digest of rounding, which may differ between processors and library versions."""
    numbers = np.linspace(0.01, 1.0, 4096).reshape(64, 64)

    def computed(xp: Any, a: Any) -> list[Any]:
        return [a @ a.T, xp.exp(a), xp.log(a), xp.tanh(a), xp.cumsum(a, 1), a / a.sum(0), a**0.3]

    with x64():
        compiled = jax.jit(lambda a: [*computed(jnp, a), gammaln(10 * a), a * a + a])(numbers)
    found = [*computed(np, numbers), *(np.asarray(part) for part in compiled)]
    return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in found)).hexdigest()


def processor() -> str:
    """A digest of the kind of processor; the last bits may differ even if `arithmetic` agrees."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    kinds = {line for line in lines if line.startswith(("model name", "flags", "CPU part"))}
    return sha256("\n".join(sorted(kinds)).encode()).hexdigest()


def _written(number: Any) -> float | None:
    """A number for JSON, where nan becomes null."""
    return None if np.isnan(float(number)) else float(number)


def _plain(value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind in "biu":
        return array.astype(np.int64)
    array = array.astype(np.float64) + 0.0
    return np.where(np.isnan(array), np.nan, array)

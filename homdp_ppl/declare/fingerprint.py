"""Fingerprints: equal declarations and equal worlds have equal fingerprints.

A declaration is identified by its names, spaces, sites and rewards, and by the results of its
program at probe points. Source code and bytecode do not matter.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import jax
import numpy as np

from homdp_ppl.precision import Array

DIGITS = 1e9  # relative precision: numbers that agree to one part in DIGITS count as equal


def fingerprint(*parts: Any) -> str:
    """A digest of names, tuples and exact arrays."""
    hashed = sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            hashed.update(repr((part.shape, part.dtype.str)).encode())
            hashed.update(np.ascontiguousarray(part).tobytes())
        else:
            hashed.update(repr(part).encode())
    return hashed.hexdigest()


def probe_digest(shown: Any) -> str:
    """A digest of a program's results, a tree of arrays, up to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> one, two = {"T": np.array([0.5, 0.25])}, {"T": np.array([0.5, 0.25 + 1e-14])}
    >>> probe_digest(one) == probe_digest(two), probe_digest(one) == probe_digest({})
    (True, False)
    """
    leaves = jax.tree_util.tree_flatten_with_path(shown)[0]
    parts = [part for path, leaf in leaves for part in (str(path), *_rounded(np.asarray(leaf)))]
    return fingerprint(*parts)


def _rounded(array: Array) -> tuple[Array, Array]:
    """The leading digits and the exponents of numbers."""
    if array.dtype.kind in "iub":
        return array.astype(np.int64), np.zeros(0)
    with np.errstate(invalid="ignore"):
        mantissa, exponent = np.frexp(array.astype(np.float64))
        digits = np.where(np.isfinite(mantissa), np.rint(mantissa * DIGITS), 0.0) + 0.0
    special = np.select([np.isnan(array), array == np.inf, array == -np.inf], [1, 2, 3], 0)
    return np.stack([digits, np.where(special > 0, -special, exponent)]), special

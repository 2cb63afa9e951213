"""Float64 precision without a global JAX setting, and conversions between NumPy and JAX.

Importing homdp_ppl changes no JAX setting. Every public function that computes numbers enters
:func:`x64` during the call. It returns NumPy arrays, or JAX arrays if its arguments are traced. If
you apply ``jit``, ``grad`` or ``MCMC`` to ``homdp.program`` yourself, wrap your code in
``with homdp_ppl.x64():``. The same key gives different random numbers inside and outside of this
context; this package always draws inside.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, ParamSpec, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

# A NumPy array, or a JAX array where the code may be traced.
Array: TypeAlias = jax.Array | np.ndarray[Any, Any]


def x64() -> AbstractContextManager[None]:
    """Compute in float64 inside a ``with`` block, regardless of JAX's global setting.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> with x64():
    ...     print(jnp.ones(1).dtype)
    float64
    """
    context: AbstractContextManager[None] = jax.enable_x64(True)
    return context


def in_x64(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that it runs inside :func:`x64`."""

    @functools.wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        positional = [_with_fixed_types(value) for value in args]
        named = {name: _with_fixed_types(value) for name, value in kwargs.items()}
        with x64():
            return function(*positional, **named)

    return inside


def _with_fixed_types(tree: Any) -> Any:
    """Copy the tracers of a tree.

    A tracer of a float32 transformation may still contain a float64 NumPy array. A copy has a
    definite type.
    """
    if isinstance(tree, dict) and len({type(key) for key in tree}) > 1:
        return tree  # not a valid pytree: JAX cannot sort these keys
    return jax.tree.map(
        lambda leaf: jnp.copy(leaf) if isinstance(leaf, jax.core.Tracer) else leaf, tree
    )


def to_numpy(tree: R) -> R:
    """Convert the arrays of a pytree to NumPy; traced values are left unchanged."""
    converted: R = jax.tree.map(
        lambda leaf: leaf if isinstance(leaf, jax.core.Tracer) else np.asarray(leaf), tree
    )
    return converted


def namespace(*trees: Any) -> ModuleType:
    """Return ``jax.numpy`` if one of the arrays is a JAX array or traced, else ``numpy``."""
    return jnp if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(trees)) else np

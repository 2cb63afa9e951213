"""Float64 without a global switch: the one place where precision is decided.

Importing homdp_ppl changes no JAX setting. Every public function that computes numbers enters
:func:`x64` for the length of the call and hands back NumPy arrays, or JAX arrays when it is called
on traced values. People who compose ``jit``, ``grad`` or ``MCMC`` around ``homdp.program``
themselves write ``with homdp_ppl.x64():`` around their own code. The same key draws different
numbers inside and outside of that context; everything the toolkit draws is drawn inside.
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
    """Compute in float64 inside a ``with`` block, whatever JAX's global setting is.

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
    """Run a function inside :func:`x64`."""

    @functools.wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        settled = [_settled(value) for value in args]
        named = {name: _settled(value) for name, value in kwargs.items()}
        with x64():
            return function(*settled, **named)

    return inside


def _settled(tree: Any) -> Any:
    """A tracer of a float32 transformation may still hold a float64 NumPy array: a copy settles
    which it is.
    """
    if isinstance(tree, dict) and len({type(key) for key in tree}) > 1:
        return tree  # not a tree: JAX cannot sort these keys
    return jax.tree.map(
        lambda leaf: jnp.copy(leaf) if isinstance(leaf, jax.core.Tracer) else leaf, tree
    )


def to_numpy(tree: R) -> R:
    """A pytree with its arrays as NumPy arrays; traced values are left alone."""
    converted: R = jax.tree.map(
        lambda leaf: leaf if isinstance(leaf, jax.core.Tracer) else np.asarray(leaf), tree
    )
    return converted


def namespace(*trees: Any) -> ModuleType:
    """The module that computes with these arrays.

    ``jax.numpy`` if one of them is a JAX array or traced, else ``numpy``.
    """
    return jnp if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(trees)) else np

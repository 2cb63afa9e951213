"""The forms in which rewards and costs are declared: arrays, plain functions, traced functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import Distribution

from homdp_ppl.core.numbers import masked_problems
from homdp_ppl.core.probabilities import reward_entry
from homdp_ppl.core.spaces import Real, Space, Spaces, shape_of
from homdp_ppl.declare.distributions import TRACER_ERRORS, tracer_problem
from homdp_ppl.declare.purity import SAMPLED, abstract_run, changes
from homdp_ppl.declare.signatures import Recognised
from homdp_ppl.declare.spaces import after_end, declared_observations
from homdp_ppl.errors import Problem, with_article
from homdp_ppl.memory import NUMBER, count, memory_problems
from homdp_ppl.precision import Array

NUMERIC = ("b", "i", "u", "f", "O")  # kinds of arrays that may hold rewards
SHORT_FORMS = ("XA", "HXA", "HXYA")  # axes of reward arrays
COPIES = 4  # of the numbers of a reward function
LISTED = 8  # invalid numbers that are reported
REACH = 4.0  # scale of the real-valued states and observations at which functions are tried


def negated(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with the same arguments that returns the negative."""

    @wraps(function)
    def reward(*args: Any, **given: Any) -> Any:
        return -function(*args, **given)

    return reward


def _forms(spaces: Spaces) -> dict[str, tuple[int, ...]]:
    """The shapes of reward arrays, by their axes; real-valued observations have no axis."""
    sizes = {
        name: len(space)
        for name, space in zip("XYA", declared_observations(spaces)[:3], strict=True)
        if not isinstance(space, Real)
    }
    sizes["H"] = spaces.horizon
    return {
        axes: tuple(sizes[axis] for axis in axes) for axes in SHORT_FORMS if set(axes) <= set(sizes)
    }


def from_array(where: str, given: Any, spaces: Spaces) -> tuple[Array | None, list[Problem]]:
    """An array of rewards as (H|1, X, Y|1, A), and its problems."""
    forms = _forms(spaces)
    shapes = " or ".join(map(str, forms.values()))
    expected = f"shape {shapes}, or a function of x and a" if forms else "a function of x and a"
    try:
        if isinstance(given, Distribution):
            raise TypeError("a distribution; rewards are known numbers")
        kind = getattr(getattr(given, "dtype", None), "kind", "O")
        if kind not in NUMERIC:
            raise TypeError(f"values of type {given.dtype}")
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        return None, [Problem(where, f"{type(error).__name__}: {error}", expected)]
    if not forms:
        remedy = f"Write {where}=lambda x, a: jnp.where(...)."
        return None, [Problem(where, with_article(type(given).__name__), expected, remedy)]
    missing = masked_problems(where, given)
    if missing:
        return None, missing
    axes = next((axes for axes, shape in forms.items() if numbers.shape == shape), None)
    if axes is None:
        remedy = "Its axes are (state, action), with the step first if rewards depend on it."
        return None, [Problem(where, f"an array of shape {numbers.shape}", expected, remedy)]
    table: Array = numbers if "H" in axes else numbers[None]
    table = _ended(table, spaces) if "Y" in axes else table[:, :, None].copy()
    table[after_end(table.shape, spaces)] = 0.0
    return table, _invalid(where, table, spaces)


def _ended(table: Array, spaces: Spaces) -> Array:
    """A copy of a table (H, X, Y, A) with a place for the observation of terminal states."""
    return np.pad(table, ((0, 0), (0, 0), (0, int(bool(spaces.terminal))), (0, 0)))


def _invalid(where: str, table: Array, spaces: Spaces) -> list[Problem]:
    """Problems for numbers that are not finite."""
    return [
        Problem(
            where,
            f"{table[index]:.6g}",
            "a finite number",
            at=reward_entry(index, table.shape, spaces),
        )
        for index in map(tuple, np.argwhere(~np.isfinite(table))[:LISTED])
    ]


def from_function(
    where: str, call: Recognised, spaces: Spaces
) -> tuple[Array | None, list[Problem]]:
    """The numbers of a plain function as (H|1, X, Y|1, A), and its problems."""
    X, Y, A, H = spaces.sizes
    sizes = (H if "h" in call.takes else 1, X, Y if "y" in call.takes else 1, A)
    got = " x ".join(count(size) for size in sizes) + " numbers"
    too_large = memory_problems(where, got, COPIES * NUMBER * int(np.prod(sizes, dtype=object)))
    if too_large:
        return None, too_large

    over = after_end(sizes, spaces)

    def run() -> Array:
        table = np.zeros(sizes)
        for h, x, y, a in product(*map(range, sizes)):
            if not over[h, x, y, a]:
                table[h, x, y, a] = float(call(h=h + 1, x=x, y=y, a=a))
        return table

    try:
        table, again = run(), run()
    except (TypeError, ValueError) as error:
        got = f"{type(error).__name__}: {error}"
        return None, [Problem(where, got, "a function that returns one number")]
    if not np.array_equal(table, again, equal_nan=True):
        got, expected = "different numbers in a second run", "the same numbers in every run"
        return None, [Problem(where, got, expected, SAMPLED)]
    return table, _invalid(where, table, spaces)


def traced_problems(where: str, call: Recognised, spaces: Spaces) -> list[Problem]:
    """Trace a reward function: JAX must be able to trace it, and it must return one number."""
    expected = f"a function of {', '.join(call.takes) or 'x and a'} that returns one number"

    def run(key: Array) -> dict[str, Array]:
        return {where: jnp.asarray(call(**_point(spaces, key)), float)}

    try:
        runs = [abstract_run(run) for _ in range(2)]
    except tuple(TRACER_ERRORS) as error:
        return [tracer_problem(where, error)]
    except (TypeError, ValueError) as error:
        return [Problem(where, f"{type(error).__name__}: {error}", expected)]
    shape = runs[0].results[where].shape
    return [Problem(where, f"values of shape {shape}", expected)] if shape else changes(*runs)


def _point(spaces: Spaces, key: Array) -> dict[str, Array]:
    """Arguments at which to try a function; they depend on the key."""

    def some(space: Space, number: int) -> Array:
        own = jax.random.fold_in(key, number)
        if isinstance(space, Real):
            return REACH * jax.random.normal(own, shape_of(space), jnp.result_type(float))
        return jax.random.randint(own, (), 0, len(space))

    step = 1 + jax.random.randint(jax.random.fold_in(key, 3), (), 0, spaces.horizon)
    return {
        "x": some(spaces.states, 0),
        "a": some(spaces.actions, 1),
        "y": some(spaces.observations, 2),
        "h": step,
    }

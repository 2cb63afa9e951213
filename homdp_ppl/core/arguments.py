"""Checks of numeric arguments: counts, probabilities, ranges, shapes.

Each ``*_problems`` function takes arguments by name and returns all problems it finds;
:func:`refuse` raises them in one error. Traced JAX values cannot be checked and are accepted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import Any

import jax
import numpy as np

from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.errors import HOMDPError, ParameterError, Problem, TracedError, shown
from homdp_ppl.memory import NUMBER, count, memory_problems

PROBABILITY = "a probability in (0, 1)"
LARGEST = 10**30  # products of larger sizes may overflow float64
CLASSES = ("size", "transitions", "emissions")  # unlimited: only their logarithms are used


def refuse(error: type[HOMDPError], subject: str, problems: Iterable[Problem]) -> None:
    """Raise an error if there are any problems."""
    found = list(problems)
    if found:
        raise error(subject, found)


def is_count(value: Any, least: int = 1) -> bool:
    """Whether a value is an integer of at least ``least``; booleans are not."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and int(value) >= least


def count_problems(least: int = 1, **given: Any) -> list[Problem]:
    """Check arguments that must be integers of at least ``least``.

    Examples
    --------
    >>> print(*count_problems(episodes=0, seeds=3))
    episodes: got 0; expected an integer of at least 1
    """
    expected = f"an integer of at least {least}"
    return [_problem(n, v, expected) for n, v in given.items() if not is_count(v, least)]


def size_problems(least: int = 1, **given: Any) -> list[Problem]:
    """Check arguments that are sizes of arrays: integers, and the arrays must fit in memory.

    Examples
    --------
    >>> [problem.where for problem in size_problems(draws=10**9, particles=0, candidates=5)]
    ['particles', 'draws']
    """
    problems = count_problems(least, **given)
    for name, value in given.items():
        if is_count(value, least):
            got, remedy = count(int(value)), f"Use fewer {name}."
            problems += memory_problems(name, got, NUMBER * int(value), remedy)
    return problems


def number_problems(least: float = 0.0, **given: Any) -> list[Problem]:
    """Check arguments that must be finite numbers of at least ``least``, or arrays of them."""
    expected = "a non-negative number" if least == 0 else f"a number of at least {least:g}"
    return [
        _problem(name, value, expected)
        for name, value in given.items()
        if not _within(value, least, math.inf, closed=True)
    ]


def between_problems(low: float, high: float, expected: str = "", **given: Any) -> list[Problem]:
    """Check arguments that must be numbers in an open interval."""
    ends = f"above {low:g}" if high == math.inf else f"strictly between {low:g} and {high:g}"
    expected = expected or f"a number {ends}"
    return [
        _problem(name, value, expected)
        for name, value in given.items()
        if not _within(value, low, high, closed=False)
    ]


def probability_problems(**given: Any) -> list[Problem]:
    """Check arguments that must be probabilities strictly between 0 and 1."""
    return between_problems(0.0, 1.0, PROBABILITY, **given)


def share_problems(**given: Any) -> list[Problem]:
    """Check arguments that must be probabilities, including 0 and 1."""
    return [
        _problem(name, value, "a probability in [0, 1]")
        for name, value in given.items()
        if not (_within(value, 0.0, math.inf, closed=True) and np.all(np.asarray(value) <= 1))
    ]


def flag_problems(**given: Any) -> list[Problem]:
    """Check arguments that must be True or False."""
    return [
        _problem(name, value, "True or False")
        for name, value in given.items()
        if not isinstance(value, bool | np.bool_)
    ]


def choice_problems(choices: Iterable[str], **given: Any) -> list[Problem]:
    """Check arguments that must be one of several strings."""
    known = list(choices)
    expected = " or ".join(f'"{choice}"' for choice in known)
    return [
        Problem(name, shown(value), expected)
        for name, value in given.items()
        if not (isinstance(value, str) and value in known)
    ]


def check_arguments(subject: str, **given: Any) -> None:
    """Raise a ParameterError for numbers outside the range that belongs to their name.

    Examples
    --------
    >>> from homdp_ppl import ParameterError
    >>> try:
    ...     check_arguments("tight", delta=1.5, scale=-1.0)
    ... except ParameterError as error:
    ...     print([problem.where for problem in error.problems])
    ['delta', 'scale']
    """
    problems = [p for name, value in given.items() for p in _CHECKS[name](**{name: value})]
    refuse(ParameterError, subject, problems)


def broadcast_problems(**given: Any) -> list[Problem]:
    """Check that the shapes of arguments broadcast."""
    shapes = {name: np.shape(value) for name, value in given.items()}
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:  # raised by NumPy, never by user code
        got = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        return [Problem("shapes", got, "numbers, or arrays of the same shape")]
    return []


def scalar_problems(**given: Any) -> list[Problem]:
    """Check arguments that must be single numbers, not arrays."""
    return [
        Problem(name, f"shape {value.shape}", "one number")
        for name, value in given.items()
        if isinstance(value, np.ndarray | jax.Array) and value.ndim
    ]


def check_sizes(
    subject: str,
    between: Mapping[str, tuple[Any, tuple[float, float]]] | None = None,
    **counts: Any,
) -> tuple[int, ...]:
    """Check integers of at least 1 and return them as Python integers.

    Python integers cannot overflow.

    Parameters
    ----------
    subject
        The function that was called.
    between
        Further numbers by name, each with the open interval that must contain it.
    counts
        The integers.
    """
    traced = [value for value, _ in (between or {}).values() if isinstance(value, jax.core.Tracer)]
    if traced:
        remedy = "Call this function outside of jit, vmap and grad."
        problem = Problem("arguments", "traced JAX values", "numbers", remedy)
        raise TracedError(subject, [problem])
    problems = count_problems(**counts)
    problems += [
        _problem(name, value, f"at most {LARGEST:.0e}")
        for name, value in counts.items()
        if is_count(value) and value > LARGEST and name not in CLASSES
    ]
    for name, (value, (low, high)) in (between or {}).items():
        several = scalar_problems(**{name: value})
        problems += several
        if several:
            continue
        if isinstance(value, jax.Array):  # of less precision than these formulas need
            problems.append(_problem(name, value, "a Python or NumPy number"))
        else:
            problems += between_problems(low, high, **{name: value})
    refuse(ParameterError, subject, problems)
    return tuple(int(value) for value in counts.values())


_CHECKS: dict[str, Callable[..., list[Problem]]] = {
    **dict.fromkeys(("delta", "level", "mass", "epsilon", "q"), probability_problems),
    **dict.fromkeys(("scale", "z", "span"), number_problems),
    **dict.fromkeys(("episodes", "size", "c", "outcomes"), partial(number_problems, 1.0)),
    **dict.fromkeys(("n", "variance", "beta"), number_problems),
    "draws": lambda draws: size_problems(draws=draws),
}


def _within(value: Any, low: float, high: float, closed: bool) -> bool:
    if isinstance(value, jax.core.Tracer):
        return True
    if not isinstance(value, Real | np.ndarray | np.number | jax.Array) or isinstance(value, bool):
        return False
    numbers = as_numbers("", value, "")[0]
    if numbers is None or np.asarray(value).dtype.kind not in "iuf":
        return False
    if numbers.size == 0:
        return False
    above = numbers >= low if closed else numbers > low
    return bool(np.all(above & (numbers < high)))


def _problem(name: str, value: Any, expected: str) -> Problem:
    if type(value).__name__ == "POMDP":
        return Problem(name, "a POMDP", expected, "Create the planner first: planner()(pomdp).")
    return Problem(name, shown(value, 80), expected)

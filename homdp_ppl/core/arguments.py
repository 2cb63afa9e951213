"""Argument checks: what numbers a function may be given, and the errors for all others.

Each ``*_problems`` function looks at several arguments by name and returns every problem it finds;
:func:`refuse` raises them together. Values that JAX is tracing cannot be looked at and pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import partial
from numbers import Integral, Real
from typing import Any

import jax
import numpy as np

from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.errors import HOMDPError, ParameterError, Problem
from homdp_ppl.precision import Array

PROBABILITY = "a probability in (0, 1)"


FACTORIES = ("Explorer", "Planner", "World", "HOMDP")  # what functions make that are often not called
REMEDIES = {  # of a type where another is wanted
    ("World", "HOMDP"): "Pass its declaration: world.homdp.",
    ("World", "POMDP"): "Pass its numbers: world.pomdp.",
    ("HOMDP", "POMDP"): "Fix its parameters first: model.at(...).pomdp.",
    ("HOMDP", "World"): "Fix its parameters: model.at(...), or draw them: model.draw(key).",
    ("POMDP", "World"): "Declare it with tabular(...) and fix its parameters.",
    ("Plan", "Policy"): "Pass its policy: plan.policy.",
    ("Plan", "GraphPolicy"): "Pass its policy: plan.policy.",
    ("Run", "Policy"): "Pass its policy: run.policy.",
    ("Run", "GraphPolicy"): "Pass its policy: run.policy.",
    ("BlindPolicy", "GraphPolicy"): "GraphPolicy.from_policy(policy, model) writes it out.",
    ("Episodes", "Counts"): "Count them: model.counts(episodes).",
    ("Episode", "Counts"): "Count it: model.counts(episode).",
    ("Episodes", "Episode"): "Pass one of them: episodes[0].",
    ("Counts", "Posterior"): "Condition on them: posterior(model, counts).",
    ("Episodes", "Posterior"): "Condition on them: posterior(model, episodes).",
    ("Series", "Array"): "Pass its numbers: series.to_numpy().",
    ("DataFrame", "Array"): "Pass its numbers: frame.to_numpy().",
    ("list", "Array"): "Write np.array(...).",
    ("tuple", "Array"): "Write np.array(...).",
    ("int", "a JAX random key"): "Write jax.random.key(seed).",
}


def shown(value: Any) -> str:
    """A value in an error message: a short number or text as it is, otherwise its type."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, jax.core.Tracer):
        return "a value that JAX is tracing"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    if isinstance(value, np.ndarray | jax.Array):
        kind = "a masked array" if isinstance(value, np.ma.MaskedArray) else "an array"
        return f"{kind} of shape {np.shape(value)} and type {value.dtype}"
    plain = isinstance(value, int | float | str | bytes | Fraction | np.generic | None)
    plain = plain or isinstance(value, list | tuple | set | dict) and not hasattr(value, "_fields")
    # Large integers cannot be written out: Python refuses it, and nobody reads them.
    if plain and not (isinstance(value, int) and abs(value) >= 10**30):
        text = repr(value)
        if len(text) <= 80 and " at 0x" not in text:
            return text
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOUaeio' else 'a'} {name}"


def remedy_for(value: Any, wanted: str) -> str:
    """What to do about a value where a type with this name is wanted; may be empty."""
    if isinstance(value, type):
        return "" if wanted in ("int", "float", "str") else "Pass an instance of it."
    if isinstance(value, jax.core.Tracer):
        return "This function cannot be traced: call it outside of jit, vmap and grad."
    if callable(value) and hasattr(value, "__name__") and wanted in FACTORIES:
        return f"Call the function first: {value.__name__}(...)."
    return REMEDIES.get((type(value).__name__, wanted), "")


def as_numbers(value: Any) -> Array | None:
    """Real numbers as an array: from an array, a sequence, a number or a pandas object.

    None for anything else: texts, ragged or empty-handed sequences, complex numbers, objects,
    masked entries and values that JAX is tracing.
    """
    if isinstance(value, jax.core.Tracer | str | bytes | Mapping | set | type) or callable(value):
        return None
    if isinstance(value, Integral) and not isinstance(value, np.generic):
        return np.asarray(value) if abs(int(value)) < 2**63 else None
    if np.ma.is_masked(value) or value is None:
        return None
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):  # asked of the value itself
        return None
    return array if array.dtype.kind in "biuf" else None


def kind_problems(kind: type, **given: Any) -> list[Problem]:
    """Arguments that must be of a type.

    Examples
    --------
    >>> print(*kind_problems(POMDP, model=3))
    model: got 3; expected a POMDP
    """
    name = kind.__name__
    expected = f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"
    return [
        Problem(where, shown(value), expected, remedy_for(value, name))
        for where, value in given.items()
        if not isinstance(value, kind)
    ]


def flag_problems(**given: Any) -> list[Problem]:
    """Arguments that must be True or False."""
    return [
        _problem(name, value, "True or False")
        for name, value in given.items()
        if not isinstance(value, bool | np.bool_)
    ]


def refuse(error: type[HOMDPError], subject: str, problems: Iterable[Problem]) -> None:
    """Raise an error if there is any problem."""
    found = list(problems)
    if found:
        raise error(subject, found)


def is_count(value: Any, least: int = 1) -> bool:
    """Whether a value is a whole number of at least ``least``; truth values are not."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    return whole and int(value) >= least


def count_problems(least: int = 1, **given: Any) -> list[Problem]:
    """Arguments that must be whole numbers of at least ``least``.

    Examples
    --------
    >>> print(*count_problems(episodes=0, seeds=3))
    episodes: got 0; expected a whole number of at least 1
    """
    expected = f"a whole number of at least {least}"
    return [_problem(n, v, expected) for n, v in given.items() if not is_count(v, least)]


def number_problems(least: float = 0.0, **given: Any) -> list[Problem]:
    """Arguments that must be finite numbers of at least ``least``, or arrays of such numbers."""
    expected = "a number that is not negative" if least == 0 else f"a number of at least {least:g}"
    return [
        _problem(name, value, expected)
        for name, value in given.items()
        if not _within(value, least, math.inf, closed=True)
    ]


def between_problems(low: float, high: float, expected: str = "", **given: Any) -> list[Problem]:
    """Arguments that must be numbers strictly between two ends."""
    ends = f"above {low:g}" if high == math.inf else f"strictly between {low:g} and {high:g}"
    expected = expected or f"a number {ends}"
    return [
        _problem(name, value, expected)
        for name, value in given.items()
        if not _within(value, low, high, closed=False)
    ]


def probability_problems(**given: Any) -> list[Problem]:
    """Arguments that must be probabilities strictly between 0 and 1."""
    return between_problems(0.0, 1.0, PROBABILITY, **given)


def choice_problems(choices: Iterable[str], **given: Any) -> list[Problem]:
    """Arguments that must be one of several words."""
    known = list(choices)
    expected = " or ".join(f'"{choice}"' for choice in known)
    return [
        Problem(name, shown(value), expected)
        for name, value in given.items()
        if not (isinstance(value, str) and value in known)
    ]


def check_arguments(subject: str, **given: Any) -> None:
    """Raise a ParameterError for numbers outside their range; a name means the same everywhere.

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


def check_sizes(
    subject: str,
    between: Mapping[str, tuple[Any, tuple[float, float]]] | None = None,
    **counts: Any,
) -> tuple[int, ...]:
    """Whole numbers of at least 1 as Python integers, which cannot overflow.

    Parameters
    ----------
    subject
        The function that was called.
    between
        Further numbers by name, each with the two ends it must lie strictly between.
    counts
        The whole numbers.
    """
    problems = count_problems(**counts)
    for name, (value, (low, high)) in (between or {}).items():
        problems += between_problems(low, high, **{name: value})
    refuse(ParameterError, subject, problems)
    return tuple(int(value) for value in counts.values())


_CHECKS: dict[str, Callable[..., list[Problem]]] = {
    **dict.fromkeys(("delta", "level", "mass", "epsilon", "q"), probability_problems),
    **dict.fromkeys(("scale", "z", "span"), number_problems),
    **dict.fromkeys(("episodes", "size", "c", "outcomes"), partial(number_problems, 1.0)),
    "draws": count_problems,
}


def _within(value: Any, low: float, high: float, closed: bool) -> bool:
    if isinstance(value, jax.core.Tracer):
        return True
    if not isinstance(value, Real | np.ndarray | np.number | jax.Array) or isinstance(value, bool):
        return False
    numbers = as_numbers(value)
    if numbers is None or numbers.dtype.kind not in "iuf":
        return False
    above = numbers >= low if closed else numbers > low
    return bool(np.all(above & (numbers < high)))


def _problem(name: str, value: Any, expected: str) -> Problem:
    if isinstance(value, POMDP):
        return Problem(name, "a POMDP", expected, "Make the planner first: planner()(pomdp).")
    return Problem(name, shown(value), expected)

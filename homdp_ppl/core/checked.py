"""Type checks of the arguments of public functions, derived from their annotations.

A function decorated with ``@checked`` raises one error that lists all arguments of a wrong type,
before its body runs. Only types, and the entries of short containers, are checked here. Functions
check the ranges of numbers and the shapes of arrays themselves, with
:mod:`homdp_ppl.core.arguments`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.kinds import MANY, Kind, fields_of, kind_of, kinds_of
from homdp_ppl.errors import (
    DataError,
    HOMDPError,
    ParameterError,
    PlanningError,
    PolicyError,
    Problem,
    TracedError,
    shown,
    with_article,
)

P = ParamSpec("P")
R = TypeVar("R")

ERRORS: dict[str, type[HOMDPError]] = {  # by expected type; ParameterError for all others
    "POMDP": PlanningError,
    "Plan": PlanningError,
    "Policy": PolicyError,
    "GraphPolicy": PolicyError,
    "Episode": DataError,
    "Episodes": DataError,
    "Counts": DataError,
    "a JAX random key": DataError,
}
FACTORIES = ("Explorer", "Planner", "World", "HOMDP")  # types that factory functions return
REMEDIES = {  # by given type and expected type
    ("World", "HOMDP"): "Pass its declaration: world.homdp.",
    ("World", "POMDP"): "Pass its arrays: world.pomdp.",
    ("HOMDP", "POMDP"): "Fix its parameters first: homdp.at(...).pomdp.",
    ("HOMDP", "World"): "Fix its parameters: homdp.at(...), or draw them: homdp.draw(key).",
    ("POMDP", "World"): "Declare it with tabular(...) and fix its parameters.",
    ("Plan", "Policy"): "Pass its policy: plan.policy.",
    ("Plan", "GraphPolicy"): "Pass its policy: plan.policy.",
    ("Run", "Policy"): "Pass its policy: run.policy.",
    ("Run", "GraphPolicy"): "Pass its policy: run.policy.",
    ("BlindPolicy", "GraphPolicy"): "Convert it: GraphPolicy.from_policy(policy, model).",
    ("Episodes", "Counts"): "Count them: model.counts(episodes).",
    ("Episode", "Counts"): "Count it: model.counts(episode).",
    ("Episodes", "Episode"): "Pass one of them: episodes[0].",
    ("Counts", "Posterior"): "Condition on them: posterior(model, counts).",
    ("Episodes", "Posterior"): "Condition on them: posterior(model, episodes).",
    ("Series", "Array"): "Pass its values: series.to_numpy().",
    ("DataFrame", "Array"): "Pass its values: frame.to_numpy().",
    ("list", "Array"): "Pass an array: np.array(...).",
    ("tuple", "Array"): "Pass an array: np.array(...).",
    ("int", "a JAX random key"): "Make a key from the seed: jax.random.key(seed).",
}
TRACED = "This function cannot be traced: call it outside of jit, vmap and grad."


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Raise an error for arguments that do not have the annotated types.

    Examples
    --------
    >>> from homdp_ppl import ParameterError
    >>> @checked
    ... def repeat(text: str, times: int = 2) -> str:
    ...     return text * times
    >>> repeat("ab")
    'abab'
    >>> try:
    ...     repeat(3, times=True)
    ... except ParameterError as error:
    ...     print(*error.problems, sep="; ")
    text: got 3; expected a string; times: got True; expected an integer
    """
    return _checked(function, ())


def checked_but(*names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Like :func:`checked`, except for arguments that the function checks itself.

    Use it for numbers whose types and ranges are reported together, or that JAX may be tracing.
    """

    def decorator(function: Callable[P, R]) -> Callable[P, R]:
        return _checked(function, names)

    return decorator


def _checked(function: Callable[P, R], but: Collection[str]) -> Callable[P, R]:
    names = _positions(function)

    @functools.cache  # evaluated late: annotations may use names that are defined later
    def kinds() -> dict[str, Kind]:
        return {name: kind for name, kind in kinds_of(function).items() if name not in but}

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        known = kinds()
        for name, value in chain(zip(names, args, strict=False), kwargs.items()):
            kind = known.get(name)
            if kind is not None and not kind.accepts(value):
                given = [*zip(names, args, strict=False), *kwargs.items()]
                _raise(function.__qualname__.removesuffix(".__init__"), wrong_types(given, known))
        return function(*args, **kwargs)

    return call


def check_types(subject: str, **given: tuple[Any, Any]) -> None:
    """Raise an error for values of the wrong type; pass pairs (value, type) by name.

    For functions that cannot be decorated because they are compared with each other.
    """
    kinds = {name: kind for name, (_, hint) in given.items() if (kind := kind_of(hint)) is not None}
    _raise(subject, wrong_types([(name, value) for name, (value, _) in given.items()], kinds))


def check_fields(record: Any, subject: str) -> None:
    """Raise an error for fields of a record that do not have the annotated types.

    NaN is accepted as a number. Call this in the ``__post_init__`` of a dataclass, or before you
    use a NamedTuple.
    """
    kind: Any = type(record)
    kinds = fields_of(kind)
    given = [(name, getattr(record, name)) for name in kinds]
    _raise(subject, wrong_types(given, kinds))


def _positions(function: Callable[..., Any]) -> list[str]:
    """The names of positional arguments; the name of ``*args`` is repeated."""
    parameters = list(inspect.signature(function).parameters.values())
    names = [each.name for each in parameters]
    variadic = [each.name for each in parameters if each.kind is each.VAR_POSITIONAL]
    return names[: names.index(variadic[0])] + variadic * MANY if variadic else names


def wrong_types(
    given: Iterable[tuple[str, Any]], kinds: Mapping[str, Kind]
) -> list[tuple[Kind, Problem]]:
    """The arguments of a wrong type, each with its kind and its problem."""
    return [
        (kind, Problem(name, _given(value), kind.expected, remedy_for(value, kind.name)))
        for name, value in given
        if (kind := kinds.get(name)) is not None and not kind.accepts(value)
    ]


def _given(value: Any) -> str:
    """Format plain values by their ``repr`` and all others by their type."""
    if isinstance(value, jax.core.Tracer):
        return "a traced JAX value"
    plain = (int, float, complex, str, bytes, list, tuple, set, dict, np.generic, type)
    if value is None or isinstance(value, plain) or callable(value):
        return shown(value)
    name = type(value).__name__
    return with_article(name)


def remedy_for(value: Any, wanted: str) -> str:
    """The remedy for a value given where the type ``wanted`` is expected; may be empty."""
    if isinstance(value, type):
        return "" if wanted in ("int", "float", "str") else "Pass an instance of it."
    if isinstance(value, jax.core.Tracer):
        return TRACED
    if callable(value) and hasattr(value, "__name__") and wanted in FACTORIES:
        return f"Call the function first: {value.__name__}(...)."
    return REMEDIES.get((type(value).__name__, wanted), "")


def _raise(subject: str, wrong: list[tuple[Kind, Problem]]) -> None:
    errors = {ERRORS.get(kind.name, ParameterError) for kind, _ in wrong}
    error = errors.pop() if len(errors) == 1 else ParameterError
    if any(problem.remedy == TRACED for _, problem in wrong):
        error = TracedError
    refuse(error, subject, [problem for _, problem in wrong])

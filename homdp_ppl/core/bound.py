"""Functions with bound options that compare by value: rules with equal options are equal.

Closures and ``functools.partial`` objects never compare equal, so code compiled for one of them
would be compiled again for every new object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from inspect import signature
from typing import Any, Generic, TypeVar

import jax
import numpy as np

from homdp_ppl.errors import ParameterError, Problem, TracedError, shown

R = TypeVar("R")


class Options(Mapping[str, Any]):
    """Read-only named options that compare and hash by value; arrays by their bytes.

    Examples
    --------
    >>> import numpy as np
    >>> Options(level=0.1, table=np.eye(2)) == Options(table=np.eye(2), level=0.1)
    True
    """

    __slots__ = ("_given", "_key")

    def __init__(self, given: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        named = {**(given or {}), **more}
        self._given = {name: read_only(value) for name, value in named.items()}
        self._key = by_value(self._given)

    def __getitem__(self, name: str) -> Any:
        return self._given[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._given)

    def __len__(self) -> int:
        return len(self._given)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Options):
            return bool(self._key == other._key)
        return isinstance(other, Mapping) and self == Options(other)

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> tuple[type[Options], tuple[dict[str, Any]]]:
        return Options, (self._given,)

    def __repr__(self) -> str:
        return f"Options({self._given})"


@dataclass(frozen=True)
class Bound(Generic[R]):
    """A module-level function with some of its keyword arguments fixed.

    Attributes
    ----------
    function
        A function defined at module level.
    options
        The keyword arguments of every call.

    Examples
    --------
    >>> from math import isclose
    >>> near = Bound(isclose, Options(abs_tol=0.1))
    >>> near(1.0, 1.05), near == Bound(isclose, Options(abs_tol=0.1))
    (True, True)
    """

    function: Callable[..., R]
    options: Options

    def __post_init__(self) -> None:
        problems: list[Problem] = []
        if not callable(self.function):
            problems.append(Problem("function", shown(self.function), "a function"))
        if not isinstance(self.options, Options):
            remedy = "Use bind(function, **options)."
            problems.append(Problem("options", shown(self.options), "Options", remedy))
        if problems:
            raise ParameterError("Bound", problems)

    def __call__(self, *arguments: Any) -> R:
        """Call the function with these arguments and the options."""
        return self.function(*arguments, **self.options)


def bind(function: Callable[..., R], **options: Any) -> Bound[R]:
    """Fix some keyword arguments of a function; the result compares by value.

    Parameters
    ----------
    function
        A function defined at module level.
    options
        Its keyword arguments; arrays are copied and made read-only.

    Examples
    --------
    >>> bind(sorted, reverse=True)([1, 3, 2])
    [3, 2, 1]
    """
    traced = [name for name, value in options.items() if isinstance(value, jax.core.Tracer)]
    if traced:
        problems = [Problem(name, "a traced JAX value", "a concrete value") for name in traced]
        raise TracedError("bind", problems)
    if not callable(function):
        problem = Problem("function", shown(function), "a function")
        raise ParameterError("bind", [problem])
    parameters = signature(function).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        name = getattr(function, "__name__", type(function).__name__)
        expected = f"one of the arguments of {name}: {', '.join(parameters)}"
        unknown = [
            Problem(name, "an option", expected) for name in options if name not in parameters
        ]
        if unknown:
            raise ParameterError("bind", unknown)
    return Bound(function, Options(options))


class Same:
    """A wrapper that compares by identity; its reference keeps the value alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def by_value(value: Any) -> Any:
    """Return a hashable key that is equal for equal values.

    Arrays are compared by type, shape and bytes, containers by their contents, and values that
    cannot be hashed by identity.
    """
    if isinstance(value, np.ndarray | jax.Array):
        typed = isinstance(value.dtype, np.dtype)  # random keys have another kind of type
        array = np.asarray(value if typed else jax.random.key_data(value))
        data = np.ascontiguousarray(array).tobytes()
        return "array", array.dtype.str, array.shape, blake2b(data, digest_size=32).digest()
    if isinstance(value, Mapping) and not isinstance(value, Options):
        return "mapping", frozenset((name, by_value(part)) for name, part in value.items())
    if isinstance(value, list | tuple):
        return type(value), tuple(by_value(part) for part in value)
    try:
        hash(value)
    except TypeError:  # raised by the value itself: it cannot be hashed
        return Same(value)
    return value


def read_only(value: Any) -> Any:
    """Return a read-only copy of an array, or a container with such copies."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.copy()
        value.setflags(write=False)
    elif isinstance(value, list):
        value = tuple(read_only(part) for part in value)
    elif isinstance(value, tuple):
        parts = [read_only(part) for part in value]
        value = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return value

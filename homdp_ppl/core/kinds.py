"""Kinds: the values that a type annotation accepts, as fast tests with descriptions."""

from __future__ import annotations

import functools
import inspect
import operator
import types
import typing
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Sized
from importlib import import_module
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import jax
import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.core.randomness import is_key

LATER = {  # names in annotations that modules import only for type checkers
    "Axes": "matplotlib.axes",
    "HOMDP": "homdp_ppl.declare.model",
    "Run": "homdp_ppl.learning.run",
    "xr": "xarray",
    "nx": "networkx",
    "gymnasium": "gymnasium",
}
MANY = 10_000  # entries of a container that are checked


class Kind(NamedTuple):
    """The values that an annotation accepts."""

    accepts: Callable[[Any], bool]
    expected: str  # a description, for example "a World"
    name: str = ""  # the name of the type, for example "World"


def kinds_of(function: Callable[..., Any]) -> dict[str, Kind]:
    """The kinds of the annotated arguments of a function, without those that accept anything."""
    inner = inspect.unwrap(function)
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.annotation is parameter.empty:
            continue
        kind = _named(name, _resolve(parameter.annotation, inner.__globals__))
        if kind and parameter.kind is not parameter.VAR_KEYWORD:
            found[name] = kind._replace(accepts=_but_nan(kind.accepts))
    return found


def _but_nan(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """The same test, but NaN is not accepted: as an argument it is always a mistake."""
    if not any(map(accepts, (np.nan, np.float32(np.nan)))):
        return accepts
    return lambda v: accepts(v) and not (isinstance(v, float | np.floating) and v != v)


@functools.cache
def fields_of(record: Hashable) -> dict[str, Kind]:
    """The kinds of the annotated fields of a class."""
    module, hints = vars(import_module(record.__module__)), vars(record)["__annotations__"]
    return {
        name: kind
        for name, hint in hints.items()
        if (kind := _named(name, _resolve(hint, module))) is not None
    }


def _resolve(annotation: Any, module: dict[str, Any]) -> Any:
    """Evaluate an annotation, which may be a string."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if not isinstance(annotation, str):
        return annotation
    later = {
        name: getattr(import_module(place), name, import_module(place))
        for name, place in LATER.items()
        if name in annotation and name not in module
    }
    return eval(annotation, {**module, **later})  # never user input


def _named(name: str, hint: Any) -> Kind | None:
    """The kind of an argument; arrays called ``key`` or ``keys`` must be random keys."""
    kind = _kind(hint)
    if kind is None or name not in ("key", "keys"):
        return kind
    also = [each for each in map(_kind, get_args(hint)) if each and each.expected != NUMBERS]
    accepts = [is_key, *(each.accepts for each in also)]
    return Kind(lambda v: any(test(v) for test in accepts), KEY, KEY)


NUMBERS, KEY = "an array of numbers", "a JAX random key"


def _kind(hint: Any) -> Kind | None:
    """The kind of a type; None for types that are not checked."""
    if hint is Any or hint is object or isinstance(hint, str | typing.ForwardRef):
        return None
    if hint == ArrayLike:
        return Kind(_numbers, "a number or an array of numbers", "ArrayLike")
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _union(parts)
    if origin is Literal:
        expected = " or ".join(f'"{choice}"' for choice in parts)
        return Kind(lambda v: isinstance(v, str) and v in parts, expected)
    if origin is not None and inspect.isclass(origin):
        if issubclass(origin, np.ndarray):
            return _ARRAY
        return _container(origin, parts)
    if not inspect.isclass(hint):
        return None
    if issubclass(hint, jax.Array | np.ndarray):
        return _ARRAY
    if getattr(hint, "_is_protocol", False) and not getattr(hint, "_is_runtime_protocol", False):
        return None
    article = "an" if hint.__name__[0] in "AEIOU" else "a"
    return Kind(_instance(hint), f"{article} {hint.__name__}", hint.__name__)


kind_of = functools.cache(_kind)


def _union(parts: Sequence[Any]) -> Kind | None:
    like = get_args(ArrayLike)  # nothing from NumPy 2.5 on, where it is a named alias
    if like and set(like) <= set(parts):  # unions are flattened
        parts = [ArrayLike, *(part for part in parts if part not in like)]
    kinds = [_kind(part) for part in parts]
    if None in kinds:
        return None
    known = [kind for kind in kinds if kind is not None]
    words = list(dict.fromkeys(kind.expected for kind in known))
    main = next((kind.name for kind in known if kind.name), "")
    tests = [kind.accepts for kind in known]
    return Kind(lambda v: any(test(v) for test in tests), " or ".join(words), main)


def _container(origin: type, parts: Sequence[Any]) -> Kind:
    """The kind of a container; entries are checked if they can be read without side effects."""
    if issubclass(origin, Mapping):
        key, value = (_kind(part) for part in parts)
        return Kind(lambda v: _mapping(v, key, value), f"a mapping{_of(value)}", "Mapping")
    if origin is tuple and parts[-1] is not Ellipsis:
        fixed = [_kind(part) for part in parts]
        return Kind(lambda v: _fixed(v, fixed), f"a tuple of {len(fixed)} entries", "tuple")
    if not issubclass(origin, Iterable) and issubclass(origin, CALLABLE):
        return Kind(_function, "a function", "Callable")
    entry = _kind(parts[0]) if parts else None
    if issubclass(origin, Collection):
        return Kind(lambda v: _sequence(v, origin, entry), f"a sequence{_of(entry)}", "Sequence")
    if issubclass(origin, Iterable):
        words = f"an iterable{_of(entry)}"
        return Kind(lambda v: _iterable(v, entry), words, entry.name if entry else "")
    return Kind(_instance(origin), f"a {origin.__name__}", origin.__name__)


def _of(entry: Kind | None) -> str:
    return f" in which each entry is {entry.expected}" if entry else ""


def _instance(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind) and not isinstance(value, type)


def _function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


def _entries(values: Iterable[Any], kind: Kind | None) -> bool:
    return kind is None or all(kind.accepts(v) for _, v in zip(range(MANY), values, strict=False))


def _mapping(value: Any, key: Kind | None, part: Kind | None) -> bool:
    return isinstance(value, Mapping) and _entries(value, key) and _entries(value.values(), part)


def _fixed(value: Any, kinds: Sequence[Kind | None]) -> bool:
    return (
        isinstance(value, tuple | list)
        and len(value) == len(kinds)
        and all(kind is None or kind.accepts(v) for v, kind in zip(value, kinds, strict=True))
    )


def _sequence(value: Any, origin: type, entry: Kind | None) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0 and not np.ma.is_masked(value) and _entries(value.tolist(), entry)
    if isinstance(value, jax.Array):
        return False
    wanted = Collection if origin is Collection else Sequence
    text = isinstance(value, str) and entry is None  # a string is a sequence of characters
    plain = isinstance(value, wanted) and not isinstance(value, str | bytes | Mapping)
    return text or (plain and _entries(value, entry))


def _iterable(value: Any, entry: Kind | None) -> bool:
    if not isinstance(value, Iterable) or isinstance(
        value, str | bytes | Mapping | type | jax.Array
    ):
        return False
    return not isinstance(value, Sized) or _entries(value, entry)  # iterators can be read only once


def _scalar(value: Any, kinds: str) -> bool:
    """Whether a value is a zero-dimensional array, which is accepted as a number."""
    return (
        isinstance(value, np.ndarray | jax.Array)
        and not isinstance(value, jax.core.Tracer | np.ma.MaskedArray)
        and value.ndim == 0
        and getattr(value.dtype, "kind", "none") in tuple(kinds)  # random keys have no kind
    )


def _integer(value: Any) -> bool:
    numpy = isinstance(value, np.ndarray) and _scalar(value, "iu")
    return numpy or (isinstance(value, Integral) and not isinstance(value, bool))


def _real(value: Any) -> bool:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return -(2**1023) < operator.index(value) < 2**1023  # larger integers do not fit in a float
    plain = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    return plain or _scalar(value, "iuf")


def _numbers(value: Any) -> bool:
    return not isinstance(value, jax.core.Tracer) and as_numbers("", value, "")[0] is not None


def _array(value: Any) -> bool:
    return (
        isinstance(value, np.ndarray | jax.Array | np.generic)
        and getattr(value.dtype, "kind", "none") in ("b", "i", "u", "f")
        and not np.ma.is_masked(value)
    )


CALLABLE: Any = Callable
_ARRAY = Kind(_array, NUMBERS, "Array")
_PLAIN: dict[Any, Kind] = {
    None: Kind(lambda v: v is None, "None"),
    type(None): Kind(lambda v: v is None, "None"),
    bool: Kind(lambda v: isinstance(v, bool | np.bool_), "True or False"),
    int: Kind(_integer, "an integer", "int"),
    float: Kind(_real, "a number", "float"),
    str: Kind(lambda v: isinstance(v, str), "a string", "str"),
    typing.SupportsIndex: Kind(_integer, "an integer", "int"),
}

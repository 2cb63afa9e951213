"""Plausible mistakes for one argument, derived from the valid value.

The verdict says what may happen: "refuse", the call must raise a HOMDPError; "same", it may
also be accepted with the result of the valid call; "any", with any sane result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from homdp_ppl.precision import x64
from tests.mistakes.things import ours

Verdict = Literal["refuse", "same", "any"]


class Mistake(NamedTuple):
    """A value to pass instead of the valid one."""

    label: str
    value: Any
    verdict: Verdict
    traced: bool = False  # whether JAX traces it: the call runs inside a transformation


class Unhashable:
    """Neither a number nor an array nor hashable."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return self is other


def mistakes(value: Any) -> list[Mistake]:
    """All plausible mistakes for an argument whose valid value is given."""
    found = [*_anywhere(value)]
    if isinstance(value, bool):
        found += _for_flag(value)
    elif isinstance(value, int):
        found += _for_integer(value)
    elif isinstance(value, float):
        found += _for_number(value)
    elif isinstance(value, str):
        found += _for_string(value)
    elif isinstance(value, Path):
        found += _for_path(value)
    elif is_key(value):
        found += _for_key(value)
    elif isinstance(value, np.ndarray):
        found += _for_array(value)
    elif isinstance(value, dict):
        found += _for_mapping(value)
    elif is_record(value):
        found += [*_wrong_type(value), *_for_record(value)]
    elif isinstance(value, list | tuple):
        found += _for_sequence(value)
    elif value is not None:
        found += _wrong_type(value)
    return found


def is_key(value: Any) -> bool:
    """Whether a value is a typed JAX key."""
    return isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


def is_record(value: Any) -> bool:
    """Whether a value is a NamedTuple or a dataclass."""
    return hasattr(value, "_fields") or (is_dataclass(value) and not isinstance(value, type))


def _anywhere(value: Any) -> Iterator[Mistake]:
    unsure: Verdict = "any" if value is None else "refuse"
    if value is not None:
        yield Mistake("None", None, "any")
    yield Mistake("an object", object(), unsure)
    yield Mistake("an unhashable object", Unhashable(), unsure)
    yield Mistake("a set", {1, 2}, unsure)
    yield Mistake("a class", type(value) if value is not None else dict, unsure)
    yield Mistake("bytes", b"tiger", unsure)
    yield Mistake("a complex number", 1j, unsure)
    if not isinstance(value, dict):
        yield Mistake("an empty dict", {}, "any")
        yield Mistake("a dict with keys of two types", {"a": 1, 2: "b"}, unsure)
    if not callable(value):
        yield Mistake("a function", lambda *_: None, unsure)
    if not isinstance(value, str | Path):
        yield Mistake("a string", "tiger", unsure)
        yield Mistake("an empty string", "", unsure)
    if not isinstance(value, list | tuple | np.ndarray | dict):
        yield Mistake("an empty list", [], "any")
        yield Mistake("a list", [value, value], "any")
        yield Mistake("a ragged list", [[1], [2, 3]], "any")
    if not isinstance(value, int | float):
        yield Mistake("nan", math.nan, unsure)
        yield Mistake("a number", 3, "any")
        yield Mistake("a fraction", 0.5, "any")
        yield Mistake("a huge number", 10**9, "any")
        yield Mistake("a flag", True, "any")
    if not isinstance(value, np.ndarray):
        yield Mistake("an empty array", np.array([]), "any")
        yield Mistake("an array of strings", np.array(["left", "right"]), "any")
    yield Mistake("a Series", pd.Series([0.5, 0.5], index=["a", "b"]), "any")
    yield Mistake("a DataFrame", pd.DataFrame({"a": [0.5, 0.5]}), "any")
    for label, thing in ours().items():
        if type(thing) is not type(value) and not is_record(value):
            yield Mistake(label, thing, "any")


def _wrong_type(value: Any) -> Iterator[Mistake]:
    for label, thing in ours().items():
        if type(thing) is not type(value):
            yield Mistake(label, thing, "any")


def _for_flag(value: bool) -> Iterator[Mistake]:
    yield Mistake("yes", "yes", "refuse")
    yield Mistake("2", 2, "refuse")
    yield Mistake("nan", math.nan, "refuse")
    yield Mistake("two flags", np.array([True, False]), "refuse")
    yield Mistake("np.bool_", np.bool_(value), "same")
    yield Mistake("a JAX flag", jnp.asarray(value), "same")
    yield Mistake("a traced flag", value, "any", traced=True)


def _for_integer(value: int) -> Iterator[Mistake]:
    yield Mistake("digits", str(value), "refuse")
    yield Mistake("nan", math.nan, "refuse")
    yield Mistake("inf", math.inf, "refuse")
    yield Mistake("a half", value + 0.5, "any")
    yield Mistake("two numbers", np.array([value, value]), "any")
    yield Mistake("zero", 0, "any")
    yield Mistake("negative", -1, "any")
    yield Mistake("a flag", True, "any")
    for huge in (10**9, 2**31, 2**63, 2**70, -(2**70), 10**400):
        yield Mistake("a huge number", huge, "any")
    yield Mistake("np.int64", np.int64(value), "same")
    yield Mistake("np.int8", np.int8(value % 128), "same" if value < 128 else "any")
    yield Mistake("a float", float(value), "same")
    yield Mistake("float32", np.float32(value), "same")
    yield Mistake("an array of no axes", np.array(value), "same")
    yield Mistake("a JAX number", jnp.asarray(value), "same")
    yield Mistake("a masked number", np.ma.masked, "refuse")
    yield Mistake("a traced number", value, "any", traced=True)


def _for_number(value: float) -> Iterator[Mistake]:
    yield Mistake("digits", str(value), "refuse")
    yield Mistake("nan", math.nan, "refuse")
    yield Mistake("nan in float32", np.float32("nan"), "refuse")
    yield Mistake("inf", math.inf, "any")
    yield Mistake("-inf", -math.inf, "any")
    yield Mistake("negative", -0.5, "any")
    yield Mistake("zero", 0, "any")
    yield Mistake("percent", 100 * value, "any")
    yield Mistake("huge", 1e300, "any")
    yield Mistake("tiny", 1e-300, "any")
    yield Mistake("a huge integer", 2**70, "any")
    yield Mistake("beyond float64", 10**400, "any")
    yield Mistake("a flag", True, "any")
    yield Mistake("two numbers", np.array([value, value]), "any")
    yield Mistake("float32", np.float32(value), "same")
    yield Mistake("float16", np.float16(0.5), "any")
    yield Mistake("a rational number", Fraction(1, 2), "any")
    yield Mistake("an array of no axes", np.array(value), "same")
    yield Mistake("a JAX number", jnp.asarray(value), "same")
    yield Mistake("a masked number", np.ma.masked, "refuse")
    yield Mistake("a traced number", value, "any", traced=True)


def _for_string(value: str) -> Iterator[Mistake]:
    yield Mistake("a number", 3, "refuse")
    yield Mistake("nan", math.nan, "refuse")
    yield Mistake("an array of strings", np.array([value] * 3), "refuse")
    yield Mistake("in a list", [value], "any")
    yield Mistake("empty", "", "any")
    yield Mistake("misspelt", value[:-1] + "x", "any")
    yield Mistake("upper case", value.upper(), "any")
    yield Mistake("with blanks", f" {value} ", "any")
    yield Mistake("long", value * 5000, "any")
    yield Mistake("other letters", "Tür 左 \x00", "any")
    yield Mistake("half a pair of surrogates", "\udcff", "any")
    yield Mistake("np.str_", np.str_(value), "same")
    yield Mistake("a path", Path("tiger"), "any")


def _for_path(value: Path) -> Iterator[Mistake]:
    yield Mistake("a number", 3, "refuse")
    yield Mistake("a file descriptor", 0, "refuse")
    yield Mistake("a flag", True, "refuse")
    yield Mistake("in a list", [value], "refuse")
    yield Mistake("missing", value.with_name("missing") / "missing", "any")
    yield Mistake("a folder", value.parent, "any")
    yield Mistake("empty", "", "any")
    yield Mistake("a zero byte", "a\x00b", "any")
    yield Mistake("too long", "x" * 5000, "any")
    yield Mistake("a string", str(value), "same")


def _for_key(value: Any) -> Iterator[Mistake]:
    yield Mistake("a seed", 0, "any")
    yield Mistake("an old key", jax.random.key_data(value), "any")
    yield Mistake("a NumPy key", np.asarray(jax.random.key_data(value)), "any")
    yield Mistake("keys", jax.random.split(jax.random.key(0), 2), "any")
    yield Mistake("no keys", jax.random.split(jax.random.key(0), 2)[:0], "any")
    yield Mistake("a generator", np.random.default_rng(0), "refuse")
    yield Mistake("a float array", jnp.zeros(2), "refuse")
    yield Mistake("a traced key", value, "any", traced=True)


def _for_array(value: Any) -> Iterator[Mistake]:
    yield Mistake("one axis more", value[None], "any")
    yield Mistake("transposed", value.T, "any")
    yield Mistake("no axes", np.array(0.5), "any")
    yield Mistake("an empty list", [], "any")
    yield Mistake("a ragged list", [[1], [2, 3]], "any")
    yield Mistake("strings", np.full(value.shape, "left"), "refuse")
    yield Mistake("objects", np.full(value.shape, None), "any")
    if value.dtype.kind not in "biuf":
        return
    yield Mistake("complex numbers", value + 1j, "refuse")
    yield Mistake("digits", value.astype(str), "any")
    yield Mistake("dates", np.zeros(value.shape, "datetime64[s]"), "refuse")
    if value.ndim and value.size:
        yield Mistake("one axis less", value[0], "any")
        yield Mistake("one row less", value[1:], "any")
        yield Mistake("one row more", np.concatenate([value, value[:1]]), "any")
        yield Mistake("empty", value[:0], "any")
        yield Mistake("names", np.full(value.shape, "left").tolist(), "any")
        floats = value.astype(float)
        for label, bad in (("nan", np.nan), ("inf", np.inf), ("negative", -3.0), ("huge", 1e300)):
            wrong = floats.copy()
            wrong.flat[-1] = bad
            yield Mistake(f"{label} within", wrong, "refuse" if label == "nan" else "any")
        hidden = np.ma.MaskedArray(floats, mask=np.zeros(value.shape, bool))
        hidden[(-1,) * value.ndim] = np.ma.masked
        yield Mistake("masked within", hidden, "any")
        yield Mistake("all masked", np.ma.MaskedArray(value, mask=True), "any")
        yield Mistake("a list", value.tolist(), "same")
        if value.ndim <= 2:
            frame = pd.DataFrame(value) if value.ndim == 2 else pd.Series(value, index=value)
            yield Mistake("pandas", frame, "same")
    if value.dtype.kind == "f":
        yield Mistake("float32", value.astype(np.float32), "same")
    with x64():
        yield Mistake("a JAX array", jnp.asarray(value), "same")
    yield Mistake("read-only", _frozen(value), "same")
    yield Mistake("traced", value, "any", traced=True)


def _frozen(value: Any) -> Any:
    copy = value.copy()
    copy.setflags(write=False)
    return copy


def _for_sequence(value: Any) -> Iterator[Mistake]:
    kind = type(value)
    yield Mistake("empty", kind(), "any")
    yield Mistake("None within", kind([None, *value[1:]]), "any")
    yield Mistake("a number within", kind([3, *value[1:]]), "any")
    yield Mistake("nan within", kind([math.nan, *value[1:]]), "any")
    yield Mistake("an unknown string inside", kind(["unknown", *value[1:]]), "any")
    yield Mistake("one more", kind([*value, *value[-1:]]), "any")
    yield Mistake("one less", kind(value[:-1]), "any")
    yield Mistake("nested", kind([value]), "any")
    yield Mistake("the only one", value[0] if value else None, "any")
    yield Mistake("a dict", dict.fromkeys(map(str, value), 1.0), "any")
    yield Mistake("an iterator", iter(value), "any")
    if all(isinstance(part, str) for part in value):
        yield Mistake("np.array", np.array(value), "any")
        yield Mistake("a tuple or a list", (tuple if kind is list else list)(value), "same")


def _for_mapping(value: dict[Any, Any]) -> Iterator[Mistake]:
    name = next(iter(value), "a")
    yield Mistake("empty", {}, "any")
    yield Mistake("items", list(value.items()), "any")
    yield Mistake("names only", list(value), "any")
    yield Mistake("another name", {**value, "unknown": value.get(name)}, "any")
    yield Mistake("a number for a name", {3: value.get(name)}, "any")
    for label, bad in (
        ("None", None),
        ("nan", math.nan),
        ("a string", "tiger"),
        ("an object", object()),
        ("a ragged list", [[1], [2, 3]]),
        ("an empty list", []),
    ):
        yield Mistake(f"{label} within", {**value, name: bad}, "any")


def _for_record(value: Any) -> Iterator[Mistake]:
    """The same record with one invalid field, unless its own checks raise an error."""
    if type(value).__name__ in ("HOMDP", "World", "Run", "Posterior", "State", "PredictiveCheck"):
        return  # created only by the library
    names = (
        value._fields if hasattr(value, "_fields") else [f.name for f in fields(value) if f.init]
    )
    for name in names:
        part = getattr(value, name)
        if name.startswith("_") or not isinstance(part, np.ndarray):
            continue
        for mistake in _for_array(part):
            if mistake.traced or mistake.verdict == "same":
                continue
            try:
                wrong = (
                    value._replace(**{name: mistake.value})
                    if hasattr(value, "_fields")
                    else replace(value, **{name: mistake.value})
                )
            except Exception:
                continue
            yield Mistake(f"{mistake.label} of .{name}", wrong, "any")

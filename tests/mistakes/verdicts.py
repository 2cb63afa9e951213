"""Outcomes of calls: refused with a HOMDPError, accepted with a sane result, or a failure."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import jax
import networkx as nx
import numpy as np

from homdp_ppl import POMDP, Episode, Episodes, GraphPolicy, HOMDPError, Plan
from homdp_ppl.core.probabilities import pomdp_problems
from homdp_ppl.errors import in_one_line

DEPTH = 6
ROUNDING = 1e-4  # largest difference between results of float32 and float64 input


class Outcome(NamedTuple):
    """The kind of an outcome with details."""

    kind: str  # "refused", "accepted", "raw", "nonsense", "message", "hang", "memory"
    detail: str = ""

    @property
    def failed(self) -> bool:
        """Whether the outcome is a failure."""
        return self.kind not in ("refused", "accepted")


def of_error(error: BaseException) -> Outcome:
    """The outcome of a call that raised an error."""
    if isinstance(error, MemoryError):
        return Outcome("memory", repr(error)[:200])
    if not isinstance(error, HOMDPError):
        return Outcome("raw", f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
    return of_message(error)


def of_message(error: HOMDPError) -> Outcome:
    """Check that a HOMDPError says where, what was given and what was expected."""
    line = in_one_line(error)
    start = line.split(": ")
    if not error.problems:
        return Outcome("message", "no problems")
    for problem in error.problems:
        if not (problem.where and problem.got and problem.expected):
            return Outcome("message", f"an empty part: {problem!r}")
    if len(start) > 2 and start[0] == start[1]:
        return Outcome("message", f"a name twice: {line[:120]}")
    if " at 0x" in line:
        return Outcome("message", f"an address: {line[:200]}")
    return Outcome("refused", line[:300])


def of_result(result: Any, reference: Any, verdict: str) -> Outcome:
    """The outcome of a call that returned, compared with the result of the valid call."""
    if verdict == "refuse":
        return Outcome("nonsense", f"accepted: {_short(result)}")
    if verdict == "same" and not alike(result, reference):
        return Outcome("nonsense", f"{_short(result)} instead of {_short(reference)}")
    wrong = insane(result, reference)
    return Outcome("nonsense", wrong) if wrong else Outcome("accepted", _short(result))


def insane(result: Any, reference: Any) -> str:
    """Describe what is wrong with a result; empty if nothing was found."""
    certified = isinstance(result, Plan) and result.certified
    if certified and not result.value <= result.upper + result.rounding:
        return f"value {result.value} above upper {result.upper}"
    if isinstance(result, POMDP) and np.ndim(result.initial) == 1:
        problems = pomdp_problems(result, result.spaces)
        if problems:
            return f"not a model: {problems[0]}"
    if isinstance(result, GraphPolicy):
        sums = np.asarray(result.probabilities).sum(-1)
        if not np.allclose(sums, 1, atol=1e-5):
            return f"not a policy: rows sum to {sums}"
    if isinstance(result, Episodes) and (result.actions < 0).any():
        return "negative actions"
    if isinstance(result, Episode | Episodes) and isinstance(reference, Episode | Episodes):
        return ""
    finite = all(np.isfinite(n).all() for n in _numbers(reference))
    kinds = {type(result), type(reference)}
    if type(result) is not type(reference) and not all(
        issubclass(kind, np.ndarray | np.generic | jax.Array | float | int) for kind in kinds
    ):
        return f"a {type(result).__name__} instead of a {type(reference).__name__}"
    for numbers in _numbers(result):
        if np.isnan(numbers).any() and finite:
            return f"nan in {_short(result)}"
        if np.isinf(numbers).any() and finite:
            return f"inf in {_short(result)}"
    return ""


def alike(one: Any, other: Any) -> bool:
    """Whether two results have the same numbers, up to rounding."""
    mine, theirs = list(_numbers(one)), list(_numbers(other))
    return len(mine) == len(theirs) and all(
        a.shape == b.shape and np.allclose(a, b, rtol=ROUNDING, atol=ROUNDING, equal_nan=True)
        for a, b in zip(mine, theirs, strict=True)
    )


SKIPPED = {"seconds", "statistics", "loop", "cache"}  # times differ between equal calls


def _numbers(tree: Any, depth: int = 0) -> Any:
    """All numeric arrays in a result, in a fixed order."""
    if depth > DEPTH or isinstance(tree, bool | str | type(None) | type):
        return
    if isinstance(tree, int | float | np.number | np.ndarray | jax.Array):
        if isinstance(tree, jax.Array) and not isinstance(tree.dtype, np.dtype):
            tree = jax.random.key_data(tree)  # random keys
        if np.asarray(tree).dtype.kind in "biuf":
            yield np.asarray(np.ma.filled(np.ma.asarray(tree, float), 0.0))
    elif hasattr(tree, "_fields"):
        for name in tree._fields:
            yield from _numbers(getattr(tree, name), depth + 1)
    elif is_dataclass(tree):
        for field in fields(tree):
            if field.name not in SKIPPED and hasattr(tree, field.name):
                yield from _numbers(getattr(tree, field.name), depth + 1)
    elif isinstance(tree, dict):
        for name in tree:
            yield from _numbers(tree[name], depth + 1)
    elif isinstance(tree, list | tuple):
        for part in tree:
            yield from _numbers(part, depth + 1)
    elif isinstance(tree, nx.DiGraph):
        yield np.array([len(tree), tree.number_of_edges()], float)


def _short(result: Any) -> str:
    return " ".join(repr(result).split())[:160]

"""The arrays of a policy graph, converted from user input or a file and validated."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, TypeAlias

import jax
import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.numbers import as_numbers, masked_problems
from homdp_ppl.core.probabilities import FLOAT32, normalised
from homdp_ppl.errors import PolicyError, Problem, TracedError, shown
from homdp_ppl.precision import Array

Names: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]  # of observations and actions


class GraphArrays(NamedTuple):
    """The arrays of a graph."""

    start: Array  # (Y,)
    probabilities: Array  # (N, A)
    successor: Array  # (N, A, Y) or (N, 1, Y)


def read_graph(
    start: ArrayLike, probabilities: ArrayLike, successor: ArrayLike, names: Names | None
) -> GraphArrays:
    """Convert and validate the arrays of a graph; raises :class:`PolicyError`."""
    problems: list[Problem] = []
    for where, part in (
        ("start", start),
        ("probabilities", probabilities),
        ("successor", successor),
    ):
        if isinstance(part, jax.core.Tracer):
            remedy = "Create the policy outside of jit, vmap and grad."
            problems.append(Problem(where, "traced JAX values", "numbers", remedy))
    if problems:
        raise TracedError("GraphPolicy", problems)
    arrays = GraphArrays(
        _nodes("start", start, problems),
        _numbers(probabilities, problems),
        _nodes("successor", successor, problems),
    )
    if names is not None and not _are_names(names):
        expected = "two tuples of strings: the names of observations and of actions"
        problems.append(Problem("names", shown(names), expected))
    problems = problems or _problems(arrays, names)
    if problems:
        raise PolicyError("GraphPolicy", problems)
    return arrays._replace(probabilities=normalised(arrays.probabilities))


def _are_names(names: object) -> bool:
    return (
        isinstance(names, tuple | list)
        and len(names) == 2
        and all(
            isinstance(part, tuple | list) and all(isinstance(name, str) for name in part)
            for part in names
        )
    )


def _numbers(probabilities: ArrayLike, problems: list[Problem]) -> Array:
    found, wrong = as_numbers("probabilities", probabilities, "shape (N, A)")
    problems += wrong
    return np.zeros((0, 0)) if found is None else np.asarray(found, dtype=np.float64)


def _nodes(where: str, nodes: ArrayLike, problems: list[Problem]) -> Array:
    problems += masked_problems(where, nodes)
    try:
        return np.asarray(nodes)
    except (TypeError, ValueError):  # of NumPy and JAX: lists of different lengths, random keys
        problems.append(Problem(where, shown(nodes), "an array of integers"))
        return np.zeros(0, dtype=int)


def _problems(arrays: GraphArrays, names: Names | None) -> list[Problem]:
    start, chances, successor = arrays
    if start.ndim != 1 or chances.ndim != 2 or successor.ndim != 3:
        got = f"start {start.shape}, probabilities {chances.shape}, successor {successor.shape}"
        return [
            Problem(
                "shapes", got, "start (Y,), probabilities (N, A), successor (N, A, Y) or (N, 1, Y)"
            )
        ]
    Y, (N, A) = len(start), chances.shape
    problems = []
    if names is not None and (len(names[0]), len(names[1])) != (Y, A):
        problems.append(
            Problem(
                "names",
                f"names of {len(names[0])} observations and {len(names[1])} actions",
                f"names of {Y} observations and {A} actions",
            )
        )
    for part in names or ():
        name, times = next(iter(Counter(part).most_common(1)), ("", 0))
        if times > 1:
            problems.append(Problem("names", f"{shown(name)} {times} times", "distinct names"))
    if successor.shape not in ((N, A, Y), (N, 1, Y)):
        problems.append(
            Problem("successor", f"shape {successor.shape}", f"shape {(N, A, Y)} or {(N, 1, Y)}")
        )
    for name, nodes in (("start", start), ("successor", successor)):
        if not np.issubdtype(nodes.dtype, np.integer):
            problems.append(Problem(name, f"values of type {nodes.dtype}", "integers"))
        elif nodes.size and (nodes.min() < 0 or nodes.max() >= N):
            problems.append(
                Problem(name, f"nodes {nodes.min()}..{nodes.max()}", f"nodes 0..{N - 1}")
            )
    bad = ~(chances >= 0).all(1) | ~(np.abs(chances.sum(1) - 1) <= FLOAT32)
    for node in np.flatnonzero(bad)[:8]:
        problems.append(
            Problem(
                "probabilities",
                str(chances[node]),
                "probabilities that sum to 1",
                at=f"node {node}",
            )
        )
    return problems

"""Finite classes of tables: validation, and log-likelihoods given counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.checked import checked
from homdp_ppl.core.probabilities import ROW_TOLERANCE
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers._densities import DensityClass, of_densities
from homdp_ppl.precision import Array, namespace

CORNERS = 16  # with at most this many states, all corners of a cube are tried

# possible numbers of axes of a class of tables: one over the members, and those of a table
AXES = {"transitions": (4, 5), "emissions": (3, 4, 5)}

Members: TypeAlias = ArrayLike | Sequence[World]
ModelClass: TypeAlias = Any  # an array of tables, or a DensityClass


def model_class(subject: str, where: str, members: Members) -> ModelClass:
    """A class of transitions or emissions: one array of tables, or densities.

    Parameters
    ----------
    subject
        The name of the rule, for error messages.
    where
        "transitions" or "emissions".
    members
        Tables, or worlds.
    """
    if of_densities(members):
        return DensityClass.of(subject, where, members)
    return check_tables(subject, where, members, AXES[where])


def check_tables(subject: str, where: str, tables: Any, axes: Sequence[int]) -> Array:
    """A class as one array whose first axis is over its members.

    Raises an error for rows that are not probabilities.

    Parameters
    ----------
    subject
        The name of the caller, for error messages.
    where
        "transitions" or "emissions".
    tables
        An array, or worlds.
    axes
        The possible numbers of axes of the array.
    """
    expected = (
        f"worlds, or at least one table of probability rows: {' or '.join(map(str, axes))} axes, "
        "the first over the members"
    )
    if isinstance(tables, Sequence):
        tables = [
            _table(member, where) if isinstance(member, World) else member for member in tables
        ]
    try:
        array = np.asarray(tables, dtype=np.float64)
    except (TypeError, ValueError):
        got = f"a {type(tables).__name__} that cannot be converted to an array"
        remedy = "Pass a list of worlds, made by homdp.at(...), or tables of the same shape."
        raise ParameterError(subject, [Problem(where, got, expected, remedy)]) from None
    if array.ndim not in axes or len(array) == 0:
        raise ParameterError(subject, [Problem(where, f"shape {array.shape}", expected)])
    bad = np.argwhere((array < 0).any(-1) | ~(np.abs(array.sum(-1) - 1) <= ROW_TOLERANCE))
    if len(bad):
        place = ", ".join(map(str, bad[0]))
        got = f"a row that sums to {array[tuple(bad[0])].sum():.10g}"
        raise ParameterError(subject, [Problem(where, got, "probability rows", at=place)])
    return array


def check_fit(subject: str, homdp: HOMDP, **classes: ModelClass) -> None:
    """Raise an error for classes that do not fit the spaces of a declaration."""
    problems: list[Problem] = []
    for where, members in classes.items():
        if isinstance(members, DensityClass):
            problems += members.problems(homdp)
        elif not homdp.spaces.finite:
            expected = f"worlds with the spaces and the horizon {homdp.spaces}"
            remedy = "Tables require finite spaces. Draw worlds instead: candidates(homdp, n, key)."
            problems.append(
                Problem(where, f"tables of shape {members.shape[1:]}", expected, remedy)
            )
        else:
            shape = homdp.form.transition if where == "transitions" else homdp.form.emission
            if members.shape[1:] != shape:
                got = f"tables of shape {members.shape[1:]}"
                problems.append(Problem(where, got, f"tables of shape {shape}"))
    if problems:
        raise ParameterError(subject, problems)


def _table(world: World, where: str) -> Array:
    """The table of a world in the form of its declaration."""
    moves, shows = world.form.short(world.pomdp.transition, world.pomdp.emission)
    return moves if where == "transitions" else shows


def log_likelihoods(tables: Array, counts: Array) -> Array:
    """Log-likelihood of the counts under every member of a class, (N,)."""
    xp = namespace(counts, tables)
    seen = counts > 0
    chance = xp.where(seen, tables, 1.0)
    log = xp.where(chance > 0, xp.log(xp.where(chance > 0, chance, 1.0)), -xp.inf)
    return xp.where(seen, counts * log, 0.0).reshape(len(tables), -1).sum(-1)


@checked
def low_rank(features: ArrayLike, measures: ArrayLike) -> Array:
    """A class of low-rank transition tables, (N, X, A, X), from features and a class of measures.

    The tables are the inner products ``T(x'|x, a) = <phi(x, a), psi(x')>``. This is the family of
    the paper's section on function approximation. There phi is unknown too: concatenate the classes
    of several phi.

    Raises an error for members whose rows are not probabilities, and for members that are not
    normalised: ||phi(x, a)|| <= 1, and ||sum_x' psi(x') g(x')|| <= sqrt(d) for every g with
    values in [0, 1], the functions to which the proof applies it. With more than 16 states, an
    upper bound on the latter norm is checked.

    Parameters
    ----------
    features
        phi, (X, A, d).
    measures
        psi, (N, d, X).

    Examples
    --------
    >>> phi = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> low_rank(phi, [[[0.9, 0.1], [0.2, 0.8]]]).shape
    (1, 2, 1, 2)
    """
    phi, psi = np.asarray(features, dtype=np.float64), np.asarray(measures, dtype=np.float64)
    if (
        phi.ndim != 3
        or psi.ndim != 3
        or not phi.size
        or psi.shape[1:] != (phi.shape[2], phi.shape[0])
    ):
        got = f"features {phi.shape}, measures {psi.shape}"
        raise ParameterError(
            "low_rank", [Problem("shapes", got, "features (X, A, d), measures (N, d, X)")]
        )
    problems = []
    if np.linalg.norm(phi, axis=-1).max() > 1 + ROW_TOLERANCE:
        longest = np.linalg.norm(phi, axis=-1).max()
        problems.append(
            Problem(
                "features",
                f"a norm of {longest:.6g}",
                "norms of at most 1",
                "Scale phi down and psi up.",
            )
        )
    for member, table in enumerate(psi):
        size = _largest_image(table)
        if size > np.sqrt(phi.shape[2]) + ROW_TOLERANCE:
            expected = f"at most sqrt(d) = {np.sqrt(phi.shape[2]):.6g}"
            problems.append(
                Problem(
                    "measures", f"a norm of {size:.6g} for some g", expected, at=f"member {member}"
                )
            )
    if problems:
        raise ParameterError("low_rank", problems)
    return check_tables("low_rank", "transitions", np.einsum("xad,ndz->nxaz", phi, psi), (4,))


def _largest_image(measure: Array) -> float:
    """The maximum of ||psi g|| over 0 <= g <= 1, which is attained at a corner.

    It is exact for few states. Otherwise each entry of psi g is bounded by the sum of the positive
    or of the negative entries of its row.
    """
    X = measure.shape[1]
    if X <= CORNERS:
        corners = (np.arange(2**X)[:, None] >> np.arange(X)) & 1
        return float(np.linalg.norm(corners @ measure.T, axis=1).max())
    above, below = np.maximum(measure, 0).sum(1), np.maximum(-measure, 0).sum(1)
    return float(np.linalg.norm(np.maximum(above, below)))

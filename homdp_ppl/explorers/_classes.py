"""Finite classes of tables: validation, and log-likelihoods given counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.checked import checked
from homdp_ppl.core.probabilities import ROW_TOLERANCE
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers._densities import DensityClass, of_densities
from homdp_ppl.precision import Array, namespace

CORNERS = 16  # with at most this many states, all corners of a cube are tried

AXES = {"transitions": 4, "emissions": 3}  # number of axes of tables; the first is over the members

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


def check_tables(subject: str, where: str, tables: Any, axes: int) -> Array:
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
        The number of axes of the array.
    """
    expected = (
        f"worlds, or at least one table of probability rows: {axes} axes, the first "
        f"over the members"
    )
    if isinstance(tables, Sequence):
        table = Tables._fields.index(where.removesuffix("s"))
        tables = [
            member.pomdp.stationary_rows(subject)[table] if isinstance(member, World) else member
            for member in tables
        ]
    try:
        array = np.asarray(tables, dtype=np.float64)
    except (TypeError, ValueError):
        got = f"a {type(tables).__name__} that cannot be converted to an array"
        remedy = "Pass a list of worlds, made by homdp.at(...), or tables of the same shape."
        raise ParameterError(subject, [Problem(where, got, expected, remedy)]) from None
    if array.ndim != axes or len(array) == 0:
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
            X, Y, A, _ = homdp.spaces.sizes
            shape = (X, A, X) if where == "transitions" else (X, Y)
            if members.shape[1:] != shape:
                got = f"tables of shape {members.shape[1:]}"
                problems.append(Problem(where, got, f"tables of shape {shape}"))
    if problems:
        raise ParameterError(subject, problems)


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
    normalised: ||phi(x, a)|| <= 1, and ||sum_x' psi(x') g(x')|| <= sqrt(d) for every g with abs(g)
    <= 1. With more than 16 states, an upper bound of the latter norm is checked.

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
    return check_tables("low_rank", "transitions", np.einsum("xad,ndz->nxaz", phi, psi), 4)


def _largest_image(measure: Array) -> float:
    """The maximum of ||psi g|| over abs(g) <= 1, which is attained at a corner.

    It is exact for few states, and bounded by the triangle inequality otherwise.
    """
    X = measure.shape[1]
    if X <= CORNERS:
        corners = 1 - 2 * ((np.arange(2 ** (X - 1))[:, None] >> np.arange(X)) & 1)  # up to the sign
        return float(np.linalg.norm(corners @ measure.T, axis=1).max())
    return float(np.linalg.norm(np.abs(measure).sum(1)))

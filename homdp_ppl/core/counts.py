"""Counts: the sufficient statistics of revealed episodes for finite models."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.core.episode import Episode, missing_value
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.policy import range_problems
from homdp_ppl.core.pomdp_validation import spaces_of
from homdp_ppl.core.spaces import HasSpaces
from homdp_ppl.errors import DataError, Problem, shown
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array

Names: TypeAlias = tuple[tuple[str, ...], ...]


@partial(
    jax.tree_util.register_dataclass, data_fields=["transition", "emission"], meta_fields=["names"]
)
@dataclass(frozen=True, eq=False)
class Counts:
    """The numbers of observed transitions and emissions.

    n(x) counts visits at steps 1..H. n(x, a) includes the last transition (x_H, a_H, x_{H+1}).
    x_{H+1} has no observation and is not counted as a visit. Counts of disjoint episodes can be
    added.

    Examples
    --------
    >>> from homdp_ppl import Counts, models
    >>> Counts.zero(models.load("tiger")).visits
    array([0, 0])
    """

    transition: Array  # (X, A, X)  n(x, a, x')
    emission: Array  # (X, Y)     n(x, y)
    names: Names | None = None  # of states, observations and actions, if they are known

    @classmethod
    @checked
    def zero(cls, model: HasSpaces) -> Counts:
        """Counts without any data."""
        X, Y, A = _sizes(model)
        return cls(
            np.zeros((X, A, X), dtype=np.int64),
            np.zeros((X, Y), dtype=np.int64),
            model.spaces.names,
        )

    @classmethod
    @checked
    def of(
        cls, episodes: Episode | Episodes | Iterable[Episode | Episodes], model: HasSpaces
    ) -> Counts:
        """Count episodes; raises DataError if they do not fit the model or lack states.

        Episodes that ended early are counted up to their end.
        """
        batch = Episodes.of(episodes, model).require_revealed("counts")
        X, Y, A = _sizes(model)
        before, after = batch.states[:, :-1], batch.states[:, 1:]
        transition = np.zeros((X, A, X), dtype=np.int64)
        emission = np.zeros((X, Y), dtype=np.int64)
        actions, seen = batch.actions, batch.observations
        if not batch.full_length:
            taken = batch.steps
            before, actions, after, seen = (part[taken] for part in (before, actions, after, seen))
        np.add.at(transition, (before, actions, after), 1)
        np.add.at(emission, (before, seen), 1)
        return cls(transition, emission, model.spaces.names)

    def __add__(self, other: Counts) -> Counts:
        """Add the counts of disjoint episodes of the same model."""
        if not isinstance(other, Counts):
            return NotImplemented
        mine, theirs = (
            tuple(np.shape(n) for n in (c.transition, c.emission)) for c in (self, other)
        )
        if mine != theirs:
            raise DataError(
                "counts",
                [Problem("shapes", str(theirs), str(mine), "Add only counts of the same model.")],
            )
        if self.names and other.names and self.names != other.names:
            raise DataError(
                "counts",
                [
                    Problem(
                        "names",
                        str(other.names),
                        str(self.names),
                        "Add only counts of the same model.",
                    )
                ],
            )
        return Counts(
            self.transition + other.transition,
            self.emission + other.emission,
            self.names or other.names,
        )

    @checked
    def add(self, episode: Episode) -> Counts:
        """These counts plus one episode; can be traced, then without validation."""
        if isinstance(self.transition, jax.Array) or isinstance(episode.states, jax.Array):
            before, after = episode.states[:-1], episode.states[1:]
            return Counts(
                jnp.asarray(self.transition).at[before, episode.actions, after].add(1),
                jnp.asarray(self.emission).at[before, episode.observations].add(1),
                self.names,
            )
        _check_indices(self, episode)
        before, after = episode.states[:-1], episode.states[1:]
        transition = self.transition.copy()
        emission = cast(np.ndarray[Any, Any], self.emission).copy()
        np.add.at(transition, (before, episode.actions, after), 1)
        np.add.at(emission, (before, episode.observations), 1)
        return Counts(transition, emission, self.names)

    @property
    def state_action(self) -> Array:
        """n(x, a), (X, A)."""
        return self.transition.sum(-1)

    @property
    def visits(self) -> Array:
        """n(x) at steps 1..H, (X,)."""
        return self.emission.sum(-1)


def _sizes(model: HasSpaces) -> tuple[int, int, int]:
    """The sizes X, Y and A of a model; raises an error if its counts do not fit in memory."""
    X, Y, A, _ = spaces_of(model, "counts").sizes
    got = f"{count(X)} states, {count(A)} actions and {count(Y)} observations"
    needed = NUMBER * (X * A * X + X * Y)
    require_memory(DataError, "counts", "states", got, needed, "Use fewer states or actions.")
    return X, Y, A


def check_counts(counts: Counts, model: HasSpaces, subject: str = "counts") -> None:
    """Raise an error for counts of another model, and for invalid numbers.

    Without this check, different shapes could be broadcast. Traced numbers are accepted.
    """
    X, Y, A, _ = model.spaces.sizes
    problems = []
    for where, shape in (("transition", (X, A, X)), ("emission", (X, Y))):
        table, remedy = getattr(counts, where), "Count episodes of this model."
        if not isinstance(table, np.ndarray | jax.Array):
            problems.append(Problem(f"counts.{where}", shown(table), "an array of counts", remedy))
        elif table.shape != shape:
            got = f"shape {table.shape}"
            problems.append(Problem(f"counts.{where}", got, f"shape {shape}", remedy))
        elif not isinstance(table, jax.core.Tracer) and not _counting(table):
            expected = "finite, non-negative numbers"
            problems.append(Problem(f"counts.{where}", f"values of type {table.dtype}", expected))
    if not problems and counts.names and counts.names != model.spaces[:3]:
        names = str(counts.names), str(model.spaces[:3])
        problems.append(Problem("counts.names", *names, "Count episodes of this model."))
    if problems:
        raise DataError(subject, problems)


def _counting(table: Array) -> bool:
    """Whether all entries are finite, non-negative numbers."""
    if getattr(table.dtype, "kind", "none") not in ("b", "i", "u", "f") or np.ma.is_masked(table):
        return False
    return table.size == 0 or bool(table.min() >= 0 and table.max() < np.inf)


def _check_indices(counts: Counts, episode: Episode) -> None:
    """Raise an error for an invalid episode; NumPy would count negative indices from the end."""
    (X, A, _), Y = np.shape(counts.transition), np.shape(counts.emission)[-1]
    if _evidently_valid(episode, X, Y, A):
        return
    steps = np.shape(episode.actions)
    problems = []
    for where, size, shape in (
        ("states", X, (steps[0] + 1,) if steps else ()),
        ("observations", Y, steps),
        ("actions", A, steps),
    ):
        values = getattr(episode, where)
        if not isinstance(values, np.ndarray) or values.ndim != 1 or values.shape != shape:
            expected = "one index per step, and one more state"
            problems.append(Problem(where, shown(values), expected))
        else:
            hidden = [missing_value(where, "one step or more")] if np.ma.is_masked(values) else []
            problems += hidden or range_problems(where, values, size)
    if problems:
        raise DataError("counts", problems)


def _evidently_valid(episode: Episode, X: int, Y: int, A: int) -> bool:
    """Whether an episode of plain arrays is valid; False if this needs a closer look."""
    x, y, a = parts = episode.states, episode.observations, episode.actions
    if not all(type(part) is np.ndarray and part.dtype.kind == "i" for part in parts):
        return False
    if x.ndim != 1 or y.shape != a.shape or a.shape != (len(x) - 1,) or not a.size:
        return False
    try:
        np.ravel_multi_index((x[:-1], a, y), (X, A, Y))
    except ValueError:  # raised by NumPy for an index out of range, also for a negative one
        return False
    return bool(0 <= x[-1] < X)

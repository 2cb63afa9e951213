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
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.spaces import HasSpaces, spaces_of
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array, namespace

Names: TypeAlias = tuple[tuple[str, ...], ...]


@partial(
    jax.tree_util.register_dataclass, data_fields=["transition", "emission"], meta_fields=["names"]
)
@dataclass(frozen=True, eq=False)
class Counts:
    """How often each transition and each emission was seen.

    n(x) counts visits at steps 1..H; n(x, a) includes the last transition (x_H, a_H, x_{H+1});
    x_{H+1} has no observation and is no visit. Counts of disjoint episodes add up.

    Examples
    --------
    >>> from homdp_ppl import Counts, models
    >>> Counts.zero(models.load("tiger")).visits
    array([0, 0])
    """

    transition: Array  # (X, A, X)  n(x, a, x')
    emission: Array  # (X, Y)     n(x, y)
    names: Names | None = None  # of states, observations and actions, where they are known

    @classmethod
    @checked
    def zero(cls, model: HasSpaces) -> Counts:
        """No data yet."""
        X, Y, A = _sizes(model)
        return cls(
            np.zeros((X, A, X), dtype=np.int64),
            np.zeros((X, Y), dtype=np.int64),
            model.spaces.names,
        )

    @classmethod
    @checked
    def of(cls, episodes: Episode | Iterable[Episode], model: HasSpaces) -> Counts:
        """Count episodes; raises DataError if they are not from the model or miss states.

        An episode that ended early counts up to its end.
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
        """Merge the counts of disjoint episodes of the same model."""
        if not isinstance(other, Counts):
            return NotImplemented
        mine, theirs = (
            tuple(np.shape(n) for n in (c.transition, c.emission)) for c in (self, other)
        )
        if mine != theirs:
            raise DataError(
                "counts",
                [Problem("shapes", str(theirs), str(mine), "Merge counts of one model only.")],
            )
        if self.names and other.names and self.names != other.names:
            raise DataError(
                "counts",
                [
                    Problem(
                        "names",
                        str(other.names),
                        str(self.names),
                        "Merge counts of one model only.",
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
        """These counts and one more episode; unchecked, and may be traced."""
        before, after = episode.states[:-1], episode.states[1:]
        if namespace(self.transition, episode.states) is jnp:
            return Counts(
                jnp.asarray(self.transition).at[before, episode.actions, after].add(1),
                jnp.asarray(self.emission).at[before, episode.observations].add(1),
                self.names,
            )
        transition = cast(np.ndarray[Any, Any], self.transition).copy()
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
        """n(x) over steps 1..H, (X,)."""
        return self.emission.sum(-1)


def _sizes(model: HasSpaces) -> tuple[int, int, int]:
    """X, Y and A of a model whose counts fit in memory."""
    X, Y, A, _ = spaces_of(model, "counts").sizes
    got = f"{count(X)} states, {count(A)} actions and {count(Y)} observations"
    needed = NUMBER * (X * A * X + X * Y)
    require_memory(DataError, "counts", "states", got, needed, "Use fewer states or actions.")
    return X, Y, A

"""Spaces that may be continuous: vectors of real numbers beside finite sets of names."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array

NUMBERS_FOR_NAMES = "Names become numbers by their places: world.spaces.observations.index(name)."


class Real(NamedTuple):
    """Real vectors of a given dimension; with dimension 1 plain numbers, of shape ().

    Examples
    --------
    >>> Real(2).shape, Real(1).shape
    ((2,), ())
    """

    dimension: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        return () if self.dimension == 1 else (self.dimension,)

    def __str__(self) -> str:
        return f"R^{self.dimension}" if self.dimension > 1 else "R"


Space: TypeAlias = "tuple[str, ...] | Real"


class Domain(NamedTuple):
    """States, observations and actions of a model of which some are continuous, and its horizon."""

    states: Space
    observations: Space
    actions: tuple[str, ...]
    horizon: int

    @property
    def spaces(self) -> Domain:
        """Itself, so that it may stand where a model is asked for its spaces."""
        return self


class HasDomain(Protocol):
    """A continuous declaration, its world, or its spaces alone."""

    @property
    def spaces(self) -> Domain:
        """States, observations and actions, and the horizon."""


def is_real(*spaces: Any) -> bool:
    """Whether one of them is continuous."""
    return any(isinstance(space, Real) for space in spaces)


def shape_of(space: Space) -> tuple[int, ...]:
    """The shape of one value: () for names, which are counted, and for numbers."""
    return space.shape if isinstance(space, Real) else ()


def describe(space: Space, word: str) -> str:
    """A space in words."""
    return f"{word}s in {space}" if isinstance(space, Real) else f"{len(space)} {word}{'s' * (len(space) != 1)}"


def told(value: Any, space: Space) -> str:
    """A state, an observation or an action in words.

    Examples
    --------
    >>> told(1, ("left", "right")), told([0.5, -2.0], Real(2))
    ('right', '0.5 -2')
    """
    return " ".join(f"{number:.4g}" for number in np.atleast_1d(value)) if isinstance(space, Real) else space[int(value)]


def value_problems(where: str, values: Array, space: Space) -> list[Problem]:
    """What is wrong with an array of values of a space, whose first axes are episodes and steps."""
    if not values.size:
        return []
    if not isinstance(space, Real):
        if not np.issubdtype(values.dtype, np.integer):
            remedy = NUMBERS_FOR_NAMES if values.dtype.kind in "UO" else ""
            return [Problem(where, f"values of type {values.dtype}", "integers", remedy)]
        bad = np.argwhere((values < 0) | (values >= len(space)))
        expected = f"an index in 0..{len(space) - 1}"
    else:
        finite = np.isfinite(values) if np.issubdtype(values.dtype, np.number) else np.zeros(values.shape, dtype=bool)
        bad = np.argwhere(~finite.reshape(*values.shape[:2], -1).all(-1))
        expected = "finite numbers"
    return [
        Problem(where, str(values[tuple(index[:2])]), expected, at=f"episode {index[0]}, step {index[1] + 1}")
        for index in bad[:8]
    ]

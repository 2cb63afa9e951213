"""Spaces of states, observations and actions, and the validation of their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.core.form import Form, stationary_form
from homdp_ppl.core.sensors import Sensors
from homdp_ppl.errors import DataError, Problem, SpacesError, shown
from homdp_ppl.precision import Array

NO_TABLES = (
    "Real-valued spaces have no tables. Plan with planners.quantised() or "
    "planners.particle_tree(); infer with posterior(homdp, episodes)."
)
NUMBERS_FOR_NAMES = "Convert names to indices: world.spaces.observations.index(name)."


class _Dimension(NamedTuple):
    dimension: int


class Real(_Dimension):
    """The space of real vectors of a given dimension; in dimension 1, of numbers with shape ().

    Examples
    --------
    >>> Real(2).shape, Real(1).shape
    ((2,), ())
    """

    __slots__ = ()

    def __new__(cls, dimension: int) -> Real:
        """Create the space of a dimension, which is an integer of at least 1."""
        whole = isinstance(dimension, Integral) and not isinstance(dimension, bool)
        if not whole or dimension < 1:
            expected = "an integer of at least 1"
            raise SpacesError("Real", [Problem("dimension", shown(dimension), expected)])
        return super().__new__(cls, int(dimension))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one value."""
        return () if self.dimension == 1 else (self.dimension,)

    def __str__(self) -> str:
        return f"R^{self.dimension}" if self.dimension > 1 else "R"


Space: TypeAlias = "tuple[str, ...] | Real"


class Spaces(NamedTuple):
    """The states, observations and actions of a model, and its horizon.

    States and observations are tuples of names or :class:`Real`; actions are a tuple of names. If
    there are several sensors, observations are the names of their joint outcomes, for example
    "left, dark", and :attr:`sensors` has the outcomes of each. If there are terminal states, the
    last observation is "ended", which only they show.

    Examples
    --------
    >>> from homdp_ppl import Spaces, uniform_policy
    >>> names = Spaces(
    ...     states=("off", "on"),
    ...     observations=("dark", "light"),
    ...     actions=("wait", "press"),
    ...     horizon=3,
    ... )
    >>> names.sizes
    (2, 2, 2, 3)
    >>> uniform_policy(names)  # names alone are enough to make a policy
    GraphPolicy(3 nodes, 2 observations, 2 actions)
    """

    states: Space
    observations: Space
    actions: tuple[str, ...]
    horizon: int
    terminal: tuple[str, ...] = ()  # the states that end the episode; they show "ended"

    @property
    def spaces(self) -> Spaces:
        """Itself: spaces can be passed wherever only the spaces of a model are needed."""
        return self

    @property
    def form(self) -> Form:
        """The form of tables that do not depend on the step; only for finite spaces."""
        return stationary_form(self)

    @property
    def sensors(self) -> Mapping[str, tuple[str, ...]]:
        """The outcomes of each sensor, by name; {} unless several sensors were declared."""
        return self.observations.sensors if isinstance(self.observations, Sensors) else {}

    @property
    def declared(self) -> dict[str, Any]:
        """The arguments of :func:`homdp_ppl.homdp` that declare these spaces.

        Without "ended", which is added to the observations of models with terminal states.

        Examples
        --------
        >>> from homdp_ppl import models
        >>> rover = models.load("rocksample").spaces
        >>> rover.observations[-1], rover.declared["observations"][-1], rover.declared["terminal"]
        ('ended', 'bad', ('gone',))
        """
        given = self._asdict()
        if isinstance(self.observations, Sensors):
            given["observations"] = dict(self.observations.sensors)
        elif self.terminal:
            given["observations"] = names_of(self.observations)[:-1]
        return given

    @property
    def ends(self) -> Array:
        """Whether each state is terminal, (X,); only for finitely many states."""
        return np.isin(names_of(self.states), self.terminal)

    @property
    def finite(self) -> bool:
        """Whether states and observations are both finite sets of names."""
        return not is_real(self.states, self.observations)

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The names of states, observations and actions; only for finite spaces."""
        return names_of(self.states), names_of(self.observations), self.actions

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """The sizes (X, Y, A, H); only for finite spaces."""
        return (
            len(names_of(self.states)),
            len(names_of(self.observations)),
            len(self.actions),
            self.horizon,
        )

    @checked
    def entry(self, table: str, index: Array | Sequence[int]) -> str:
        """The names that belong to an index, or its first entries, of a table.

        The table is "initial", "transition", "emission" or that of a sensor, for example
        "emission[ear]", without axes for the step or the previous action.

        Examples
        --------
        >>> Spaces(("off", "on"), ("dark", "light"), ("wait",), horizon=3).entry(
        ...     "transition", (1, 0, 0)
        ... )
        'on, wait, off'
        """
        axes = {
            "initial": (names_of(self.states),),
            "transition": (names_of(self.states), self.actions, names_of(self.states)),
            "emission": (names_of(self.states), names_of(self.observations)),
            **{
                sensor_table(sensor): (names_of(self.states), names)
                for sensor, names in self.sensors.items()
            },
        }
        problems = []
        if table not in axes:
            problems.append(Problem("table", shown(table), f"one of {', '.join(axes)}"))
        elif np.ndim(index) != 1 or len(index) > len(axes[table]):
            problems.append(Problem("index", shown(index), f"at most {len(axes[table])} entries"))
        elif any(i not in range(len(names)) for names, i in zip(axes[table], index, strict=False)):
            problems.append(Problem("index", shown(index), "an index inside the table"))
        if problems:
            raise DataError("Spaces.entry", problems)
        return ", ".join(names[int(i)] for names, i in zip(axes[table], index, strict=False))


class HasSpaces(Protocol):
    """A declaration, a world, a POMDP or spaces."""

    @property
    def spaces(self) -> Spaces:
        """States, observations, actions and the horizon."""


class HasTables(HasSpaces, Protocol):
    """A finite declaration, world, POMDP or spaces."""

    @property
    def form(self) -> Form:
        """The form of the tables."""


def is_real(*spaces: Any) -> bool:
    """Whether at least one of the spaces is real-valued."""
    return any(isinstance(space, Real) for space in spaces)


def names_of(space: Space) -> tuple[str, ...]:
    """The names of a finite space; raises :class:`SpacesError` for a real-valued one."""
    if isinstance(space, Real):
        raise SpacesError(
            "spaces",
            [Problem("space", f"values in {space}", "a finite set of names", NO_TABLES)],
        )
    return space


def no_tables(spaces: Spaces, subject: str, where: str) -> SpacesError:
    """The error for real-valued spaces where finite tables are needed."""
    got = f"{describe(spaces.states, 'state')}, {describe(spaces.observations, 'observation')}"
    return SpacesError(
        subject, [Problem(where, got, "finitely many states and observations", NO_TABLES)]
    )


def require_finite(spaces: Spaces, subject: str, where: str) -> None:
    """Raise :class:`SpacesError` if states or observations are real-valued."""
    if not spaces.finite:
        raise no_tables(spaces, subject, where)


def shape_of(space: Space) -> tuple[int, ...]:
    """The shape of one value: () for names, which are stored as indices, and for numbers."""
    return space.shape if isinstance(space, Real) else ()


def sensor_table(sensor: str) -> str:
    """The name of the emission table of a sensor."""
    return f"emission[{sensor}]"


def kernel_of(table: str) -> str:
    """The kernel of a table: "emission" for the table of a sensor."""
    return table.partition("[")[0]


def describe(space: Space, word: str) -> str:
    """Describe a space, for example "2 states"."""
    if isinstance(space, Real):
        return f"{word}s in {space}"
    sensors = f" ({space.summary})" if isinstance(space, Sensors) else ""
    return f"{len(space)} {word}{'s' * (len(space) != 1)}{sensors}"


def label_of(value: Any, space: Space) -> str:
    """The name of a state, observation or action; real numbers are formatted.

    Examples
    --------
    >>> label_of(1, ("left", "right")), label_of([0.5, -2.0], Real(2))
    ('right', '0.5 -2')
    """
    return (
        " ".join(f"{number:.4g}" for number in np.atleast_1d(value))
        if isinstance(space, Real)
        else space[int(value)]
    )


def entry_place(index: Array | Sequence[int], ids: Array | None = None) -> str:
    """Describe a place by its episode (the id if there is one) and its step."""
    if len(index) == 1:
        return f"step {index[0] + 1}"
    name = None if ids is None else ids[index[0]]
    return f"episode {index[0] if name is None else repr(name)}, step {index[1] + 1}"


def value_problems(
    where: str,
    values: Array,
    space: Space,
    known: Array | None = None,
    ids: Array | None = None,
) -> list[Problem]:
    """Report values outside of their space; the first axes are episodes and steps.

    Only known values are read.
    """
    if not values.size:
        return []
    if not isinstance(space, Real):
        if values.dtype.kind not in "iu":
            remedy = NUMBERS_FOR_NAMES if values.dtype.kind in "UO" else ""
            return [Problem(where, f"values of type {values.dtype}", "integers", remedy)]
        if values.min() >= 0 and values.max() < len(space):
            return []
        wrong = (values < 0) | (values >= len(space))
        expected = f"an index in 0..{len(space) - 1}"
    else:
        finite = (
            np.isfinite(values)
            if np.issubdtype(values.dtype, np.number)
            else np.zeros(values.shape, dtype=bool)
        )
        wrong = ~np.all(finite.reshape(*values.shape[:2], -1), axis=-1)
        expected = "finite numbers"
    if known is not None:
        wrong &= known
    if not wrong.any():
        return []
    return [
        Problem(where, str(values[tuple(index)]), expected, at=entry_place(index, ids))
        for index in np.argwhere(wrong)[:8]
    ]

"""Several sensors: the product of their outcomes as one space of observations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from homdp_ppl.errors import DataError, Problem, shown, unknown
from homdp_ppl.precision import Array, namespace

ENDED = "ended"  # the observation of terminal states
SENSOR_ARRAYS = ("sensors", "outcomes")
ONE_OF = "an index, a name, a tuple with one outcome per sensor, or a dict {sensor: outcome}"


class Sensors(tuple[str, ...]):
    """Joint observations of several sensors: a tuple of their names, the last sensor fastest.

    Planners and policies use the joint index. With terminal states, "ended" is one more
    observation, which belongs to no sensor.

    Parameters
    ----------
    sensors
        The outcomes of each sensor, by its name.
    ended
        Whether "ended" is the last observation.

    Examples
    --------
    >>> both = Sensors({"ear": ("left", "right"), "eye": ("dark", "light")})
    >>> list(both)
    ['left, dark', 'left, light', 'right, dark', 'right, light']
    >>> both.joint({"ear": "right", "eye": "dark"}), both.joint(("right", 0)), both.split(2)
    (2, 2, {'ear': 'right', 'eye': 'dark'})
    """

    sensors: Mapping[str, tuple[str, ...]]
    ended: bool

    def __new__(cls, sensors: Mapping[str, Iterable[str]], ended: bool = False) -> Sensors:
        """Create the space from the outcomes of each sensor."""
        outcomes = {sensor: tuple(names) for sensor, names in sensors.items()}
        joint = [", ".join(names) for names in product(*outcomes.values())]
        space = super().__new__(cls, (*joint, ENDED) if ended else joint)
        space.sensors, space.ended = MappingProxyType(outcomes), ended
        return space

    def __reduce__(self) -> tuple[Any, ...]:
        return Sensors, (dict(self.sensors), self.ended)

    def __repr__(self) -> str:
        return f"Sensors({dict(self.sensors)!r}{', ended=True' * self.ended})"

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of outcomes of each sensor."""
        return tuple(len(names) for names in self.sensors.values())

    @property
    def summary(self) -> str:
        """The sensors with their numbers of outcomes, for example "ear: 2, eye: 2"."""
        sizes = [f"{sensor}: {len(names)}" for sensor, names in self.sensors.items()]
        return ", ".join([*sizes, *[ENDED] * self.ended])

    @property
    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The sensors as arrays of text, with one entry per outcome; see :func:`sensors_of`."""
        pairs = [(sensor, name) for sensor, names in self.sensors.items() for name in names]
        columns = zip(SENSOR_ARRAYS, zip(*pairs, strict=True), strict=True)
        return {array: np.array(column, dtype=np.str_) for array, column in columns}

    def without_end(self) -> Sensors:
        """The observations of the sensors, without "ended"."""
        return Sensors(self.sensors) if self.ended else self

    def with_end(self) -> Sensors:
        """The same observations, and "ended"."""
        return Sensors(self.sensors, ended=True)

    def split(self, index: int) -> dict[str, str]:
        """The outcome of each sensor at a joint index; {} for "ended"."""
        if not isinstance(index, int | np.integer) or not 0 <= index < len(self):
            problem = Problem("index", shown(index), f"an index in 0..{len(self) - 1}")
            raise DataError("Sensors.split", [problem])
        if self.ended and index == len(self) - 1:
            return {}
        places = np.unravel_index(int(index), self.shape)
        return {
            sensor: names[int(k)]
            for (sensor, names), k in zip(self.sensors.items(), places, strict=True)
        }

    def joint(self, observation: Any) -> int:
        """The joint index of an observation.

        It may be an index, a joint name, a tuple with the outcome of each sensor, or a dict
        {sensor: outcome}. Outcomes are names or indices. Raises :class:`DataError` with all
        problems for any other value.
        """
        index, problems = self.encode("observation", observation)
        if problems:
            raise DataError("Sensors.joint", problems)
        return index

    def encode(self, where: str, given: Any, at: str = "") -> tuple[int, list[Problem]]:
        """The joint index of an observation, and its problems."""
        if isinstance(given, np.ndarray) and given.ndim == 0:
            given = given.item()
        if isinstance(given, Mapping):
            return self._of_dict(where, given, at)
        if isinstance(given, list | tuple | np.ndarray):
            if len(given) == len(self.sensors):
                named = dict(zip(self.sensors, given, strict=True))
                return self._of_dict(where, named, at)
            expected = f"one outcome for each of {', '.join(self.sensors)}"
            return 0, [Problem(where, shown(given), expected, at=at)]
        return _outcome(where, given, self, "this space", at)

    def _of_dict(self, where: str, given: Mapping[Any, Any], at: str) -> tuple[int, list[Problem]]:
        problems = [
            unknown(where, "sensor", str(sensor), self.sensors, "this space", at)
            for sensor in given
            if sensor not in self.sensors
        ]
        problems += [
            Problem(where, f"no outcome of {sensor!r}", "an outcome of every sensor", at=at)
            for sensor in self.sensors
            if sensor not in given
        ]
        places = []
        for sensor, names in self.sensors.items():
            if sensor in given:
                place = f"{where}[{sensor}]"
                k, wrong = _outcome(place, given[sensor], names, f"the sensor {sensor!r}", at)
                places.append(k)
                problems += wrong
        if problems:
            return 0, problems
        return int(np.ravel_multi_index(places, self.shape)), []

    def encode_steps(self, where: str, given: Any) -> tuple[Any, list[Problem]]:
        """Observations of several steps with dicts and tuples replaced by joint indices.

        A dict of sequences, {sensor: one outcome per step}, is accepted too. Values without dicts
        and tuples are returned as they are. Missing observations, None, stay None.
        """
        if isinstance(given, Mapping):
            lengths = {
                len(part) if isinstance(part, list | tuple | np.ndarray) else -1
                for part in given.values()
            }
            if len(lengths) != 1 or -1 in lengths:
                return [], [Problem(where, shown(given), "one outcome per step for every sensor")]
            steps = zip(*given.values(), strict=True)
            given = [dict(zip(given, outcomes, strict=True)) for outcomes in steps]
        if isinstance(given, np.ndarray) and given.ndim == 2:
            given = list(given)
        if not isinstance(given, list | tuple) or not any(
            isinstance(y, Mapping | list | tuple | np.ndarray) for y in given
        ):
            return given, []
        found: list[int | None] = []
        problems: list[Problem] = []
        for h, observation in enumerate(given):
            index, wrong = (
                (None, [])
                if observation is None
                else self.encode(where, observation, f"step {h + 1}")
            )
            found.append(index)
            problems += wrong
        return found, problems

    def counts_of(self, sensor: str, table: Array, shape: tuple[int, ...]) -> Array:
        """Counts of the outcomes of one sensor, from counts of joint observations.

        Parameters
        ----------
        sensor
            The name of the sensor.
        table
            Counts in the form of the joint emission table: (X, Y), (A + 1, X, Y) or
            (H, A + 1 or 1, X, Y).
        shape
            The form of the emission table of the sensor, which may lack axes of the joint table.

        Examples
        --------
        >>> both = Sensors({"ear": ("left", "right"), "eye": ("dark", "light")})
        >>> both.counts_of("ear", np.array([[4, 3, 2, 1]]), (1, 2))
        array([[7, 3]])
        """
        sizes, k = self.shape, list(self.sensors).index(sensor)
        table = table[..., : math.prod(sizes)]
        lead = table.shape[:-1]
        apart = table.reshape(*lead, *sizes)
        others = tuple(len(lead) + j for j in range(len(sizes)) if j != k)
        counts = apart.sum(others) if others else apart
        return _summed(counts, shape)

    def to_joint(self, sensor: str, table: Array, shape: tuple[int, ...]) -> Array:
        """The entries of one sensor's table at every joint outcome, without "ended".

        Parameters
        ----------
        sensor
            The name of the sensor.
        table
            An array in the form of the emission table of the sensor.
        shape
            The shape of the joint emission table.

        Examples
        --------
        >>> both = Sensors({"ear": ("left", "right"), "eye": ("dark", "light")})
        >>> both.to_joint("ear", np.array([[0.7, 0.3]]), (1, 4))
        array([[0.7, 0.7, 0.3, 0.3]])
        """
        place = np.unravel_index(np.arange(math.prod(self.shape)), self.shape)
        chosen = table[..., place[list(self.sensors).index(sensor)]]
        return at_joint_rows(chosen, shape[:-1])


def at_joint_rows(values: Array, joint: tuple[int, ...]) -> Array:
    """Values (..., d) of the rows of a sensor at every row of the joint table, whose axes are
    (X,), (A + 1, X) or (H, A + 1 or 1, X).
    """
    xp, d = namespace(values), values.shape[-1]
    full = values.reshape(*(1,) * (4 - values.ndim), *values.shape)
    return xp.broadcast_to(full, (*(1,) * (3 - len(joint)), *joint, d)).reshape(*joint, d)


def _summed(counts: Array, shape: tuple[int, ...]) -> Array:
    """Sum over the step and the previous action where the table of a sensor lacks these axes."""
    full = counts.reshape(*(1,) * (4 - counts.ndim), *counts.shape)
    target = (*(1,) * (4 - len(shape)), *shape)
    axes = tuple(k for k in range(2) if target[k] == 1)
    return (full.sum(axes, keepdims=True) if axes else full).reshape(shape)


def _outcome(
    where: str, given: Any, names: tuple[str, ...], owner: str, at: str
) -> tuple[int, list[Problem]]:
    """The index of one name or index."""
    if isinstance(given, str):
        if given in names:
            return names.index(given), []
        return 0, [unknown(where, "name", given, names, owner, at)]
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if whole and 0 <= given < len(names):
        return int(given), []
    expected = f"a name or an index in 0..{len(names) - 1}"
    if isinstance(names, Sensors):
        expected = ONE_OF
    return 0, [Problem(where, shown(given), expected, at=at)]


def sensors_of(arrays: Mapping[str, Array], names: tuple[str, ...]) -> tuple[str, ...]:
    """The names of observations, as :class:`Sensors` if the arrays of a file have their sensors."""
    if any(name not in arrays or arrays[name].ndim != 1 for name in SENSOR_ARRAYS):
        return names
    outcomes: dict[str, list[str]] = {}
    for sensor, name in zip(*(arrays[name] for name in SENSOR_ARRAYS), strict=False):
        outcomes.setdefault(str(sensor), []).append(str(name))
    extra = len(names) - math.prod(map(len, outcomes.values()))
    found = Sensors(outcomes, ended=extra == 1) if extra in (0, 1) else ()
    return found if found == names else names


def joint_table(tables: Iterable[Array]) -> Array:
    """The product of emission tables of independent sensors, in the shortest common form.

    Each table is (X, Y), (A + 1, X, Y) or (H, A + 1 or 1, X, Y). Rows that are never used are
    uniform: those of an action before the first step, and those without an action at later steps.
    """
    tables = list(tables)
    xp = namespace(*tables)
    rank = max(table.ndim for table in tables)
    full = [table.reshape(*(1,) * (4 - table.ndim), *table.shape) for table in tables]
    joint = full[0]
    for table in full[1:]:
        joint = joint[..., :, None] * table[..., None, :]
        joint = joint.reshape(*joint.shape[:-2], -1)
    H, after, _, Y = joint.shape
    if rank == 4 and after > 1:
        used = np.zeros((H, after), dtype=bool)
        used[0, -1] = used[1:, :-1] = True
        joint = xp.where(used[:, :, None, None], joint, 1 / Y)
    return joint if rank == 4 else joint[0] if after > 1 else joint[0, 0]

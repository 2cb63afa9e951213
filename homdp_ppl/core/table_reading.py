"""From a table with one row per step to :class:`Episodes`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np

from homdp_ppl.core.episode import Ended
from homdp_ppl.core.episode_validation import problems_of
from homdp_ppl.core.episode_values import Known, Values, blank
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.sensors import Sensors
from homdp_ppl.core.spaces import Real, Space, Spaces, shape_of
from homdp_ppl.core.table_columns import (
    Column,
    as_indices,
    as_keys,
    as_numbers,
    as_steps,
    levels_of,
)
from homdp_ppl.core.table_problems import Report
from homdp_ppl.core.table_rows import Rows, Steps, arranged, check_steps
from homdp_ppl.core.tables import Table, missing_columns
from homdp_ppl.errors import DataError, Problem, shown, unknown
from homdp_ppl.memory import NUMBER, count, require_memory

Names: TypeAlias = str | Sequence[str] | Mapping[str, str]
OPTIONAL = ("reward", "label", "ended")  # read if the table has a column of this name
REASONS = get_args(Ended)


class Columns(NamedTuple):
    """The names of the columns by what they contain."""

    episode: str = "episode"
    step: str | None = "step"
    observation: Names = "observation"
    action: str = "action"
    state: Names | None = "state"
    reward: str | None = "reward"
    label: str | None = "label"
    ended: str | None = "ended"

    def listed(self, spaces: Spaces) -> list[tuple[str, str]]:
        """Pairs of an argument and a column; raises DataError if names and spaces do not fit."""
        pairs: list[tuple[str, str]] = []
        problems: list[Problem] = []
        for argument, given in self._asdict().items():
            if given is None:
                continue
            several = not isinstance(given, str)
            space: Any = getattr(spaces, f"{argument}s", ()) if several else ()
            pairs += [(argument, name) for name in _parts(argument, given, space, problems)]
        if problems:
            raise DataError("columns", problems)
        return pairs


def _parts(argument: str, given: Names, space: Space, problems: list[Problem]) -> list[str]:
    """The columns of one argument, in the order of the sensors or of the axes of a vector."""
    if isinstance(given, str):
        return [given]
    sensors = list(space.sensors) if isinstance(space, Sensors) else []
    if isinstance(given, Mapping):
        problems += [
            unknown(argument, "sensor", k, sensors, "this model") for k in given if k not in sensors
        ]
        problems += [
            Problem(argument, f"no column for {sensor!r}", "a column for every sensor")
            for sensor in sensors
            if sensor not in given
        ]
        return [given[sensor] for sensor in sensors if sensor in given]
    size = space.dimension if isinstance(space, Real) else len(sensors) or 1
    if len(given) != size:
        expected = f"{size} column{'s' * (size != 1)}"
        problems.append(Problem(argument, shown(given), expected))
    return list(given)


def read_table(
    table: Table,
    spaces: Spaces,
    columns: Columns,
    report: Report,
    blanks: Collection[str] = ("",),
    behaviour: str | None = None,
) -> Episodes:
    """Read episodes; raises DataError with all problems.

    Parameters
    ----------
    table, columns
        The table, and the names of its columns.
    spaces
        The spaces of the model.
    report
        Collects the problems.
    blanks
        Texts that stand for missing values, unless they are names.
    behaviour
        The policy that acted, as in :class:`Episodes`.
    """
    pairs = columns.listed(spaces)
    optional = [a for a in OPTIONAL if getattr(columns, a) == a]
    problems = missing_columns(table, pairs, optional)
    if isinstance(spaces.observations, Sensors) and columns.observation == "observation":
        each = ", ".join(f'"{sensor}": "{sensor}"' for sensor in spaces.observations.sensors)
        remedy = f"Name one column per sensor, observation={{{each}}}, or one of joint names."
        problems = [p._replace(remedy=remedy) if p.where == "observation" else p for p in problems]
    if problems:
        raise DataError(report.subject, problems)
    data = {pair: table.column(pair[1]) for pair in pairs if pair[1] in table.names}
    sizes = {pair[1]: values.shape for pair, values in data.items()}
    if len(set(sizes.values())) > 1 or any(len(shape) != 1 for shape in sizes.values()):
        got = ", ".join(f"{name!r} {shape}" for name, shape in sizes.items())
        problem = Problem("columns", got, "one value per row in every column")
        raise DataError(report.subject, [problem])
    return _Reading(spaces, columns, report, data, tuple(blanks)).episodes(behaviour)


class _Reading:
    """The values of all columns, row by row."""

    def __init__(
        self,
        spaces: Spaces,
        columns: Columns,
        report: Report,
        data: dict[tuple[str, str], Column],
        blanks: tuple[str, ...],
    ) -> None:
        self.spaces, self.columns, self.report = spaces, columns, report
        self.data, self.blanks = data, blanks
        self.size = len(next(iter(data.values())))
        self.seen, saw = self._space("observation", columns.observation, spaces.observations)
        self.done, did = self._space("action", columns.action, spaces.actions)
        self.states, self.revealed = self._space("state", columns.state, spaces.states)
        self.rewards, self.rewarded = self._numbers("reward")
        self.labels, self.labelled = self._numbers("label")
        if spaces.terminal and isinstance(spaces.observations, tuple):
            after = saw & ~did & (self.seen == len(spaces.observations) - 1)
            saw = saw & ~after  # "ended" in the row after the last action
        self.saw, self.did = saw, did

    def _found(self, argument: str) -> list[tuple[str, Column]]:
        return [(name, values) for (each, name), values in self.data.items() if each == argument]

    def _name(self, argument: str) -> str:
        """The column of an argument; the argument itself if it has several columns."""
        names = [name for name, _ in self._found(argument)]
        return names[0] if len(names) == 1 else argument

    def _space(self, argument: str, names: Any, space: Space) -> tuple[Values, Known]:
        """The values of a space, and which rows have one."""
        found = self._found(argument)
        if not found:
            kind = float if isinstance(space, Real) else int
            return np.zeros((self.size, *shape_of(space)), kind), np.zeros(self.size, dtype=bool)
        if isinstance(space, Real):
            parts = [as_numbers(name, part, self.report, self.blanks) for name, part in found]
        elif len(found) == 1 and not (isinstance(space, Sensors) and not isinstance(names, str)):
            return as_indices(*found[0], space, self.report, self.blanks)
        else:
            assert isinstance(space, Sensors)
            outcomes = space.sensors.values()
            parts = [
                as_indices(name, part, each, self.report, self.blanks)
                for (name, part), each in zip(found, outcomes, strict=True)
            ]
        known = np.all([mask for _, mask in parts], axis=0)
        for (name, _), (_, mask) in zip(found, parts, strict=True):
            alone = np.flatnonzero(np.any([m for _, m in parts], axis=0) & ~mask)
            if len(alone):
                others = "a value, as in the other columns of this " + argument
                self.report.add(name, alone, "no value", others)
        if isinstance(space, Real):
            values = np.stack([part for part, _ in parts], axis=-1)
            return values.reshape(self.size, *space.shape), known
        assert isinstance(space, Sensors)
        return np.ravel_multi_index(tuple(part for part, _ in parts), space.shape), known

    def _numbers(self, argument: str) -> tuple[Values | None, Known]:
        found = self._found(argument)
        if not found:
            return None, np.zeros(self.size, dtype=bool)
        return as_numbers(*found[0], self.report, self.blanks)

    def episodes(self, behaviour: str | None) -> Episodes:
        """The episodes; raises DataError with all problems."""
        acted = self.saw | self.did
        used = acted | self.revealed | self.rewarded | self.labelled
        name, column = self._found("episode")[0]
        key, ids = as_keys(name, column, used, self.report, self.blanks)
        steps = Steps("step", None, False)
        for where, values in self._found("step"):
            steps = Steps(where, *as_steps(where, values, used, self.report, self.blanks))
            if steps.order is None and self.size:
                self.report.refuse()
        rows = arranged(key, ids, steps, used, acted, self.report)
        absent = {
            self._name("observation"): ~self.saw[rows.row],
            self._name("action"): ~self.did[rows.row],
        }
        check_steps(rows, absent, self.spaces.horizon, self.report)
        extra = self.rewarded & ~acted
        if extra.any():
            got, expected = "a reward without an action", "rewards of steps only"
            self.report.add(str(self.columns.reward), np.flatnonzero(extra), got, expected)
        ended = self._ended(rows)
        self.report.refuse()
        episodes = self._padded(rows, ended, behaviour)
        problems = problems_of(episodes, self.spaces)
        if problems:
            raise DataError(self.report.subject, problems)
        return episodes

    def _ended(self, rows: Rows) -> Values:
        """Why each episode ended: as recorded, or else from its length and its last state."""
        H, terminal = self.spaces.horizon, self.spaces.terminal
        known = self.revealed[rows.row]
        over = np.zeros(len(rows.row), dtype=bool)
        if terminal:
            over = known & self.spaces.ends[self.states[rows.row]]
        for state in np.unique(self.states[rows.row][over & rows.acted]):
            wrong = over & rows.acted & (self.states[rows.row] == state)
            got = f"a step in {self.spaces.states[int(state)]!r}, which is terminal"
            remedy = "End the episode there, with the state in the row after the last action."
            where = self._name("state")
            self.report.add(where, rows.at(wrong), got, "no step in a terminal state", remedy)
        length = rows.length
        closed = np.zeros(len(rows.ids), dtype=bool)
        if len(rows.ids):
            closed = over[rows.last] & ~rows.acted[rows.last]
        ended = np.where(length < H, "truncated", "horizon").astype("<U10")
        ended[closed] = "terminal"
        return self._recorded(rows, ended, closed)

    def _recorded(self, rows: Rows, ended: Values, closed: Known) -> Values:
        """The reasons in the column of reasons, where there are any."""
        for where, column in self._found("ended"):
            levels = levels_of(column)
            given, present = as_indices(where, column, REASONS, self.report, self.blanks)
            if levels is None or self.report:
                return ended
            given, present = given[rows.row], present[rows.row]
            largest = np.full(len(rows.ids), -1)
            np.maximum.at(largest, rows.episode[present], given[present])
            differs = np.flatnonzero(present & (given != largest[rows.episode]))
            self._each(rows, differs, where, "several reasons", "one reason per episode")
            ended = np.where(largest >= 0, np.array(REASONS)[largest], ended)
            short = rows.length < self.spaces.horizon
            wrong = (ended == "horizon") & short | (ended == "truncated") & ~short
            steps = f"{self.spaces.horizon} steps"
            self._each(
                rows,
                rows.last[wrong & (ended == "horizon")],
                where,
                "'horizon' with fewer steps",
                steps,
            )
            self._each(
                rows,
                rows.last[wrong & (ended == "truncated")],
                where,
                "'truncated' at the horizon",
                f"fewer than {steps}",
            )
            after = ~rows.acted[rows.last] & self.revealed[rows.row[rows.last]]
            self._each(
                rows,
                rows.last[after & (ended == "terminal") & ~closed],
                where,
                "'terminal' in a state that is not",
                "a terminal state at the end",
            )
            self._each(
                rows,
                rows.last[closed & (ended == "truncated")],
                where,
                "'truncated' in a terminal state",
                "'terminal'",
            )
        return ended

    def _each(self, rows: Rows, chosen: Values, where: str, got: str, expected: str) -> None:
        """Report a problem of some of the sorted rows."""
        if len(chosen):
            self.report.add(where, rows.at(chosen), got, expected)

    def _padded(self, rows: Rows, ended: Values, behaviour: str | None) -> Episodes:
        """The rows as padded arrays."""
        H, N = self.spaces.horizon, len(rows.ids)
        wide = sum(int(np.prod(part.shape[1:])) for part in (self.seen, self.states)) + 3
        got = f"{count(N)} episodes padded to {count(H)} steps"
        remedy = "Read the table in parts, or declare a shorter horizon."
        needed = 2 * N * (H + 1) * wide * NUMBER
        require_memory(DataError, self.report.subject, "table", got, needed, remedy)
        taken = rows.acted
        steps = rows.episode[taken], rows.place[taken]
        both = rows.episode, rows.place

        def page(values: Values, places: Any, chosen: Values, width: int) -> Values:
            padded = np.full((N, width, *values.shape[1:]), blank(values.dtype), values.dtype)
            padded[places] = values[chosen]
            return padded

        rewards: dict[str, Any] = {}
        if self.rewards is not None:
            rewards["rewards"] = page(self.rewards, steps, rows.row[taken], H)
        if self.labels is not None:
            rewards["labels"] = page(self.labels, both, rows.row, H + 1)
        return Episodes(
            page(self.seen, steps, rows.row[taken], H),
            page(self.done, steps, rows.row[taken], H),
            page(self.states, both, rows.row, H + 1),
            revealed=page(self.revealed, both, rows.row, H + 1),
            **rewards,
            length=rows.length,
            ended=ended,
            ids=rows.ids,
            behaviour=behaviour,
        )

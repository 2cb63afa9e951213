"""A summary of recorded episodes: lengths, what is missing, actions, and visits of table rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from homdp_ppl.core.missingness import association
from homdp_ppl.core.probabilities import entry_name
from homdp_ppl.core.spaces import HasTables, Spaces, names_of
from homdp_ppl.precision import Array

if TYPE_CHECKING:
    from homdp_ppl.core.episodes import Episodes

LISTED = 5  # names that are written out


class Share(NamedTuple):
    """How many of several things are known."""

    known: int
    total: int

    def __str__(self) -> str:
        share = f" ({self.known / self.total:.0%})" if self.total else ""
        return f"{self.known:,} of {self.total:,}{share}"


class RowVisits(NamedTuple):
    """How often a log shows a draw of a table row."""

    table: str  # "initial", "transition" or "emission"
    row: str  # in the names of the model; empty for the initial distribution
    visits: int
    known: bool  # whether the declaration knows the row

    @property
    def name(self) -> str:
        """The table and the row, for example "transition (on, press)"."""
        return f"{self.table} ({self.row})" if self.row else self.table


@runtime_checkable
class HasStructure(Protocol):
    """A declaration, which knows some of the rows of its tables."""

    @property
    def structure(self) -> Any:
        """The structure, with ``known``."""


@runtime_checkable
class HasForm(Protocol):
    """Spaces, or something else with tables: they determine the rows."""

    @property
    def form(self) -> Any:
        """The form of the tables."""


@dataclass(frozen=True, eq=False)
class LogSummary:
    """A summary of recorded episodes, as :meth:`homdp_ppl.Episodes.summary` returns it.

    Attributes
    ----------
    episodes, steps, horizon
        The number of episodes, of all their steps, and the largest possible number of steps.
    lengths
        The number of episodes with 0, 1, ..., H steps, (H + 1,).
    ended
        The number of episodes by the reason for their end.
    by_step
        The revealed states at each step, and after the last one of H.
    by_observation, by_action
        The revealed states among those with an observation, or in which an action was taken, by
        name; empty for real-valued spaces and without a model.
    rewards, labels
        The recorded rewards and labels, None if there are none.
    actions
        How often each action was taken at each step, (H, A).
    rows
        The visits of each table row; empty without a model or for real-valued spaces. A row is
        counted where its state, and for transitions the next state, are revealed.
    association
        The p-value of a test of whether reveals depend on what was seen and done; None if there
        are too few data, or if all states are revealed.
    """

    episodes: int
    steps: int
    horizon: int
    lengths: Array
    ended: Mapping[str, int]
    by_step: tuple[Share, ...]
    by_observation: Mapping[str, Share]
    by_action: Mapping[str, Share]
    rewards: Share | None
    labels: Share | None
    actions: Array
    rows: tuple[RowVisits, ...]
    association: float | None

    @property
    def states(self) -> Share:
        """The revealed states of all steps."""
        return Share(sum(each.known for each in self.by_step), sum(s.total for s in self.by_step))

    @property
    def unvisited(self) -> tuple[RowVisits, ...]:
        """The unknown rows about which the log contains no draw."""
        return tuple(row for row in self.rows if not row.known and not row.visits)

    def __repr__(self) -> str:
        lines = [f"{self.episodes:,} episodes, {self.steps:,} steps, horizon {self.horizon}"]
        counts = [f"{h}: {n:,}" for h, n in enumerate(self.lengths) if n]
        lines.append(f"steps per episode  {_listed(counts, 10)}")
        ended = [f"{reason}: {n:,}" for reason, n in self.ended.items()]
        lines.append(f"ended              {', '.join(ended) or 'none'}")
        lines.append(f"states revealed    {self.states}")
        if self.states.known < self.states.total:
            shares = [_percent(each) for each in self.by_step]
            lines.append(f"  by step          {_listed(shares, 12)}")
            for title, parts in (("observation", self.by_observation), ("action", self.by_action)):
                named = [f"{name} {_percent(share)}" for name, share in parts.items()]
                if named:
                    lines.append(f"  by {title:<13} {_listed(named, 8)}")
            if self.association is not None:
                found = "depends on" if self.association < 0.01 else "no association with"
                test = f"{found} what was seen or done (p = {self.association:.2g})"
                lines.append(f"  what is missing  {test}")
        lines += [f"rewards recorded   {self.rewards}"] * (self.rewards is not None)
        lines += [f"labels recorded    {self.labels}"] * (self.labels is not None)
        if self.steps:
            totals = self.actions.sum(0)
            names = list(self.by_action) or [str(a) for a in range(len(totals))]
            taken = [f"{a} {n / self.steps:.0%}" for a, n in zip(names, totals, strict=True)]
            lines.append(f"actions            {_listed(taken, 8)}")
        if self.rows:
            unknown = [row for row in self.rows if not row.known]
            without = [row.name for row in self.unvisited]
            said = f"{len(without):,} of {len(unknown):,} unknown rows"
            lines.append(f"rows without data  {said}{': ' * bool(without)}{_listed(without)}")
            visits = sorted((row.visits, row.name) for row in unknown if row.visits)
            if visits:
                least = f"{visits[0][0]:,} ({visits[0][1]})"
                lines.append(f"  least visited    {least}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def summarised(episodes: Episodes, model: HasTables | None) -> LogSummary:
    """Summarise episodes, which are validated if there is a model."""
    spaces = None if model is None else model.spaces
    taken, H = episodes.steps, episodes.horizon
    present = np.arange(H + 1) <= episodes.length[:, None]
    known = episodes.revealed & present
    reasons, numbers = np.unique(episodes.ended, return_counts=True)
    finite = spaces is not None and spaces.finite
    actions = spaces.actions if spaces is not None else ()
    size = len(actions) or int(episodes.actions.max(initial=0)) + 1
    by_step = np.zeros((H, size), dtype=np.int64)
    step = np.broadcast_to(np.arange(H), taken.shape)
    np.add.at(by_step, (step[taken], episodes.actions[taken]), 1)
    gaps = finite and not known[present].all()
    test = association(episodes, spaces) if gaps and spaces is not None else None
    return LogSummary(
        len(episodes),
        int(episodes.length.sum()),
        H,
        np.bincount(episodes.length, minlength=H + 1),
        dict(zip(reasons.tolist(), numbers.tolist(), strict=True)),
        tuple(Share(*map(int, pair)) for pair in zip(known.sum(0), present.sum(0), strict=True)),
        _shares(episodes.observations, taken, known, names_of(spaces.observations))
        if finite and spaces is not None
        else {},
        _shares(episodes.actions, taken, known, actions),
        _recorded(episodes.rewards_known, episodes.length),
        _recorded(episodes.labels_known, episodes.length + 1),
        by_step,
        _visits(episodes, known, model) if finite and model is not None else (),
        None if test is None else test.p_value,
    )


def _shares(values: Array, taken: Array, known: Array, names: tuple[str, ...]) -> dict[str, Share]:
    """The revealed states by the value of their step; "ended" belongs to no step."""
    if not names:
        return {}
    total = np.bincount(values[taken], minlength=len(names))
    revealed = np.bincount(values[taken & known[:, :-1]], minlength=len(names))
    return {name: Share(int(k), int(n)) for name, k, n in zip(names, revealed, total, strict=True)}


def _recorded(known: Array | None, length: Array) -> Share | None:
    return None if known is None else Share(int(known.sum()), int(length.sum()))


def _visits(episodes: Episodes, known: Array, model: HasTables) -> tuple[RowVisits, ...]:
    """The visits of every table row."""
    form, spaces = model.form, model.spaces
    moves, shows = form.step_places(episodes.states, episodes.observations, episodes.actions)
    before = known[:, :-1] & episodes.steps
    certain = model.structure.known if isinstance(model, HasStructure) else None
    found = []
    for table, shape, places, seen in (
        ("initial", form.initial, (), known[:, 0]),
        ("transition", form.transition, moves[:-1], before & known[:, 1:]),
        ("emission", form.emission, shows[:-1], before),
    ):
        visits = np.zeros(shape[:-1], dtype=np.int64)
        if table == "initial":
            visits[()] = seen.sum()
        else:
            index = (np.broadcast_to(place, seen.shape)[seen] for place in places)
            np.add.at(visits, tuple(index), 1)
        fixed = np.zeros(shape[:-1], bool) if certain is None else getattr(certain, table)
        fixed = np.broadcast_to(fixed, visits.shape)
        used = _usable(table, spaces, model)
        found += [
            RowVisits(table, _row_name(table, index, shape, spaces), int(n), bool(fixed[index]))
            for index, n in np.ndenumerate(visits)
            if used[index]
        ]
    return tuple(found)


def _usable(table: str, spaces: Spaces, model: HasTables) -> Array:
    """The rows that some step can use: not those of terminal states."""
    if table == "initial":
        return np.array(True)
    moves, shows = model.form.steps(spaces.horizon)
    if table == "transition":
        return (moves > 0) & ~spaces.ends[:, None]
    return (shows > 0) & ~spaces.ends


def _row_name(table: str, index: Any, shape: tuple[int, ...], spaces: Spaces) -> str:
    return "" if table == "initial" else entry_name(table, index, shape, spaces)


def _percent(share: Share) -> str:
    return f"{share.known / share.total:.0%}" if share.total else "-"


def _listed(parts: list[str], most: int = LISTED) -> str:
    """The first parts, and how many there are besides."""
    more = len(parts) - most
    return ", ".join([*parts[:most], *([f"{more:,} more"] if more > 0 else [])])

"""Counts: the sufficient statistics of revealed episodes for finite models."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.core.clue_building import hindsight_counts, zero_counts
from homdp_ppl.core.episode import Episode, missing_value
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.form import Form
from homdp_ppl.core.pattern import Pattern
from homdp_ppl.core.policy import range_problems
from homdp_ppl.core.pomdp_validation import spaces_of
from homdp_ppl.core.reward_counts import RewardCounts
from homdp_ppl.core.spaces import HasTables
from homdp_ppl.errors import DataError, Problem, shown
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array

Names: TypeAlias = tuple[tuple[str, ...], ...]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["transition", "emission", "initial", "rewards", "hindsight"],
    meta_fields=["names", "pattern"],
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

    transition: Array  # (X, A, X)  n(x, a, x'), in the form of the model's transition table
    emission: Array  # (X, Y)     n(x, y), in the form of the model's emission table
    names: Names | None = None  # of states, observations and actions, if they are known
    initial: Array | None = None  # (X,)       n(x_1); None if first states were not counted
    rewards: RewardCounts | None = None  # of recorded rewards; None if rewards are known
    # of labels and of what was revealed, by table; None if the declaration has neither
    hindsight: dict[str, Array] | None = None
    pattern: Pattern | None = None  # of sparse transitions

    @classmethod
    @checked
    def zero(cls, model: HasTables) -> Counts:
        """Counts without any data."""
        form = _form(model)
        transition, emission, initial = (
            np.zeros(shape, dtype=np.int64)
            for shape in (form.transition, form.emission, form.initial)
        )
        rewards = None if form.reward is None else RewardCounts.zero(form.reward)
        hindsight = form.hindsight
        further = zero_counts(hindsight) if hindsight is not None and hindsight.matters else None
        counted = transition, emission, model.spaces.names, initial, rewards, further
        return cls(*counted, pattern=form.pattern)

    @classmethod
    @checked
    def of(
        cls, episodes: Episode | Episodes | Iterable[Episode | Episodes], model: HasTables
    ) -> Counts:
        """Count episodes; raises DataError if they do not fit the model or lack states.

        Episodes that ended early are counted up to their end.
        """
        batch = Episodes.of(episodes, model).require_revealed("counts")
        zero = cls.zero(model)
        moves, shows = model.form.step_places(batch.states, batch.observations, batch.actions)
        if not batch.full_length:
            moves, shows = (tuple(part[batch.steps] for part in index) for index in (moves, shows))
        refuse(DataError, "counts", _excluded(model.form, moves))
        starts, rewards = (batch.states[:, 0],), zero.rewards
        if rewards is not None and batch.rewards is not None and batch.rewards_known is not None:
            played = batch.states, batch.observations, batch.actions
            rewards = rewards.add(*played, batch.rewards, batch.rewards_known)
        return cls(
            _incremented(zero.transition, moves, traced=False),
            _incremented(zero.emission, shows, traced=False),
            zero.names,
            _incremented(np.zeros(model.form.initial, dtype=np.int64), starts, traced=False),
            rewards,
            hindsight_counts(batch, batch.revealed, model.form),
            pattern=model.form.pattern,
        )

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
        both = self.initial is not None and other.initial is not None
        return Counts(
            self.transition + other.transition,
            self.emission + other.emission,
            self.names or other.names,
            self.initial + other.initial if both else None,  # type: ignore[operator]
            None if self.rewards is None or other.rewards is None else self.rewards + other.rewards,
            _added(self.hindsight, other.hindsight),
            pattern=self.pattern,
        )

    @checked
    def add(self, episode: Episode) -> Counts:
        """These counts plus one episode; can be traced, then without validation."""
        if self.hindsight is not None:
            got, expected = "labels or a mechanism of reveals", "episodes whose states are revealed"
            remedy = "Count episodes with homdp.counts(episodes)."
            raise DataError("counts", [Problem("episode", got, expected, remedy)])
        traced = isinstance(self.transition, jax.Array) or isinstance(episode.states, jax.Array)
        if not traced:
            _check_indices(self, episode)
        moves, shows = self.form.step_places(episode.states, episode.observations, episode.actions)
        refuse(DataError, "counts", [] if traced else _excluded(self.form, moves))
        return Counts(
            _incremented(self.transition, moves, traced),
            _incremented(self.emission, shows, traced),
            self.names,
            None
            if self.initial is None
            else _incremented(self.initial, (episode.states[0],), traced),
            _with_rewards(self.rewards, episode),
            pattern=self.pattern,
        )

    @property
    def form(self) -> Form:
        """The form of the tables that are counted."""
        transition, emission = np.shape(self.transition), np.shape(self.emission)
        reward = None if self.rewards is None else self.rewards.form
        return Form(emission[-2:-1], transition, emission, reward, pattern=self.pattern)

    @property
    def reward(self) -> Array | None:
        """How often each outcome of random rewards was recorded; None if it was not counted."""
        return None if self.rewards is None else self.rewards.outcomes

    @property
    def state_action(self) -> Array:
        """n(x, a), with the axes of the transition table except the last."""
        return self.transition.sum(-1)

    @property
    def visits(self) -> Array:
        """n(x) at steps 1..H, with the axes of the emission table except the last."""
        return self.emission.sum(-1)


def _excluded(form: Form, moves: tuple[Array, ...]) -> list[Problem]:
    """Report transitions for which a sparse model has no entry; they cannot be counted."""
    if form.pattern is None or not form.excludes(moves).any():
        return []
    got, expected = "transitions without an entry in the table", "possible transitions only"
    return [Problem("states", got, expected, "Store zeros where transitions may be seen.")]


def _added(one: dict[str, Array] | None, other: dict[str, Array] | None) -> dict[str, Array] | None:
    """The sums of counts by table; None if some were not counted."""
    if one is None or other is None:
        return None
    return {name: table + other[name] for name, table in one.items()}


def _with_rewards(counts: RewardCounts | None, episode: Episode) -> RewardCounts | None:
    """The statistics with the recorded rewards of an episode."""
    if counts is None or episode.rewards is None:
        return counts
    rewards = episode.rewards
    if isinstance(rewards, jax.Array):
        known: Array = ~jnp.isnan(rewards)
    else:
        recorded = np.ma.masked_invalid(np.ma.asarray(rewards).astype(np.float64))
        known, rewards = ~np.ma.getmaskarray(recorded), recorded.filled(0.0)
    return counts.add(episode.states, episode.observations, episode.actions, rewards, known)


def _incremented(table: Array, index: tuple[Array, ...], traced: bool) -> Array:
    """A copy of a table with 1 added at each index."""
    if traced:
        return jnp.asarray(table).at[index].add(1)
    copy = cast(np.ndarray[Any, Any], table).copy()
    np.add.at(copy, index, 1)
    return copy


def _form(model: HasTables) -> Form:
    """The form of a model's tables; raises an error if its counts do not fit in memory."""
    X, Y, A, _ = spaces_of(model, "counts").sizes
    form = getattr(model, "form", None)
    if not isinstance(form, Form):
        expected = "a HOMDP, a World, a POMDP or Spaces"
        raise DataError("counts", [Problem("model", shown(model), expected)])
    got = f"{count(X)} states, {count(A)} actions and {count(Y)} observations"
    needed = NUMBER * (math.prod(form.transition) + math.prod(form.emission))
    require_memory(DataError, "counts", "states", got, needed, "Use fewer states or actions.")
    return form


def check_counts(counts: Counts, model: HasTables, subject: str = "counts") -> None:
    """Raise an error for counts of another model, and for invalid numbers.

    Without this check, different shapes could be broadcast. Traced numbers are accepted.
    """
    form = model.form
    problems = []
    for where in ("transition", "emission", "initial"):
        table, shape = getattr(counts, where), getattr(form, where)
        remedy = "Count episodes of this model."
        if where == "initial" and table is None:
            continue
        if not isinstance(table, np.ndarray | jax.Array):
            problems.append(Problem(f"counts.{where}", shown(table), "an array of counts", remedy))
        elif table.shape != shape:
            got = f"shape {table.shape}"
            problems.append(Problem(f"counts.{where}", got, f"shape {shape}", remedy))
        elif not isinstance(table, jax.core.Tracer) and not _counting(table):
            expected = "finite, non-negative numbers"
            problems.append(Problem(f"counts.{where}", f"values of type {table.dtype}", expected))
    problems += _reward_problems(counts.rewards, form)
    if not problems and counts.names and counts.names != model.spaces[:3]:
        names = str(counts.names), str(model.spaces[:3])
        problems.append(Problem("counts.names", *names, "Count episodes of this model."))
    if problems:
        raise DataError(subject, problems)


def _reward_problems(counts: RewardCounts | None, form: Form) -> list[Problem]:
    """Report statistics of rewards that do not fit a model with random rewards."""
    if form.reward is None:
        return []
    remedy = "Count episodes of this model: homdp.counts(episodes)."
    if not isinstance(counts, RewardCounts):
        return [Problem("counts.rewards", shown(counts), "statistics of random rewards", remedy)]
    if counts.form != form.reward or np.shape(counts.number) != form.reward.shape:
        expected = f"rows of shape {form.reward.shape}, with the outcomes of this model"
        got = f"rows of shape {np.shape(counts.number)}"
        return [Problem("counts.rewards", got, expected, remedy)]
    return []


def _counting(table: Array) -> bool:
    """Whether all entries are finite, non-negative numbers."""
    if getattr(table.dtype, "kind", "none") not in ("b", "i", "u", "f") or np.ma.is_masked(table):
        return False
    return table.size == 0 or bool(table.min() >= 0 and table.max() < np.inf)


def _check_indices(counts: Counts, episode: Episode) -> None:
    """Raise an error for an invalid episode; NumPy would count negative indices from the end."""
    X, Y, A = counts.form.sizes
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

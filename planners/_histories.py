"""The shape of a history tree: the possible histories of each step, as index arrays.

The shape depends only on which probabilities can be non-zero, so it is computed once for all models
with the same support. Histories are counted before the tree is built: histories with the same set
of possible states have the same futures, and there are few such sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.errors import ParameterError, Problem, shown
from homdp_ppl.precision import Array

# With more distinct sets of possible states, counting stops and uses the complete tree as a bound.
MANY_SETS = 5_000
CHUNK = 4_000_000  # entries in memory at once while sets of states are counted


SHORT = {"initial": 1, "transition": 3, "emission": 2}  # axes of tables that hold for all steps
MOST_STEPS = 10_000
OF = "Create it with Support.of(pomdp)."


def _first_three(model: Any) -> Sequence[Any]:
    """Initial, transition and emission of a POMDP, or of a named tuple that starts with them."""
    if isinstance(model, tuple) and getattr(model, "_fields", ())[: len(SHORT)] == tuple(SHORT):
        return model[: len(SHORT)]
    expected = "a POMDP, or a named tuple that starts with initial, transition, emission"
    raise ParameterError("Support.of", [Problem("model", shown(model), expected)])


class Support(NamedTuple):
    """Which probabilities can be non-zero.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> support = Support.of(models.load("tiger", horizon=2).pomdp)
    >>> support.moves(0)[0, 0].tolist()  # listening leaves the tiger where it is
    [True, False]
    """

    initial: Array  # (X,)
    transition: Array  # (H|1, X, A, X)
    emission: Array  # (H|1, A+1|1, X, Y)

    @classmethod
    @checked
    def of(cls, model: NamedTuple) -> Support:
        """The support of a POMDP, or of Boolean tables.

        Tables without axes for steps and previous actions hold for all of them.
        """
        tables = {}
        for (where, rank), part in zip(SHORT.items(), _first_three(model), strict=True):
            ranks = range(rank, 5) if rank > 1 else (1,)
            expected = f"{' or '.join(map(str, ranks))} axes"
            table, problems = as_numbers(where, part, f"with {expected}")
            if table is not None and table.ndim not in ranks:
                problems = [Problem(where, f"shape {table.shape}", expected)]
            elif table is not None and not (np.asarray(table) >= 0).all():
                problems = [Problem(where, "nan or negative numbers", "numbers of at least 0")]
            refuse(ParameterError, "Support.of", problems)
            tables[where] = np.asarray(table) > 0
        initial, transition, emission = tables.values()
        return cls(
            initial,
            transition[(None,) * (4 - transition.ndim)],
            emission[(None,) * (4 - emission.ndim)],
        )

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of states, observations and actions, (X, Y, A)."""
        (X, Y), A = self.emission.shape[-2:], self.transition.shape[-2]
        return X, Y, A

    @checked
    def moves(self, h: int) -> Array:
        """Which next states are possible from step h, (X, A, X)."""
        refuse(ParameterError, "Support.moves", count_problems(0, h=h))
        return self.transition[min(h, len(self.transition) - 1)]

    def first_shows(self) -> Array:
        """Which first observations are possible in each state, (X, Y)."""
        return self.emission[0, -1]

    @checked
    def shows_after(self, h: int) -> Array:
        """Which observations are possible at step h after each action, (A, X, Y)."""
        refuse(ParameterError, "Support.shows_after", count_problems(0, h=h))
        X, Y, A = self.sizes
        tables = self.emission[min(h, len(self.emission) - 1)]
        return np.broadcast_to(tables if len(tables) == 1 else tables[:-1], (A, X, Y))

    @property
    def complete(self) -> bool:
        """Whether every history is possible."""
        return bool(self.initial.all() and self.transition.all() and self.emission.all())

    @property
    def mixing(self) -> bool:
        """Whether no transition and no observation excludes a state.

        An observation may be impossible in all states, such as one that occurs only before the
        first action.
        """
        sees = self.emission
        return bool(self.transition.all() and (sees.all(-2) | ~sees.any(-2)).all())

    @checked
    def covers(self, other: Support) -> bool:
        """Whether everything that is possible in ``other`` is possible here."""
        check_support("Support.covers", "other", other)
        if any(np.ndim(mine) != np.ndim(theirs) for mine, theirs in zip(self, other, strict=True)):
            return False
        return all(bool((mine | ~theirs).all()) for mine, theirs in zip(self, other, strict=True))

    @property
    def key(self) -> bytes:
        """A key that is equal for equal supports."""
        shapes = repr([part.shape for part in self]).encode()
        return shapes + b"".join(np.packbits(part).tobytes() for part in self)


class Generation(NamedTuple):
    """The histories of one step."""

    parent: Array  # (N,)  index in the previous generation; meaningless at step 1
    action: Array  # (N,)  the action that led here
    observation: Array  # (N,)
    # (N, A, Y)  index in the next generation, -1 if impossible; (0, A, Y) if last or regular
    child: Array
    # whether all children exist: then child = (node A + action) Y + observation is not stored
    regular: bool
    allowed: Array | None = None  # (N, A)  which actions are allowed; None: all of them


@checked
def count_histories(support: Support, horizon: int) -> list[int]:
    """The number of possible histories up to the observation of each step.

    The counts are exact if this is cheap, otherwise upper bounds.

    Parameters
    ----------
    support
        The support of a model, or of all models that a learner may plan for.
    horizon
        The number of steps.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> count_histories(
    ...     Support.of(models.load("tiger", horizon=2).pomdp), 3
    ... )  # each step: times 3 actions and 2 growls
    [2, 12, 72]
    """
    problems = count_problems(horizon=horizon)
    if not problems and horizon > MOST_STEPS:
        problems = [Problem("horizon", shown(horizon), f"at most {MOST_STEPS:,} steps")]
    refuse(ParameterError, "count_histories", problems)
    check_support("count_histories", "support", support)
    return list(counted(support, horizon))


def check_support(subject: str, where: str, support: Support) -> None:
    """Raise ParameterError unless the tables are Boolean and fit together."""
    ranks = {"initial": 1, "transition": 4, "emission": 4}
    wrong = [
        Problem(f"{where}.{name}", shown(table, 80), f"a Boolean array with {rank} axes", OF)
        for (name, rank), table in zip(ranks.items(), support, strict=True)
        if not isinstance(table, np.ndarray)
        or table.dtype != bool
        or table.ndim != rank
        or 0 in table.shape
    ]
    if not wrong:
        X, A, Z = support.transition.shape[1:]
        sizes = len(support.initial), X, Z, support.emission.shape[2]
        if len(set(sizes)) > 1 or support.emission.shape[1] not in (1, A + 1) or 0 in sizes:
            shapes = ", ".join(str(np.shape(part)) for part in support)
            wrong = [Problem(where, f"shapes {shapes}", "shapes of the same model", OF)]
    refuse(ParameterError, subject, wrong)


def few_histories(support: Support, horizon: int, limit: int) -> int | None:
    """The total number of histories if it is at most ``limit``, else None."""
    total = 0
    for more in counted(support, horizon):
        total += more
        if total > limit:
            return None
    return total


def counted(support: Support, horizon: int) -> Iterator[int]:
    """Yield the numbers of :func:`count_histories` one by one."""
    _, Y, A = support.sizes
    first = support.initial & support.first_shows().T  # (Y, X)
    sets, numbers = _merged([first], [np.ones(Y, dtype=object)])
    for h in range(horizon):
        count = int(numbers.sum())
        yield count
        if len(sets) > MANY_SETS:
            yield from (count * (A * Y) ** k for k in range(1, horizon - h))
            return
        if h + 1 == horizon:
            return
        sets, numbers = _onward(sets, numbers, support.moves(h), support.shows_after(h + 1))


def _onward(sets: Array, numbers: Array, moves: Array, shows: Array) -> tuple[Array, Array]:
    """The distinct sets of possible states after an action and an observation, and their numbers.

    ``numbers`` are Python integers, which cannot overflow.
    """
    A, X, Y = shows.shape
    weights, seen = moves.astype(np.float32).transpose(1, 0, 2), shows.swapaxes(1, 2)
    found, often = [], []
    size = max(1, CHUNK // (A * Y * X))
    for start in range(0, len(sets), size):
        some = sets[start : start + size]
        reached = (some.astype(np.float32) @ weights > 0).swapaxes(0, 1)  # (n, A, X)
        after = (reached[:, :, None] & seen).reshape(-1, X)
        merged = _merged([after], [np.repeat(numbers[start : start + size], A * Y)])
        found.append(merged[0])
        often.append(merged[1])
    return _merged(found, often) if len(found) > 1 else (found[0], often[0])


def _merged(sets: list[Array], numbers: list[Array]) -> tuple[Array, Array]:
    """Distinct sets of states that are not empty, (n, X), and their added numbers, (n,)."""
    states, number = np.concatenate(sets), np.concatenate(numbers)
    some = states.any(1)
    states, number = states[some], number[some]
    packed = np.packbits(states, axis=1)
    keys = np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").ravel()
    _, index, inverse = np.unique(keys, return_index=True, return_inverse=True)
    total = np.zeros(len(index), dtype=object)
    np.add.at(total, inverse, number)
    return states[index], total


def generations(support: Support, horizon: int) -> list[Generation]:
    """All possible histories, by step."""
    _, Y, A = support.sizes
    unstored = np.zeros((0, A, Y), dtype=np.int32)
    if support.complete:
        seen, nothing = np.arange(Y, dtype=np.int32), np.zeros(0, dtype=np.int32)
        return [Generation(nothing, nothing, seen, unstored, regular=True)] * horizon
    # possible states after each first observation
    states = support.initial & support.first_shows().T  # (Y, X)
    seen = np.flatnonzero(states.any(1)).astype(np.int32)
    states, parent, action, observation = (
        states[seen],
        np.zeros_like(seen),
        np.zeros_like(seen),
        seen,
    )
    found = []
    for h in range(horizon - 1):
        moves = support.moves(h)
        reached = np.stack([states @ moves[:, a] for a in range(A)], axis=1)  # (N, A, X)
        onward = reached[:, :, None, :] & support.shows_after(h + 1).swapaxes(1, 2)  # (N, A, Y, X)
        possible = onward.any(-1)
        child = np.full(possible.shape, -1, dtype=np.int32)
        child[possible] = np.arange(possible.sum())
        found.append(Generation(parent, action, observation, child, regular=False))
        parent, action, observation = (place.astype(np.int32) for place in np.nonzero(possible))
        states = onward[possible]
    return [*found, Generation(parent, action, observation, unstored, regular=False)]

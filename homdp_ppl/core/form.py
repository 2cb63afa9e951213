"""The form of a model's tables: on what their rows depend, and where an outcome is in them.

A table is stored in the shortest form that fits a declaration: a transition table has a step axis
only if transitions depend on the step, and an emission table has axes for the step and for the
previous action only if emissions depend on them. Counts, supports and posterior tables have the
same form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from homdp_ppl.core.hindsight_form import HindsightForm
from homdp_ppl.core.pattern import Pattern
from homdp_ppl.core.reward_form import RewardForm
from homdp_ppl.core.sparse import Sparse, values_of
from homdp_ppl.precision import Array, namespace

if TYPE_CHECKING:
    from homdp_ppl.core.spaces import Spaces


class Form(NamedTuple):
    """The shapes of the tables of a finite model.

    Examples
    --------
    >>> from homdp_ppl import Spaces
    >>> lamp = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=3)
    >>> lamp.form.transition, lamp.form.emission
    ((2, 2, 2), (2, 2))
    >>> Form((2,), (2, 2, 2), (3, 2, 2)).answers_action
    True
    """

    initial: tuple[int, ...]  # (X,)
    transition: tuple[int, ...]  # (X, A, X) or (H, X, A, X)
    emission: tuple[int, ...]  # (X, Y), (A + 1, X, Y) or (H, A + 1 or 1, X, Y)
    reward: RewardForm | None = None  # of random rewards; None if rewards are known
    hindsight: HindsightForm | None = None  # of labels and of the mechanism of reveals
    # of sparse transitions: their table has an axis of possible next states, (X, A, K)
    pattern: Pattern | None = None

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the initial distribution, the transitions and the emissions."""
        return self.initial, self.transition, self.emission

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of states, observations and actions, (X, Y, A)."""
        return self.initial[0], self.emission[-1], self.transition[-2]

    @property
    def moves_by_step(self) -> bool:
        """Whether transitions depend on the step."""
        return len(self.transition) == 4

    @property
    def shows_by_step(self) -> bool:
        """Whether emissions depend on the step."""
        return len(self.emission) == 4

    @property
    def answers_action(self) -> bool:
        """Whether emissions depend on the previous action."""
        return len(self.emission) > 2 and self.emission[-3] > 1

    @property
    def is_stationary(self) -> bool:
        """Whether no table depends on the step or on the previous action."""
        return len(self.transition) == 3 and len(self.emission) == 2

    def transition_index(self, h: Any, *place: Any) -> tuple[Any, ...]:
        """The index of (x, a, x'), or of its first entries, in a transition table at step h.

        In the table of a sparse model, it is K if x' is not among the possible next states.
        """
        if self.pattern is not None and len(place) == 3:
            x, a, following = place
            place = (x, a, self.pattern.slot(h, x, a, following))
        return (h, *place) if self.moves_by_step else place

    def transition_rows(self, transition: Array, h: Any, x: Any, a: Any) -> Array:
        """T_h(. | x, a) from a transition table, (..., X); can be traced."""
        if self.pattern is None:
            rows: Array = transition[self.transition_index(h, x, a)]
            return rows
        return self.pattern.dense_rows(transition, h, x, a)

    def entry(self, where: str, index: Array) -> Array:
        """The index of an entry of a named table, with the next state of a sparse transition."""
        if self.pattern is None or where != "transition":
            return index
        return np.array(self.pattern.following(index.tolist()))

    def excludes(self, moves: tuple[Array, ...]) -> Array:
        """Which indices of transitions are not in the table of a sparse model."""
        return np.asarray(moves[-1]) >= self.transition[-1]

    def emission_index(self, h: Any, a: Any, *place: Any) -> tuple[Any, ...]:
        """The index of (x, y), or of x, in an emission table at step h.

        ``a`` is the previous action, and the number of actions at the first step.
        """
        if len(self.emission) == 2:
            return place
        previous = a if self.answers_action else 0
        return (h, previous, *place) if self.shows_by_step else (previous, *place)

    def steps(self, horizon: int) -> tuple[Array, Array]:
        """The number of steps of an episode at which each row of the two tables can be used.

        Rows that are never used have 0: with axes for steps and previous actions, the rows of an
        action before the first step and the rows without an action at later steps.
        """
        moves = np.full(self.transition[:-1], 1 if self.moves_by_step else horizon)
        shows = np.full(self.emission[:-1], 1 if self.shows_by_step else horizon)
        if self.answers_action and self.shows_by_step:
            shows[0, :-1] = 0
            shows[1:, -1] = 0
        elif self.answers_action:
            shows[:-1], shows[-1] = horizon - 1, 1
        return moves, shows

    def step_places(
        self, states: Array, observations: Array, actions: Array
    ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """The indices of all transitions and emissions of episodes.

        Parameters
        ----------
        states, observations, actions
            Of shapes (..., H + 1), (..., H) and (..., H).
        """
        xp = namespace(states, actions)
        before, after = states[..., :-1], states[..., 1:]
        if self.is_stationary:
            return self.transition_index(0, before, actions, after), (before, observations)
        h = xp.broadcast_to(xp.arange(actions.shape[-1]), actions.shape)
        none = xp.full((*actions.shape[:-1], 1), self.sizes[2], dtype=actions.dtype)
        previous = xp.concatenate([none, actions[..., :-1]], axis=-1)
        if not self.answers_action:
            previous = xp.zeros_like(previous)
        return (
            self.transition_index(h, before, actions, after),
            self.emission_index(h, previous, before, observations),
        )

    def table(self, tables: Any) -> Any:
        """The transitions of tables in this form: an array, or :class:`Sparse`."""
        return self.full(tables.transition, tables.emission)[0]

    def full(self, transition: Array, emission: Array) -> tuple[Any, Array]:
        """Both tables in the full ranks of a POMDP; extra leading axes are candidates."""
        shows = _full_emission(emission, len(self.emission))
        if self.pattern is not None:
            return Sparse(self.pattern.entries(transition), self.pattern), shows
        return transition if self.moves_by_step else transition[..., None, :, :, :], shows

    def short(self, transition: Any, emission: Array) -> tuple[Array, Array]:
        """Both tables in this form, from the full ranks of a POMDP: the inverse of :meth:`full`."""
        shows = _short_emission(emission, len(self.emission))
        if self.pattern is not None:
            return self.pattern.pad(values_of(transition, self.pattern)), shows
        return transition if self.moves_by_step else transition[..., 0, :, :, :], shows


def stationary_form(spaces: Spaces) -> Form:
    """The form of a model whose tables do not depend on the step or the previous action."""
    X, Y, A, _ = spaces.sizes
    return Form((X,), (X, A, X), (X, Y))


def form_of_tables(transition: Array | Sparse, emission: Array) -> Form:
    """The form of tables in full ranks; axes of size 1 are left out where they can be."""
    pattern = transition.pattern if isinstance(transition, Sparse) else None
    T = np.shape(transition)[-4:] if pattern is None else (*pattern.shape[:3], pattern.longest)
    O = np.shape(emission)[-4:]  # noqa: E741
    if O[0] > 1:
        shows: tuple[int, ...] = O
    else:
        shows = O[1:] if O[1] > 1 else O[2:]
    return Form((T[1],), T if T[0] > 1 else T[1:], shows, pattern=pattern)


def _full_emission(table: Array, rank: int) -> Array:
    if rank == 4:
        return table
    return table[..., None, :, :, :] if rank == 3 else table[..., None, None, :, :]


def _short_emission(table: Array, rank: int) -> Array:
    if rank == 4:
        return table
    return table[..., 0, :, :, :] if rank == 3 else table[..., 0, 0, :, :]

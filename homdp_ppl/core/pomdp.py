"""POMDPs as arrays of fixed ranks, with the equations that planning and evaluation use.

pomdp_shapes.py converts short forms to full ranks; pomdp_validation.py validates the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.form import Form, form_of_tables
from homdp_ppl.core.moves import expect, sparse_onward
from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.core.pomdp_shapes import (
    SHORT_FORMS,
    arrays_of,
    check_index,
    fit_problems,
    full_tables,
)
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.core.sparse import Sparse, as_dense
from homdp_ppl.errors import PlanningError, Problem, shown
from homdp_ppl.precision import Array, namespace

TIE = 1e-9  # times the horizon: closer values are ties, and the action with the lowest index wins
EXACT = "Use planners.history_tree(), which is exact for such models."


class _Fields(NamedTuple):
    initial: Array  # (X,)                rho(x)
    transition: Any  # (H|1, X, A, X)      T_h(x' | x, a): an array, or Sparse
    emission: Array  # (H|1, A+1|1, X, Y)  O_h(y | x, a), a the previous action, A at first
    reward: Array  # (H, X, Y|1, A)      r_h(x, y, a), y the observation seen before the action
    terminal: Array  # (X,) bool           whether the episode ends in x
    scale: Array  # ()                  the user's value is scale * value + H * shift
    shift: Array  # ()


class POMDP(_Fields):
    """The arrays of a finite-horizon POMDP, in float64.

    Axes of size 1 broadcast: if the transitions do not depend on the step, their first axis has
    size 1. Extra leading axes, the same in every field, form a batch of models (candidates). Steps
    h count from 0 in code. The first action is taken after the first observation. Use :meth:`of`
    to create a model from shorter forms.

    Transitions are an array or a :class:`Sparse` table, which stores non-zeros only. The methods
    below accept both; functions without support for sparse tables use :attr:`dense`.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, evaluate, uniform_policy
    >>> stay, swap = np.eye(2), np.eye(2)[::-1]
    >>> lamp = POMDP.of(
    ...     initial=[0, 1],
    ...     transition=np.stack([stay, swap], axis=1),
    ...     emission=np.eye(2),
    ...     reward=[[0, 0], [1, 1]],
    ...     horizon=3,
    ... )
    >>> lamp.horizon, lamp.spaces.actions, lamp.transition.shape
    (3, ('a0', 'a1'), (1, 2, 2, 2))
    >>> evaluate(uniform_policy(lamp), lamp)  # on at first, then half of the time
    2.0
    """

    __slots__ = ()

    def __new__(
        cls,
        initial: Any,
        transition: Any,
        emission: Any,
        reward: Any,
        terminal: Any = None,
        scale: Any = None,
        shift: Any = None,
    ) -> POMDP:
        """Create a model from arrays in full ranks; :meth:`of` accepts shorter forms."""
        if terminal is None or scale is None or shift is None:
            expected = "all seven arrays in full ranks"
            raise PlanningError(
                "POMDP", [Problem("arguments", "fewer than seven", expected, SHORT_FORMS)]
            )
        return super().__new__(cls, initial, transition, emission, reward, terminal, scale, shift)

    @classmethod
    def of(
        cls,
        initial: Any,
        transition: Any,
        emission: Any,
        reward: Any,
        horizon: int | None = None,
        terminal: Any = None,
    ) -> POMDP:
        """Create a model from arrays in short or full form; can be traced.

        Parameters
        ----------
        initial
            rho(x), (X,).
        transition
            T(x' | x, a), (X, A, X), or one table per step, (H, X, A, X), or a :class:`Sparse`
            table.
        emission
            O(y | x), (X, Y). Rank 3 is (A + 1, X, Y), by the previous action, with index A for
            the observation before the first action; rank 4 is (H, A + 1 or 1, X, Y).
        reward
            r(x, a), (X, A), or (H, X, A), or (H, X, Y, A) with y the observation before the
            action.
        horizon
            H; required if no array has a step axis.
        terminal
            The states that end the episode, (X,) of booleans; none by default.

        Raises
        ------
        PlanningError
            If the shapes do not fit together; all problems are reported together.
        """
        fields = arrays_of(initial, transition, emission, reward, horizon, terminal)
        return cls(*fields, np.ones(()), np.zeros(()))

    @property
    def horizon(self) -> int:
        """Number of steps H."""
        shape: tuple[int, ...] = getattr(self.reward, "shape", ())
        if len(shape) < 4:
            raise _short_form("reward", self.reward, "(H, X, Y or 1, A)")
        return int(shape[-4])

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of states, observations and actions, (X, Y, A)."""
        shape: tuple[int, ...] = getattr(self.emission, "shape", ())
        if len(shape) < 4:
            raise _short_form("emission", self.emission, "(H or 1, A + 1 or 1, X, Y)")
        X, Y = shape[-2:]
        return int(X), int(Y), int(self.reward.shape[-1])

    @property
    def spaces(self) -> Spaces:
        """Generated names: x0, y0, a0 and so on."""
        sizes = self.sizes
        spaces = numbered_spaces(*sizes, self.horizon)
        traced = isinstance(self.terminal, jax.core.Tracer)
        if traced or np.shape(self.terminal)[-1:] != sizes[:1] or not np.any(self.terminal):
            return spaces
        ends = np.reshape(self.terminal, (-1, sizes[0]))[0]  # the same for all candidates
        return spaces._replace(terminal=tuple(f"x{x}" for x in np.flatnonzero(ends)))

    @property
    def form(self) -> Form:
        """The form of the tables: on what their rows depend."""
        return form_of_tables(self.transition, self.emission)

    def moves(self, h: Any) -> Array:
        """T_h(x' | x, a), (X, A, X), as an array."""
        check_index("step", h, self.horizon)
        return _at(as_dense(self.transition, "POMDP.moves"), h, 4)

    @property
    def is_sparse(self) -> bool:
        """Whether transitions are a :class:`Sparse` table."""
        return isinstance(self.transition, Sparse)

    @property
    def dense(self) -> POMDP:
        """The model with transitions as an array; PlanningError if it exceeds the memory budget."""
        return self._replace(transition=as_dense(self.transition, "POMDP.dense"))

    def shows(self, h: Any, a: Any = None) -> Array:
        """O_h(y | x, a) after the previous action a, (X, Y); a is None before the first action."""
        check_index("step", h, self.horizon)
        if a is not None:
            check_index("action", a, int(self.reward.shape[-1]) + 1)
        return _at(_at(self.emission, h, 4), -1 if a is None else a, 3)

    def shows_after(self, h: Any) -> Array:
        """O_h(y | x, a) after each action, (A, X, Y), or (1, X, Y) if it depends on none."""
        check_index("step", h, self.horizon)
        tables = _at(self.emission, h, 4)
        return tables if tables.shape[-3] == 1 else tables[..., :-1, :, :]

    def rewards(self, h: Any) -> Array:
        """r_h(x, y, a), (X, Y, A), or (X, 1, A) if it does not depend on the observation."""
        check_index("step", h, self.horizon)
        return _at(self.reward, h, 4, single=False)

    @property
    def rewards_by_observation(self) -> bool:
        """Whether the reward depends on the observation."""
        return bool(self.reward.shape[-2] > 1)

    def to_user(self, values: Any, steps: Any = None) -> Any:
        """Convert values, sums of rewards in [0, 1], to the user's units.

        Parameters
        ----------
        values
            Numbers or arrays.
        steps
            The number of steps over which rewards are summed, by default H.

        Examples
        --------
        >>> import numpy as np
        >>> model = POMDP.of([1], np.ones((1, 2, 1)), [[1]], [[0, 1]], horizon=3)
        >>> float(model._replace(scale=np.array(10.0), shift=np.array(-3.0)).to_user(2.0))
        11.0
        """
        over = self.horizon if steps is None else steps
        _check_numbers("to_user", values=values, steps=over)
        return self.scale * values + over * self.shift

    def from_user(self, values: Any) -> Any:
        """Convert sums of H rewards in the user's units to sums of rewards in [0, 1]."""
        _check_numbers("from_user", values=values)
        return (values - self.horizon * self.shift) / self.scale

    @property
    def unscaled(self) -> POMDP:
        """The same model with values in [0, H]: scale 1 and shift 0."""
        batch = np.shape(self.scale)
        return self._replace(scale=np.ones(batch), shift=np.zeros(batch))

    def predict(self, b: Array, a: Any, h: Any) -> Array:
        """The distribution of the next state before its observation.

        Returns sum_x b(x) T_h(x' | x, a), of shape (..., X) for beliefs (..., X). If ``a`` is None
        or a slice, the result has one row per action: (..., A, X).
        """
        X, _, A = self.sizes
        if not _numeric(b) or b.ndim < 1 or b.shape[-1] != X or np.ma.is_masked(b):
            expected = f"probabilities of {X} states along the last axis"
            raise PlanningError("predict", [Problem("b", shown(b, 80), expected)])
        if isinstance(self.transition, Sparse):
            check_index("step", h, self.horizon)
            if a is None or isinstance(a, slice):
                every = sparse_onward(self.transition, b, None, h)
                return every if a is None else every[..., a, :]
            check_index("action", a, A)
            return sparse_onward(self.transition, b, a, h)
        moves = self.moves(h)
        if a is None or isinstance(a, slice):
            some = moves if a is None else moves[:, a]
            return (b @ some.reshape(X, -1)).reshape(*b.shape[:-1], -1, X)
        check_index("action", a, int(moves.shape[-2]))
        if isinstance(a, jax.core.Tracer):
            moves = jnp.asarray(moves)  # NumPy arrays cannot be indexed by traced values
        return b @ moves[:, a]

    def likelihood(self, y: Any, a: Any, h: Any) -> Array:
        """O_h(y | x, a) as a function of x, (X,); a is the previous action, at first None."""
        shows = self.shows(h, a)
        check_index("observation", y, int(shows.shape[-1]))
        if isinstance(y, jax.core.Tracer):
            shows = jnp.asarray(shows)  # NumPy arrays cannot be indexed by traced values
        return shows[..., y]

    def backup(self, v: Array, h: Any) -> Array:
        """The expected value of the next step, (X, A).

        For values v(x') of states, (X,), this is sum_x' T_h(x' | x, a) v(x'). For values
        v(a, y, x') after an action and an observation, (A, Y, X), it is
        sum_x' T_h(x' | x, a) sum_y O_{h+1}(y | x', a) v(a, y, x').
        """
        X, Y, A = self.sizes
        numeric = _numeric(v)
        if not numeric or v.shape not in ((X,), (A, Y, X)) or np.ma.is_masked(v):
            expected = f"finite numbers of shape {(X,)} or {(A, Y, X)}"
            raise PlanningError("backup", [Problem("v", shown(v, 80), expected)])
        if v.ndim == 1:
            check_index("step", h, self.horizon)
            return expect(self, v, h)
        check_index("step", h, self.horizon - 1)
        seen = (namespace(self, v).swapaxes(self.shows_after(h + 1), -1, -2) * v).sum(1)  # (A, X)
        return expect(self, seen, h)

    def with_bonus(self, bonus: Array) -> POMDP:
        """The model with a bonus added to its rewards, (H, X, A), or (X, A) for every step.

        Axes of size 1 broadcast.
        """
        X, _, A = self.sizes
        full = (self.horizon, X, A)
        expected = f"shape {full[1:]} or {full}: (step,) state, action"
        added, problems = as_numbers("bonus", bonus, expected)
        shape = () if added is None else added.shape
        last = zip(reversed(shape), reversed(full), strict=False)  # leading axes are candidates
        if not problems and (len(shape) < 2 or any(n not in (1, m) for n, m in last)):
            problems = [Problem("bonus", f"shape {shape}", expected)]
        if isinstance(added, np.ndarray) and not problems and not np.isfinite(added).all():
            problems = [Problem("bonus", "entries that are not finite", "finite numbers")]
        if added is None or problems:
            raise PlanningError("with_bonus", problems)
        return self._replace(reward=self.reward + added[..., :, None, :])

    def with_tables(
        self,
        initial: Array | None = None,
        transition: Array | None = None,
        emission: Array | None = None,
        reward: Array | None = None,
    ) -> POMDP:
        """The model with some tables replaced, in the short form of :class:`Stationary`.

        The shapes must fit together. Rows are not checked here to be probabilities, but when the
        model is used.
        """
        tables = full_tables(
            {"initial": initial, "transition": transition, "emission": emission, "reward": reward}
        )
        model = self._replace(**tables)
        problems = fit_problems({name: np.shape(part) for name, part in model._asdict().items()})
        if problems:
            raise PlanningError("with_tables", problems)
        return model

    @property
    def is_stationary(self) -> bool:
        """Whether the model has the short form of :class:`Stationary`."""
        return (
            self.transition.shape[-4] == 1
            and self.emission.shape[-4:-2] == (1, 1)
            and not self.rewards_by_observation
        )

    def stationary(self, subject: str = "stationary", remedy: str = EXACT) -> Stationary:
        """The short form: one transition table and one emission table for all steps.

        Parameters
        ----------
        subject
            The calling function, named in the error.
        remedy
            The remedy in the error.

        Raises
        ------
        PlanningError
            If an array depends on the step, the previous action or the observation.
        """
        if not self.is_stationary:
            dependence = {
                "transition": ("the step", self.transition.shape[-4]),
                "emission": ("the step or the previous action", max(self.emission.shape[-4:-2])),
                "reward": ("the observation", self.reward.shape[-2]),
            }
            raise PlanningError(
                subject,
                [
                    Problem(
                        name,
                        f"a table that depends on {what}",
                        "the same table throughout",
                        remedy,
                    )
                    for name, (what, tables) in dependence.items()
                    if tables > 1
                ],
            )
        return Stationary(
            self.initial,
            self.dense.transition[..., 0, :, :, :],
            self.emission[..., 0, 0, :, :],
            self.reward[..., :, :, 0, :],
        )


class Stationary(NamedTuple):
    """The short form of a model whose tables do not depend on the step or previous action.

    Extra leading axes are candidates, as in :class:`POMDP`.

    Examples
    --------
    >>> import numpy as np
    >>> short = Stationary(np.ones(1), np.ones((1, 2, 1)), np.ones((1, 1)), np.ones((3, 1, 2)))
    >>> short.pomdp.reward.shape, short.pomdp.stationary().reward.shape
    ((3, 1, 1, 2), (3, 1, 2))
    """

    initial: Array  # (X,)       rho(x)
    transition: Array  # (X, A, X)  T(x' | x, a)
    emission: Array  # (X, Y)     O(y | x)
    reward: Array  # (H, X, A)  r_h(x, a)

    @property
    def horizon(self) -> int:
        """Number of steps H."""
        return int(self.reward.shape[-3])

    @property
    def pomdp(self) -> POMDP:
        """The model in full ranks; can be traced."""
        batch = np.shape(self.initial)[:-1]
        return POMDP(
            self.initial,
            self.transition[..., None, :, :, :],
            self.emission[..., None, None, :, :],
            self.reward[..., :, :, None, :],
            np.zeros(np.shape(self.initial), dtype=bool),
            np.ones(batch),
            np.zeros(batch),
        )


def assembled(
    form: Form,
    tables: Sequence[Array],
    reward: Array,
    terminal: Array,
    units: tuple[float, float] = (1.0, 0.0),
) -> POMDP:
    """A POMDP from initial, transition and emission tables in their declared form; can be traced.

    The tables and the rewards (H, X, Y or 1, A) have extra leading axes for candidates. The
    terminal states (X,) and the units, scale and shift, are the same for all of them. Nothing is
    validated.
    """
    initial, *rows = tables
    transition, emission = form.full(*rows)
    batch = np.shape(initial)[:-1]
    scale, shift = units
    return POMDP(
        initial,
        transition,
        emission,
        reward,
        np.broadcast_to(terminal, np.shape(initial)),
        np.full(batch, scale),
        np.full(batch, shift),
    )


def _numeric(values: Any) -> bool:
    """Whether a value is an array of finite or traced real numbers; random keys are not."""
    if isinstance(values, np.ndarray):
        return values.dtype.kind in "biuf" and bool(np.isfinite(values).all())
    return isinstance(values, jax.Array) and getattr(values.dtype, "kind", "") in (
        "b",
        "i",
        "u",
        "f",
    )


def _check_numbers(subject: str, **given: Any) -> None:
    """Raise an error for arguments that are neither numbers nor arrays of numbers."""
    problems = [
        Problem(name, shown(value, 80), "numbers")
        for name, value in given.items()
        if not (_numeric(value) or isinstance(value, float | np.number))
        and not (isinstance(value, int) and abs(value) < 2**1023)
    ]
    if problems:
        raise PlanningError(subject, problems)


@lru_cache(maxsize=256)
def numbered_spaces(states: int, observations: int, actions: int, horizon: int) -> Spaces:
    """Spaces with generated names: x0, y0, a0 and so on."""
    sizes = zip("xya", (states, observations, actions), strict=True)
    X, Y, A = (tuple(f"{letter}{k}" for k in range(n)) for letter, n in sizes)
    return Spaces(X, Y, A, horizon)


def _short_form(where: str, table: Any, full: str) -> PlanningError:
    got = f"shape {np.shape(table)}"
    return PlanningError("POMDP", [Problem(where, got, f"shape {full}", SHORT_FORMS)])


def _at(table: Array, index: Any, axis: int, single: bool = True) -> Array:
    """One entry along an axis, counted from the end; axes of size 1 broadcast if ``single``."""
    place = 0 if single and table.shape[-axis] == 1 else index
    if isinstance(place, jax.core.Tracer):
        table = jnp.asarray(table)  # NumPy arrays cannot be indexed by traced values
    return table[(..., place, *(slice(None),) * (axis - 1))]

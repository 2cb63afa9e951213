"""Forbidden actions: masks of the allowed actions, as functions of the history.

A mask is validated whenever it is asked for. Masks of many histories are tabulated once and cached.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

import jax
import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.bound import by_value
from homdp_ppl.core.cache import Cache
from homdp_ppl.core.policy import as_history, history_problems
from homdp_ppl.core.spaces import Spaces, label_of
from homdp_ppl.errors import HOMDPError, PlanningError, PolicyError, Problem, shown
from homdp_ppl.precision import Array

# (y_1 .. y_h, a_1 .. a_{h-1}), as arrays of indices -> which actions are allowed, (A,) of booleans
Allowed: TypeAlias = Callable[[Array, Array], Any]

ASKED_TWICE = 32  # histories of a table for which the function is called twice
MOST = 8  # problems of one kind in an error
TABLES_BYTES = 200_000_000  # memory limit of cached tables
_tables = Cache(TABLES_BYTES, lambda table: table.nbytes)

EXAMPLE = "Return one Boolean per action, for example ~np.isin(np.arange(A), actions)."


def allowed_after(
    allowed: Allowed,
    observations: ArrayLike,
    actions: ArrayLike,
    spaces: Spaces,
    subject: str,
    error: type[HOMDPError] = PlanningError,
) -> Array:
    """The actions that are allowed after one history, (A,) of booleans.

    Parameters
    ----------
    allowed
        The function. It receives copies of the history.
    observations, actions
        y_1 .. y_h and a_1 .. a_{h-1}, as indices.
    spaces
        The spaces of the model; their names appear in errors.
    subject
        The calling function, named in the error.
    error
        The class of the error for a mask of the wrong shape or type, or an empty one.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import Spaces
    >>> tests = Spaces(("well", "ill"), ("-", "+"), ("blood", "urine", "treat"), horizon=2)
    >>> def once(observations, actions):
    ...     return ~np.isin(np.arange(3), actions)
    >>> allowed_after(once, [0, 1], [1], tests, "example").tolist()
    [True, False, True]
    """
    mask, problem = _asked(allowed, np.asarray(observations), np.asarray(actions), spaces)
    if problem is not None:
        raise error(subject, [problem])
    return mask


def allowed_table(
    allowed: Allowed, observations: Array, actions: Array, spaces: Spaces, subject: str
) -> Array:
    """The actions that are allowed after each of N histories of the same length, (N, A).

    The function is called once for every history, and again for some of them: a mask must not
    depend on anything but the history. Tables are cached.

    Parameters
    ----------
    allowed
        The function.
    observations
        (N, h).
    actions
        (N, h - 1).
    spaces
        The spaces of the model; their names appear in errors.
    subject
        The calling function, named in the error.

    Raises
    ------
    PlanningError
        If masks are invalid or not reproducible; the first problems are reported together.
    """

    def make() -> Array:
        table = np.ones((len(observations), len(spaces.actions)), dtype=bool)
        problems: list[Problem] = []
        for n, (seen, done) in enumerate(zip(observations, actions, strict=True)):
            table[n], problem = _asked(allowed, seen, done, spaces)
            problems += [] if problem is None else [problem]
            if len(problems) == MOST:
                break
        if problems:
            raise PlanningError(subject, problems)
        check_again(allowed, list(zip(observations, actions, table, strict=True)), spaces, subject)
        table.setflags(write=False)
        return table

    digest = blake2b(np.ascontiguousarray(observations).tobytes(), digest_size=32)
    digest.update(np.ascontiguousarray(actions).tobytes())
    sizes = (observations.shape, str(observations.dtype), str(actions.dtype), len(spaces.actions))
    return _tables.get((by_value(allowed), sizes, digest.digest()), make)


def are_masks(allowed: Any, shape: tuple[int, ...]) -> bool:
    """Whether a value is an array of booleans of this shape; traced values are not."""
    return (
        isinstance(allowed, np.ndarray | jax.Array)
        and not isinstance(allowed, jax.core.Tracer)
        and allowed.shape == shape
        and allowed.dtype == bool
    )


def allowed_problems(allowed: Any) -> list[Problem]:
    """Report a value that is not a function of the history; None is accepted."""
    expected = "a function of (observations, actions) that returns one Boolean per action"
    if allowed is None:
        return []
    if not callable(allowed) or isinstance(allowed, type):
        return [Problem("allowed", shown(allowed), expected, EXAMPLE)]
    try:
        signature = inspect.signature(allowed)
    except (TypeError, ValueError):  # some built-in functions have none
        return []
    try:
        signature.bind(None, None)
    except TypeError:
        remedy = (
            "Write def allowed(observations, actions). It depends on the history, not the state."
        )
        return [Problem("allowed", f"a function of {signature}", expected, remedy)]
    return []


def refuse_allowed(planner: str, allowed: Any) -> None:
    """Raise PlanningError if actions are restricted, for planners that do not support this."""
    problems = allowed_problems(allowed)
    if allowed is not None and not problems:
        remedy = "Use planners.history_tree(), which supports forbidden actions."
        got = "a restriction of the actions by the history"
        problems = [Problem("allowed", got, f"None for {planner}", remedy)]
    if problems:
        raise PlanningError(planner, problems)


@dataclass(frozen=True)
class AllowedPolicy:
    """The policy that chooses all allowed actions with the same probability.

    Create it with :func:`homdp_ppl.uniform_policy`.
    """

    allowed: Allowed
    spaces: Spaces

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}."""
        seen, done = as_history("uniform_policy", observations, actions, self.spaces.names[1:])
        _, Y, A, H = self.spaces.sizes
        done = done if done.size else np.zeros(done.shape, dtype=int)
        problems = history_problems(seen, done, Y, A)
        if not problems and len(seen) > H:
            problems = [Problem("history", f"{len(seen)} observations", f"at most {H}")]
        if problems:
            raise PolicyError("uniform_policy", problems)
        mask = allowed_after(self.allowed, seen, done, self.spaces, "uniform_policy", PolicyError)
        return mask / mask.sum()


def _asked(
    allowed: Allowed, observations: Array, actions: Array, spaces: Spaces
) -> tuple[Array, Problem | None]:
    """The mask of one history; if it is invalid, a problem and a mask that allows everything."""
    try:
        answer = allowed(np.array(observations, dtype=int), np.array(actions, dtype=int))
    except Exception as error:
        error.add_note(f"in allowed, at {history_words(observations, actions, spaces)}")
        raise
    A = len(spaces.actions)
    everything = np.ones(A, dtype=bool)
    try:
        mask = np.asarray(answer)
    except (TypeError, ValueError):  # of NumPy and JAX: ragged lists, keys, traced values
        mask = np.zeros(0, dtype=object)
    if mask.shape != (A,) or mask.dtype != bool or np.ma.is_masked(answer):
        got = "traced JAX values" if isinstance(answer, jax.core.Tracer) else shown(answer, 80)
        where = history_words(observations, actions, spaces)
        return everything, Problem("allowed", got, f"{A} booleans", EXAMPLE, at=where)
    if not mask.any():
        remedy = "Allow at least one action after every history, for example one that waits."
        expected, where = "at least one action", history_words(observations, actions, spaces)
        return everything, Problem("allowed", "no allowed action", expected, remedy, at=where)
    return mask, None


def check_again(
    allowed: Allowed,
    answers: Sequence[tuple[ArrayLike, ArrayLike, Array]],
    spaces: Spaces,
    subject: str,
) -> None:
    """Raise PlanningError if masks are different when the function is called again.

    Parameters
    ----------
    allowed
        The function.
    answers
        Observations, actions and the mask of histories for which it was called before. Some of
        them are repeated, in another order.
    spaces, subject
        As in :func:`allowed_table`.
    """
    last, many = max(0, len(answers) - 1), min(ASKED_TWICE, len(answers))
    for n in np.unique(np.linspace(last, 0, many).astype(int))[::-1]:
        observations, actions, before = answers[n]
        seen, done = np.asarray(observations), np.asarray(actions, dtype=int)
        again, problem = _asked(allowed, seen, done, spaces)
        if problem is not None or not np.array_equal(again, before):
            got = f"{before.tolist()}, then {again.tolist()}"
            remedy = "Compute the mask from the observations and actions alone."
            where, expected = (
                history_words(seen, done, spaces),
                "the same mask for the same history",
            )
            raise PlanningError(subject, [Problem("allowed", got, expected, remedy, at=where)])


def history_words(observations: Array, actions: Array, spaces: Spaces) -> str:
    """Describe a history in names, for example "step 2, after y0, a1, y1"."""
    words = [label_of(observations[0], spaces.observations)] if len(observations) else []
    for action, observation in zip(actions, observations[1:], strict=False):
        words += [label_of(action, spaces.actions), label_of(observation, spaces.observations)]
    return f"step {len(observations)}, after {', '.join(words)}"

"""The policy protocol, trajectories, and the validation of histories.

A policy maps the observations and actions so far to action probabilities. It never sees a latent
state.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.episode_values import in_space
from homdp_ppl.core.probabilities import FLOAT32, normalised
from homdp_ppl.core.sensors import Sensors
from homdp_ppl.core.spaces import NUMBERS_FOR_NAMES, Space, Spaces, label_of
from homdp_ppl.errors import PolicyError, Problem, shown
from homdp_ppl.precision import Array


class Trajectory(NamedTuple):
    """The observations and actions of an episode: what a policy may see.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import Episode, Trajectory
    >>> seen = Trajectory(observations=np.array([0, 1]), actions=np.array([1, 0]))
    >>> episode = Episode(seen, states=np.array([0, 0, 1]))  # after its end
    >>> episode.trajectory.actions
    array([1, 0])
    """

    observations: Array  # (H,)  y_1 .. y_H
    actions: Array  # (H,)  a_1 .. a_H


@runtime_checkable
class Policy(Protocol):
    """An object with a method ``act``, which maps a history to action probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, Policy, evaluate
    >>> class Repeater:
    ...     def act(self, observations, actions):
    ...         return np.eye(2)[observations[-1]]  # repeat the last observation
    >>> guess = POMDP.of(
    ...     np.array([0.5, 0.5]),
    ...     np.full((2, 2, 2), 0.5),
    ...     np.array([[0.9, 0.1], [0.1, 0.9]]),
    ...     np.eye(2)[None],
    ... )
    >>> isinstance(Repeater(), Policy), round(evaluate(Repeater(), guess), 6)
    (True, 0.9)
    """

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}."""


@runtime_checkable
class BatchPolicy(Policy, Protocol):
    """A policy that answers many histories of the same length at once, such as a neural network.

    Conversion to a graph, and so exact evaluation, calls it once per step instead of once per
    history.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import BatchPolicy, GraphPolicy, Spaces
    >>> class Repeater:
    ...     def act(self, observations, actions):
    ...         return np.eye(2)[observations[-1]]  # repeat the last observation
    ...
    ...     def act_batch(self, observations, actions):
    ...         return np.eye(2)[observations[:, -1]]
    >>> lamp = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=3)
    >>> isinstance(Repeater(), BatchPolicy), GraphPolicy.from_policy(Repeater(), lamp)
    (True, GraphPolicy(14 nodes, 2 observations, 2 actions))
    """

    def act_batch(self, observations: Array, actions: Array) -> Array:
        """Probabilities of the next actions, (N, A), for N histories: (N, h) and (N, h - 1)."""


class Searching:
    """The base class of policies that plan online: they search before every action."""


def ask(policy: Policy, observations: ArrayLike, actions: ArrayLike, spaces: Spaces) -> Array:
    """Call a policy on a history and validate its action probabilities.

    The policy receives copies of the history.
    """
    answer = policy.act(np.array(observations), np.array(actions, dtype=int))
    try:
        chances = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        chances = np.full(0, np.nan)
    A = len(spaces.actions)
    if chances.shape != (A,) or not (chances >= 0).all() or not abs(chances.sum() - 1) <= FLOAT32:
        history = np.asarray(observations)
        seen = ", ".join(label_of(y, spaces.observations) for y in history)
        where = f"step {len(history)}, after {seen}"
        raise PolicyError(
            "policy", [Problem("act", repr(answer), f"{A} probabilities that sum to 1", at=where)]
        )
    return normalised(chances)  # policies may return float32


def ask_many(policy: Policy, observations: Array, actions: Array, spaces: Spaces) -> Array:
    """Call a policy on histories of the same length, (N, h) and (N, h - 1); returns (N, A).

    Policies that answer batches are called once, with copies of the histories.
    """
    if not isinstance(policy, BatchPolicy):
        rows = zip(observations, actions, strict=True)
        return np.array([ask(policy, seen, done, spaces) for seen, done in rows])
    answer = policy.act_batch(np.array(observations), np.array(actions))
    try:
        chances = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        chances = np.full(0, np.nan)
    shape = len(observations), len(spaces.actions)
    if chances.shape != shape:
        got = shown(answer) if chances.size < 2 else f"an array of shape {chances.shape}"
        at = f"step {observations.shape[1]}"
        expected = f"probabilities of shape {shape}"
        raise PolicyError("policy", [Problem("act_batch", got, expected, at=at)])
    right = (chances >= 0).all(axis=1) & (abs(chances.sum(axis=1) - 1) <= FLOAT32)
    if not right.all():
        k = int(np.argmin(right))
        seen = ", ".join(label_of(y, spaces.observations) for y in observations[k])
        at = f"step {observations.shape[1]}, after {seen}"
        expected = f"{shape[1]} probabilities that sum to 1"
        raise PolicyError("policy", [Problem("act_batch", str(chances[k]), expected, at=at)])
    return normalised(chances)


def as_history(
    subject: str,
    observations: ArrayLike,
    actions: ArrayLike,
    names: tuple[Space, tuple[str, ...]] | None = None,
) -> tuple[Array, Array]:
    """Convert a history to arrays; raises an error unless they contain numbers or names.

    If the names of observations and actions are known, names become indices, and observations of
    several sensors may be tuples or dicts.
    """
    problems: list[Problem] = []
    found: list[Array] = []
    if names is not None and isinstance(names[0], Sensors):
        observations, problems = names[0].encode_steps("observations", observations)
    for where, given in (("observations", observations), ("actions", actions)):
        try:
            array = np.asarray(given)
        except (TypeError, ValueError):  # of NumPy and JAX: ragged lists, keys, traced values
            array = np.zeros(0, dtype=object)
        if array.dtype.kind not in "biufU" or np.ma.is_masked(given):
            problems.append(Problem(where, shown(given), "an array with one value per step"))
        elif names is not None and array.dtype.kind == "U" and array.ndim:
            array, wrong = in_space(where, array, None, names[len(found)])
            problems += wrong
        found.append(array)
    if problems:
        raise PolicyError(subject, problems)
    return found[0], found[1]


def history_problems(seen: Array, done: Array, observations: int, actions: int) -> list[Problem]:
    """Report what is wrong with a history, given the numbers of observations and actions."""
    if seen.ndim != 1 or done.ndim != 1 or len(seen) != len(done) + 1:
        got = f"observations of shape {seen.shape} and actions of shape {done.shape}"
        return [Problem("history", got, "h observations and h - 1 actions")]
    return [
        *range_problems("observations", seen, observations),
        *range_problems("actions", done, actions),
    ]


def range_problems(where: str, values: Array, size: int) -> list[Problem]:
    """Report entries outside of 0..size-1, which JAX would clamp without an error."""
    if values.size and not np.issubdtype(values.dtype, np.integer):
        remedy = NUMBERS_FOR_NAMES if values.dtype.kind in "UO" else ""
        return [Problem(where, f"values of type {values.dtype}", "integers", remedy)]
    if not values.size or (values.min() >= 0 and values.max() < size):
        return []
    bad = np.argwhere((values < 0) | (values >= size))
    return [
        Problem(
            where,
            str(values[tuple(index)]),
            f"an index in 0..{size - 1}",
            at=", ".join(map(str, index)),
        )
        for index in bad[:8]
    ]

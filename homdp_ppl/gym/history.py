"""Observations that contain the whole history, and policies on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.spaces.utils import flatten, flatten_space
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike

from homdp_ppl.core.arguments import refuse, size_problems
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.policy import as_history, history_problems, range_problems
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.errors import DataError, PolicyError, Problem, with_article
from homdp_ppl.gym.environment import HOMDPEnv
from homdp_ppl.precision import Array


class HistoryObservation(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment whose observations contain the whole history, for algorithms without memory.

    An observation is a vector of float32: the observations y_1 .. y_H and the actions a_1 ..
    a_{H-1}, each as a one-hot vector, with zeros for the steps to come. Several sensors have a
    one-hot vector each; real observations are copied. At the end of an episode, the vector of the
    last decision is returned again: the environment repeats its last observation, which is not a
    draw, and the wrapper leaves the copy out.

    Parameters
    ----------
    env
        An environment with discrete actions whose observations Gymnasium can flatten.
    horizon
        H, the number of steps of an episode. Default: that of the :class:`HOMDPEnv` inside.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.gym import HOMDPEnv
    >>> env = HistoryObservation(HOMDPEnv(models.load("tiger", horizon=2)))
    >>> env.reset(seed=1)[0]  # growl right
    array([0., 1., 0., 0., 0., 0., 0.], dtype=float32)
    >>> env.step(0)[0]  # growl right, growl right; listen
    array([0., 1., 0., 1., 1., 0., 0.], dtype=float32)
    """

    @checked_but("env", "horizon")
    def __init__(self, env: gymnasium.Env[Any, Any], horizon: int | None = None) -> None:
        if not isinstance(env, gymnasium.Env):
            problem = Problem("env", with_article(type(env).__name__), "a gymnasium.Env")
            raise DataError("HistoryObservation", [problem])
        inside = env.unwrapped
        if horizon is None and isinstance(inside, HOMDPEnv):
            horizon = inside.spaces.horizon
        problems = size_problems(horizon=1 if horizon is None else horizon)
        if horizon is None:
            got = f"no horizon, for a {type(inside).__name__}"
            problems = [Problem("horizon", got, "the number of steps of an episode")]
        if not isinstance(env.action_space, Discrete):
            expected = "a Discrete space"
            problems.append(Problem("env.action_space", repr(env.action_space), expected))
        if not env.observation_space.is_np_flattenable:
            expected = "a space that gymnasium.spaces.flatten supports"
            problems.append(Problem("env.observation_space", repr(env.observation_space), expected))
        refuse(DataError, "HistoryObservation", problems)
        assert horizon is not None
        RecordConstructorArgs.__init__(self, horizon=horizon)
        gymnasium.Wrapper.__init__(self, env)
        self.horizon = int(horizon)
        one: Any = flatten_space(env.observation_space)
        actions = np.zeros((self.horizon - 1) * int(env.action_space.n))  # type: ignore[attr-defined]
        low, high = (
            np.concatenate([np.minimum(np.tile(bound, self.horizon), 0.0), actions])
            if least
            else np.concatenate([np.maximum(np.tile(bound, self.horizon), 0.0), actions + 1])
            for bound, least in ((one.low, True), (one.high, False))
        )
        self.observation_space = Box(low.astype(np.float32), high.astype(np.float32))
        self._vector = np.zeros(len(low), np.float32)
        self._step = 0

    @checked
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; return the vector with its first observation.

        Parameters
        ----------
        seed, options
            Passed to the environment.
        """
        seen, info = self.env.reset(seed=seed, options=options)
        self._vector, self._step = np.zeros_like(self._vector), 0
        self._put(seen)
        return self._vector.copy(), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take an action; return the vector with the action and the next observation."""
        seen, reward, terminated, truncated, info = self.env.step(action)
        if not (terminated or truncated):
            self._step += 1
            if self._step == self.horizon:
                got, expected = "no end", f"an end after at most {self.horizon} steps"
                problem = Problem("horizon", got, expected, "Pass the horizon of the environment.")
                raise DataError("HistoryObservation", [problem])
            space: Any = self.env.action_space
            place = self._width * self.horizon + (self._step - 1) * int(space.n)
            self._vector[place + int(action) - int(space.start)] = 1.0
            self._put(seen)
        return self._vector.copy(), reward, bool(terminated), bool(truncated), info

    @checked_but("chances")
    def policy(self, chances: Callable[[Array], ArrayLike]) -> HistoryPolicy:
        """A policy from a function of these vectors, for exact evaluation and deployment.

        Parameters
        ----------
        chances
            A function of many vectors, (N, D), that returns action probabilities, (N, A). It must
            be deterministic.

        Returns
        -------
        HistoryPolicy
            A :class:`homdp_ppl.BatchPolicy`.

        Examples
        --------
        >>> import numpy as np
        >>> from homdp_ppl import evaluate, models
        >>> from homdp_ppl.gym import HOMDPEnv
        >>> tiger = models.load("tiger", horizon=2)
        >>> env = HistoryObservation(HOMDPEnv(tiger))
        >>> listen = env.policy(lambda vectors: np.eye(3)[np.zeros(len(vectors), int)])
        >>> round(evaluate(listen, tiger.pomdp), 6)
        1.8
        """
        inside = self.env.unwrapped
        if not (isinstance(inside, HOMDPEnv) and inside.spaces.finite):
            got = repr(inside.observation_space)
            problem = Problem("env", got, "a HOMDPEnv with finitely many observations")
            raise DataError("HistoryObservation.policy", [problem])
        if not callable(chances):
            problem = Problem(
                "chances", with_article(type(chances).__name__), "a function of vectors"
            )
            raise DataError("HistoryObservation.policy", [problem])
        return HistoryPolicy(chances, inside.spaces, _codes(inside))

    @property
    def _width(self) -> int:
        space: Any = self.env.action_space
        return (len(self._vector) - (self.horizon - 1) * int(space.n)) // self.horizon

    def _put(self, observation: Any) -> None:
        place = self._step * self._width
        flat: Any = flatten(self.env.observation_space, observation)
        self._vector[place : place + self._width] = flat


@dataclass(frozen=True, eq=False)
class HistoryPolicy:
    """A policy from a function of the vectors of :class:`HistoryObservation`.

    Made by :meth:`HistoryObservation.policy`.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.gym import HOMDPEnv
    >>> env = HistoryObservation(HOMDPEnv(models.load("tiger", horizon=2)))
    >>> policy = env.policy(lambda vectors: np.eye(3)[vectors[:, 1].astype(int)])
    >>> policy.act([0], []), policy.act([1, 0], [2])  # the first observation decides
    (array([1., 0., 0.]), array([0., 1., 0.]))
    """

    chances: Callable[[Array], ArrayLike]  # vectors (N, D) to action probabilities (N, A)
    spaces: Spaces
    codes: Array  # (Y, W)  the vector of each observation

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}."""
        names = self.spaces.observations, self.spaces.actions
        seen, done = as_history("HistoryPolicy.act", observations, actions, names)
        problems = history_problems(seen, done, len(self.codes), len(names[1]))
        refuse(PolicyError, "HistoryPolicy.act", problems)
        answer = self.act_batch(seen[None], done[None])
        return answer[0] if answer.ndim else answer

    def act_batch(self, observations: Array, actions: Array) -> Array:
        """Probabilities of the next actions, (N, A), for N histories: (N, h) and (N, h - 1)."""
        seen, done = as_history("HistoryPolicy.act_batch", observations, actions)
        H, A, W = self.spaces.horizon, len(self.spaces.actions), self.codes.shape[1]
        N, h = seen.shape if seen.ndim == 2 else (0, 0)
        problems: list[Problem] = []
        if not 1 <= h <= H or done.shape != (N, h - 1):
            got = f"observations of shape {seen.shape} and actions of shape {done.shape}"
            expected = f"shapes (N, h) and (N, h - 1), with h in 1..{H}"
            problems = [Problem("history", got, expected)]
        problems += range_problems("observations", seen, len(self.codes))
        problems += range_problems("actions", done, A)
        refuse(PolicyError, "HistoryPolicy.act_batch", problems)
        stacked, taken = np.zeros((N, H, W), np.float32), np.zeros((N, H - 1, A), np.float32)
        stacked[:, :h] = self.codes[seen]
        taken[:, : h - 1] = np.eye(A, dtype=np.float32)[done.astype(np.int64)]
        vectors = np.concatenate([stacked.reshape(N, H * W), taken.reshape(N, (H - 1) * A)], axis=1)
        return np.asarray(self.chances(vectors))


def _codes(env: HOMDPEnv) -> Array:
    """The vector of each observation, (Y, W)."""
    space = env.observation_space
    if not isinstance(space, Dict):
        return np.eye(int(space.n), dtype=np.float32)  # type: ignore[attr-defined]
    shape = [len(outcomes) for outcomes in env.spaces.sensors.values()]
    joint = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
    rows: Any = [
        flatten(space, dict(zip(env.spaces.sensors, map(np.int64, each), strict=True)))
        for each in joint
    ]
    return np.array(rows, dtype=np.float32)

"""Gymnasium, both ways: a world as an environment, and the episodes of an environment that reveals its states at the end.

Ids for the worlds of the zoo (``homdp/Tiger-v0`` and so on) are registered in homdp_ppl.models.environments.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any, Literal, NamedTuple, SupportsIndex, TypeAlias, cast

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import ArrayLike

from homdp_ppl.declare import World
from homdp_ppl.episode import Episode, choose, stack
from homdp_ppl.errors import DataError, HOMDPError, Problem
from homdp_ppl.policy import Policy, Trajectory, ask, check_policy, uniform_policy
from homdp_ppl.pomdp import HasSpaces, Spaces
from homdp_ppl.precision import Array

LONGEST = 100_000  # steps after which an episode of undeclared length is given up

Infos: TypeAlias = Sequence[Mapping[str, Any]]  # of reset and of each step


class HOMDPEnv(gymnasium.Env[Any, Any]):
    """A world as a Gymnasium environment.

    ``reset`` returns y_1, drawn at x_1; step h takes a_h and returns y_{h+1}. Step H ends the episode (``terminated``), and only
    then does ``info["latent_states"]`` hold x_1 .. x_{H+1}. Gymnasium wants an observation from that step as well, but x_{H+1}
    emits none: y_H is handed out once more. It is no draw, tells nothing, is part of no :class:`Episode` and must not be counted.

    The reward is 0 until the last step and then the return, the sum of all rewards: r(x, a) would give x away.

    Parameters
    ----------
    world
        A declaration with its parameters fixed. Its numbers are copied; the environment itself runs on NumPy and can be pickled.
    per_step
        Pay r_h(x_h, a_h) at every step, as many algorithms like it better. What it costs: each reward is one more observation of
        the latent state (tiger: once a door is open, the reward tells where the tiger was). An agent that is fed with its rewards
        then solves an easier problem than the HOMDP, and can beat the optimum of every planner here. One that acts on
        observations and actions alone, and uses rewards in training only, does not.
    render_mode
        "ansi": ``render()`` tells the episode so far in the world's own names, and the latent states when it is over.

    Attributes
    ----------
    spaces
        The world's names and horizon, so that the environment may stand where a model is asked for them.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> env = HOMDPEnv(models.load("tiger"), render_mode="ansi")
    >>> observation, info = env.reset(seed=0)
    >>> for action in (0, 0, 0, 1):
    ...     observation, reward, terminated, truncated, info = env.step(action)
    >>> terminated, reward, info["latent_states"]
    (True, 3.7, array([1, 1, 1, 1, 1]))
    >>> print(env.render())
    1. growl right: listen
    2. growl left: listen
    3. growl right: listen
    4. growl right: open left
    latent states: right, right, right, right, right; return 3.7
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012  declared so by Gymnasium
    observation_space: Discrete[np.int64]
    action_space: Discrete[np.int64]

    def __init__(self, world: World, per_step: bool = False, render_mode: str | None = None) -> None:
        problems = []
        if not isinstance(world, World):
            remedy = "Fix a declaration's parameters with .at(...), or draw them with .draw(key)."
            problems.append(Problem("world", f"a {type(world).__name__}", "a World", remedy))
        if render_mode not in (None, *self.metadata["render_modes"]):
            problems.append(Problem("render_mode", repr(render_mode), "None or 'ansi'"))
        if problems:
            raise DataError("HOMDPEnv", problems)
        self.spaces: Spaces = world.spaces
        self.per_step = per_step
        self.render_mode = render_mode
        self.observation_space = Discrete(len(world.spaces.observations))
        self.action_space = Discrete(len(world.spaces.actions))
        self._initial, self._transition, self._emission = map(_cumulative, world.pomdp[:3])
        self._reward = world.pomdp.reward.copy()
        self._states: list[int] = []
        self._observations: list[int] = []
        self._actions: list[int] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Begin an episode: its first observation, and an empty info. A seed makes all that follows reproducible.

        Parameters
        ----------
        seed
            Of the environment's generator; without one it goes on.
        options
            There are none; they are ignored.
        """
        super().reset(seed=seed)
        self._states = [self._draw(self._initial)]
        self._observations = [self._draw(self._emission[self._states[0]])]
        self._actions = []
        return self._observations[0], {}

    def step(self, action: SupportsIndex) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take an action: the next observation, the reward, whether this was step H, False, and the latent states if it was."""
        h, H = len(self._actions), self.spaces.horizon
        if not self._states or h == H:
            got = f"a step after the last, number {H}" if self._states else "a step before the first reset"
            raise HOMDPError("HOMDPEnv.step", [Problem("step", got, "an episode under way", "Call reset().")])
        chosen = self._index(action)
        state = self._states[-1]
        self._actions.append(chosen)
        self._states.append(self._draw(self._transition[state, chosen]))
        reward = float(self._reward[h, state, chosen]) if self.per_step else 0.0
        if h + 1 < H:
            self._observations.append(self._draw(self._emission[self._states[-1]]))
            return self._observations[-1], reward, False, False, {}
        reward = reward if self.per_step else self._return()
        return self._observations[-1], reward, True, False, {"latent_states": np.array(self._states)}

    def render(self) -> str | None:
        """The episode so far in the world's own names; latent states only when it is over."""
        if self.render_mode is None:
            return None
        states, observations, actions, H = self.spaces
        done = [*(f": {actions[a]}" for a in self._actions), ""]
        lines = [f"{h}. {observations[y]}{did}" for h, (y, did) in enumerate(zip(self._observations, done, strict=False), 1)]
        if len(self._actions) == H:
            lines.append(f"latent states: {', '.join(states[x] for x in self._states)}; return {self._return():.6g}")
        return "\n".join(lines)

    def _index(self, action: SupportsIndex) -> int:
        try:
            chosen = index(action)  # also of NumPy integers; ten times as fast as action_space.contains
        except TypeError:
            chosen = -1
        if not 0 <= chosen < len(self.spaces.actions):
            expected = f"an integer in 0..{len(self.spaces.actions) - 1}"
            raise HOMDPError("HOMDPEnv.step", [Problem("action", repr(action), expected)])
        return chosen

    def _draw(self, row: Array) -> int:
        return bisect_right(row, self.np_random.random())

    def _return(self) -> float:
        return float(self._reward[np.arange(self.spaces.horizon), self._states[:-1], self._actions].sum())


def _cumulative(rows: Array) -> Array:
    """Running sums of probability rows, 1 from the last possible outcome on, so that rounding never leads beyond it.

    The number of entries at or below a uniform number is then the outcome that ``choose`` takes.
    """
    size = rows.shape[-1]
    last = size - 1 - np.argmax(rows[..., ::-1] > 0, axis=-1)
    return np.where(np.arange(size) >= last[..., None], 1.0, rows.cumsum(-1))


def episodes_from(
    env: gymnasium.Env[Any, Any],
    policy: Policy | Literal["uniform"],
    n: int,
    seed: int = 0,
    *,
    model: HasSpaces | None = None,
    latent: str | Callable[[Infos], ArrayLike] = "latent_states",
) -> Episode:
    """Play a policy in any discrete Gymnasium environment that reveals its latent states when an episode is over.

    The policy is handed observations and actions, as ever: no info, no reward, no latent state. The observation that comes with
    the end of an episode is dropped. Spaces that start elsewhere than at 0 are moved there.

    Parameters
    ----------
    env
        An environment with ``Discrete`` observations and actions whose episodes all have the same length H, ended by itself or by
        a ``TimeLimit``; wrapped or not. It is seeded once, and not closed.
    policy
        Anything with ``act``, or "uniform".
    n
        How many episodes.
    seed
        Of the environment and, in another stream, of the policy's choices.
    model
        The declaration that the episodes are meant for (a HOMDP, a World, or Spaces): they are held to its sizes and its horizon.
        Without it, the first episode says what H is.
    latent
        Where x_1 .. x_{H+1} are found: a key of the last info, or a function of all H + 1 infos (of ``reset`` and of each step),
        say ``lambda infos: [info["state"] for info in infos]``.

    Returns
    -------
    Episode
        A batch with n rows, as from :func:`homdp_ppl.rollout`: ready for ``posterior(homdp, episodes)``,
        ``homdp.counts(episodes)`` and, one by one, for ``explorer.update``.

    Examples
    --------
    >>> from homdp_ppl import models, posterior
    >>> tiger = models.load("tiger")
    >>> episodes = episodes_from(HOMDPEnv(tiger), "uniform", 100, model=tiger)
    >>> episodes.states.shape
    (100, 5)
    >>> posterior(tiger.homdp, episodes)
    Posterior of 'tiger' after 400 steps: conjugate
      accuracy in closed form
    """
    spaces = _check(env, n, seed, model)
    actor = uniform_policy(spaces._replace(horizon=1)) if isinstance(policy, str) and policy == "uniform" else policy
    check_policy(actor, spaces)
    generator = np.random.default_rng([seed, 1])  # the environment's own stream comes from [seed]
    played: list[Episode] = []
    for k in range(n):
        record = _play(env, actor, generator, spaces, f"episode {k}", int(seed) if k == 0 else None)
        if k == 0 and model is None and record.over:
            spaces = spaces._replace(horizon=len(record.actions))
        _check_length(record, spaces.horizon, f"episode {k}", "as declared" if model is not None else "as in episode 0")
        states = _revealed(record.infos, latent, spaces.horizon, f"episode {k}")
        played.append(Episode(Trajectory(np.array(record.observations), np.array(record.actions)), states))
    if model is None:
        visited = 1 + max(int(episode.states.max()) for episode in played)
        spaces = spaces._replace(states=tuple(f"x{x}" for x in range(visited)))
    return stack(played, spaces)


def _check(env: gymnasium.Env[Any, Any], n: int, seed: int, model: HasSpaces | None) -> Spaces:
    """Names and horizon: those of the model, if the environment fits it, or else of the environment."""
    if not isinstance(env, gymnasium.Env):
        remedy = "Pass one environment, as gymnasium.make returns it, not its id and not a vector of them."
        raise DataError("episodes_from", [Problem("env", f"a {type(env).__name__}", "a gymnasium.Env", remedy)])
    if model is not None and not isinstance(getattr(model, "spaces", None), Spaces):
        raise DataError("episodes_from", [Problem("model", f"a {type(model).__name__}", "a HOMDP, a World, or Spaces")])
    problems = [
        Problem(name, repr(number), f"a whole number, at least {least}")
        for name, number, least in (("n", n, 1), ("seed", seed, 0))
        if not isinstance(number, int | np.integer) or number < least
    ]
    names: list[tuple[str, ...]] = []
    for kind, space in (("observation", env.observation_space), ("action", env.action_space)):
        if not isinstance(space, Discrete):
            remedy = f"Number the {kind}s with a wrapper, such as gymnasium.wrappers.Transform{kind.capitalize()}."
            problems.append(Problem(f"env.{kind}_space", repr(space), "a Discrete space", remedy))
            continue
        names.append(tuple(f"{kind[0]}{k}" for k in range(space.n)) if model is None else getattr(model.spaces, f"{kind}s"))
        if len(names[-1]) != space.n:
            expected = f"{len(names[-1])}: {', '.join(names[-1])}"
            problems.append(Problem(f"env.{kind}_space", f"{space.n} {kind}s", expected, "Declare them all."))
    if problems:
        raise DataError("episodes_from", problems)
    return Spaces((), names[0], names[1], LONGEST) if model is None else model.spaces


class _Record(NamedTuple):
    observations: list[int]
    actions: list[int]
    infos: Infos
    over: bool


def _play(
    env: gymnasium.Env[Any, Any], policy: Policy, generator: np.random.Generator, spaces: Spaces, which: str, seed: int | None
) -> _Record:
    """One episode until it is over, or as long as it may be."""
    first_observation, first_action = (int(cast("Discrete", space).start) for space in (env.observation_space, env.action_space))
    observation, info = env.reset(seed=seed)
    observations: list[int] = []
    actions: list[int] = []
    infos = [dict(info)]
    over = False
    while not over and len(actions) < spaces.horizon:
        if not env.observation_space.contains(observation):
            where = f"{which}, step {len(actions) + 1}"
            raise DataError("episodes_from", [Problem("observation", repr(observation), str(env.observation_space), at=where)])
        observations.append(int(observation) - first_observation)
        chances = ask(policy, observations, actions, spaces)
        actions.append(int(choose(chances, generator.random())))
        observation, _, terminated, truncated, info = env.step(actions[-1] + first_action)
        infos.append(dict(info))  # some environments use one dictionary, and one array, again and again
        over = bool(terminated or truncated)
    return _Record(observations, actions, infos, over)


def _check_length(record: _Record, horizon: int, which: str, whose: str) -> None:
    steps = len(record.actions)
    if record.over and steps == horizon:
        return
    if record.over:
        got = f"{steps} steps"
        remedy = (
            "Episodes have one length. Where they may end early, let them go on to the horizon in a state of their own, say "
            "'over', that is never left, looks the same and pays nothing: in a wrapper of the environment and in the declaration."
        )
    else:
        got = f"no end after {steps:,} steps"
        remedy = "Put gymnasium.wrappers.TimeLimit under the wrapper that reveals the states, or declare the horizon it has."
    expected = f"{horizon:,} steps, {whose}" if horizon < LONGEST else "episodes that end"
    raise DataError("episodes_from", [Problem("length", got, expected, remedy, which)])


def _revealed(infos: Infos, latent: str | Callable[[Infos], ArrayLike], horizon: int, which: str) -> Array:
    """The latent states of a finished episode."""
    if isinstance(latent, str) and latent not in infos[-1]:
        got = f"an info with {', '.join(map(repr, infos[-1])) or 'nothing in it'}"
        remedy = "Name another key, or give a function of all infos; states that are never revealed cannot be learned from."
        raise DataError("episodes_from", [Problem("latent", got, f"{latent!r} in the last info", remedy, which)])
    states = np.asarray(infos[-1][latent] if isinstance(latent, str) else latent(infos))
    if states.shape == (horizon + 1,) and np.issubdtype(states.dtype, np.integer) and states.min() >= 0:
        return states.astype(np.int64)
    if not np.issubdtype(states.dtype, np.integer):
        got, remedy = f"values of type {states.dtype}", "Number the states."
    elif states.shape == (horizon,):
        got = f"{horizon} states"
        remedy = (
            "The state after the last action is missing, and with it a transition to count. Append it; where it cannot be known, "
            "end episodes one step earlier and let that state be the last."
        )
    else:
        got, remedy = f"shape {states.shape}, from {states.min(initial=0)} on", ""
    expected = f"{horizon + 1} integers from 0 on, x_1 to x_{{H+1}}"
    raise DataError("episodes_from", [Problem("latent states", got, expected, remedy, which)])

"""A world, finite or continuous, as a Gymnasium environment."""

from __future__ import annotations

from copy import copy
from operator import index
from typing import Any, SupportsIndex
from weakref import WeakKeyDictionary

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete

from homdp_ppl.core.allowed import allowed_after
from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.spaces import Real, Space, Spaces, label_of
from homdp_ppl.declare.model import World
from homdp_ppl.errors import DataError, HOMDPError, Problem, shown, with_article
from homdp_ppl.gym.draws import draws_of
from homdp_ppl.gym.picture import picture
from homdp_ppl.precision import Array

SPARE = 4  # lines of a picture in addition to the steps, for the latent states

# The latent states of the current episode of each environment. They are not attributes of the
# environment, so that agents cannot read them by accident.
_STATES: WeakKeyDictionary[HOMDPEnv, list[Any]] = WeakKeyDictionary()


class HOMDPEnv(gymnasium.Env[Any, Any]):
    """A world as a Gymnasium environment.

    ``reset`` returns y_1, drawn at x_1. Step h takes a_h and returns y_{h+1}. The episode ends
    (``terminated``) after step L: step H, or the step that leads to a terminal state. Only then
    does ``info["latent_states"]`` contain x_1 .. x_{L+1}. Gymnasium requires an observation from
    the last step too, but x_{L+1} emits none, so y_L is returned again. This copy is not a draw,
    carries no information, is not part of an :class:`Episode` and must not be counted.

    The reward is 0 before the last step and then the return, the sum of all rewards, because r(x,
    a) would reveal x. Rewards are in the units of the declaration. No attribute of the environment
    contains the latent states before the end. Random rewards are drawn, from a stream of their own;
    ``info["rewards"]`` contains them at the end.

    If the declaration restricts the actions, ``info["action_mask"]`` of ``reset`` and of each step
    before the end has the allowed ones as 0 or 1, as in ``action_space.sample(mask)``; ``step``
    raises an error for others.

    Parameters
    ----------
    world
        A declaration with its parameters fixed. The tables of a finite world are copied; its
        environment uses NumPy only and can be pickled, if ``allowed`` can. Real observations form a
        ``Box`` of vectors, also in one dimension.
    per_step
        Return r_h(x_h, a_h) at every step, which many algorithms prefer. Each reward is then an
        additional observation of the latent state: in the tiger problem, the reward for opening a
        door reveals where the tiger was. An agent that receives its rewards as input solves an
        easier problem than the HOMDP and can exceed the optimum. An agent that acts on observations
        and actions alone, and uses rewards only in training, cannot.
    sensors
        Return observations of several sensors as a dict {sensor: index}; the observation space is a
        ``Dict`` of ``Discrete`` spaces. By default, an observation is one joint index in a
        ``Discrete`` space. ``metadata["sensors"]`` has the names of the outcomes in both cases.
    render_mode
        With "ansi", ``render()`` returns the episode so far with the names of the world, and the
        latent states after the episode. With "rgb_array", it returns a picture of this text, for
        videos and for libraries that ask for this mode, such as Stable-Baselines3.

    Attributes
    ----------
    spaces
        The names and the horizon of the world. The environment can be passed where a model with
        spaces is expected.

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

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012  declared so by Gymnasium
    action_space: Discrete[np.int64]

    @checked_but("world", "render_mode")
    def __init__(
        self,
        world: World,
        per_step: bool = False,
        render_mode: str | None = None,
        sensors: bool = False,
    ) -> None:
        problems = []
        if not isinstance(world, World):
            remedy = "Fix a declaration's parameters with .at(...), or draw them with .draw(key)."
            problems.append(Problem("world", with_article(type(world).__name__), "a World", remedy))
        modes = self.metadata["render_modes"]
        if not (render_mode is None or (isinstance(render_mode, str) and render_mode in modes)):
            expected = f"None or one of {', '.join(map(repr, modes))}"
            problems.append(Problem("render_mode", shown(render_mode), expected))
        if sensors and isinstance(world, World) and not world.spaces.sensors:
            expected = "a world with several sensors"
            problems.append(Problem("sensors", "True", expected, "Leave it out."))
        if problems:
            raise DataError("HOMDPEnv", problems)
        self.spaces: Spaces = world.spaces
        if world.spaces.sensors:
            self.metadata = {**self.metadata, "sensors": dict(world.spaces.sensors)}
        self.sensors = sensors
        self.per_step = per_step
        self.render_mode = render_mode
        self.observation_space = (
            Dict({name: Discrete(len(names)) for name, names in world.spaces.sensors.items()})
            if sensors
            else _space(world.spaces.observations)
        )
        self.action_space = Discrete(len(world.spaces.actions))
        self._draws = draws_of(world)
        self._allowed = world.homdp.allowed
        self._mask: Array | None = None  # of the next action
        self._random_rewards = world.homdp.rewards.law is not None
        self._reward_generator: np.random.Generator | None = None
        self._rewards: list[float] = []
        _STATES[self] = []
        self._observations: list[Any] = []
        self._actions: list[int] = []
        self._over = False

    @checked
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; return its first observation, and an info with the mask, if any.

        Parameters
        ----------
        seed
            Seed of the environment's random generator. Without it, the generator continues.
        options
            Ignored.
        """
        if seed is not None:
            refuse(DataError, "HOMDPEnv.reset", count_problems(0, seed=seed))
        super().reset(seed=None if seed is None else int(seed))
        self._rewards = []
        if self._random_rewards:  # a stream of their own: states and observations stay the same
            self._reward_generator = self.np_random.spawn(1)[0]
        _STATES[self] = [self._draws.first(self.np_random)]
        before = len(self.spaces.actions)  # in place of the previous action
        self._observations = [self._draws.observe(self.np_random, _STATES[self][0], before, 0)]
        self._actions = []
        self._over = False
        return self._shown(self._observations[0]), self._masked()

    def step(self, action: SupportsIndex) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action.

        Returns the next observation, the reward, whether the episode ended, False, and an info: the
        mask of the next action, if actions are restricted, or the latent states at the end.
        """
        h, H, states = len(self._actions), self.spaces.horizon, _STATES[self]
        if not states or self._over:
            got = f"a step after the last step, {h}" if states else "a step before the first reset"
            raise HOMDPError(
                "HOMDPEnv.step", [Problem("step", got, "an episode in progress", "Call reset().")]
            )
        chosen = self._index(action)
        state, seen = states[-1], self._observations[-1]
        self._actions.append(chosen)
        states.append(self._draws.move(self.np_random, state, chosen, h))
        generator = self._reward_generator or self.np_random  # not used if rewards are known
        earned = self._draws.reward(generator, h, state, seen, chosen)
        self._rewards.append(earned)
        reward = earned if self.per_step else 0.0
        self._over = h + 1 == H or self._draws.ends(states[-1])
        if not self._over:
            following = self._draws.observe(self.np_random, states[-1], chosen, h + 1)
            self._observations.append(following)
            return self._shown(following), reward, False, False, self._masked()
        reward = reward if self.per_step else self._return()
        info: dict[str, Any] = {"latent_states": np.array(states)}
        if self._random_rewards:
            info["rewards"] = np.array(self._rewards)
        return self._shown(copy(self._observations[-1])), reward, True, False, info

    def render(self) -> str | Array | None:  # type: ignore[override]
        """The episode so far with the names of the world; latent states only after its end."""
        if self.render_mode is None:
            return None
        text = self._text()
        lines = self.spaces.horizon + SPARE
        return text if self.render_mode == "ansi" else picture(text, lines)

    def _text(self) -> str:
        states, observations, actions, *_ = self.spaces
        done = [*(f": {actions[a]}" for a in self._actions), ""]
        seen = [label_of(y, observations) for y in self._observations]
        lines = [
            f"{h}. {word}{did}" for h, (word, did) in enumerate(zip(seen, done, strict=False), 1)
        ]
        if self._over:
            lines.append(
                f"latent states: {', '.join(label_of(x, states) for x in _STATES[self])}; return "
                f"{self._return():.6g}"
            )
        return "\n".join(lines)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_states": _STATES[self]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        _STATES[self] = state.pop("_states")
        self.__dict__.update(state)

    def _shown(self, observation: Any) -> Any:
        """An observation in the observation space."""
        if not self.sensors:
            return observation
        sizes = [len(names) for names in self.spaces.sensors.values()]
        places = np.unravel_index(observation, sizes)
        return dict(zip(self.spaces.sensors, map(np.int64, places), strict=True))

    def _index(self, action: SupportsIndex) -> int:
        try:
            chosen = index(action)  # accepts NumPy integers; faster than action_space.contains
        except TypeError:
            chosen = -1
        if not 0 <= chosen < len(self.spaces.actions):
            expected = f"an integer in 0..{len(self.spaces.actions) - 1}"
            raise HOMDPError("HOMDPEnv.step", [Problem("action", shown(action), expected)])
        if self._mask is not None and not self._mask[chosen]:
            names = (self.spaces.actions[a] for a in np.flatnonzero(self._mask))
            got, expected = repr(self.spaces.actions[chosen]), f"one of {', '.join(names)}"
            remedy = 'It is forbidden after this history. info["action_mask"] has the allowed ones.'
            raise HOMDPError("HOMDPEnv.step", [Problem("action", got, expected, remedy)])
        return chosen

    def _masked(self) -> dict[str, Any]:
        """The info of a step before the end; it has the allowed actions, if not all are."""
        if self._allowed is None:
            return {}
        history = np.array(self._observations), np.array(self._actions, dtype=int)
        self._mask = allowed_after(self._allowed, *history, self.spaces, "HOMDPEnv", DataError)
        return {"action_mask": self._mask.astype(np.int8)}

    def _return(self) -> float:
        return float(np.sum(self._rewards))


def _space(space: Space) -> Box | Discrete[np.int64]:
    if isinstance(space, Real):
        return Box(-np.inf, np.inf, (space.dimension,), np.float64)
    return Discrete(len(space))

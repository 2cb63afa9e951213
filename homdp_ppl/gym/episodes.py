"""Collect episodes from Gymnasium environments that reveal latent states after each episode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import ArrayLike

from homdp_ppl.core.arguments import count_problems
from homdp_ppl.core.barrier import separated
from homdp_ppl.core.blind_policy import uniform_policy
from homdp_ppl.core.checked import checked_but
from homdp_ppl.core.episode import Ended, Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.graph_policy import check_policy
from homdp_ppl.core.policy import Policy, Trajectory, ask
from homdp_ppl.core.pomdp_validation import spaces_of
from homdp_ppl.core.randomness import choose
from homdp_ppl.core.sensors import Sensors
from homdp_ppl.core.spaces import HasSpaces, Real, Space, Spaces
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import DataError, Problem, with_article
from homdp_ppl.precision import Array

LONGEST = 100_000  # maximal number of steps of an episode of undeclared length

Infos: TypeAlias = Sequence[Mapping[str, Any]]  # from reset and from each step


@checked_but("env", "policy", "model", "n", "seed")
def episodes_from(
    env: gymnasium.Env[Any, Any],
    policy: Policy | Literal["uniform"],
    n: int,
    seed: int = 0,
    *,
    model: HasSpaces | None = None,
    latent: str | Callable[[Infos], ArrayLike] = "latent_states",
) -> Episodes:
    """Play a policy in a Gymnasium environment that reveals its latent states after each episode.

    Actions must be discrete. The policy receives only observations and actions: no info, no reward
    and no latent state. The last observation, which is returned at the end of an episode, is
    dropped. Discrete spaces that do not start at 0 are shifted to start at 0.

    Parameters
    ----------
    env
        An environment, possibly wrapped, with ``Discrete`` actions and observations, with a
        ``Box`` of observations if those of the model are real, or with a ``Dict`` of ``Discrete``
        spaces if the model has several sensors. All episodes must have the same
        length H; the environment or a ``TimeLimit`` ends them. Only if the model has terminal
        states, episodes end early in these (``terminated``). The environment is seeded once and not
        closed.
    policy
        An object with ``act``, or "uniform": every action that the model allows has the same
        probability.
    n
        The number of episodes.
    seed
        Seed of the environment and, in a separate stream, of the policy's actions.
    model
        The model of the episodes (a HOMDP, a World, a POMDP, or Spaces). Episodes must match its
        sizes and horizon. The environment need not have the observation that stands for the end.
        Without a model, the first episode determines H, and all spaces are discrete. If rewards of
        the model are random, the rewards of the environment are recorded: ``info["rewards"]`` at
        the end if there is one, otherwise those of the steps.
    latent
        Where to find x_1 .. x_{L+1}, where L is the number of steps: a key of the last info, or a
        function of all L + 1 infos (from ``reset`` and from each step), such as
        ``lambda infos: [info["state"] for info in infos]``.

    Returns
    -------
    Episodes
        The n episodes, as from :func:`homdp_ppl.rollout`. Use them with ``posterior(homdp,
        episodes)`` or ``homdp.counts(episodes)``, or one by one with ``explorer.update``.

    Examples
    --------
    >>> from homdp_ppl import models, posterior
    >>> from homdp_ppl.gym import HOMDPEnv
    >>> tiger = models.load("tiger")
    >>> episodes = episodes_from(HOMDPEnv(tiger), "uniform", 100, model=tiger)
    >>> episodes.states.shape
    (100, 5)
    >>> posterior(tiger.homdp, episodes)
    Posterior of 'tiger' after 400 steps: conjugate
      accuracy in closed form
    """
    spaces = check_env(env, n, seed, model)
    actor = _uniform(spaces, model) if isinstance(policy, str) and policy == "uniform" else policy
    check_policy(actor, spaces)
    generator = np.random.default_rng([seed, 1])  # the environment uses the stream [seed]
    played: list[Episode] = []
    with separated(actor) as asked:
        for k in range(n):
            which = f"episode {k}"
            record = play_once(env, asked, generator, spaces, which, int(seed) if k == 0 else None)
            if k == 0 and model is None and record.over:
                spaces = spaces._replace(horizon=len(record.actions))
            declared = "as declared" if model is not None else "as in episode 0"
            check_length(record, spaces, which, declared)
            states = revealed_states(record, latent, spaces, which)
            ended = _ended(states, spaces) if spaces.terminal else "horizon"
            seen = Trajectory(np.array(record.observations), np.array(record.actions))
            rewards = recorded_rewards(record) if has_random_rewards(model) else None
            played.append(Episode(seen, states, rewards, ended=ended))
    if model is None:
        visited = 1 + max(int(episode.states.max()) for episode in played)
        spaces = spaces._replace(states=tuple(f"x{x}" for x in range(visited)))
    return Episodes.of(played, spaces)


def has_random_rewards(model: HasSpaces | None) -> bool:
    """Whether the rewards of a model are random, so that they have to be recorded."""
    homdp = _declaration(model)
    return homdp is not None and homdp.rewards.law is not None


def _declaration(model: HasSpaces | None) -> HOMDP | None:
    homdp = model.homdp if isinstance(model, World) else model
    return homdp if isinstance(homdp, HOMDP) else None


def recorded_rewards(record: Record) -> Array:
    """The rewards of an episode: from the last info if it has them, else those of the steps."""
    return np.asarray(record.infos[-1].get("rewards", record.rewards), dtype=np.float64)


def _uniform(spaces: Spaces, model: HasSpaces | None) -> Policy:
    """The uniform policy over allowed actions; without restriction, a graph with one node.

    One node is enough for every horizon, which may not be known yet.
    """
    homdp = _declaration(model)
    if homdp is not None and homdp.allowed is not None:
        return uniform_policy(spaces, homdp.allowed)
    return (
        uniform_policy(spaces) if not spaces.finite else uniform_policy(spaces._replace(horizon=1))
    )


def check_env(env: gymnasium.Env[Any, Any], n: int, seed: int, model: HasSpaces | None) -> Spaces:
    """Validate the arguments; return the spaces of the model or, without one, the environment."""
    if not isinstance(env, gymnasium.Env):
        remedy = (
            "Pass one environment, as returned by gymnasium.make, not an id or a vector "
            "environment."
        )
        raise DataError(
            "episodes_from",
            [Problem("env", with_article(type(env).__name__), "a gymnasium.Env", remedy)],
        )
    declared = None if model is None else spaces_of(model, "episodes_from")
    problems = [*count_problems(n=n), *count_problems(0, seed=seed)]
    names: list[tuple[str, ...]] = []
    for kind, space in (("observation", env.observation_space), ("action", env.action_space)):
        wanted: Space = () if declared is None else getattr(declared, f"{kind}s")
        if isinstance(wanted, Real):
            if not isinstance(space, Box) or space.shape not in (wanted.shape, (wanted.dimension,)):
                problems.append(
                    Problem(
                        f"env.{kind}_space", repr(space), f"a Box of shape ({wanted.dimension},)"
                    )
                )
            continue
        if isinstance(wanted, Sensors) and _has_sensors(space, wanted):
            names.append(wanted)
            continue
        if not isinstance(space, Discrete):
            remedy = (
                f"Number the {kind}s with a wrapper, such as "
                f"gymnasium.wrappers.Transform{kind.capitalize()}."
            )
            problems.append(Problem(f"env.{kind}_space", repr(space), "a Discrete space", remedy))
            continue
        names.append(tuple(f"{kind[0]}{k}" for k in range(space.n)) if declared is None else wanted)
        ended = kind == "observation" and declared is not None and bool(declared.terminal)
        if not len(names[-1]) - ended <= space.n <= len(names[-1]):
            expected = f"{len(names[-1])}: {', '.join(names[-1])}"
            problems.append(
                Problem(
                    f"env.{kind}_space", f"{space.n} {kind}s", expected, f"Declare all {kind}s."
                )
            )
    if problems:
        raise DataError("episodes_from", problems)
    return declared or Spaces((), names[0], names[1], LONGEST)


class Record(NamedTuple):
    """What happened in one episode of an environment."""

    observations: list[Any]
    actions: list[int]
    infos: Infos
    rewards: list[float]
    over: bool
    terminated: bool


def play_once(
    env: gymnasium.Env[Any, Any],
    policy: Policy,
    generator: np.random.Generator,
    spaces: Spaces,
    which: str,
    seed: int | None,
) -> Record:
    """Play one episode until it ends or the horizon is reached.

    Parameters
    ----------
    env
        The environment.
    policy
        The policy.
    generator
        Random numbers for the policy's actions.
    spaces
        The spaces of the model.
    which
        The episode, for errors.
    seed
        The seed of ``reset``, or None.
    """
    first_action = _start(env.action_space)
    observation, info = env.reset(seed=seed)
    observations: list[Any] = []
    actions: list[int] = []
    infos = [dict(info)]
    rewards: list[float] = []
    over = terminated = False
    while not over and len(actions) < spaces.horizon:
        if not env.observation_space.contains(observation):
            where = f"{which}, step {len(actions) + 1}"
            raise DataError(
                "episodes_from",
                [Problem("observation", repr(observation), str(env.observation_space), at=where)],
            )
        observations.append(_seen(observation, env.observation_space, spaces.observations))
        chances = ask(policy, observations, actions, spaces)
        actions.append(int(choose(chances, generator.random())))
        observation, reward, terminated, truncated, info = env.step(actions[-1] + first_action)
        rewards.append(float(reward))
        infos.append(dict(info))  # a copy: some environments reuse one dictionary
        over = bool(terminated or truncated)
    return Record(observations, actions, infos, rewards, over, bool(terminated))


def _start(space: gymnasium.Space[Any]) -> int:
    return int(space.start) if isinstance(space, Discrete) else 0


def _seen(observation: Any, space: gymnasium.Space[Any], declared: Space) -> Any:
    """Convert an observation for policies and posteriors."""
    if isinstance(declared, Real):
        return np.asarray(observation, dtype=np.float64).reshape(declared.shape)
    if isinstance(declared, Sensors) and isinstance(space, Dict):
        return declared.joint(
            {name: int(k) - _start(space[name]) for name, k in observation.items()}
        )
    return int(observation) - _start(space)


def _has_sensors(space: gymnasium.Space[Any], sensors: Sensors) -> bool:
    """Whether a space has the discrete outcomes of each sensor."""
    return isinstance(space, Dict) and {
        name: int(part.n) if isinstance(part, Discrete) else -1 for name, part in space.items()
    } == {name: len(outcomes) for name, outcomes in sensors.sensors.items()}


def check_length(record: Record, spaces: Spaces, which: str, whose: str) -> None:
    """Raise an error for an episode whose length does not fit the model."""
    steps, horizon = len(record.actions), spaces.horizon
    if record.over and (steps == horizon or (spaces.terminal and record.terminated)):
        return
    if record.over:
        got = f"{steps} steps"
        remedy = (
            "All episodes must have the same length. If they can end early, declare the states in "
            "which they end as terminal states, and pass the declaration as model=..."
        )
    else:
        got = f"no end after {steps:,} steps"
        remedy = (
            "Apply gymnasium.wrappers.TimeLimit inside the wrapper that reveals the "
            "states, or declare the horizon of the environment."
        )
    expected = f"{horizon:,} steps, {whose}" if horizon < LONGEST else "episodes that end"
    raise DataError("episodes_from", [Problem("length", got, expected, remedy, which)])


def _ended(states: Array, spaces: Spaces) -> Ended:
    """The reason for the end; :meth:`Episodes.of` validates it."""
    if len(states) <= spaces.horizon:
        return "terminal"
    return "terminal" if states[-1] in np.flatnonzero(spaces.ends) else "horizon"


def revealed_states(
    record: Record, latent: str | Callable[[Infos], ArrayLike], spaces: Spaces, which: str
) -> Array:
    """The latent states of a finished episode."""
    infos, horizon = record.infos, len(record.actions)
    if isinstance(latent, str) and latent not in infos[-1]:
        got = f"an info with {', '.join(map(repr, infos[-1])) or 'no keys'}"
        remedy = (
            "Pass latent=... with another key or with a function of all infos. Learning needs "
            "the revealed states."
        )
        raise DataError(
            "episodes_from", [Problem("latent", got, f"{latent!r} in the last info", remedy, which)]
        )
    states = np.asarray(infos[-1][latent] if isinstance(latent, str) else latent(infos))
    if isinstance(spaces.states, Real):
        shape = (horizon + 1, *spaces.states.shape)
        if not np.issubdtype(states.dtype, np.number):
            got = f"values of type {states.dtype}"
        elif not np.isfinite(states).all():
            got = "numbers that are not finite"
        elif states.size == np.prod(shape):
            return states.reshape(shape).astype(np.float64)
        else:
            got = f"shape {states.shape}"
        raise DataError(
            "episodes_from",
            [Problem("latent states", got, f"finite numbers of shape {shape}", at=which)],
        )
    if (
        states.shape == (horizon + 1,)
        and np.issubdtype(states.dtype, np.integer)
        and states.min() >= 0
    ):
        return states.astype(np.int64)
    if not np.issubdtype(states.dtype, np.integer):
        got, remedy = f"values of type {states.dtype}", "Number the states from 0."
    elif states.shape == (horizon,):
        got = f"{horizon} states"
        remedy = (
            "The state after the last action is missing. Append it, because it belongs to the "
            "last transition. If it is unknown, end episodes one step earlier and use the last "
            "known state."
        )
    else:
        got = f"shape {states.shape}, minimum {states.min(initial=0)}"
        remedy = "Reveal one state per step, and the state after the last action."
    expected = f"{horizon + 1} integers of at least 0, x_1 to x_{horizon + 1}"
    raise DataError("episodes_from", [Problem("latent states", got, expected, remedy, which)])

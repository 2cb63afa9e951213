"""Episodes, and how a policy is played in a world.

While an episode lasts there is only a :class:`Trajectory`; an :class:`Episode`, with latent states, exists after the last action.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.acting import Policy, Trajectory, ask
from homdp_ppl.domain import Domain, Real, shape_of, value_problems
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.policy import GraphPolicy, check_policy
from homdp_ppl.pomdp import POMDP, Spaces
from homdp_ppl.precision import Array, in_x64, namespace, to_numpy

if TYPE_CHECKING:
    from homdp_ppl.continuous import ContinuousWorld
    from homdp_ppl.declare import World


@partial(jax.tree_util.register_dataclass, data_fields=["trajectory", "states"], meta_fields=[])
@dataclass(frozen=True, eq=False)
class Episode:
    """A finished episode with its latent states revealed.

    A batch of episodes has leading axes: it has a length, is indexed, sliced and iterated episode by episode.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, rollout, uniform_policy
    >>> world = models.load("tiger")
    >>> episode = rollout(jax.random.key(0), world, uniform_policy(world))
    >>> episode.actions.shape, [world.spaces.states[x] for x in episode.states]  # the state after the last action is there too
    ((4,), ['left', 'right', 'left', 'left', 'left'])
    """

    trajectory: Trajectory  # (H,) observations and actions
    states: Array  # (H + 1,)  x_1 .. x_{H+1}

    def __getitem__(self, index: Any) -> Episode:
        len(self)
        chosen: Episode = jax.tree.map(lambda leaf: leaf[index], self)
        return chosen

    def __len__(self) -> int:
        if self.actions.ndim < 2:
            raise TypeError("this is a single episode; its horizon is the length of its actions")
        return len(self.actions)

    def __iter__(self) -> Iterator[Episode]:
        return (self[k] for k in range(len(self)))

    @property
    def observations(self) -> Array:
        """y_1 .. y_H."""
        return self.trajectory.observations

    @property
    def actions(self) -> Array:
        """a_1 .. a_H."""
        return self.trajectory.actions


class Noise(NamedTuple):
    """The uniform numbers that decide an episode; the world's and the policy's come from different keys."""

    state: Array  # (H + 1,)
    observation: Array  # (H,)
    action: Array  # (H,)


def noise(world_key: Array, policy_key: Array, horizon: int) -> Noise:
    """The noise of one episode: number h comes from the key and h alone, so rules that share a key share their luck."""
    world = jax.vmap(lambda h: jax.random.uniform(jax.random.fold_in(world_key, h), (2,)))(jnp.arange(horizon + 1))
    action = jax.vmap(lambda h: jax.random.uniform(jax.random.fold_in(policy_key, h)))(jnp.arange(horizon))
    return Noise(world[:, 0], world[:-1, 1], action)


def choose(row: Array, uniform: Array) -> Array:
    """The outcome that a uniform number picks from probabilities; never one of probability zero."""
    xp = namespace(row, uniform)
    below = xp.sum(xp.cumsum(row) <= uniform)
    last = xp.max(xp.where(row > 0, xp.arange(len(row)), 0))
    return xp.minimum(below, last)


def play(pomdp: POMDP, policy: GraphPolicy, luck: Noise) -> Episode:
    """One episode as a pure function of the model, the policy and the noise; may be traced."""

    def step(
        carry: tuple[Array, Array, Array], inputs: tuple[Array, Noise]
    ) -> tuple[tuple[Array, Array, Array], tuple[Array, ...]]:
        state, node, action = carry
        h, u = inputs
        observation = choose(pomdp.emission[state], u.observation)
        node = jnp.where(h == 0, policy.first(observation), policy.next(node, action, observation))
        action = choose(policy.probabilities[node], u.action)
        following = choose(pomdp.transition[state, action], u.state)
        return (following, node, action), (state, observation, action)

    first = choose(pomdp.initial, luck.state[0])
    start = (first, jnp.zeros_like(policy.start[0]), jnp.zeros_like(first))
    inputs = (jnp.arange(pomdp.horizon), Noise(luck.state[1:], luck.observation, luck.action))
    (last, _, _), (states, observations, actions) = jax.lax.scan(step, start, inputs)
    return Episode(Trajectory(observations, actions), jnp.append(states, last))


@jax.jit
def _play_many(keys: Array, pomdp: POMDP, policy: GraphPolicy) -> Episode:
    return jax.vmap(lambda key: play(pomdp, policy, noise(*_split(key), pomdp.horizon)))(keys)


def _split(key: Array) -> tuple[Array, Array]:
    return jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)


@in_x64
def rollout(key: Array, world: World | ContinuousWorld, policy: Policy) -> Episode:
    """Play a policy in a world; the latent states come back with the finished episode.

    Parameters
    ----------
    key
        A JAX random key for one episode, or an array of keys for as many episodes.
    world
        A declaration with its parameters fixed.
    policy
        Any :class:`Policy`. A :class:`GraphPolicy` is compiled, once for each number of keys; another is asked step by step.

    Returns
    -------
    Episode
        Arrays of indices, or of real numbers where a space is :class:`Real`; the leading axes are those of the keys.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, rollout, uniform_policy
    >>> world = models.load("tiger")
    >>> rollout(jax.random.key(0), world, uniform_policy(world)).states.shape
    (5,)
    """
    if not hasattr(world, "pomdp") and not hasattr(world, "play"):
        remedy = "Fix its parameters with .at(...), or draw them with .draw(key)."
        raise DataError("rollout", [Problem("world", f"a {type(world).__name__}", "a World", remedy)])
    check_policy(policy, world)
    keys = as_keys(key, "rollout")
    many = keys.reshape(-1)
    if hasattr(world, "play"):  # a continuous world plays by itself
        episodes: Episode = world.play(many, policy)
    elif isinstance(policy, GraphPolicy):
        episodes = _play_many(many, world.pomdp, policy)
    else:
        luck = jax.vmap(lambda k: noise(*_split(k), world.spaces.horizon))(many)
        played = [play_by_asking(world.pomdp, policy, Noise(*row), world.spaces) for row in zip(*to_numpy(luck), strict=True)]
        episodes = stack(played, world.spaces)
    shaped: Episode = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(*keys.shape, *leaf.shape[1:]), episodes)
    return shaped


def as_keys(key: Array, subject: str) -> Array:
    """Typed JAX keys, also from old-style uint32 keys; ``subject`` asks, and is named if they are none."""
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key
    if isinstance(key, jax.Array | np.ndarray) and key.dtype == np.uint32 and key.ndim and key.shape[-1] == 2:
        return jax.random.wrap_key_data(jnp.asarray(key))
    got = f"{type(key).__name__} {key!r}"
    raise DataError(subject, [Problem("key", got, "a JAX random key", "Write jax.random.key(0), or jax.random.split(key, n).")])


def as_key(key: Array, subject: str) -> Array:
    """One typed JAX key, where several would be a mistake."""
    keys = as_keys(key, subject)
    if keys.ndim:
        raise DataError(subject, [Problem("key", f"{keys.size} keys", "one key", "Call it once for each of them.")])
    return keys


def play_by_asking(pomdp: POMDP, policy: Policy, luck: Noise, spaces: Spaces) -> Episode:
    """Play one episode with a policy that is asked step by step; it is handed copies of what may be seen, nothing else."""
    state = int(choose(pomdp.initial, luck.state[0]))
    states, observations = [state], []
    actions: list[int] = []
    for h in range(pomdp.horizon):
        observations.append(int(choose(pomdp.emission[state], luck.observation[h])))
        chances = ask(policy, observations, actions, spaces)
        actions.append(int(choose(chances, luck.action[h])))
        state = int(choose(pomdp.transition[state, actions[-1]], luck.state[h + 1]))
        states.append(state)
    return Episode(Trajectory(np.array(observations), np.array(actions)), np.array(states))


def stack(episodes: Episode | Iterable[Episode], spaces: Spaces | Domain) -> Episode:
    """Episodes as one batch with a single leading axis, checked against the model they are said to come from."""
    H = spaces.horizon
    shapes = {
        "observations": (H, *shape_of(spaces.observations)),
        "actions": (H,),
        "states": (H + 1, *shape_of(spaces.states)),
    }
    parts: dict[str, list[Array]] = {name: [] for name in shapes}
    for episode in [episodes] if isinstance(episodes, Episode) else episodes:
        place = str(sum(map(len, parts["actions"])))
        if not isinstance(episode, Episode):
            raise DataError("episodes", [Problem("episode", f"a {type(episode).__name__}", "an Episode", at=place)])
        arrays = {name: np.asarray(getattr(episode, name)) for name in shapes}
        leading = {array.shape[: array.ndim - len(shapes[name])] for name, array in arrays.items()}
        alike = all(array.shape[array.ndim - len(shapes[name]) :] == shapes[name] for name, array in arrays.items())
        if len(leading) != 1 or not alike:
            got = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            expected = (
                f"{H} observations, {H} actions and {H + 1} states an episode: shapes {', '.join(map(str, shapes.values()))}"
            )
            raise DataError("episodes", [Problem("episode", got, expected, at=place)])
        for name, array in arrays.items():
            parts[name].append(array.reshape(-1, *shapes[name]))
    whole, problems = {}, []
    for name, shape in shapes.items():
        space = getattr(spaces, name)
        kind = float if isinstance(space, Real) else int
        whole[name] = np.concatenate(parts[name]) if parts[name] else np.zeros((0, *shape), dtype=kind)
        problems += value_problems(name, whole[name], space)
    if problems:
        raise DataError("episodes", problems)
    return Episode(Trajectory(whole["observations"], whole["actions"]), whole["states"])

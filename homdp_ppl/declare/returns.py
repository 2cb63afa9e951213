"""Rewards of episodes: those that follow from states and actions, recorded ones, and draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.spaces import Spaces, entry_place, label_of
from homdp_ppl.declare.reward_law import reward_distribution
from homdp_ppl.declare.rewards import Rewards
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.precision import Array, in_x64, x64

if TYPE_CHECKING:
    from homdp_ppl.declare.model import HOMDP

Played: TypeAlias = Episode | Episodes | Iterable[Episode | Episodes]

SAME = 1e-9  # relative to the range: a recorded reward this close to an outcome is that outcome
REPORTED, EXAMINED = 4, 1000  # rewards outside the range: how many are reported and examined
LISTED = 8  # invalid rewards that are reported
GAPS = (
    "If rewards are missing at random, whatever happened in the episode, declare the model with "
    'rewards_recorded="coin". Otherwise the reason has to be part of the model.'
)


def returns(homdp: HOMDP, episodes: Played) -> Array:
    """The sum of rewards of each episode up to its end, in the user's units."""
    batch = _revealed(homdp, episodes, "returns")
    if homdp.rewards.law is None:
        total = homdp.rewards.to_user(_known_rewards(homdp, batch).sum(-1), batch.length)
    else:
        problems = missing_problems(batch)
        if problems:
            raise DataError(f"{homdp.name}.returns", problems)
        total = _recorded(batch).sum(-1)
    return total[0] if isinstance(episodes, Episode) else total


def rewards_of(homdp: HOMDP, episodes: Played) -> Array:
    """The reward of each step in the user's units, (episodes, H), 0 after the end."""
    batch = _revealed(homdp, episodes, "rewards_of")
    if homdp.rewards.law is None:
        rewards = homdp.rewards.to_user(_known_rewards(homdp, batch), 1)
    else:
        rewards = _recorded(batch)
    rewards = rewards if batch.full_length else np.where(batch.steps, rewards, 0.0)
    return rewards[0] if isinstance(episodes, Episode) else rewards


def _revealed(homdp: HOMDP, episodes: Played, asked: str) -> Episodes:
    return Episodes.of(episodes, homdp).require_revealed(f"{homdp.name}.{asked}")


def _recorded(batch: Episodes) -> Array:
    """The recorded rewards, (episodes, H): NaN where there is none, 0 after the end."""
    if batch.rewards is None or batch.rewards_known is None:
        return np.where(batch.steps, np.nan, 0.0)
    recorded = np.where(batch.rewards_known, batch.rewards.astype(np.float64), np.nan)
    return np.where(batch.steps, recorded, 0.0)


def _known_rewards(homdp: HOMDP, batch: Episodes) -> Array:
    """The known rewards of revealed episodes in [0, 1], (episodes, H), 0 after the end."""
    states, steps = batch.states[:, :-1], np.arange(homdp.horizon)
    table, function = homdp.rewards.table, homdp.rewards.function
    if function is None:
        assert table is not None
        seen = batch.observations if homdp.rewards.by_observation else 0
        rewards = table[steps, states, seen, batch.actions]
    else:
        of = homdp.cache.get(
            "rewards", lambda: jax.jit(jax.vmap(jax.vmap(function), in_axes=(None, 0, 0, 0)))
        )
        with x64():
            rewards = np.asarray(of(steps, states, batch.observations, batch.actions))
    if not batch.full_length:
        rewards = np.where(batch.steps, rewards, 0.0)
    if function is not None:
        problems = range_problems(rewards, batch, homdp.rewards, homdp.spaces)
        if problems:
            raise DataError(f"{homdp.name}.returns", problems)
    return rewards


def range_problems(
    inside: Array, episodes: Episode | Episodes, rewards: Rewards, spaces: Spaces
) -> list[Problem]:
    """Problems for rewards of episodes that are outside [0, 1] inside, each once."""
    found: dict[Problem, None] = {}
    where, sign = ("cost", -1.0) if rewards.costs else ("reward", 1.0)
    low, high = sorted(sign * rewards.to_user(bound, 1) + 0.0 for bound in (0.0, 1.0))
    expected = f"a number in [{low:g}, {high:g}]"
    remedy = (
        f"Declare reward_range=(low, high), the smallest and the largest {where}. "
        f"Clip an unbounded {where}: jnp.clip({where[0]}, {low:g}, {high:g})."
    )
    for episode, step in np.argwhere(~((inside >= 0) & (inside <= 1)))[:EXAMINED]:
        values = [(episodes.states, spaces.states), (episodes.actions, spaces.actions)]
        if rewards.by_observation:
            values.insert(1, (episodes.observations, spaces.observations))
        place = ", ".join(label_of(part[episode, step], space) for part, space in values)
        got = sign * rewards.to_user(inside[episode, step], 1) + 0.0
        own = "" if np.isnan(got) else remedy
        found[Problem(where, f"{got:.6g}", expected, own, place)] = None
        if len(found) == REPORTED:
            break
    return list(found)


def missing_problems(batch: Episodes, remedy: str = "") -> list[Problem]:
    """A problem if steps have no recorded reward."""
    gaps = np.argwhere(np.isnan(_recorded(batch)))
    if not len(gaps):
        return []
    number = len(np.unique(gaps[:, 0]))
    got = f"{len(gaps):,} missing in {number:,} of {len(batch):,} episodes"
    at = f"first in {entry_place(gaps[0], batch.ids)}"
    return [Problem("rewards", got, "a recorded reward for every step", remedy, at)]


def recorded_problems(homdp: HOMDP, batch: Episodes) -> list[Problem]:
    """Problems of the recorded rewards of episodes under the law of a declaration.

    Rewards may be missing only if the declaration says that a coin decides which are recorded.
    """
    law, rewards = homdp.rewards.law, homdp.rewards
    if law is None:
        return []
    problems = [] if rewards.recorded == "coin" else missing_problems(batch, GAPS)
    recorded = _recorded(batch)
    # rewards of hidden states are evidence of the states, and are checked as such
    known = batch.steps & ~np.isnan(recorded) & batch.revealed[:, :-1]
    low, high = rewards.bounds
    if law.finite:
        places = law.form.places(batch.states, batch.observations, batch.actions)
        nearest = law.form.outcome(places, recorded)
        values = np.asarray(law.form.outcomes)[(*places, nearest)]
        possible = homdp.structure.tables["reward"].support[(*places, nearest)]
        wrong = ~(np.abs(values - recorded) <= SAME * (high - low)) | ~possible
        expected = "an outcome of the declared law"
    else:
        wrong = ~np.isfinite(recorded)
        if law.bounded:
            slack = SAME * (high - low)
            wrong = ~((recorded >= low - slack) & (recorded <= high + slack))
        expected = f"a number in [{low:g}, {high:g}]" if law.bounded else "a finite number"
    return problems + [
        Problem(
            "rewards",
            f"{recorded[tuple(index)]:.6g}",
            expected,
            at=entry_place(index, batch.ids),
        )
        for index in np.argwhere(known & wrong)[:LISTED]
    ]


def draw_rewards(
    homdp: HOMDP,
) -> Callable[[Mapping[str, Array], Array, Array, Array, Array], Array]:
    """A function that draws the rewards of one episode, (H,), in the user's units; can be traced.

    Its arguments are values of the sites, a random key, and the states, observations and actions of
    an episode of H steps, which stays in its terminal state. Rewards depend on nothing else, so
    they can be drawn after the episode.
    """

    def draw(
        parameters: Mapping[str, Array], key: Array, states: Array, seen: Array, actions: Array
    ) -> Array:
        values = {name: jnp.asarray(value) for name, value in parameters.items()}
        with handlers.block(), handlers.seed(rng_seed=0), handlers.substitute(data=values):
            law = reward_distribution(homdp.function().reward, homdp.spaces)

        def one(h: Array, x: Array, y: Array, a: Array) -> Array:
            drawn = law(h, x, y, a).sample(jax.random.fold_in(key, h))
            return drawn.astype(jnp.result_type(float))

        steps = jnp.arange(actions.shape[-1])
        return jax.vmap(one)(steps, states[:-1], seen, actions)

    return draw


@in_x64
def with_rewards(
    homdp: HOMDP, parameters: Mapping[str, Array], keys: Array, played: Episodes
) -> Episodes:
    """Simulated episodes with drawn rewards, if the declaration has a reward law.

    Parameters
    ----------
    homdp
        The declaration.
    parameters
        The values of its sites in the simulated world.
    keys
        One random key per episode.
    played
        The episodes, with all states.
    """
    if homdp.rewards.law is None:
        return played
    drawn = homdp.cache.get(
        "draw rewards",
        lambda: jax.jit(jax.vmap(draw_rewards(homdp), in_axes=(None, 0, 0, 0, 0))),
    )
    rewards = drawn(dict(parameters), keys, played.states, played.observations, played.actions)
    return Episodes(
        played.observations,
        played.actions,
        played.states,
        rewards=np.asarray(rewards),
        length=played.length,
        ended=played.ended,
        ids=played.ids,
        behaviour=played.behaviour,
    )


def rewarded(
    homdp: HOMDP, parameters: Mapping[str, Array], key: Array, episode: Episode
) -> Episode:
    """A simulated episode with drawn rewards, if the declaration has a reward law."""
    if homdp.rewards.law is None:
        return episode
    batch = Episodes.of(episode, homdp)
    return with_rewards(homdp, parameters, jnp.reshape(key, (1,)), batch)[0]

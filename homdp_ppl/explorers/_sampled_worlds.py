"""Rules that plan in one continuous world: a draw from the posterior, the truth; or in none."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.graph_policy import uniform_policy
from homdp_ppl.core.spaces import Real
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers._rules import Knowledge, Rule, episodes_played
from homdp_ppl.posteriors import posterior
from homdp_ppl.precision import Array, in_x64

ANOTHER = (
    "The oracle of one world knows nothing of another: oracle(world), with the world "
    "that is acted in."
)


def sampling_rule() -> Rule:
    """Posterior sampling: act as if one draw were true."""

    def init(homdp: HOMDP, episodes: int) -> Knowledge:
        return Knowledge(homdp, episodes, posterior(homdp, []))

    def propose(key: Array, state: Knowledge) -> World:
        worlds: list[World] = state.memory.worlds(key, 1)
        return worlds[0]

    @in_x64
    def update(state: Knowledge, episode: Episode) -> Knowledge:
        key = jax.random.fold_in(jax.random.wrap_key_data(state.luck), state.played)
        return replace(state, played=state.played + 1, memory=state.memory.update(episode, key))

    def visits(state: Knowledge) -> Array:
        states, _, actions, _ = state.homdp.spaces
        if isinstance(states, Real):
            return episodes_played(state)
        n, seen = np.zeros((len(states), len(actions)), dtype=np.int64), state.memory.episodes
        np.add.at(n, (seen.states[:, :-1], seen.actions), 1)
        return n

    return Rule(propose, init, update, visits)


def oracle_rule(world: World) -> Rule:
    """Plan in the true world."""

    def init(homdp: HOMDP, episodes: int) -> Knowledge:
        if world.spaces != homdp.spaces:
            raise ParameterError(
                "oracle", [Problem("world", str(world.spaces), str(homdp.spaces), ANOTHER)]
            )
        return Knowledge(homdp, episodes, ())

    return Rule(lambda key, state: world, init)


def uniform_rule() -> Rule:
    """Every action alike."""
    return Rule(lambda key, state: uniform_policy(state.homdp))

"""Rules that plan in one continuous world: a draw from the posterior, the truth; or in none."""

from __future__ import annotations

from dataclasses import replace

import jax

from homdp_ppl.continuous.declaration import ContinuousHOMDP, ContinuousWorld
from homdp_ppl.episode import Episode
from homdp_ppl.explorers.rules import Knowledge, Rule
from homdp_ppl.policy import uniform_policy
from homdp_ppl.posteriors import posterior
from homdp_ppl.precision import Array, in_x64


def sampling_rule() -> Rule:
    """Posterior sampling: act as if one draw were true."""

    def init(homdp: ContinuousHOMDP, episodes: int) -> Knowledge:
        return Knowledge(homdp, episodes, posterior(homdp, []))

    def propose(key: Array, state: Knowledge) -> ContinuousWorld:
        worlds: list[ContinuousWorld] = state.memory.worlds(key, 1)
        return worlds[0]

    @in_x64
    def update(state: Knowledge, episode: Episode) -> Knowledge:
        key = jax.random.fold_in(jax.random.wrap_key_data(state.luck), state.played)
        return replace(state, played=state.played + 1, memory=state.memory.update(episode, key))

    return Rule(propose, init, update)


def oracle_rule(world: ContinuousWorld) -> Rule:
    """Plan in the true world."""
    return Rule(lambda key, state: world)


def uniform_rule() -> Rule:
    """Every action alike."""
    return Rule(lambda key, state: uniform_policy(state.homdp))

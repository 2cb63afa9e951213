"""Episodes with missing states, and their probability by enumeration of all hidden states."""

from itertools import product

import jax
import numpy as np

from homdp_ppl import Episodes, World, rollout, uniform_policy
from homdp_ppl.declare.kernels import Tables


def with_gaps(world: World, number: int, share: float, seed: int = 1) -> Episodes:
    """Simulated episodes in which every state is revealed with the same probability."""
    found = rollout(jax.random.split(jax.random.key(seed), number), world, uniform_policy(world))
    coins = np.random.default_rng(seed).random(found.revealed.shape) < share
    return Episodes(
        found.observations,
        found.actions,
        found.states,
        revealed=coins & found.revealed,
        length=found.length,
        ended=found.ended,
    )


def paths(world: World, episodes: Episodes, k: int):
    """All paths of one episode that agree with the revealed states, with their probabilities."""
    spaces, tables = world.homdp.spaces, tables_of(world)
    form, A = tables.form, len(spaces.actions)
    L = int(episodes.length[k])
    y, a = episodes.observations[k], episodes.actions[k]
    hidden = [h for h in range(L + 1) if not episodes.revealed[k, h]]
    for values in product(range(len(spaces.states)), repeat=len(hidden)):
        x = episodes.states[k, : L + 1].copy()
        x[hidden] = values
        if episodes.ended[k] == "terminal" and not spaces.ends[x[L]]:
            continue
        p = tables.initial[x[0]]
        for h in range(L):
            p = p * tables.emission[form.emission_index(h, a[h - 1] if h else A, x[h], y[h])]
            p = p * tables.transition[form.transition_index(h, x[h], a[h], x[h + 1])]
        yield x, p


def enumerated(world: World, episodes: Episodes) -> float:
    """The log probability of episodes: the sum over all paths of each."""
    sums = [sum(p for _, p in paths(world, episodes, k)) for k in range(len(episodes))]
    return float(np.log(sums).sum())


def tables_of(world: World) -> Tables:
    return Tables(*map(np.asarray, world.homdp.short_tables(world.parameters)[:3]))

"""Certified intervals from logs: mean widths on tiger, for the optimal policy.

    python benchmarks/offline.py

The behaviour is uniform, delta is 0.1, and means are over 20 logs.
"""

from __future__ import annotations

import jax
import numpy as np

from homdp_ppl import models, rollout, uniform_policy
from homdp_ppl.confidence import confidence_sets
from homdp_ppl.confidence.policies import policy_interval
from homdp_ppl.confidence.sets import MixtureName
from homdp_ppl.planners import history_tree

LOGS, EPISODES = 20, (10, 100, 1000)
MIXTURES: tuple[MixtureName, ...] = ("jeffreys", "declared")


def main() -> None:
    """Print a table."""
    world = models.load("tiger")
    graph, _ = history_tree()(world.pomdp).finite
    keys = jax.random.split(jax.random.key(0), LOGS * max(EPISODES))
    played = rollout(keys, world, uniform_policy(world))
    for mixture in MIXTURES:
        for n in EPISODES:
            widths = []
            for k in range(LOGS):
                counts = world.homdp.counts(played[k * max(EPISODES) :][:n])
                low, high = policy_interval(
                    confidence_sets(world.homdp, counts, 0.1, mixture), graph
                )
                widths.append(float(high - low))
            print(f"{mixture:9s} {n:5d} episodes: {np.mean(widths):.4f}", flush=True)


if __name__ == "__main__":
    main()

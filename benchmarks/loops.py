"""Repeated calls of ``learn``: new but equal objects against the same objects.

    python benchmarks/loops.py [--calls 20]

Rules, planners and worlds with equal options are equal, so nothing is compiled again.
"""

from __future__ import annotations

import argparse
import time

from homdp_ppl import explorers, learn, models
from homdp_ppl.planners import history_tree


def seconds(calls: int, make) -> list[float]:
    """The time of each call."""
    spent = []
    for _ in range(calls):
        start = time.perf_counter()
        world, rule, planner = make()
        learn(world, rule, planner, episodes=1000, seed=0, compiled=True)
        spent.append(time.perf_counter() - start)
    return spent


def main() -> None:
    """Print the first call and the mean of the others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=20)
    calls = parser.parse_args().calls
    world = models.load("tiger", horizon=3)
    kept = world, explorers.hop_b(scale=0.1), history_tree()
    ways = {
        "the same objects": lambda: kept,
        "new rule and planner": lambda: (world, explorers.hop_b(scale=0.1), history_tree()),
        "new world too": lambda: (
            models.load("tiger", horizon=3),
            explorers.hop_b(scale=0.1),
            history_tree(),
        ),
    }
    for name, make in ways.items():
        first, *others = seconds(calls, make)
        mean = 1e3 * sum(others) / len(others)
        print(f"{name:24} first {first:6.2f} s, then {mean:8.1f} ms per call")


if __name__ == "__main__":
    main()

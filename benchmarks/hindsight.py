"""Measure the value of hindsight: regret of posterior sampling against the share revealed."""

from __future__ import annotations

import argparse

from homdp_ppl import explorers, models, study

SHARES = (0.0, 0.05, 0.2, 0.5, 1.0)


def main() -> None:
    """Print one row per share, and the paired differences between successive shares."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiger_table")
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=6)
    options = parser.parse_args()
    world = models.load(options.model)
    rule = explorers.posterior_sampling()
    seeds, shares = list(range(options.seeds)), SHARES
    found = study.hindsight(world, [rule], None, options.episodes, seeds, shares=shares)
    print(found)
    pairs = zip(SHARES[:-1], SHARES[1:], found.steps(rule.name), strict=True)
    for low, high, (difference, error) in pairs:
        print(f"{low:g} -> {high:g}: {difference:.2f} +- {error:.2f}")
    for share, runs in found.runs[rule.name].items():
        spent = sum(sum(run.seconds.values()) for run in runs) / len(runs)
        print(f"share {share:g}: {spent:.1f} s per run")


if __name__ == "__main__":
    main()

"""Measure the value of hindsight: regret of posterior sampling against the share revealed.

    python benchmarks/hindsight.py --models tiger_table checkup_table:horizon=3 --seeds 20

Prints one row per share, and the paired differences between successive shares.
"""

from __future__ import annotations

import argparse

from homdp_ppl import explorers, study

SHARES = (0.0, 0.05, 0.2, 0.5, 1.0)


def main() -> None:
    """Measure and print, one model after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["tiger_table"])
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES)
    parser.add_argument("--no-foresight", action="store_true")
    options = parser.parse_args()
    for model in options.models:
        measure(model, options)


def measure(model: str, options: argparse.Namespace) -> None:
    """Run one model with all shares and seeds, and print the results."""
    world, rule = study.find_world(model), explorers.posterior_sampling()
    seeds, shares = list(range(options.seeds)), options.shares
    found = study.hindsight(
        world,
        [rule],
        None,
        options.episodes,
        seeds,
        shares=shares,
        foresight=not options.no_foresight,
    )
    print(f"{model}, {options.episodes} episodes\n{found}")
    pairs = zip(found.shares[:-1], found.shares[1:], found.steps(rule.name), strict=True)
    for low, high, (difference, error) in pairs:
        scores = f"{difference / error:.2g} standard errors" if error > 0 else "equal"
        print(f"{low:g} -> {high:g}: {difference:.3g} +- {error:.2g} ({scores})")
    for share, runs in found.runs[rule.name].items():
        spent = sum(sum(run.seconds.values()) for run in runs) / len(runs)
        print(f"share {share:g}: {spent:.1f} s per run", flush=True)


if __name__ == "__main__":
    main()

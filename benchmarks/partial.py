"""Posteriors of episodes in which few states are revealed.

    python benchmarks/partial.py [--part NAME ...] [--episodes 10000]

Parts: posterior (all of screening with 20% of the states revealed), sweeps (CPU seconds per Gibbs
sweep against the number of distinct gaps), growth (compilations while data grow).
"""

import argparse
import time
from dataclasses import replace

import jax
import numpy as np

from homdp_ppl import Episodes, models, posterior, rollout, uniform_policy
from homdp_ppl.declare.clue_likelihood import evidence_of
from homdp_ppl.posteriors.dirichlet import closed_form
from homdp_ppl.posteriors.from_evidence import MarginalDensity
from homdp_ppl.posteriors.gibbs import hidden_counts

SHARE = 0.2


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", nargs="*", choices=sorted(PARTS), default=sorted(PARTS))
    parser.add_argument("--episodes", type=int, default=10_000)
    options = parser.parse_args()
    for part in options.part:
        PARTS[part](options.episodes)


def log_of(name, episodes, share=SHARE, **options):
    """Simulated episodes in which a coin reveals states."""
    world = models.load(name, **options)
    keys = jax.random.split(jax.random.key(0), episodes)
    found = rollout(keys, world, uniform_policy(world))
    coins = np.random.default_rng(0).random(found.revealed.shape) < share
    parts = found.observations, found.actions, found.states
    masked = Episodes(
        *parts, revealed=coins & found.revealed, length=found.length, ended=found.ended
    )
    return world, masked


def whole(episodes):
    """The posterior of screening, by the methods that apply."""
    for name, options, method in (
        ("screening", {"hierarchy": False}, "laplace"),
        ("screening", {"hierarchy": False}, "auto"),
    ):
        world, log = log_of(name, episodes, **options)
        start, busy = time.perf_counter(), time.process_time()
        belief = posterior(world.homdp, log, method=method, force=True)
        seconds, busy = time.perf_counter() - start, time.process_time() - busy
        print(f"{name} {options} {method}: {seconds:.1f} s, {busy:.1f} s of CPU\n{belief}")
        print(belief.calibration or belief.diagnostics)


def sweeps(_):
    """CPU seconds per Gibbs sweep against episodes and distinct gaps."""
    for episodes in (1_000, 10_000, 100_000):
        world, log = log_of("tiger_table", episodes)
        evidence = evidence_of(world.homdp, log)
        report(world.homdp, evidence.gaps, episodes)
    world, log = log_of("screening_table", 10_000)
    gaps = evidence_of(world.homdp, log).gaps
    for part in (4, 2, 1):
        n = len(gaps.number) // part
        some = {k: v[:n] for k, v in gaps._asdict().items() if k != "clues"}
        report(world.homdp, gaps._replace(**some), 10_000 // part)


def report(homdp, gaps, episodes):
    """Time the drawing of all hidden states for four chains."""
    form = closed_form(homdp)
    entries = np.tile(form.means(form.conjugate.concentration), (4, 1))
    tables, generator = form.tables(entries), np.random.default_rng(0)
    hidden_counts(generator, tables, homdp, gaps)
    start = time.process_time()
    for _ in range(5):
        hidden_counts(generator, tables, homdp, gaps)
    seconds = (time.process_time() - start) / 5
    n = len(gaps.number)
    print(
        f"{homdp.name}: {episodes:,} episodes, {n:,} distinct gaps, {1000 * seconds:.1f} ms per "
        f"sweep, {1e6 * seconds / max(n, 1):.1f} microseconds per gap"
    )


def growth(_):
    """How often the likelihood is compiled while data grow one episode at a time."""
    world, log = log_of("tiger", 64)
    density = MarginalDensity(world.homdp)
    compiled = jax.jit(density.potential)
    with jax.enable_x64(True):
        position = density.start(jax.random.key(0), _data(world.homdp, log[:1]))[0]
        for n in range(1, 65):
            compiled(_data(world.homdp, log[:n]), position)
    print(f"tiger, 1 to 64 episodes: {compiled._cache_size()} compilations")


def _data(homdp, log):
    evidence = evidence_of(homdp, log)
    counts, gaps = evidence.data
    return replace(counts, names=None), gaps


PARTS = {"posterior": whole, "sweeps": sweeps, "growth": growth}

if __name__ == "__main__":
    main()

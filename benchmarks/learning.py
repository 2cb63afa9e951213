"""The speed of learning: the compiled, the readable and a naive loop on the same problems.

    python benchmarks/learning.py [--repeat 3] [--part NAME ...]

Parts: loops (three loops on one problem), growth (cost against episodes and against nodes), study
(a large study, measured in part and extrapolated), others (the cost of the other rules).
Compilation is reported separately.
"""

import argparse
import os
import time
from statistics import median

import numpy as np
from naive import run as naive_run
from rich.console import Console
from rich.table import Table

from homdp_ppl import explorers, learn, models
from homdp_ppl.planners import history_tree
from homdp_ppl.planners._histories import Support, count_histories

STUDY: dict[str, dict[str, int]] = {
    "tiger": {},
    "tiger_table": {},
    "tiger_listen": {},
    "lock": {},
    "checkup_table": {"horizon": 3},
    "random": {},
}
RULES = {
    "hop_b": explorers.hop_b,
    "tight": explorers.tight,
    "anytime": explorers.anytime,
    "quantile_backup": lambda: explorers.quantile_backup(1.645),  # as in naive.py
    "posterior_sampling": explorers.posterior_sampling,
    "greedy": explorers.greedy,
    "epsilon_greedy": explorers.epsilon_greedy,
    "uniform": explorers.uniform,
}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--repeat", type=int, default=3, help="runs per measurement; times are medians (default: 3)"
    )
    parser.add_argument(
        "--part",
        nargs="*",
        choices=sorted(PARTS),
        default=sorted(PARTS),
        help="what to measure (default: everything)",
    )
    options = parser.parse_args()
    for part in options.part:
        PARTS[part](Console(), options.repeat)


def seconds_per_episode(world, rule, episodes, repeat, compiled=True, seeds=(0,), planner=None):
    """The median over repetitions without compilation, and the seconds of compilation."""
    planner = planner or history_tree()
    taken, compiling = [], 0.0
    for k in range(repeat):
        runs = learn(
            world,
            rule,
            planner,
            episodes,
            [s + 1000 * k for s in seeds],
            compiled=compiled,
            progress=False,
        )
        spent = {what: sum(run.seconds.get(what, 0.0) for run in runs) for what in runs[0].seconds}
        compiling = max(compiling, spent.pop("compiling", 0.0))
        taken.append(sum(spent.values()) / (episodes * len(runs)))
    return median(taken), compiling


def nodes(world):
    """The number of histories in the tree of a declaration."""
    return sum(count_histories(Support.of(world.homdp.structure.support), world.spaces.horizon))


def loops(console, repeat):
    """Compare three loops with three rules on one problem."""
    world = models.load("tiger_table")
    table = Table(
        "rule",
        "naive us",
        "readable us",
        "compiled us",
        "speed-up over naive",
        "episodes/s, one core",
        "episodes/s, all cores",
        "compiling s",
    )
    for name in ("hop_b", "quantile_backup", "posterior_sampling"):
        rule = explorers.replan_every_episode(RULES[name]())
        slow = []
        for k in range(repeat):
            start = time.perf_counter()
            naive_run(world.pomdp, name, 20, seed=k)
            slow.append((time.perf_counter() - start) / 20)
        readable, _ = seconds_per_episode(world, rule, 100, repeat, compiled=False)
        fast, compiling = seconds_per_episode(world, rule, 5000, repeat)
        together, _ = seconds_per_episode(
            world, rule, 5000, repeat, seeds=range(2 * (os.cpu_count() or 1))
        )
        table.add_row(
            name,
            *(f"{1e6 * s:,.0f}" for s in (median(slow), readable, fast)),
            f"{median(slow) / fast:,.0f}",
            f"{1 / fast:,.0f}",
            f"{1 / together:,.0f}",
            f"{compiling:.1f}",
        )
    console.print(
        f"Time per episode on tiger_table, {nodes(world):,} histories, replanning in every "
        f"episode, exact regret"
    )
    console.print(table)


def growth(console, repeat):
    """Measure the cost against the number of episodes and of nodes."""
    world, rule, planner = models.load("tiger_table"), explorers.greedy(), history_tree()
    table = Table("episodes", "seconds", "microseconds per episode")
    for episodes in (2000, 4000, 8000, 16000):
        each, _ = seconds_per_episode(world, rule, episodes, repeat, planner=planner)
        table.add_row(f"{episodes:,}", f"{each * episodes:.3f}", f"{1e6 * each:.1f}")
    console.print(table)
    table, points = (
        Table("horizon", "histories", "microseconds per episode", "nanoseconds per history"),
        [],
    )
    for horizon in (3, 4, 5, 6, 7):
        longer = models.load("tiger_table", horizon=horizon)
        each, _ = seconds_per_episode(longer, explorers.greedy(), 1000, repeat)
        points.append((nodes(longer), each))
        table.add_row(
            str(horizon),
            f"{nodes(longer):,}",
            f"{1e6 * each:.1f}",
            f"{1e9 * each / nodes(longer):.1f}",
        )
    console.print(table)
    histories, taken = np.array(points).T
    slope, start = np.polyfit(histories, taken, 1, w=1 / taken)  # least squares of relative errors
    worst = np.max(np.abs((start + slope * histories) / taken - 1))
    power = np.polyfit(np.log(histories[1:]), np.log(taken[1:]), 1)[0]
    console.print(
        f"fit: {1e6 * start:.1f} us + {1e9 * slope:.1f} ns per history; the largest relative "
        f"error is {worst:.0%}"
    )
    console.print(f"from {histories[1]:,.0f} histories the cost grows with exponent {power:.2f}")


def study(console, repeat):
    """Extrapolate a study of 6 problems, 8 rules, 30 seeds and 5,000 episodes.

    Measured with 2,000 episodes and one seed per core.
    """
    table = Table("problem", "histories", *RULES, "oracle", title="microseconds per episode")
    total, compiling, cores = 0.0, 0.0, os.cpu_count() or 1
    for name, options in STUDY.items():
        world, cells = models.load(name, **options), []
        for rule in (*(make() for make in RULES.values()), explorers.oracle(world)):
            each, compiled = seconds_per_episode(world, rule, 2000, 1, seeds=range(cores))
            total += each * 30 * 5000
            compiling += compiled
            cells.append(f"{1e6 * each:.0f}")
        table.add_row(name, f"{nodes(world):,}", *cells)
    console.print(table)
    console.print(
        f"6 problems x 8 rules x 30 seeds x 5,000 episodes: {total / 60:.1f} minutes on "
        f"{cores} cores, and {compiling / 60:.1f} "
        f"minutes of compiling (extrapolated from 2,000 episodes of {cores} seeds each)"
    )


def others(console, repeat):
    """Measure the rules that are not part of the study."""
    world = models.load("tiger_table", horizon=3)
    emissions = np.stack([world.pomdp.shows(0) * w + (1 - w) / 2 for w in np.linspace(0.2, 1, 8)])
    transitions = np.stack([world.pomdp.moves(0) * w + (1 - w) / 2 for w in np.linspace(0.2, 1, 8)])
    always = explorers.replan_every_episode
    rules = {
        "hop_b_class (8 tables)": (always(explorers.hop_b_class(emissions)), True),
        "value_quantile (20 draws)": (explorers.value_quantile(), True),
        "quantile_bonus (bound)": (
            always(explorers.quantile_bonus(bound=True)),
            True,
        ),
        "quantile_bonus (draws)": (always(explorers.quantile_bonus()), False),
        "hop_v (8 x 8 tables)": (explorers.hop_v(transitions, emissions), False),
    }
    table = Table(
        "rule", "loop", "microseconds per episode", title=f"tiger_table, {nodes(world):,} histories"
    )
    for name, (rule, compiled) in rules.items():
        each, _ = seconds_per_episode(
            world, rule, 2000 if compiled else 60, repeat, compiled=compiled
        )
        table.add_row(name, "compiled" if compiled else "readable", f"{1e6 * each:,.0f}")
    console.print(table)


PARTS = {"loops": loops, "growth": growth, "study": study, "others": others}

if __name__ == "__main__":
    main()

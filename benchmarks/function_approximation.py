"""HOP-V on classes of models: the cost of large version spaces, and sample size against states.

    python benchmarks/function_approximation.py [--parts spaces states] [--seeds 3]
        [--out function_approximation.json]

spaces: version spaces of 100 x 100 and 1,000 x 1,000 members during episodes with uniform actions,
without planning. Reports the time per episode without compilation, and the number of members left.

states: a low-rank family in which the class stays the same while the number of states grows.
Reports the number of episodes after which the gap of the policy stays below EPSILON. HOP-V knows
the class. hop_b counts states; its bonuses are scaled down so that it learns at all, and it is
limited to 300 states because larger models take too long. greedy counts too, without a guarantee.
Random tables need little exploration, so greedy is fast here, but its speed varies between seeds.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import numpyro.distributions as dist
from rich.console import Console
from rich.table import Table

from homdp_ppl import (
    World,
    explorers,
    learn,
    models,
    rollout,
    tabular,
    uniform_policy,
)
from homdp_ppl.explorers import candidates
from homdp_ppl.explorers._classes import low_rank
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.models.low_rank import family
from homdp_ppl.planners import history_tree

RANK, ACTIONS, SHOWN, HORIZON = 3, 2, 3, 3
MEMBERS = 8  # of each class
OTHERS = 0.2  # weight of other regions in a place
EPSILON = 0.05
BOLD = 0.03  # scale of the bonuses of hop_b
# The maximum number of states, and the number of episodes for a number of states.
RULES: dict[str, tuple[int, Callable[[int], int]]] = {
    "hop_v": (1000, lambda X: 40 * HORIZON),
    "hop_b": (300, lambda X: 400 + 20 * X),
    "greedy": (300, lambda X: 300 + 5 * X),
}


class Classes(NamedTuple):
    """A class of low-rank transitions, a class of emissions, and the known parts."""

    transitions: Any  # (N, X, A, X)
    emissions: Any  # (M, X, Y)
    initial: Any  # (X,)
    reward: Any  # (X, A)


def same_class(states: int, members: int = MEMBERS, seed: int = 0) -> Classes:
    """Classes whose members are random laws of regions, the same for every number of states.

    Each place mixes the regions with its own weights.

    Parameters
    ----------
    states
        Number of places; they belong to three regions in turn.
    members
        Number of members of each class.
    seed
        Seed of the random laws.
    """
    generator = np.random.default_rng(seed)
    # from region to region
    moves = generator.dirichlet(np.full(RANK, 0.5), (members, RANK, ACTIONS))
    shows = generator.dirichlet(np.full(SHOWN, 0.5), (members, RANK))
    generator = np.random.default_rng((seed, states))
    region = np.arange(states) % RANK
    psi = (region == np.arange(RANK)[:, None]) * generator.gamma(1.0, size=states)
    psi /= psi.sum(1, keepdims=True)
    mixed = (1 - OTHERS) * np.eye(RANK)[region] + OTHERS * generator.dirichlet(
        np.ones(RANK), states
    )
    T = np.concatenate([low_rank(np.einsum("xz,zau->xau", mixed, law), psi[None]) for law in moves])
    reward = np.repeat((region == RANK - 1)[:, None], ACTIONS, axis=1).astype(float)
    return Classes(T, np.einsum("xz,nzy->nxy", mixed, shows), psi.mean(0), reward)


def truth_of(classes: Classes, seed: int, declared: bool) -> World:
    """The true world: one pair of members, depending on the seed.

    Parameters
    ----------
    classes
        The classes of transitions and emissions.
    seed
        Selects the pair.
    declared
        Whether the learner uses the declaration, as rules that count do. Then only the initial
        distribution and the rewards are known. HOP-V uses its classes only.
    """
    T, O, rho, reward = classes  # noqa: E741
    true = {"T": T[seed % len(T)], "O": O[(3 * seed + 1) % len(O)]}
    if not declared:
        return tabular(**true, initial=rho, reward=reward, horizon=HORIZON).at()
    flat = {name: dist.Dirichlet(np.ones(table.shape)) for name, table in true.items()}
    return tabular(**flat, initial=rho, reward=reward, horizon=HORIZON).at(**true)


def rule_for(name: str, classes: Classes) -> Explorer:
    """The rule; only HOP-V is given the classes."""
    if name == "hop_v":
        return explorers.hop_v(classes.transitions, classes.emissions)
    return explorers.hop_b(scale=BOLD) if name == "hop_b" else explorers.greedy()


def episodes_needed(name: str, states: int, seed: int, episodes: int) -> int | None:
    """The number of episodes after which the gap stays at most EPSILON.

    None if that does not happen in the run.
    """
    classes = same_class(states)
    run = learn(
        truth_of(classes, seed, declared=name != "hop_v"),
        rule_for(name, classes),
        history_tree(),
        episodes,
        seed,
    )
    late = np.flatnonzero(run.gaps > EPSILON)
    rounds = int(late[-1]) + 1 if len(late) else 0
    return None if rounds == len(run.gaps) else rounds * run.task.episodes_per_round


def slope(states: Sequence[int], needed: Sequence[Sequence[int | None]]) -> float:
    """The slope of the log of the mean over seeds against the log of the number of states.

    Seeds without a result at some size are left out.
    """
    seeds = [k for k in range(len(needed[0])) if all(row[k] is not None for row in needed)]
    means = [np.mean([row[k] for k in seeds]) for row in needed]  # type: ignore[misc]
    return float(np.polyfit(np.log(states), np.log(means), 1)[0])


def sample_sizes(console: Console, seeds: int) -> list[dict[str, Any]]:
    """Measure episodes to a good policy against the number of states."""
    rows = []
    for name, (most, episodes) in RULES.items():
        grid = [states for states in (10, 30, 100, 300, 1000) if states <= most]
        start, needed = time.perf_counter(), []
        for states in grid:
            needed.append(
                [episodes_needed(name, states, seed, episodes(states)) for seed in range(seeds)]
            )
            console.print(
                f"{name}, X = {states}: {needed[-1]}, {time.perf_counter() - start:.0f} s",
                style="dim",
            )
        rows.append(
            {"rule": name, "states": grid, "episodes": needed, "slope": slope(grid, needed)}
        )
    table = Table(
        "rule",
        *(f"X = {states}" for states in rows[0]["states"]),
        "slope in log X",
        title=f"episodes until the gap stays below {EPSILON}",
    )
    for row in rows:
        cells = [_summary(numbers) for numbers in row["episodes"]]
        table.add_row(
            row["rule"],
            *cells,
            *[""] * (len(rows[0]["states"]) - len(cells)),
            f"{row['slope']:.2f}",
        )
    console.print(table)
    return rows


def _summary(numbers: Sequence[int | None]) -> str:
    """The mean of the results, and the number of seeds without one."""
    found = [number for number in numbers if number is not None]
    failed = len(numbers) - len(found)
    return (f"{np.mean(found):.0f}" if found else "") + (f" ({failed} never)" if failed else "")


def worlds(name: str, members: int) -> list[World]:
    """A class of worlds; the last one is the truth."""
    if name == "low_rank, X = 1000":
        return family(members, states=1000, horizon=4)
    truth = models.load("light_dark", horizon=4)
    return [*candidates(truth.homdp, members - 1, jax.random.key(0)), truth]


def version_spaces(console: Console, seeds: int) -> list[dict[str, Any]]:
    """Measure the time per episode and the sizes of the version spaces."""
    rows = []
    marks = (0, 4, 20, 100, 400)  # episodes
    for name in ("light_dark", "low_rank, X = 1000"):
        for members in (100, 1000):
            listed = worlds(name, members)
            truth = listed[-1]
            rule = explorers.hop_v(listed, listed)
            episodes = rollout(
                jax.random.split(jax.random.key(1), marks[-1]), truth, uniform_policy(truth)
            )
            state, sizes, seconds = rule.init(truth.homdp, marks[-1]), [(members, members)], []
            for k, episode in enumerate(episodes, start=1):
                start = time.perf_counter()
                state = rule.update(state, episode)
                seconds.append(time.perf_counter() - start)
                if k in marks:
                    sizes.append(tuple(int(mask.sum()) for mask in state.memory[:2]))
            kept = all(bool(mask[-1]) for mask in state.memory[:2])
            first, each = sum(seconds[:4]), float(np.mean(seconds[4:]))  # the first epoch compiles
            rows.append(
                {
                    "class": name,
                    "members": members,
                    "milliseconds": 1e3 * each,
                    "first": first,
                    "episodes": marks,
                    "sizes": sizes,
                    "truth kept": kept,
                }
            )
    table = Table(
        "class",
        "members",
        "ms per episode",
        "first epoch s",
        *(f"after {k}" for k in marks),
        "truth kept",
    )
    for row in rows:
        sizes = [f"{moves:,} x {shows:,}" for moves, shows in row["sizes"]]
        size = f"{row['members']:,} x {row['members']:,}"
        cells = (
            f"{row['milliseconds']:.2f}",
            f"{row['first']:.1f}",
            *sizes,
            "yes" if row["truth kept"] else "no",
        )
        table.add_row(row["class"], size, *cells)
    console.print(table)
    return rows


PARTS = {"spaces": version_spaces, "states": sample_sizes}


def main() -> None:
    """Measure, print tables, and optionally write JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=PARTS,
        default=list(PARTS),
        help="what to measure (default: everything)",
    )
    parser.add_argument(
        "--seeds", type=int, default=3, help="runs per rule and number of states (default: 3)"
    )
    parser.add_argument("--out", type=Path, help="write the results to this JSON file")
    options = parser.parse_args()
    console = Console(width=150)
    found = {part: PARTS[part](console, options.seeds) for part in options.parts}
    if options.out:
        about = {
            "python": platform.python_version(),
            "jax": jax.__version__,
            "numpy": np.__version__,
            "seeds": options.seeds,
        }
        options.out.write_text(json.dumps({"about": about, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Measure whether a rule comes close to the optimum on flat tables, or gets stuck.

    python benchmarks/flat_tables.py [--episodes 5000] [--seeds 3] [--z 1.645] [--unvisited 2.5]

For each table and prior it runs ``quantile_backup`` and prints, for each seed, the episode after
which the loss stays within 5% of the range between the uniform policy and the optimum; and, for the
last fifth of the run, the share of episodes that are not, and the mean loss in the same unit.
"""

import argparse
from collections.abc import Callable

import numpy as np
from carried_screening import world as carried_screening

from homdp_ppl import World, evaluate, explorers, learn, models, uniform_policy
from homdp_ppl.models.flat import flat_table, sparse_concentration
from homdp_ppl.planners import history_tree

NEAR = 0.05  # of the range between the uniform policy and the optimum


def _zoo(name: str, **options: object) -> Callable[[float, float], World]:
    return lambda t, o: flat_table(models.load(name, **options), t, o)


TABLES: dict[str, Callable[[float, float], World]] = {
    "tiger": _zoo("tiger", horizon=3),
    "lock": _zoo("lock"),
    "checkup": _zoo("checkup", horizon=3),
    "random": _zoo("random", horizon=3),
    "meta_learning": _zoo("meta_learning", horizon=3),
    "fast_control": _zoo("fast_control", horizon=3),
    "imitation": _zoo("imitation", horizon=3),
    "sim_to_real": _zoo("sim_to_real", horizon=3),
    "screening": _zoo("screening", horizon=3),
    "carried_screening": carried_screening,
}


def measure(name: str, prior: str, rule: explorers.Explorer, episodes: int, seeds: int) -> str:
    """One line of the table."""
    X, Y, *_ = TABLES[name](1.0, 1.0).spaces.sizes
    flat = prior == "flat"
    world = TABLES[name](*(1.0 if flat else sparse_concentration(d) for d in (X, Y)))
    runs = learn(world, rule, history_tree(), episodes, seed=list(range(seeds)))
    spread = runs[0].optimum - evaluate(uniform_policy(world), world.pomdp)
    last, late, loss = [], [], []
    for run in runs:
        gaps = run.gaps / spread
        far = np.flatnonzero(gaps > NEAR)
        last.append(f"{int(far[-1]) + 1 if len(far) else 0:,}")
        late.append(f"{np.mean(gaps[-episodes // 5 :] > NEAR):.1%}")
        loss.append(f"{np.mean(gaps[-episodes // 5 :]):.1%}")
    regret = np.mean([run.regret[-1] for run in runs])
    cells = (
        name,
        f"{X} states",
        prior,
        rule.name,
        f"{regret:.1f}",
        *map(", ".join, (last, late, loss)),
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--z", type=float, nargs="+", default=[None], help="default: the rule's")
    parser.add_argument("--unvisited", type=float, help="deviations for rows without data")
    parser.add_argument("--priors", nargs="+", default=["flat", "sparse"])
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES))
    given = parser.parse_args()
    heads = "table", "size", "prior", "rule", "regret", "last far", "share far", "mean loss"
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}", flush=True)
    for name in given.tables:
        for prior in given.priors:
            for z in given.z:
                rule = explorers.quantile_backup(z, given.unvisited)
                print(measure(name, prior, rule, given.episodes, given.seeds), flush=True)


if __name__ == "__main__":
    main()

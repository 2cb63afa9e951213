"""The speed of the planners, with goals, compared with other packages.

    python benchmarks/planning.py [--repeat 5] [--out planning.json]

Times are medians of repeated plans after a first one. The first time, which includes compilation,
is reported separately. `tiger_hat` is tiger with T and O drawn from a Dirichlet posterior: dense,
as learned models are. In `answers`, observations depend on the previous action; `answers encoded`
is the same model with the last action in the state. If the environment variable HOMDP_PROBLEMS
names a folder with corpus/cheng.D4-1.POMDP, that problem is included.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from other_planners import naive_tree, pomdp_py_pouct, pomdp_py_value_iteration
from rich.console import Console
from rich.table import Table

from homdp_ppl import POMDP, models, read_pomdp, x64
from homdp_ppl.planners import alpha_vectors, auto, bounded_search, history_tree

FOLDER = os.environ.get("HOMDP_PROBLEMS")
CHENG = None if FOLDER is None else Path(FOLDER) / "corpus" / "cheng.D4-1.POMDP"


def tiger_hat() -> POMDP:
    """Tiger as learned from about a hundred episodes: every entry positive."""
    tables = models.load("tiger").pomdp
    generator = np.random.default_rng(1)

    def drawn(table: Any, counts: float) -> Any:
        return np.array(
            [generator.dirichlet(1 + counts * row) for row in table.reshape(-1, table.shape[-1])]
        ).reshape(table.shape)

    return tables._replace(
        transition=drawn(tables.transition, 130), emission=drawn(tables.emission, 400)
    )


def answers() -> POMDP:
    """Random tables in which each observation answers the last action; there is none before it."""
    generator = np.random.default_rng(1)
    T, O = generator.dirichlet(np.ones(4), (4, 4)), np.zeros((5, 4, 5))  # noqa: E741
    O[:4, :, :4] = 0.6 * np.eye(4) + 0.4 * generator.dirichlet(np.ones(4), (4, 4))
    O[4, :, 4] = 1.0
    return POMDP.of(np.full(4, 0.25), T, O, generator.uniform(size=(1, 4, 4)))


def encoded(pomdp: POMDP) -> POMDP:
    """The same model with the last action in the state, A at first."""
    X, Y, A = pomdp.sizes
    moves = np.zeros((A + 1, X, A, A + 1, X))
    for a in range(A):
        moves[:, :, a, a] = pomdp.moves(0)[:, a]
    n = (A + 1) * X
    return POMDP.of(
        np.concatenate([np.zeros(A * X), pomdp.initial]),
        moves.reshape(n, A, n),
        pomdp.emission[0].reshape(n, Y),
        np.tile(pomdp.reward[:, :, 0], (1, A + 1, 1)),
    )


def problems() -> dict[str, POMDP]:
    """The problems by name; `with_horizon` sets the horizon."""
    extra = {}
    if CHENG is not None and CHENG.exists():
        extra["cheng.D4-1"] = read_pomdp(CHENG, horizon=1).pomdp
    return {
        **extra,
        "answers": answers(),
        "answers encoded": encoded(answers()),
        "tiger": models.load("tiger").pomdp,
        "tiger_hat": tiger_hat(),
        "random_x5y3a2": models.load("random", states=5, observations=3, actions=2, seed=1).pomdp,
        "random_x10y4a3": models.load("random", states=10, observations=4, actions=3, seed=1).pomdp,
        "maze": models.load("maze").pomdp,
        "hallway": models.load("hallway").pomdp,
        "rocksample": models.load("rocksample").pomdp,
        "lower_bound_d6": models.load(
            "lower_bound_tree", depth=6, observations=10, epsilon=0.3
        ).pomdp,
    }


def with_horizon(pomdp: POMDP, horizon: int) -> POMDP:
    """The same model with another horizon."""
    return pomdp._replace(
        reward=np.broadcast_to(pomdp.reward[0], (horizon, *pomdp.reward.shape[1:])).copy()
    )


# problem, horizon, planner, factory, goal in seconds
GOALS: list[tuple[str, int, str, Callable[[], Any], float | None]] = [
    ("maze", 20, "bounded_search(gap=1e-3)", lambda: bounded_search(gap=1e-3), 0.3),
    ("maze", 9, "alpha_vectors", alpha_vectors, None),
    ("hallway", 5, "bounded_search(gap=1e-3)", lambda: bounded_search(gap=1e-3), None),
    ("hallway", 6, "bounded_search(gap=1e-3)", lambda: bounded_search(gap=1e-3), 5.0),
    ("rocksample", 10, "bounded_search(gap=0.02)", lambda: bounded_search(gap=0.02), None),
    ("rocksample", 20, "bounded_search(gap=0.02)", lambda: bounded_search(gap=0.02), 0.7),
    ("tiger_hat", 10, "alpha_vectors(1e-6)", lambda: alpha_vectors(1e-6), None),
    ("tiger_hat", 20, "alpha_vectors(1e-6)", lambda: alpha_vectors(1e-6), 0.15),
    ("tiger_hat", 100, "alpha_vectors(1e-6)", lambda: alpha_vectors(1e-6), 0.8),
    ("random_x5y3a2", 200, "alpha_vectors(1e-6)", lambda: alpha_vectors(1e-6), 0.2),
    ("random_x10y4a3", 10, "alpha_vectors(1e-6)", lambda: alpha_vectors(1e-6), None),
    ("tiger", 200, "alpha_vectors", alpha_vectors, 0.05),
    ("lower_bound_d6", 6, "history_tree", history_tree, 0.005),
    ("lower_bound_d6", 6, "bounded_search(gap=1e-3)", lambda: bounded_search(gap=1e-3), 0.005),
    ("tiger_hat", 5, "history_tree", history_tree, None),
    ("tiger", 5, "auto", auto, None),
    ("answers", 20, "alpha_vectors(1e-3)", lambda: alpha_vectors(1e-3), None),
    ("answers encoded", 20, "alpha_vectors(1e-3)", lambda: alpha_vectors(1e-3), None),
    ("answers", 20, "auto", auto, None),
    ("answers", 8, "bounded_search(gap=1e-5)", lambda: bounded_search(gap=1e-5), None),
    ("answers encoded", 8, "bounded_search(gap=1e-5)", lambda: bounded_search(gap=1e-5), None),
    ("cheng.D4-1", 20, "auto", auto, 0.06),
]


def measure(run: Callable[[], Any], repeat: int) -> tuple[Any, float, float]:
    """The result, the median time of repeated runs, and the time of the first run."""
    times = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return result, statistics.median(times[1:]), times[0]


def compiled_replan(pomdp: POMDP, rounds: int = 2000) -> tuple[float, float]:
    """Seconds per exact replan inside a compiled loop with changing rewards, and to compile it."""
    with x64():
        solve = history_tree().compile(pomdp)

        def loop(model: POMDP) -> Any:
            def step(shift: Any, _: Any) -> Any:
                solved = solve(model._replace(reward=model.reward + shift))
                # The sum makes XLA compute the whole policy.
                return solved.value * 1e-6, solved.policy.probabilities.sum()

            return jax.lax.scan(step, jnp.zeros(()), None, length=rounds)

        compiled = jax.jit(loop)
        start = time.perf_counter()
        jax.block_until_ready(compiled(pomdp))
        first = time.perf_counter() - start
        start = time.perf_counter()
        jax.block_until_ready(compiled(pomdp))
        again = time.perf_counter() - start
    return again / rounds, first - again


def main() -> None:
    """Measure, print a table, and optionally write JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--repeat", type=int, default=5, help="repeated runs after the first (default: 5)"
    )
    parser.add_argument("--out", type=Path, help="write the results to this JSON file")
    options = parser.parse_args()
    made, rows = problems(), []
    for name, horizon, planner, factory, goal in GOALS:
        if name not in made:
            continue
        model, plan = with_horizon(made[name], horizon), factory()
        result, seconds, first = measure(lambda plan=plan, model=model: plan(model), options.repeat)
        rows.append(
            {
                "problem": name,
                "H": horizon,
                "who": planner,
                "value": result.value,
                "gap": result.gap,
                "seconds": seconds,
                "first": first,
                "goal": goal,
            }
        )
        print(f"{name} H={horizon} {planner}: {seconds:.4f} s", file=sys.stderr)
    seconds, compiling = compiled_replan(with_horizon(made["tiger_hat"], 5))
    rows.append(
        {
            "problem": "tiger_hat",
            "H": 5,
            "who": "history_tree in a compiled loop",
            "value": None,
            "gap": 0.0,
            "seconds": seconds,
            "first": compiling,
            "goal": 1e-4,
        }
    )
    for horizon in (4, 5, 6):
        model = with_horizon(made["tiger"], horizon)
        value, seconds, first = measure(lambda model=model: naive_tree(model), 1)
        rows.append(
            {
                "problem": "tiger",
                "H": horizon,
                "who": "naive networkx tree",
                "value": value,
                "gap": 0.0,
                "seconds": seconds,
                "first": first,
                "goal": None,
            }
        )
        _, ours, _ = measure(lambda model=model: history_tree()(model), 3)
        rows.append(
            {
                "problem": "tiger",
                "H": horizon,
                "who": "history_tree, new planner",
                "value": value,
                "gap": 0.0,
                "seconds": ours,
                "first": ours,
                "goal": None,
            }
        )
    try:
        model = with_horizon(made["tiger"], 3)
        _, seconds, first = measure(lambda: pomdp_py_value_iteration(model), 1)
        rows.append(
            {
                "problem": "tiger",
                "H": 3,
                "who": "pomdp-py ValueIteration",
                "value": None,
                "gap": None,
                "seconds": seconds,
                "first": first,
                "goal": None,
            }
        )
        model = with_horizon(made["tiger"], 5)
        start = time.perf_counter()
        value = pomdp_py_pouct(model, 100)
        rows.append(
            {
                "problem": "tiger",
                "H": 5,
                "who": ("pomdp-py POUCT, 300 simulations, mean of 100 episodes"),
                "value": value,
                "gap": None,
                "seconds": (time.perf_counter() - start) / 100,
                "first": None,
                "goal": None,
            }
        )
    except ImportError:
        print(
            "pomdp-py is not installed (pip install pomdp-py): its rows are left out",
            file=sys.stderr,
        )
    show(rows)
    if options.out:
        about = {
            "python": platform.python_version(),
            "jax": jax.__version__,
            "numpy": np.__version__,
            "repeat": options.repeat,
        }
        options.out.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table("problem", "H", "planner", "value", "gap", "seconds", "first run", "goal")
    for row in rows:
        cells = [row["value"], row["gap"], row["seconds"], row["first"], row["goal"]]
        forms = [".9g", ".1e", ".3g", ".3g", "g"]
        table.add_row(
            row["problem"],
            str(row["H"]),
            row["who"],
            *("" if c is None else format(c, f) for c, f in zip(cells, forms, strict=True)),
        )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()

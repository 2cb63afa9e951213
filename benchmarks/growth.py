"""How the cost of sparse models grows with the number of states, with fitted exponents.

    python benchmarks/growth.py [--states 100 1000 10000 100000] [--repeat 5]

The model is the zoo's delivery on maps of different sizes. Each size runs in a separate process,
since peak memory never falls. Times are CPU seconds: to declare the model and fix its parameters,
per backup (the expected value of the next step for all states and actions, median of repeats), and
per plan (`bounded_search` with the default gap, after a first plan of a small map, which compiles).
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from homdp_ppl.core.moves import expect
from homdp_ppl.models import delivery
from homdp_ppl.planners import bounded_search

ROWS = 10
COLUMNS = ("states", "entries", "declare", "backup", "plan", "MB")
GROWING = ("entries", "declare", "backup", "plan", "MB")


def measured(states: int, repeat: int) -> dict[str, float]:
    """The costs of one size; run it in a process of its own."""
    bounded_search()(delivery.structured().pomdp)
    start = time.process_time()
    columns = max(4, states // (2 * ROWS))
    world = delivery.structured(rows=ROWS, columns=columns, horizon=8)
    declared = time.process_time() - start
    pomdp, backups = world.pomdp, []
    values = np.random.default_rng(0).random(pomdp.sizes[0])
    for _ in range(repeat + 1):
        start = time.process_time()
        expect(pomdp, values, 0)
        backups.append(time.process_time() - start)
    start = time.process_time()
    bounded_search()(pomdp)
    planned = time.process_time() - start
    table = pomdp.transition
    entries = len(table.values) if pomdp.is_sparse else int(np.count_nonzero(table))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    numbers = pomdp.sizes[0], entries, declared, statistics.median(backups[1:]), planned, peak
    return dict(zip(COLUMNS, map(float, numbers), strict=True))


def main() -> None:
    """Measure all sizes, and print a table with fitted exponents."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, nargs="+", default=[100, 1000, 10_000, 100_000])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--one", type=int, help="measure one size and print JSON")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(arguments.one, arguments.repeat)))
        return
    rows = []
    for states in arguments.states:
        command = [sys.executable, __file__, "--one", str(states), "--repeat", "5"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    table = Table(*COLUMNS, title="Delivery, 4 actions, horizon 8; CPU seconds, peak memory")
    for row in rows:
        table.add_row(*(f"{row[name]:.3g}" for name in COLUMNS))
    large = [row for row in rows if row["states"] >= 1000]
    if len(large) > 1:
        sizes = np.log([row["states"] for row in large])
        slopes = [np.polyfit(sizes, np.log([row[name] for row in large]), 1)[0] for name in GROWING]
        table.add_row("exponent", *(f"{slope:.2f}" for slope in slopes))
    Console().print(table)


if __name__ == "__main__":
    main()

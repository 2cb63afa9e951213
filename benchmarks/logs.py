"""Recorded episodes: reading 1,000,000 rows, writing and describing them, posterior, evaluation.

    python benchmarks/logs.py [--rows 1000000] [--missing 0.2] [--sources pandas polars csv]

The log is of tiger with horizon 4 under uniform actions, in random order of rows, with text ids and
names, and with a share of the states missing. Each source is measured in a process of its own:
processor seconds, which are less affected by other processes than wall-clock seconds, and the peak
memory of the process until then. A process that only imports the package and loads tiger is in the
first row.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from homdp_ppl import Episodes, models, offline, posterior, rollout, uniform_policy
from homdp_ppl.formats import read_log
from homdp_ppl.planners import history_tree

HORIZON = 4
SOURCES = ("dict", "pandas", "polars", "pyarrow", "csv", "parquet")
WORLD = models.load("tiger", horizon=HORIZON)


def a_log(rows: int, missing: float) -> Episodes:
    """Episodes with about this many rows."""
    number = max(round(rows / (HORIZON + 1 - missing)), 1)
    keys = jax.random.split(jax.random.key(0), number)
    played = rollout(keys, WORLD, uniform_policy(WORLD))
    known = np.random.default_rng(0).random((number, HORIZON + 1)) >= missing
    ids = np.array([f"patient {k}" for k in range(number)], dtype=object)
    return Episodes(played.observations, played.actions, played.states, revealed=known, ids=ids)


def peak() -> int:
    """The largest memory of this process so far, in bytes."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else 1024 * used


def measure(run: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """The result of a function, its processor seconds, and the peak memory of the process."""
    start = time.process_time()
    found = run()
    return found, {"seconds": time.process_time() - start, "bytes": peak()}


def child(source: str, folder: Path) -> dict[str, Any]:
    """Measure one source; the files exist."""
    if source == "nothing":
        return {"import": measure(lambda: None)[1], "episodes": 0}
    import pandas as pd

    if source in ("csv", "parquet"):
        path = folder / f"log.{source}"
        log, cost = measure(lambda: read_log(path, WORLD))
        return {"read": cost, "episodes": len(log)}
    if source == "polars":
        import polars

        frame: Any = polars.read_parquet(folder / "log.parquet")
    elif source == "pyarrow":
        import pyarrow.parquet

        frame = pyarrow.parquet.read_table(folder / "log.parquet")
    else:
        frame = pd.read_parquet(folder / "log.parquet")
        if source == "dict":
            frame = {name: frame[name].to_numpy() for name in frame.columns}
    log, cost = measure(lambda: Episodes.from_frame(frame, WORLD))
    found: dict[str, Any] = {"read": cost, "episodes": len(log)}
    if source == "pandas":
        found["write"] = measure(lambda: log.to_frame(WORLD))[1]
        found["summary"] = measure(lambda: log.summary(WORLD.homdp))[1]
        full = log[log.revealed.all(1)]
        posterior(WORLD.homdp, full[:10])  # compiles
        found["posterior, complete"] = measure(lambda: posterior(WORLD.homdp, full).mean)[1]
        found["posterior, with gaps"] = measure(lambda: posterior(WORLD.homdp, log).mean)[1]
        policy = history_tree()(WORLD.pomdp).policy
        offline.evaluate(WORLD.homdp, full[:10], policy)  # compiles
        for what, data in (("complete", full), ("with gaps", log)):
            run = partial(offline.evaluate, WORLD.homdp, data, policy)
            found[f"evaluation, {what}"] = measure(run)[1]
    return found


def main() -> None:
    """Write the files, measure all sources, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--missing", type=float, default=0.2)
    parser.add_argument("--sources", nargs="+", choices=SOURCES, default=list(SOURCES))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        source, folder = options.child
        print(json.dumps(child(source, Path(folder))))
        return
    with tempfile.TemporaryDirectory() as folder:
        frame = a_log(options.rows, options.missing).to_frame(WORLD)
        frame = frame.sample(frac=1, random_state=0)
        frame = frame.astype(dict.fromkeys(("observation", "action", "state"), object))
        frame.to_csv(Path(folder) / "log.csv", index=False)
        frame.to_parquet(Path(folder) / "log.parquet", index=False)
        table = Table(title=f"{len(frame):,} rows")
        for column in ("source", "what", "seconds", "MB"):
            table.add_column(column, justify="left" if column in ("source", "what") else "right")
        for source in ("nothing", *options.sources):
            command = [sys.executable, __file__, "--child", source, folder]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            found.pop("episodes")
            for what, cost in found.items():
                megabytes = f"{cost['bytes'] / 1e6:.0f}"
                table.add_row(source, what, f"{cost['seconds']:.2f}", megabytes)
    Console().print(table)


if __name__ == "__main__":
    main()

"""Public problems: `auto` against pomdp-solve and SARSOP, in turns, with the same certified gap.

    HOMDP_PROBLEMS=folder python benchmarks/solvers.py [--repeat 3] [--limit 20] [--only tiger.aaai]

The folder has a folder corpus with the .POMDP files. The programs `pomdp-solve` and `pomdpsol`
(SARSOP) are found on the path. Every round runs all solvers on all problems; the times are medians
in CPU seconds. A plan of `auto` is made in this process after a first one that compiles; the time
of a solver is that of its whole process, reading included. Memory is that of a process that imports
and reads the file, or of a solver that reads it and stops after a second.

A result is certified if its bounds are within 0.001 times the range of one reward. pomdp-solve uses
incremental pruning on the file itself, with discount 1. SARSOP gets a file with the step in the
state, and discount 0.9999999. If observations do not depend on the action, the first one is seen
before the first action; that file has one more step for it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from homdp_ppl import Sparse, read_pomdp
from homdp_ppl.formats import PomdpFile, read_file
from homdp_ppl.planners import auto

FOLDER = Path(os.environ.get("HOMDP_PROBLEMS", ".")).resolve() / "corpus"
GAP, DISCOUNT = 1e-3, 0.9999999
PROBLEMS = [
    ("tiger.aaai", 20),
    ("cheese.95", 20),
    ("mini-hall2", 20),
    ("network", 10),
    ("hanks.95", 20),
    ("stand-tiger.95", 10),
    ("shuttle.95", 20),
    ("parr95.95", 20),
    ("4x4.95", 20),
    ("ejs1", 20),
    ("cheng.D3-1", 10),
    ("cheng.D4-1", 20),
    ("RockSample_4_4", 20),
    ("machine", 20),
    ("saci-s100-a10-z31", 20),
    ("tag-avoid", 10),
    ("tiger-grid", 10),
    ("hallway2", 10),
    ("tiger-grid", 20),
    ("hallway2", 20),
    ("milos-aaai97", 20),
]
# Runs a command and prints its CPU seconds and its peak memory in MB. A process of its own, because
# the peak of a child begins with the memory of its parent.
MEASURE = (
    "import os, subprocess, sys; p = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, "
    "stderr=subprocess.DEVNULL); u = os.wait4(p.pid, 0)[2]; "
    "print(u.ru_utime + u.ru_stime, u.ru_maxrss / 1e3)"
)
READ = "import sys; from homdp_ppl import read_pomdp; read_pomdp(sys.argv[1], horizon=20)"


class Solved(NamedTuple):
    """CPU seconds and bounds on the optimum."""

    seconds: float
    low: float
    high: float

    def certified(self, gap: float) -> bool:
        """Whether the bounds are within the gap."""
        return self.high - self.low <= gap * (1 + 1e-9)


def ours(path: Path, horizon: int, limit: float) -> Solved:
    """`auto` in this process."""
    pomdp, plan = read_pomdp(path, horizon=horizon).pomdp, auto()
    # after so many CPU seconds, Ctrl-C: the planner returns what it has
    signal.signal(signal.SIGPROF, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_PROF, limit)
    start = time.process_time()
    try:
        found = plan(pomdp)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return Solved(time.process_time() - start, found.value, found.upper)


def pomdp_solve(path: Path, horizon: int, limit: float) -> Solved:
    """Incremental pruning on the file, for all beliefs."""
    file = read_file(path)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        options = ["-pomdp", path, "-horizon", horizon, "-discount", 1.0, "-method", "incprune"]
        seconds, _ = timed(["pomdp-solve", *options, "-o", out], limit)
        made = out.with_suffix(".alpha")
        if seconds >= limit or not made.exists():
            return Solved(seconds, -math.inf, math.inf)
        lines = [line.split() for line in made.read_text().splitlines()]
    vectors = np.array([line for line in lines if len(line) == len(file.states) > 1], float)
    joint = file.start[None] if file.null is not None else file.observation[0].T * file.start
    scores = -(joint @ vectors.T).min(1) if file.costs else (joint @ vectors.T).max(1)
    return Solved(seconds, float(scores.sum()), float(scores.sum()))


def sarsop(path: Path, horizon: int, limit: float) -> Solved:
    """SARSOP on a file with the step in the state."""
    file = read_file(path)
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "steps.pomdp"
        given.write_text("\n".join(with_steps(file, horizon)) + "\n")
        options = ["--precision", GAP * float(np.ptp(file.reward)), "--timeout", limit]
        out = Path(folder) / "out.policy"
        seconds, text = timed(["pomdpsol", *options, "--output", out, given], 2 * limit)
    number = r"(-?[\d.]+(?:e[+-]?\d+)?)"
    rows = re.findall(rf"^ \S+ +\d+ +\d+ +{number} +{number} ", text, re.MULTILINE)
    low, high = map(float, rows[-1]) if rows else (-math.inf, math.inf)
    return Solved(seconds, low, high)


def timed(command: Iterable[Any], limit: float) -> tuple[float, str]:
    """CPU seconds of a process, and what it prints."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(  # pomdp-solve writes files to its folder
            list(map(str, command)), stdout=output, stderr=subprocess.DEVNULL, cwd=folder
        )
        most = math.ceil(limit)
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (most, most + 1))
        usage = os.wait4(process.pid, 0)[2]
        output.seek(0)
        return usage.ru_utime + usage.ru_stime, output.read()


def with_steps(file: PomdpFile, horizon: int) -> Iterator[str]:
    """The file with states (step, state) and an end state, as lines of a .POMDP file."""
    X, A, Y = file.reward.shape[0], len(file.actions), len(file.observations)
    extra = int(file.null is None)  # a first step that only shows an observation
    steps = horizon + extra
    end = steps * X
    yield f"discount: {DISCOUNT}\nvalues: reward"
    yield f"states: {end + 1}\nactions: {A}\nobservations: {Y}"
    yield "start: " + " ".join(map(repr, [*map(float, file.start), *[0.0] * (end + 1 - X)]))
    table = file.transition
    table = table.dense()[0] if isinstance(table, Sparse) else table
    for x, a, following in np.argwhere(table):
        p = float(table[x, a, following])
        for h in range(extra, steps - 1):
            yield f"T: {a} : {h * X + x} : {(h + 1) * X + following} {p!r}"
    for x in range(X):
        if extra:
            yield f"T: * : {x} : {X + x} 1"
        yield f"T: * : {(steps - 1) * X + x} : {end} 1"
    yield f"T: * : {end} : {end} 1\nO: * : {end} : 0 1"
    for a, x, y in np.argwhere(file.observation):
        p = float(file.observation[a, x, y])
        for h in range(steps):
            yield f"O: {a} : {h * X + x} : {y} {p!r}"
    sign = -1.0 if file.costs else 1.0
    for x, a in np.argwhere(file.reward):
        for h in range(extra, steps):
            yield f"R: {a} : {h * X + x} : * : * {sign * float(file.reward[x, a])!r}"


def memory(*command: Any) -> float:
    """Peak MB of a process."""
    command = (sys.executable, "-S", "-c", MEASURE, *map(str, command))
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[1])


SOLVERS = {"auto": ours, "pomdp-solve": pomdp_solve, "SARSOP": sarsop}
PROGRAMS = {"pomdp-solve": "pomdp-solve", "SARSOP": "pomdpsol"}


def main() -> None:
    """Measure in turns, print tables, and optionally write JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument(
        "--limit", type=float, default=20.0, help="CPU seconds per plan (default: 20)"
    )
    parser.add_argument("--only", nargs="+", help="names of problems (default: all)")
    parser.add_argument("--memory", action="store_true", help="measure memory instead")
    parser.add_argument("--out", type=Path, help="write the results to this JSON file")
    options = parser.parse_args()
    who = [name for name in SOLVERS if name == "auto" or shutil.which(PROGRAMS[name])]
    chosen = [row for row in PROBLEMS if options.only is None or row[0] in options.only]
    if options.memory:
        show_memory(options.only or sorted(p.stem for p in FOLDER.glob("*.POMDP")), "SARSOP" in who)
        return
    results: dict[tuple[str, int, str], list[Solved]] = {}
    for name, horizon in chosen:
        gap = GAP * float(np.ptp(read_file(FOLDER / f"{name}.POMDP").reward))
        ours(FOLDER / f"{name}.POMDP", horizon, 10 * options.limit)  # compiles
        for _ in range(options.repeat):
            for solver in who:
                found = results.setdefault((name, horizon, solver), [])
                if found and not found[-1].certified(gap):
                    continue  # a solver that reaches the limit runs once
                found.append(SOLVERS[solver](FOLDER / f"{name}.POMDP", horizon, options.limit))
                print(name, horizon, solver, found[-1], file=sys.stderr, flush=True)
    show(chosen, who, results)
    if options.out:
        rows = [[*key, *found] for key, found in results.items()]
        options.out.write_text(json.dumps(rows, indent=1) + "\n")


def show(
    chosen: list[tuple[str, int]], who: list[str], results: dict[tuple[str, int, str], list[Solved]]
) -> None:
    """Print the medians; the ratio is that of ours to the fastest other one."""
    table = Table("problem", "H", *who, "ratio")
    for name, horizon in chosen:
        gap = GAP * float(np.ptp(read_file(FOLDER / f"{name}.POMDP").reward))
        cells, times = [], []
        for solver in who:
            found = results[name, horizon, solver]
            seconds = statistics.median(one.seconds for one in found)
            if all(one.certified(gap) for one in found):
                cells.append(f"{seconds:.3g}")
                times.append(seconds)
            else:
                left = min(one.high - one.low for one in found) / gap * GAP
                known = f"gap {left:.2g}" if math.isfinite(left) else "nothing"
                cells.append(f"{known} after {seconds:.3g}")
                times.append(math.inf)
        others = min(times[1:], default=math.inf)
        comparable = math.isfinite(times[0]) and math.isfinite(others)
        ratio = f"{times[0] / others:.2g}" if comparable else ""
        table.add_row(name, str(horizon), *cells, ratio)
    Console(width=140).print(table)


def show_memory(names: list[str], peer: bool) -> None:
    """Print the peak memory of reading every file, and of SARSOP that reads it."""
    table = Table("file", "read_pomdp, MB", "SARSOP, MB")
    table.add_row("only import", f"{memory(sys.executable, '-c', 'import homdp_ppl'):.0f}", "")
    for path in (FOLDER / f"{name}.POMDP" for name in names):
        cells = [f"{memory(sys.executable, '-c', READ, path):.0f}"]
        if peer:
            with tempfile.TemporaryDirectory() as folder:
                out = Path(folder) / "out.policy"
                cells.append(f"{memory('pomdpsol', '--timeout', 1, '--output', out, path):.0f}")
        table.add_row(path.stem, *cells)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()

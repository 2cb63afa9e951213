"""Run cases in this process, under a limit of memory, one line of JSON per case.

    python -m tests.mistakes --calls 10000 --seed 0 --summary
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
from collections import Counter
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from tests.mistakes.cases import case, recipes, run  # noqa: E402
from tests.mistakes.things import folder, ours  # noqa: E402

MEMORY = 3 * 2**30  # bytes that a case may take beyond what the process has


def limit_memory() -> None:
    """Let allocations beyond the limit fail."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def main() -> None:
    """Run the cases that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.mistakes")
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--only", default="", help="only recipes whose name starts like this")
    parser.add_argument("--summary", action="store_true", help="count, and list the failures")
    given = parser.parse_args()
    output = sys.stdout
    ours(), recipes()
    os.chdir(folder())
    limit_memory()
    kinds: Counter[str] = Counter()
    families: Counter[str] = Counter()
    for number in range(given.first, given.calls):
        drawn = case(given.seed, number)
        if not drawn.recipe.name.startswith(given.only):
            continue
        if not given.summary:
            print(json.dumps({"begins": number, "case": str(drawn)}), file=output, flush=True)
        outcome = run(drawn)
        line = {"number": number, "case": str(drawn), **outcome._asdict()}
        kinds[outcome.kind] += 1
        if not given.summary:
            print(json.dumps(line | {"family": drawn.recipe.family}), file=output, flush=True)
        elif outcome.failed:
            families[f"{outcome.kind} {drawn.recipe.family}"] += 1
            print(f"{number} {outcome.kind}: {drawn} -> {outcome.detail}", file=output, flush=True)
    if given.summary:
        print(json.dumps({"outcomes": kinds, "failures": dict(families.most_common())}, indent=1))


main()

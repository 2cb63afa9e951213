"""Run cases in this process with a memory limit; prints a line of JSON before and after each."""

from __future__ import annotations

import json
import os
import resource
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from tests.mistakes.cases import case, recipes, run
from tests.mistakes.things import folder, ours

MEMORY = 3 * 2**30  # bytes that the process may allocate in addition


def limit_memory() -> None:
    """Make allocations beyond the limit fail."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def main() -> None:
    """Run the cases given on the command line: seed, first, last and a prefix of names."""
    seed, first, last = map(int, sys.argv[1:4])
    prefix, output = sys.argv[4], sys.stdout
    ours(), recipes()
    os.chdir(folder())
    limit_memory()
    for number in range(first, last):
        drawn = case(seed, number)
        if not drawn.recipe.name.startswith(prefix):
            continue
        about = {"number": number, "case": str(drawn), "family": drawn.recipe.family}
        print(json.dumps(about), file=output, flush=True)
        outcome = run(drawn)
        print(json.dumps(about | outcome._asdict()), file=output, flush=True)


if __name__ == "__main__":
    main()

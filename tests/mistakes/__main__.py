"""Count the outcomes of random mistakes: ``python -m tests.mistakes --calls 10000 --seed 0``."""

from __future__ import annotations

import argparse
import json

from tests.mistakes.driver import results, summary

parser = argparse.ArgumentParser(prog="python -m tests.mistakes")
parser.add_argument("--calls", type=int, default=300)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--only", default="", help="only names that start like this")
given = parser.parse_args()
found = []
for result in results(given.calls, given.seed, given.only):
    found.append(result)
    if result.failed:
        print(result, flush=True)
print(json.dumps(summary(found), indent=1))

"""Write golden.json and golden_slow.json anew: ``python -m tests.golden.record``.

This is allowed in three cases only, and the commit says which:

- a case was added: ``--new`` records what is missing and leaves everything else as it is;
- numbers were meant to change (a bug was fixed, an algorithm replaced), and the message of every
  test that failed was read before: ``values agree to 1e-9`` is rounding, ``values differ`` is
  another result;
- versions of libraries in constraints/ changed, and nothing else did in the same commit.

Never to make a refactoring pass. Shapes that change on purpose are changed back in adapt.py
instead. ``--suite`` records one of the two files; each is made in a process of its own, because JAX
reads its settings once. ``--check`` writes nothing and tells whether everything is the same.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from tests import conftest  # noqa: F401  the settings of the default suite


def main() -> int:
    """Record one suite here, or both in processes of their own."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.record", description=__doc__)
    parser.add_argument("--suite", choices=("default", "slow"))
    parser.add_argument("--new", action="store_true", help="record only cases that are missing")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    asked = parser.parse_args()
    from tests.golden import digests

    if asked.suite and os.environ.get(digests.OPTIMISATIONS) == digests.SETTINGS[asked.suite]:
        return _record(asked.suite, asked.new, asked.check)
    codes = []
    for suite in [asked.suite] if asked.suite else digests.SUITES:
        settings = os.environ | {digests.OPTIMISATIONS: digests.SETTINGS[suite]}
        more = [f"--{name}" for name in ("new", "check") if getattr(asked, name)]
        command = [sys.executable, "-m", "tests.golden.record", "--suite", suite, *more]
        codes.append(subprocess.run(command, env=settings, check=False).returncode)
    return max(codes)


def _record(suite: str, only_new: bool, check: bool) -> int:
    from tests.golden import digests

    there = digests.FILES[suite].exists()
    before = digests.read(suite) if there else {}
    before.pop("about", None)
    found, others = {}, 0
    for name, case in digests.SUITES[suite].items():
        if only_new and name in before:
            found[name] = before[name]
            continue
        found[name] = {array: digests.describe(value) for array, value in case().items()}
        if found[name] != before.get(name):
            others += 1
            print(f"{'new' if name not in before else 'changed'}: {name}")
    if not check:
        digests.write(suite, found)
    print(f"{suite}: {len(found)} cases, {others} of them new or changed")
    return int(check and others > 0)


if __name__ == "__main__":
    sys.exit(main())

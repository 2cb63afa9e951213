"""Record golden.json and golden_slow.json again: ``python -m tests.golden.record``.

This is allowed in three cases only, and the commit message must say which:

- a case was added: ``--new`` records missing cases and leaves the others unchanged;
- results changed on purpose (a bug was fixed, an algorithm was replaced), and you have read the
  message of every failing test: ``values agree to 1e-9`` is rounding, ``values differ`` is a
  different result;
- versions of libraries in constraints/ or settings of the compiler changed, and the commit changes
  nothing else; show that all values agree to 1e-9.

Never record again to make a refactoring pass. If shapes change on purpose, convert them back in
adapt.py. ``--suite`` records one of the two files; each is recorded in a separate process, because
JAX reads its settings only once. ``--check`` compares and writes nothing; the exit code is 1 if
something changed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from tests import conftest  # sets the options of the default suite

SETTINGS = {  # as in tests/conftest.py, and as in `make test-slow`
    "default": conftest.SETTINGS,
    "slow": {"JAX_DISABLE_MOST_OPTIMIZATIONS": "0", "XLA_FLAGS": ""},
}


def main() -> int:
    """Record one suite in this process, or each in a separate process."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden.record", description=__doc__)
    parser.add_argument("--suite", choices=("default", "slow"))
    parser.add_argument("--new", action="store_true", help="record only cases that are missing")
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    arguments = parser.parse_args()
    from tests.golden import digests

    if arguments.suite and SETTINGS[arguments.suite].items() <= os.environ.items():
        return _record(arguments.suite, arguments.new, arguments.check)
    codes = []
    for suite in [arguments.suite] if arguments.suite else digests.SUITES:
        settings = os.environ | SETTINGS[suite]
        more = [f"--{name}" for name in ("new", "check") if getattr(arguments, name)]
        command = [sys.executable, "-m", "tests.golden.record", "--suite", suite, *more]
        codes.append(subprocess.run(command, env=settings, check=False).returncode)
    return max(codes)


def _record(suite: str, only_new: bool, check: bool) -> int:
    from tests.golden import digests

    before = digests.read(suite) if digests.FILES[suite].exists() else {}
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

"""Find words that the project's text should not contain; ``make lint`` runs it.

Only wording that is never right is listed. The exit code is 1 if something was found.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# What not to write, and what to write instead.
WORDS = {
    r"told|_told|told_": "say, report, message",
    r"luck": "noise, random numbers, key",
    r"fortunes?": "noise, random numbers",
    r"twins?": "the compiled loop, the other implementation",
    r"why_not": "reason",
    r"stands? (in|beside|next|there|here)": "is in, is listed in, next to",
    r"(one|two|three|seconds|minutes|milliseconds|microseconds|times|episodes|lines?) an? "
    r"(file|run|rule|seed|unit|plan|episode|second|step|line|row|core|model)": "per",
    r"whoever|somebody|nobody": "you, the user, no one",
    r"(of )?one's own|somebody's own": "custom, your own",
    r"anew|thereby|thereof|whence": "again, so",
    r"at its end already": "already complete",
    r"go(es)? on with": "resume, continue",
    r"what is no [a-z]+": "invalid ...",
    r"a mistake in the program": "internal error",
    r"meets? the same": "uses the same",
    r"what was written is whole": "saved results are intact",
    r"guaranteed by nobody": "no guarantee",
}
PATTERN = re.compile("|".join(rf"\b(?:{words})\b" for words in WORDS), re.IGNORECASE)
SPLIT = re.compile(r"(?<=[a-z])(?=[A-Z])|_")  # names in code: look at each word


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a file with their numbers; of a notebook the sources, numbered by cell."""
    if path.suffix == ".ipynb":
        for number, cell in enumerate(json.loads(path.read_text())["cells"]):
            yield from ((number, line) for line in "".join(cell["source"]).splitlines())
    else:
        yield from enumerate(path.read_text().splitlines(), 1)


def find(path: Path) -> Iterator[str]:
    """What is wrong with a file, a line per word."""
    for number, line in texts(path):
        for found in PATTERN.finditer(SPLIT.sub(" ", line)):
            remedy = next(
                remedy
                for words, remedy in WORDS.items()
                if re.fullmatch(words, found.group(), re.IGNORECASE)
            )
            yield f"{path.relative_to(ROOT)}:{number}: {found.group()!r}; write: {remedy}"


def main() -> int:
    """Print what is found."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md", "*.ipynb", "Makefile", "*.toml", "*.cff"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    files = [ROOT / name for name in listed if name != "docs/check_words.py"]
    found = [problem for path in files if path.is_file() for problem in find(path)]
    print(*found, sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

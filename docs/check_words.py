"""Find words that the project's text should not contain; ``make lint`` runs it.

Only wording that is never right is listed. Phrases are also found across line breaks, and words
inside names in code. The exit code is 1 if something was found.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ("*.py", "*.md", "*.ipynb", "*.toml", "*.cff", "Makefile", ".ci/run")

# What not to write, and what to write instead.
WORDS = {
    r"told|tells": "say, report, message",
    r"luck|lucky": "noise, random numbers, key",
    r"fortunes?": "noise, random numbers",
    r"twins?": "the compiled loop, the other implementation",
    r"why not": "reason",
    r"stands? (in|beside|next|there|here)": "is in, is listed in, next to",
    r"(one|two|three|seconds|minutes|milliseconds|microseconds|times|episodes|lines?) an? "
    r"(file|run|rule|seed|unit|plan|episode|second|step|line|row|core|model)": "per",
    r"whoever|somebody|nobody|a person": "you, the user, no one",
    r"one's own": "custom, your own",
    r"anew|thereby|thereof|whence": "again, so",
    r"by (itself|themselves)": "automatically",
    r"(is|are) at (its|their) end|at (its|their) end already": "is complete, already complete",
    r"(go|goes|gone) on": "resume, continue",
    r"from there on": "remaining",
    r"what is no [a-z]+": "invalid ...",
    r"a mistake in the program": "internal error",
    r"meets? the same": "uses the same",
    r"what was written is whole": "saved results are intact",
    r"(what it|it|one|policy|plan) is worth": "its value",
    r"promises?|promised": "optimistic value, guarantee",
    r"as it were|to be had": "nothing, or: available",
}
ALLOWED = {("models/meta_learning.py", "luck")}  # a site, whose name is in recorded results
# Between the words of a phrase: spaces, or a line break with a comment sign.
SPACE = r"[\s#]+"
PATTERNS = {
    re.compile(rf"\b(?:{words.replace(' ', SPACE)})\b", re.IGNORECASE): remedy
    for words, remedy in WORDS.items()
}
SPLIT = re.compile(r"(?<=[a-z])(?=[A-Z])|_")  # names in code: check each word


def texts(path: Path) -> Iterator[tuple[str, str]]:
    """The text of a file with its name; of a notebook the source of each cell."""
    name = path.relative_to(ROOT).as_posix()
    if path.suffix == ".ipynb":
        for number, cell in enumerate(json.loads(path.read_text())["cells"]):
            yield f"{name}:cell {number}", "".join(cell["source"])
    else:
        yield name, path.read_text()


def find(path: Path) -> Iterator[str]:
    """Yield one line for each word of a file that is not right."""
    file = path.relative_to(ROOT).as_posix()
    for name, text in texts(path):
        words = SPLIT.sub(" ", text)
        for pattern, remedy in PATTERNS.items():
            for match in pattern.finditer(words):
                found = " ".join(match.group().split())
                if (file, found.lower()) not in ALLOWED:
                    line = words.count("\n", 0, match.start()) + 1
                    yield f"{name}:{line}: {found!r}; write: {remedy}"


def main() -> int:
    """Print what was found in all files of the repository; returns the exit code."""
    listed = subprocess.run(
        ["git", "ls-files", *FILES], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    files = [ROOT / name for name in listed if name != "docs/check_words.py"]
    found = [problem for path in files if path.is_file() for problem in find(path)]
    for problem in found:
        print(problem)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())

"""Running cases in child processes, so that one that crashes or hangs does not stop the others."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PATIENCE = 1800.0  # seconds without output, for calls that wait and machines that are busy


class Result(NamedTuple):
    """One case and its outcome."""

    number: int
    case: str
    family: str
    kind: str
    detail: str

    @property
    def failed(self) -> bool:
        """Whether the outcome is a failure."""
        return self.kind not in ("refused", "accepted")

    def __str__(self) -> str:
        return f"{self.number} {self.kind}: {self.case} -> {self.detail}"


def results(calls: int, seed: int = 0, prefix: str = "", first: int = 0) -> Iterator[Result]:
    """The outcomes of cases ``first`` to ``calls`` of a seed."""
    while first < calls:
        last = None
        ended = False
        for line in _lines(seed, first, calls, prefix):
            if "ended" in line:
                ended = line["ended"]
            elif "kind" in line:
                yield Result(**line)
                first, last = line["number"] + 1, None
            else:
                last = line
        if last is None:
            if not ended:
                raise RuntimeError("the process died or hung before the first case")
            return
        yield Result(**last, kind="crash", detail="the process died or hung")
        first = last["number"] + 1


def _lines(seed: int, first: int, calls: int, prefix: str) -> Iterator[dict[str, Any]]:
    command = [
        sys.executable,
        "-m",
        "tests.mistakes.child",
        *map(str, (seed, first, calls)),
        prefix,
    ]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    place = tempfile.TemporaryDirectory()  # some mistakes are valid names of files
    child = subprocess.Popen(
        command,
        cwd=place.name,
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout
    said: queue.Queue[str] = queue.Queue()
    reader = threading.Thread(target=_read, args=(child.stdout, said))
    reader.start()
    try:
        while line := said.get(timeout=PATIENCE):
            yield json.loads(line)
        yield {"ended": child.wait() == 0}
    except queue.Empty:
        pass
    finally:
        child.kill()
        child.wait()
        reader.join()
        child.stdout.close()
        place.cleanup()


def _read(stream: Any, said: queue.Queue[str]) -> None:
    for line in stream:
        said.put(line)
    said.put("")


def summary(found: list[Result]) -> dict[str, dict[str, int]]:
    """Outcomes by kind, failures by kind and family, and raw errors by class."""
    failed = [result for result in found if result.failed]
    raw = [result.detail.partition(":")[0] for result in failed if result.kind == "raw"]
    return {
        "outcomes": dict(Counter(result.kind for result in found)),
        "raw errors": dict(Counter(raw).most_common()),
        "failures": dict(Counter(f"{r.kind} {r.family}" for r in failed).most_common()),
    }

"""Studies in separate processes that can be killed, sent signals, and given limits."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Zygote:
    """Forks a process for each study; see zygote.py."""

    def __init__(self, environment):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.study.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **environment},
        )

    def start(self, out, log, **request):
        """Start a study; returns its pid."""
        self._log = Path(log)
        self._process.stdin.write(json.dumps({"out": str(out), "log": str(log), **request}) + "\n")
        self._process.stdin.flush()
        self.pid = int(self._line())
        return self.pid

    def wait(self):
        """The exit code of the study; negative if it was killed by a signal."""
        return int(self._line())

    def _line(self):
        """One line, read byte by byte, because :meth:`lives` does not see buffered bytes."""
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(self._process.stdout.fileno(), 1) or b"\n"
        return line

    def said(self):
        """The standard output and error of the study."""
        return self._log.read_text() if self._log.exists() else ""

    def wait_for(self, text, seconds=120.0):
        """Wait until the study has printed a text; returns whether it has."""
        end = time.monotonic() + seconds
        while text not in self.said() and time.monotonic() < end:
            time.sleep(0.005)
        return text in self.said()

    def lives(self):
        """Whether the study is running."""
        return not select.select([self._process.stdout], [], [], 0)[0]

    def kill(self, number=signal.SIGKILL):
        """Send a signal."""
        os.kill(self.pid, number)

    def close(self):
        """End the process that forks."""
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@contextmanager
def zygote(environment=None):
    """A Zygote, closed at the end."""
    made = Zygote(environment or {})
    try:
        yield made
    finally:
        made.close()

"""Studies in processes of their own that can be killed, signalled and starved."""

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
        """The pid of a study."""
        self._log = Path(log)
        self._process.stdin.write(json.dumps({"out": str(out), "log": str(log), **request}) + "\n")
        self._process.stdin.flush()
        self.pid = int(self._line())
        return self.pid

    def wait(self):
        """Its exit code; negative if a signal ended it."""
        return int(self._line())

    def _line(self):
        """One line, read byte by byte: nothing is buffered that :meth:`lives` would not see."""
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(self._process.stdout.fileno(), 1) or b"\n"
        return line

    def said(self):
        """What it has written to its standard output and error."""
        return self._log.read_text() if self._log.exists() else ""

    def wait_for(self, text, seconds=120.0):
        """Until it says something, or is over."""
        end = time.monotonic() + seconds
        while text not in self.said() and time.monotonic() < end:
            time.sleep(0.005)
        return text in self.said()

    def lives(self):
        """Whether it has not ended yet."""
        return not select.select([self._process.stdout], [], [], 0)[0]

    def kill(self, number=signal.SIGKILL):
        """Send a signal."""
        os.kill(self.pid, number)

    def close(self):
        """The end."""
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@contextmanager
def zygote(environment=None):
    """One, closed afterwards."""
    made = Zygote(environment or {})
    try:
        yield made
    finally:
        made.close()

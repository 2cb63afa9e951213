"""Child processes that run Python code; ``import homdp_ppl`` is lazy and costs them nothing."""

import signal
import subprocess
import sys


def spawn(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Python code in a new process, with pipes to talk to it."""
    command = [sys.executable, "-c", f"import sys\n{code}", *map(str, arguments)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def kill(child: subprocess.Popen[str]) -> str:
    """End a child without notice; what it had said until then and nobody has read."""
    child.send_signal(signal.SIGKILL)
    said = (
        child.stdout.read() if child.stdout else ""
    )  # communicate() would lose lines that readline() has taken in
    child.communicate()
    return said


def finish(child: subprocess.Popen[str], said: str = "") -> str:
    """What a child still says until it ends well."""
    out, errors = child.communicate(said, timeout=60)
    assert child.returncode == 0, errors
    return out

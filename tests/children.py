"""Child processes that run Python code; ``import homdp_ppl`` is lazy, so they start quickly."""

import json
import signal
import subprocess
import sys


def spawn(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Run Python code in a new process, connected by pipes."""
    command = [sys.executable, "-c", f"import sys\n{code}", *map(str, arguments)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def kill(child: subprocess.Popen[str]) -> str:
    """Kill a child with SIGKILL; returns its output that was not read yet."""
    child.send_signal(signal.SIGKILL)
    # communicate() would lose lines that readline() has buffered.
    output = child.stdout.read() if child.stdout else ""
    child.communicate()
    return output


def finish(child: subprocess.Popen[str], text: str = "") -> str:
    """Send text to a child and wait for its successful end; returns its remaining output."""
    out, errors = child.communicate(text, timeout=60)
    assert child.returncode == 0, errors
    return out


ATTACKS = """
import json, os, resource
from homdp_ppl import HOMDPError

def pages(field):  # 0: size of the address space, 1: resident size
    with open("/proc/self/statm") as file:
        return int(file.read().split()[field]) * os.sysconf("SC_PAGE_SIZE")

def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

given = json.load(sys.stdin)
names = {}
exec(given["setup"], names)
limit = pages(0) + given["room"]
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
found = {}
for name, attack in given["attacks"].items():
    before = peak()
    try:
        exec(attack, names)
        outcome = "accepted", []
    except HOMDPError as error:
        outcome = type(error).__name__, [problem.where for problem in error.problems]
    except BaseException as error:
        outcome = f"raw {type(error).__name__}: {error}", []
    found[name] = [*outcome, peak() - before]
print(json.dumps(found))
"""


def attacked(setup: str, attacks: dict[str, str], room: int = 2**30) -> dict[str, list[object]]:
    """Run pieces of code in a child that cannot grow by more than ``room`` bytes.

    For each piece, returns the class of its error, the places of its problems, and the growth of
    peak memory in bytes.
    """
    child = spawn(ATTACKS)
    request = json.dumps({"setup": setup, "attacks": attacks, "room": room})
    out, errors = child.communicate(request, timeout=300)
    assert child.returncode == 0, errors
    found: dict[str, list[object]] = json.loads(out.splitlines()[-1])
    return found

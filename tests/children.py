"""Child processes that run Python code; ``import homdp_ppl`` is lazy and costs them nothing."""

import json
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


ATTACKS = """
import json, os, resource
from homdp_ppl import HOMDPError

def pages(field):  # of the address space, then of what is resident
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
    """Run pieces of code in a child that may not grow by more than ``room`` bytes.

    For each: the class of its error, where its problems are, and by how many bytes its peak grew.
    """
    child = spawn(ATTACKS)
    said = json.dumps({"setup": setup, "attacks": attacks, "room": room})
    out, errors = child.communicate(said, timeout=300)
    assert child.returncode == 0, errors
    found: dict[str, list[object]] = json.loads(out.splitlines()[-1])
    return found

"""A process that has imported the package and forks a child for each study.

This saves the seconds that imports take. Studies themselves spawn their workers and never fork.
Forking is safe here because the parent has not used JAX.
"""

import json
import os
import resource
import signal
import sys
import traceback
from typing import Any

from homdp_ppl import study
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.study import units


def run(request: dict[str, Any]) -> int:
    """Run one study in a child; its progress is printed to standard output."""

    def report(unit: Any, rounds: int) -> None:
        print(f"{unit.rule} {rounds}", flush=True)

    units.LONG = request.get("stretch", 0.05)
    if "largest_file" in request:  # as if the disk were full, for files of this size
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest_file"],) * 2)
    options: dict[str, Any] = {
        "workers": request.get("workers", 1),
        "report": report,
        "time_limit": request.get("time_limit"),
    }
    if request.get("resume"):
        done = study.resume(request["out"], **options)
    else:
        done = study.compare(**request["study"], out=request["out"], **options)
    print(f"end {done.stopped or 'complete'}", flush=True)
    return 3 if done.stopped else 0


def main() -> None:
    """Read one request per line; print the pid of the child and, at its end, its exit code."""
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(log, 1)
            os.dup2(log, 2)
            try:
                code = run(request)
            except BaseException as error:
                traceback.print_exc()
                sys.stderr.flush()
                code = 4 if isinstance(error, StorageError) else 1
            os._exit(code)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()

"""A process that has imported everything and computed nothing, and forks a child for each study.

Importing takes seconds.

Studies themselves spawn their workers and never fork; here it is safe because JAX has not begun to
work in the parent.
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
    """One study, in a child; every stretch that is written is said on standard output."""

    def told(unit: Any, rounds: int) -> None:
        print(f"{unit.rule} {rounds}", flush=True)

    units.LONG = request.get("stretch", 0.05)
    if "largest_file" in request:  # the disk is full, for files of this size
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["largest_file"],) * 2)
    options: dict[str, Any] = {
        "workers": request.get("workers", 1),
        "report": told,
        "time_limit": request.get("time_limit"),
    }
    if request.get("resume"):
        done = study.resume(request["out"], **options)
    else:
        done = study.compare(**request["study"], out=request["out"], **options)
    print(f"end {done.stopped or 'complete'}", flush=True)
    return 3 if done.stopped else 0


def main() -> None:
    """Read requests, one a line.

    Answer each with the pid of a child and, when it has ended, with its status.
    """
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

"""The ``homdp`` command: parse the command line, run the command, report errors on one line.

JAX and other slow imports are loaded by the command that runs, so that ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from homdp_ppl.cli.options import split_calls
from homdp_ppl.cli.parser import make_parser
from homdp_ppl.errors import HOMDPError, in_one_line
from homdp_ppl.storage._system import printable
from homdp_ppl.storage.atomic import StorageError

if TYPE_CHECKING:
    from rich.console import Console

# exit codes, in addition to those in study_commands
INTERNAL, INVALID, STORAGE, INTERRUPTED = 1, 2, 4, 130
TRACEBACK = "(use --debug to see the traceback)"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = make_parser()
    words = sys.argv[1:] if arguments is None else list(arguments)
    if any("\0" in word for word in words):
        parser.error("arguments must not contain a null byte")
    options = parser.parse_args(words)
    try:
        from homdp_ppl.cli.console import make_console

        code = run_command(options, make_console())
        sys.stdout.flush()
        return code
    except HOMDPError as error:
        return _explain(
            options, in_one_line(error), STORAGE if isinstance(error, StorageError) else INVALID
        )
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as interrupt:
        return _explain(options, " ".join(["Interrupted.", *interrupt.args]), INTERRUPTED)
    except OSError as error:
        return _explain(options, " ".join(str(error).split()), STORAGE)
    except Exception as error:
        return _explain_exception(options, words, error)


def run_command(options: argparse.Namespace, console: Console) -> int:
    """Load the module of the command and call its function; returns the exit code."""
    module, _, function = options.run.partition(":")
    command = getattr(import_module(f"homdp_ppl.cli.{module}"), function)
    return command(options, console) or 0


def _explain_exception(options: argparse.Namespace, words: Sequence[str], error: Exception) -> int:
    """Report an error in a user file with its line, any other as an internal error."""
    from homdp_ppl.study.files import user_line

    message = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    line = user_line(error, split_calls(words))
    if line:
        return _explain(options, f"{line}: {message} {TRACEBACK}", INVALID)
    return _explain(options, f"internal error: {message} {TRACEBACK}", INTERNAL)


def _explain(options: argparse.Namespace, text: str, code: int) -> int:
    """Print one line and, with --debug, the traceback."""
    if options.debug:
        traceback.print_exc()
    print(f"homdp: {printable(text)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

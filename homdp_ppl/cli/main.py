"""The homdp command: parses the command line, runs the command, reports errors on one line.

JAX and everything else that takes time to load is loaded by the command that runs, so that
``--help`` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

from homdp_ppl.cli.parser import make_parser, split_calls
from homdp_ppl.errors import HOMDPError, in_one_line
from homdp_ppl.storage._system import printable
from homdp_ppl.storage.atomic import StorageError

# exit codes, besides those of study_commands
INTERNAL, INVALID, STORAGE, INTERRUPTED = 1, 2, 4, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = make_parser()
    words = sys.argv[1:] if arguments is None else list(arguments)
    if any("\0" in word for word in words):
        parser.error("names and files cannot contain a zero byte")
    options = parser.parse_args(words)
    try:
        code = _run(options)
        sys.stdout.flush()
        return code
    except HOMDPError as error:
        return _explain(
            options, in_one_line(error), STORAGE if isinstance(error, StorageError) else INVALID
        )
    except BrokenPipeError:  # the reader of a pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _explain(options, "interrupted; saved results are intact", INTERRUPTED)
    except OSError as error:
        return _explain(options, " ".join(str(error).split()), STORAGE)
    except Exception as error:
        return _explain_exception(options, words, error)


def _run(options: argparse.Namespace) -> int:
    """Load the module of the command and call its function."""
    from homdp_ppl.cli.console import make_console

    module, _, function = options.run.partition(":")
    command = getattr(import_module(f"homdp_ppl.cli.{module}"), function)
    return command(options, make_console()) or 0


def _explain_exception(options: argparse.Namespace, words: Sequence[str], error: Exception) -> int:
    """An error in a file of the user, or else an internal error."""
    from homdp_ppl.study.files import own_line

    message = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    line = own_line(error, split_calls(words))
    if line:
        text = f"{line}: got {message}; expected no error (--debug shows more)"
        return _explain(options, text, INVALID)
    return _explain(options, f"internal error: {message} (--debug shows where)", INTERNAL)


def _explain(options: argparse.Namespace, text: str, code: int) -> int:
    """Print one line; with --debug also the traceback."""
    if options.debug:
        traceback.print_exc()
    print(f"homdp: {printable(text)}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())

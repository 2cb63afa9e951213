"""The homdp command."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from homdp_ppl import __version__, planners
from homdp_ppl.cli import commands, study_commands
from homdp_ppl.cli.study_commands import split_calls
from homdp_ppl.errors import HOMDPError, in_one_line
from homdp_ppl.explorers import EXPLORERS
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.study.files import own_line
from homdp_ppl.study.sources import CLASSES, FILE_HORIZON
from homdp_ppl.study.specification import Study

PAGE = 120  # columns where there is no terminal
BUG, WRONG, STORAGE, INTERRUPTED = 1, 2, 4, 130  # exit codes, beside those of study_commands

CODES = (
    "Exit codes: 0 done; 2 something in the input is wrong; 3 a study was stopped (Ctrl-C, "
    "SIGTERM, time limit), to be resumed; "
    "4 trouble with files; 5 parts of a study could not be done; 130 Ctrl-C a second time, "
    "or while nothing was learned; "
    "1 a mistake in the program itself."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = _parser()
    words = sys.argv[1:] if arguments is None else list(arguments)
    if any("\0" in word for word in words):
        parser.error("a zero byte is part of no name and of no file")
    options = parser.parse_args(words)
    try:
        code = options.run(options, _console())
        sys.stdout.flush()
        return code or 0
    except HOMDPError as error:
        return _explain(
            options, in_one_line(error), STORAGE if isinstance(error, StorageError) else WRONG
        )
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _explain(options, "interrupted; what was written is whole", INTERRUPTED)
    except OSError as error:
        return _explain(options, " ".join(str(error).split()), STORAGE)
    except Exception as error:
        told = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        own = own_line(error, split_calls(words))
        if own:
            return _explain(
                options, f"{own}: got {told}; expected no error (--debug shows more)", WRONG
            )
        return _explain(options, f"a mistake in the program: {told} (--debug shows where)", BUG)


def _explain(options: argparse.Namespace, text: str, code: int) -> int:
    """One line; with --debug where it came from."""
    if options.debug:
        traceback.print_exc()
    print(f"homdp: {text}", file=sys.stderr)
    return code


def _console() -> Console:
    """Tables keep all their columns in a pipe or a file, where there is no width to fit into.

    `mine.py:fire:` is no emoji.
    """
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PAGE
    return _Console(width=width, emoji=False)


class _Console(Console):
    """One that tells ``main`` when the reader of a pipe has seen enough, where rich would end the
    process as if it had failed.
    """

    def on_broken_pipe(self) -> None:
        """Not an error."""
        raise BrokenPipeError


class _Command(argparse.ArgumentParser):
    """One command, which knows --debug as the whole does."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.add_argument(
            "--debug",
            action="store_true",
            default=argparse.SUPPRESS,
            help="show where an error came from",
        )


def _positive(text: str) -> int:
    if not (text.isdecimal() and text.isascii()) or len(text) > 9 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a positive whole number below 10^9")
    return int(text)


def _seed(text: str) -> int:
    if not (text.isdecimal() and text.isascii()) or len(text) > 10 or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number from 0 to 2^32 - 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a positive number of seconds")
    return value


def _parser() -> argparse.ArgumentParser:
    text = "Decision problems whose hidden states are revealed in hindsight."
    parser = argparse.ArgumentParser(prog="homdp", description=text, epilog=CODES)
    parser.add_argument("--version", action="version", version=f"homdp_ppl {__version__}")
    parser.add_argument("--debug", action="store_true", help="show where an error came from")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Command)
    model_help = (
        "a name of the zoo (see `homdp models`), with options as in screening:hierarchy=False, "
        f"a .POMDP file (horizon {FILE_HORIZON}), or path/to/file.py:name"
    )
    horizon_help = "another horizon than the model's own"
    known = ", ".join(planners.PLANNERS)
    planner_help = (
        f"one of {known}, with options as in bounded_search:gap=0.01, or "
        f"path/to/file.py:name (default auto)"
    )
    rules = ", ".join(rule for rule in EXPLORERS if rule not in CLASSES)
    rule_help = f"of {rules}, with options as in hop_b:scale=0.1, or path/to/file.py:name"

    listed = subparsers.add_parser("models", help="list the zoo, or show one model or several")
    listed.add_argument("models", metavar="MODEL", nargs="*", help=model_help)
    listed.set_defaults(run=commands.show_models)

    play = subparsers.add_parser(
        "play", help="play a model with the uniform policy and reveal its latent states"
    )
    play.add_argument("model", metavar="MODEL", help=model_help)
    play.add_argument("--episodes", type=_positive, default=1, help="how many episodes (default 1)")
    play.add_argument("--horizon", type=_positive, help=horizon_help)
    play.add_argument(
        "--seed", type=_seed, default=0, help="the same seed plays the same episodes (default 0)"
    )
    play.set_defaults(run=commands.play)

    plan = subparsers.add_parser("plan", help="plan a model: value, bounds, first decisions")
    plan.add_argument("model", metavar="MODEL", help=model_help)
    plan.add_argument("--planner", default="auto", help=planner_help)
    plan.add_argument("--horizon", type=_positive, help=horizon_help)
    plan.add_argument("--draw", metavar="FILE.png", help="draw the first decisions as a tree")
    plan.add_argument("--save", metavar="FILE.npz", help="save the policy")
    plan.add_argument(
        "--seed",
        type=_seed,
        default=0,
        help="draws the parameters of a model from a file without a truth",
    )
    plan.set_defaults(run=commands.plan)

    once = subparsers.add_parser("learn", help="let one rule learn in a model, once")
    once.add_argument("model", metavar="MODEL", help=model_help)
    once.add_argument(
        "--explorer", default="quantile_backup", help=f"one {rule_help} (default quantile_backup)"
    )
    once.add_argument(
        "--episodes", type=_positive, default=500, help="how many episodes (default 500)"
    )
    once.add_argument(
        "--seed", type=_seed, default=0, help="the same seed is the same run (default 0)"
    )
    once.add_argument("--planner", default="auto", help=planner_help)
    once.add_argument("--horizon", type=_positive, help=horizon_help)
    once.add_argument("--save", metavar="FILE.npz", help="save the last policy")
    once.add_argument("--out", metavar="FILE.nc", help="write all rounds and episodes as netCDF")
    once.set_defaults(run=commands.learn_once)

    compared = subparsers.add_parser(
        "compare", help="let several rules learn in several models, and compare their regret"
    )
    compared.add_argument(
        "models",
        metavar="MODEL",
        nargs="+",
        help=f"{model_help}; or one study.toml that holds it all",
    )
    compared.add_argument(
        "--explorers",
        metavar="A,B",
        nargs="+",
        help=f"some {rule_help} (default {','.join(Study.explorers)})",
    )
    compared.add_argument("--episodes", type=_positive, help="episodes of each run (default 500)")
    compared.add_argument("--seeds", type=_positive, help="runs of each rule (default 10)")
    compared.add_argument("--planner", help=planner_help)
    compared.add_argument("--horizon", type=_positive, help="another horizon than the models' own")
    priors_help = (
        "what Bayesian rules believe at first: some of declared, flat, sparse (default all three)"
    )
    compared.add_argument("--priors", metavar="A,B", nargs="+", help=priors_help)
    compared.add_argument(
        "--epsilon", type=float, help="the distance that counts as near the optimum (default 0.1)"
    )
    compared.add_argument(
        "--block", type=_positive, help="seeds of one piece of work (default all)"
    )
    compared.add_argument(
        "--out", metavar="DIR", help="where results go (default studies/..., one for each study)"
    )
    _workers(compared)
    compared.set_defaults(run=study_commands.compare)

    resumed = subparsers.add_parser("resume", help="go on with a study that was stopped")
    resumed.add_argument("directory", metavar="DIR", help="the directory of the study")
    _workers(resumed)
    resumed.set_defaults(run=study_commands.resume)

    told = subparsers.add_parser("report", help="make the tables and the page of a study again")
    told.add_argument("directory", metavar="DIR", help="the directory of the study")
    told.set_defaults(run=study_commands.report)

    bounds = subparsers.add_parser(
        "theory", help="the paper's bounds for a model's sizes, beside the trivial ones"
    )
    bounds.add_argument("model", metavar="MODEL", help=model_help)
    bounds.add_argument(
        "--episodes", type=_positive, default=1000, help="how many episodes (default 1000)"
    )
    bounds.add_argument(
        "--delta",
        type=float,
        default=0.1,
        help="how likely the bounds may fail, up to a factor (default 0.1)",
    )
    bounds.add_argument(
        "--accuracy",
        type=float,
        help="the gap to ask sample sizes for (default a tenth of the horizon)",
    )
    bounds.add_argument("--horizon", type=_positive, help=horizon_help)
    bounds.set_defaults(run=commands.show_theory)
    return parser


def _workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers", type=_positive, help="processes on this machine (default one for each core)"
    )
    parser.add_argument(
        "--scheduler", metavar="tcp://HOST:PORT", help="a Dask scheduler whose workers do the work"
    )
    parser.add_argument(
        "--time-limit", type=_seconds, metavar="SECONDS", help="stop then, to resume another time"
    )

"""The options of the homdp command.

This module loads neither JAX nor the packages it describes: names of rules and planners are read
from the names of their files, and each command is named as ``module:function``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from homdp_ppl import __version__
from homdp_ppl.study import defaults

CODES = (
    "Exit codes: 0 success; 1 internal error; 2 invalid input; 3 a study was stopped (Ctrl-C, "
    "SIGTERM, time limit) and can be resumed; 4 problems with files; 5 parts of a study failed; "
    "130 a second Ctrl-C, or Ctrl-C while nothing was being learned."
)
MODEL = (
    "a name of the zoo (see `homdp models`), with options as in screening:hierarchy=False, "
    f"a .POMDP file (horizon {defaults.FILE_HORIZON}), or path/to/file.py:name"
)
HORIZON = "another horizon than the model's own"


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command; ``options.run`` names the function to call."""
    text = "Decision problems whose hidden states are revealed in hindsight."
    parser = argparse.ArgumentParser(prog="homdp", description=text, epilog=CODES)
    parser.add_argument("--version", action="version", version=f"homdp_ppl {__version__}")
    parser.add_argument("--debug", action="store_true", help="show where an error came from")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Command)
    for add in (_models, _play, _plan, _learn, _compare, _resume, _report, _theory):
        add(commands)
    return parser


def factories(package: str) -> list[str]:
    """The rules or planners of a package, without importing it.

    Each is a file that defines a function of the same name.

    Parameters
    ----------
    package
        "explorers" or "planners".

    Examples
    --------
    >>> factories("planners")[:3]
    ['alpha_vectors', 'auto', 'bounded_search']
    """
    files = (Path(__file__).parents[1] / package).glob("[a-z]*.py")
    return sorted(
        file.stem for file in files if f"\ndef {file.stem}(" in file.read_text(encoding="utf-8")
    )


def split_calls(texts: Sequence[str]) -> list[str]:
    """Names with options, from a list in which commas separate both names and options.

    Examples
    --------
    >>> split_calls(["greedy,hop_b:scale=0.1,delta=0.05", "tight"])
    ['greedy', 'hop_b:scale=0.1,delta=0.05', 'tight']
    """
    calls: list[str] = []
    for text in texts:
        begun = False
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            if begun and "=" in part and ":" not in part.split("=")[0]:
                calls[-1] += f",{part}"
            else:
                calls.append(part)
            begun = True
    return calls


class _Command(argparse.ArgumentParser):
    """One command, which accepts --debug as the whole does."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.add_argument(
            "--debug",
            action="store_true",
            default=argparse.SUPPRESS,
            help="show where an error came from",
        )


def _models(commands: Any) -> None:
    parser = commands.add_parser("models", help="list the zoo, or show one model or several")
    parser.add_argument("models", metavar="MODEL", nargs="*", help=MODEL)
    parser.set_defaults(run="commands:show_models")


def _play(commands: Any) -> None:
    parser = commands.add_parser(
        "play", help="play a model with the uniform policy and reveal its latent states"
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument(
        "--episodes", type=_positive, default=1, help="number of episodes (default 1)"
    )
    parser.add_argument("--horizon", type=_positive, help=HORIZON)
    parser.add_argument(
        "--seed", type=_seed, default=0, help="the same seed plays the same episodes (default 0)"
    )
    parser.set_defaults(run="commands:play")


def _plan(commands: Any) -> None:
    parser = commands.add_parser("plan", help="plan a model: value, bounds, first decisions")
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument("--planner", default="auto", help=_planner_help())
    parser.add_argument("--horizon", type=_positive, help=HORIZON)
    parser.add_argument("--draw", metavar="FILE.png", help="draw the first decisions as a tree")
    parser.add_argument("--save", metavar="FILE.npz", help="save the policy")
    parser.add_argument(
        "--seed",
        type=_seed,
        default=0,
        help="draws the parameters of a model from a file without a truth",
    )
    parser.set_defaults(run="commands:plan")


def _learn(commands: Any) -> None:
    parser = commands.add_parser("learn", help="let one rule learn in a model, once")
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument(
        "--explorer",
        default="quantile_backup",
        help=f"one {_rule_help()} (default quantile_backup)",
    )
    parser.add_argument(
        "--episodes", type=_positive, default=500, help="number of episodes (default 500)"
    )
    parser.add_argument(
        "--seed", type=_seed, default=0, help="the same seed gives the same run (default 0)"
    )
    parser.add_argument("--planner", default="auto", help=_planner_help())
    parser.add_argument("--horizon", type=_positive, help=HORIZON)
    parser.add_argument("--save", metavar="FILE.npz", help="save the last policy")
    parser.add_argument("--out", metavar="FILE.nc", help="write all rounds and episodes as netCDF")
    parser.set_defaults(run="commands:learn_once")


def _compare(commands: Any) -> None:
    parser = commands.add_parser(
        "compare", help="let several rules learn in several models, and compare their regret"
    )
    parser.add_argument(
        "models", metavar="MODEL", nargs="+", help=f"{MODEL}; or one study.toml that holds it all"
    )
    parser.add_argument(
        "--explorers",
        metavar="A,B",
        nargs="+",
        help=f"some {_rule_help()} (default {','.join(defaults.EXPLORERS)})",
    )
    parser.add_argument(
        "--episodes", type=_positive, help=f"episodes of each run (default {defaults.EPISODES})"
    )
    parser.add_argument(
        "--seeds", type=_positive, help=f"runs of each rule (default {defaults.SEEDS})"
    )
    parser.add_argument("--planner", help=_planner_help())
    parser.add_argument("--horizon", type=_positive, help="another horizon than the models' own")
    parser.add_argument(
        "--priors",
        metavar="A,B",
        nargs="+",
        help=(
            f"what Bayesian rules believe at first: some of {', '.join(defaults.PRIORS)} "
            "(default all of them)"
        ),
    )
    parser.add_argument(
        "--epsilon",
        type=float,
        help=f"the distance that counts as near the optimum (default {defaults.EPSILON:g})",
    )
    parser.add_argument("--block", type=_positive, help="seeds per unit of work (default all)")
    parser.add_argument(
        "--out", metavar="DIR", help="where results go (default studies/..., one for each study)"
    )
    _workers(parser)
    parser.set_defaults(run="study_commands:compare")


def _resume(commands: Any) -> None:
    parser = commands.add_parser("resume", help="resume a study that was stopped")
    parser.add_argument("directory", metavar="DIR", help="the directory of the study")
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="user files that the study names and that may be imported",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import the user files that the study names, at or below the working directory",
    )
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="remove the locks of processes on other hosts, which have ended",
    )
    _workers(parser)
    parser.set_defaults(run="study_commands:resume")


def _report(commands: Any) -> None:
    parser = commands.add_parser("report", help="make the tables and the page of a study again")
    parser.add_argument("directory", metavar="DIR", help="the directory of the study")
    parser.set_defaults(run="study_commands:report")


def _theory(commands: Any) -> None:
    parser = commands.add_parser(
        "theory", help="the paper's bounds for a model's sizes, next to the trivial ones"
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument(
        "--episodes", type=_positive, default=1000, help="number of episodes (default 1000)"
    )
    parser.add_argument(
        "--delta",
        type=float,
        default=0.1,
        help="how likely the bounds may fail, up to a factor (default 0.1)",
    )
    parser.add_argument(
        "--accuracy",
        type=float,
        help="the gap to ask sample sizes for (default a tenth of the horizon)",
    )
    parser.add_argument("--horizon", type=_positive, help=HORIZON)
    parser.set_defaults(run="commands:show_theory")


def _planner_help() -> str:
    return (
        f"one of {', '.join(factories('planners'))}, with options as in bounded_search:gap=0.01, "
        "or path/to/file.py:name (default auto)"
    )


def _rule_help() -> str:
    rules = [rule for rule in factories("explorers") if rule not in defaults.CLASSES]
    return f"of {', '.join(rules)}, with options as in hop_b:scale=0.1, or path/to/file.py:name"


def _workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers", type=_positive, help="processes on this machine (default one per core)"
    )
    parser.add_argument(
        "--scheduler", metavar="tcp://HOST:PORT", help="a Dask scheduler whose workers do the work"
    )
    parser.add_argument(
        "--time-limit", type=_seconds, metavar="SECONDS", help="stop then, to resume another time"
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

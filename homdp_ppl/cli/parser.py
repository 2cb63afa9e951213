"""The parser of the ``homdp`` command line.

Like options.py, it imports neither JAX nor the packages it describes. Commands are given as
``module:function``.
"""

from __future__ import annotations

import argparse
from typing import Any

from homdp_ppl import __version__
from homdp_ppl.cli.agent_parser import add_agent
from homdp_ppl.cli.log_parser import add_choose, add_evaluate
from homdp_ppl.cli.options import (
    DEBUG,
    HORIZON,
    MODEL,
    Command,
    add_command,
    at_least_zero,
    planner_help,
    positive,
    rule_help,
    seconds,
    seed,
    shares,
)
from homdp_ppl.study import defaults

DESCRIPTION = """\
Plan, learn and compare exploration rules in Hindsight Observable MDPs (HOMDPs):
episodic decision problems whose latent states are revealed after each episode."""
CODES = """\
examples:
  homdp demo                          take a tour in about a minute
  homdp models                        list the model zoo
  homdp plan tiger                    compute a plan for one model
  homdp learn tiger --episodes 200    run one exploration rule
  homdp compare tiger lock            compare exploration rules in two models
  homdp agent new clinic tiger        create an agent that learns in a live system

`homdp COMMAND --help` describes the options of a command.

exit codes:
  0    success
  1    internal error
  2    invalid input
  3    a study was stopped (Ctrl-C, SIGTERM or time limit); it can be resumed
  4    a file or directory cannot be read or written
  5    parts of a study failed
  130  interrupted by a second Ctrl-C, or by Ctrl-C while no study was running
"""


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line; ``options.run`` names the function to call."""
    parser = argparse.ArgumentParser(
        prog="homdp",
        description=DESCRIPTION,
        epilog=CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"homdp_ppl {__version__}"
    parser.add_argument(
        "--version", action="version", version=version, help="show the version and exit"
    )
    parser.add_argument("--debug", action="store_true", help=DEBUG)
    commands = parser.add_subparsers(
        required=True, title="commands", metavar="COMMAND", parser_class=Command
    )
    studies = (_learn, _compare, _resume, _report, _theory)
    for add in (_demo, _models, _play, _plan, *studies, add_evaluate, add_choose, add_agent):
        add(commands)
    return parser


def _demo(commands: Any) -> None:
    more = "Compares rules, stops with a certificate, kills an agent in the middle of an episode."
    parser = add_command(commands, "demo", "take a tour in about a minute", more)
    parser.add_argument(
        "--out", metavar="DIR", default="demo", help="directory for the results (default demo)"
    )
    parser.set_defaults(run="demo_commands:demo")


def _models(commands: Any) -> None:
    parser = add_command(
        commands, "models", "list the model zoo, describe a model, or compare several"
    )
    parser.add_argument("models", metavar="MODEL", nargs="*", help=MODEL)
    parser.set_defaults(run="commands:show_models")


def _play(commands: Any) -> None:
    more = "The latent states are revealed after each episode."
    parser = add_command(
        commands, "play", "simulate episodes of the uniform policy in a model", more
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument(
        "--episodes", type=positive, metavar="N", default=1, help="number of episodes (default 1)"
    )
    parser.add_argument("--horizon", type=positive, metavar="N", help=HORIZON)
    parser.add_argument(
        "--seed", type=seed, metavar="N", default=0, help="random seed of the episodes (default 0)"
    )
    parser.set_defaults(run="commands:play")


def _plan(commands: Any) -> None:
    more = "Prints the value of the plan, an upper bound on the optimum, and the first decisions."
    parser = add_command(commands, "plan", "compute a plan for a model", more)
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument("--planner", default="auto", help=planner_help())
    parser.add_argument("--horizon", type=positive, metavar="N", help=HORIZON)
    parser.add_argument(
        "--draw", metavar="FILE.png", help="draw the first decisions as a tree, to this file"
    )
    parser.add_argument("--save", metavar="FILE.npz", help="save the policy to this file")
    parser.add_argument(
        "--seed",
        type=seed,
        metavar="N",
        default=0,
        help="random seed, used if a user file does not fix the model's parameters (default 0)",
    )
    parser.set_defaults(run="commands:plan")


def _learn(commands: Any) -> None:
    parser = add_command(commands, "learn", "run one exploration rule in a model, with one seed")
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument(
        "--explorer",
        default="quantile_backup",
        help=f"exploration rule: one {rule_help()} (default quantile_backup)",
    )
    parser.add_argument(
        "--episodes",
        type=positive,
        metavar="N",
        default=500,
        help="number of episodes (default 500)",
    )
    parser.add_argument(
        "--seed", type=seed, metavar="N", default=0, help="random seed of the run (default 0)"
    )
    parser.add_argument("--planner", default="auto", help=planner_help())
    parser.add_argument("--horizon", type=positive, metavar="N", help=HORIZON)
    parser.add_argument(
        "--stop-when",
        type=at_least_zero,
        metavar="GAP",
        help="stop when the policy is certified to be at most this much worse than the optimum; "
        "0 shows the certificate without stopping",
    )
    parser.add_argument(
        "--save", metavar="FILE.npz", help="save the policy of the last round to this file"
    )
    parser.add_argument(
        "--out", metavar="FILE.nc", help="save all rounds and episodes to this netCDF file"
    )
    parser.set_defaults(run="commands:learn_once")


def _compare(commands: Any) -> None:
    more = (
        "The results are saved in a directory as the study progresses. To resume a study that was "
        "stopped, use `homdp resume` or repeat the command."
    )
    parser = add_command(
        commands, "compare", "compare exploration rules in one or more models", more
    )
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="+",
        help=f"{MODEL}; or one study file (.toml) that defines the whole study",
    )
    parser.add_argument(
        "--explorers",
        metavar="A,B",
        nargs="+",
        help=f"exploration rules: any {rule_help()} (default {','.join(defaults.EXPLORERS)})",
    )
    parser.add_argument(
        "--reveal",
        type=shares,
        metavar="P,Q",
        help="run every rule once for each of these shares of the states that are revealed after "
        "an episode, as in 0,0.05,0.2,1 (default 1: all of them); add foresight (a collector that "
        "sees the state) or observation (one more observation of each state) as references",
    )
    parser.add_argument(
        "--episodes",
        type=positive,
        metavar="N",
        help=f"episodes per run (default {defaults.EPISODES})",
    )
    parser.add_argument(
        "--seeds",
        type=positive,
        metavar="N",
        help=f"runs per rule, one per seed (default {defaults.SEEDS})",
    )
    parser.add_argument("--planner", help=planner_help())
    parser.add_argument(
        "--horizon",
        type=positive,
        metavar="N",
        help="horizon of all models (default: that of each model)",
    )
    parser.add_argument(
        "--priors",
        metavar="A,B",
        nargs="+",
        help=(
            f"priors of Bayesian rules: any of {', '.join(defaults.PRIORS)} (default all of them; "
            "declared is required)"
        ),
    )
    parser.add_argument(
        "--epsilon",
        type=float,
        help=(
            "threshold of the average gap: the tables list the number of episodes until the gap "
            f"stays below it (default {defaults.EPSILON:g})"
        ),
    )
    parser.add_argument(
        "--block", type=positive, metavar="N", help="seeds per unit of work (default all)"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="directory for the results (default: a directory in studies/, named after the study)",
    )
    _workers(parser)
    parser.set_defaults(run="study_commands:compare")


def _resume(commands: Any) -> None:
    more = "User files are imported only if you list them or use --trust."
    parser = add_command(commands, "resume", "resume a study that was stopped", more)
    parser.add_argument("directory", metavar="DIR", help="directory of the study")
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help="user files of the study that may be imported"
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import all user files of the study that are in or below the working directory",
    )
    parser.add_argument(
        "--take-over",
        action="store_true",
        help="remove locks of processes on other hosts; only if these processes have ended",
    )
    _workers(parser)
    parser.set_defaults(run="study_commands:resume")


def _report(commands: Any) -> None:
    more = "Prints the tables and writes results.nc and report.html from the saved runs."
    parser = add_command(commands, "report", "recreate the tables and the report of a study", more)
    parser.add_argument("directory", metavar="DIR", help="directory of the study")
    parser.set_defaults(run="study_commands:report")


def _theory(commands: Any) -> None:
    parser = add_command(
        commands, "theory", "print the paper's bounds for a model, next to the trivial bounds"
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument(
        "--episodes",
        type=positive,
        metavar="N",
        default=1000,
        help="number of episodes (default 1000)",
    )
    parser.add_argument(
        "--delta",
        type=float,
        default=0.1,
        help="failure probability of the bounds, up to a constant factor (default 0.1)",
    )
    parser.add_argument(
        "--accuracy",
        type=float,
        help="gap for which to compute sample sizes (default: a tenth of the horizon)",
    )
    parser.add_argument("--horizon", type=positive, metavar="N", help=HORIZON)
    parser.set_defaults(run="commands:show_theory")


def _workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        type=positive,
        metavar="N",
        help="number of processes on this machine (default: one per core)",
    )
    parser.add_argument(
        "--scheduler",
        metavar="tcp://HOST:PORT",
        help="run on the workers of this Dask scheduler instead",
    )
    parser.add_argument(
        "--time-limit",
        type=seconds,
        metavar="SECONDS",
        help="stop after this time; the study can be resumed",
    )

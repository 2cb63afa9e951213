"""The parser of ``homdp agent``."""

from __future__ import annotations

import argparse
from typing import Any

from homdp_ppl.cli.log_columns import add_columns
from homdp_ppl.cli.options import (
    HORIZON,
    MODEL,
    Command,
    add_command,
    at_least_zero,
    planner_help,
    positive,
    rule_help,
    seed,
)

STATES = (
    'JSON: a list of all states, as in \'["left", "left"]\', or an object from steps to states, as '
    'in \'{"1": "left"}\''
)

LOG = (
    "table with one row per step (.csv, .parquet), or a file with one JSON object per line, as in "
    '{"id": "p 1", "observations": ["growl left"], '
    '"actions": ["listen"], "states": ["left", "left"]}'
)
WITH_ID = ("act", "end", "abandon", "reveal", "explain", "forget")


def add_agent(commands: Any) -> None:
    """Add the command ``agent`` with its own commands."""
    more = (
        "The agent chooses actions, and learns when latent states are revealed later. "
        "Everything is saved in a directory."
    )
    parser = add_command(commands, "agent", "create and use an agent in a live system", more)
    parser.set_defaults(run="agent_commands:run")
    actions = parser.add_subparsers(
        required=True, title="commands", metavar="COMMAND", parser_class=Command, dest="action"
    )
    _new(actions)
    for name, text in (
        ("begin", "begin an episode"),
        ("act", "pass an observation to an open episode and print the action"),
        ("end", "end an episode before its last step"),
        ("abandon", "declare that the states of an episode will never be revealed"),
        ("reveal", "reveal or correct states of an episode"),
        ("add", "add episodes that others played, from a file"),
        ("explain", "explain the last action of an episode"),
        ("check", "compare the episodes with replays under the declaration"),
        ("certificate", "bound the value of the policy and the optimum"),
        ("forget", "erase an episode from the journal"),
        ("migrate", "continue with a changed declaration"),
        ("status", "print how many episodes there are, and which are open or pending"),
        ("serve", "answer requests: JSON lines on standard input and output"),
    ):
        _further(actions, name, text)


def _new(actions: Any) -> None:
    parser = add_command(actions, "new", "create an agent in a directory")
    _directory(parser)
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument(
        "--explorer",
        default="quantile_backup",
        help=f"exploration rule: one {rule_help()} (default quantile_backup)",
    )
    parser.add_argument("--planner", default="auto", help=planner_help())
    parser.add_argument("--horizon", type=positive, metavar="N", help=HORIZON)
    parser.add_argument(
        "--seed", type=seed, metavar="N", default=0, help="random seed of the rule (default 0)"
    )
    parser.add_argument(
        "--episodes",
        type=positive,
        metavar="K",
        help="number of episodes that the agent will play; some rules require it",
    )
    parser.add_argument(
        "--delay",
        choices=("any", "independent"),
        default="any",
        help="any: the delay of a reveal may depend on the episode; independent: it does not "
        "(default any)",
    )


def _further(actions: Any, name: str, text: str) -> None:
    parser = add_command(actions, name, text)
    _directory(parser)
    if name in WITH_ID:
        parser.add_argument("id", metavar="ID", help="id of the episode")
    if name == "begin":
        parser.add_argument("--id", metavar="ID", help="id of the episode (default: a new one)")
    if name == "act":
        parser.add_argument("observation", metavar="OBSERVATION", help="name, index or JSON")
        parser.add_argument(
            "--step", type=positive, metavar="N", help="step, so that the call may be repeated"
        )
    if name == "end":
        parser.add_argument("--reason", choices=("terminal", "truncated"), help="why it ended")
    if name == "abandon":
        parser.add_argument("--reason", default="", help="reason, which is recorded")
    if name == "reveal":
        parser.add_argument("states", metavar="STATES", help=STATES)
        parser.add_argument("--rewards", metavar="JSON", help="list of recorded rewards")
        parser.add_argument("--labels", metavar="JSON", help="list of labels")
    if name == "add":
        parser.add_argument("episodes", metavar="FILE", help=LOG)
        add_columns(parser)
    if name == "certificate":
        text = "probability with which the bounds may be wrong (default 0.1)"
        parser.add_argument("--delta", type=at_least_zero, help=text)
    if name in ("explain", "check"):
        parser.add_argument(
            "--draws", type=positive, metavar="N", help="models drawn from the posterior"
        )
    if name == "migrate":
        parser.add_argument("model", metavar="MODEL", help=f"the new model: {MODEL}")
        parser.add_argument("--horizon", type=positive, metavar="N", help=HORIZON)
    parser.add_argument(
        "--model",
        dest="files",
        metavar="FILE",
        action="append",
        default=[],
        help="user file of the agent that may be imported; may be repeated",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="import all user files of the agent that are in or below the working directory",
    )


def _directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="directory of the agent")
    parser.add_argument("--json", action="store_true", help="print one JSON object")

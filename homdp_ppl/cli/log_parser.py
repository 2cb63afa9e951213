"""The parsers of ``homdp evaluate`` and ``homdp choose``."""

from __future__ import annotations

import argparse
from typing import Any

from homdp_ppl.cli.log_columns import add_columns
from homdp_ppl.cli.options import HORIZON, MODEL, add_command, positive, seed

LOG = "file with one row per step: .csv, .tsv or, with pyarrow, .parquet"


def add_evaluate(commands: Any) -> None:
    """``homdp evaluate``."""
    more = (
        "Prints a certified interval, the posterior and weighted estimates of the policy's value, "
        "and tests of the declaration."
    )
    parser = add_command(commands, "evaluate", "evaluate a policy with a log of episodes", more)
    _log(parser)
    parser.add_argument(
        "--policy", metavar="FILE.npz", required=True, help="saved policy to evaluate"
    )
    parser.add_argument(
        "--behaviour", metavar="FILE.npz", help="saved policy that acted (default: estimated)"
    )
    parser.add_argument(
        "--window",
        type=positive,
        metavar="N",
        default=1,
        help="last observations that an estimated behaviour depends on (default 1)",
    )
    parser.set_defaults(run="log_commands:evaluate")


def add_choose(commands: Any) -> None:
    """``homdp choose``."""
    more = (
        "The chosen policy has the largest certified value. The baseline is kept unless a policy "
        "certifiably beats it."
    )
    parser = add_command(commands, "choose", "choose a policy from a log of episodes", more)
    _log(parser)
    parser.add_argument(
        "--out", metavar="FILE.npz", required=True, help="save the chosen policy to this file"
    )
    parser.add_argument(
        "--baseline",
        metavar="FILE.npz",
        default="behaviour",
        help="saved policy to beat, behaviour (what was done in the log; default), or none",
    )
    parser.set_defaults(run="log_commands:choose")


def _log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=MODEL)
    parser.add_argument("log", metavar="LOG", help=LOG)
    add_columns(parser)
    parser.add_argument(
        "--saw-states",
        action="store_true",
        help="the recorded actions may depend on the latent states",
    )
    parser.add_argument(
        "--delta", type=float, default=0.1, help="allowed probability of error (default 0.1)"
    )
    parser.add_argument("--horizon", type=positive, metavar="N", help=HORIZON)
    parser.add_argument(
        "--seed", type=seed, metavar="N", default=0, help="random seed of draws (default 0)"
    )
    parser.add_argument("--page", metavar="FILE.html", help="write a report to this file")

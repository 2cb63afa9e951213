"""Helpers for tests of the learning loop: small worlds and comparisons of runs."""

from dataclasses import replace
from functools import cache

import numpy as np

from homdp_ppl import Run, Spaces, World, explorers, learn, models
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.learning.record import Record
from homdp_ppl.planners import history_tree

TREE = history_tree()  # shared by all tests, so that each loop is compiled only once
OPTIONS = {
    "tiger": {"horizon": 3},
    "tiger_table": {"horizon": 3},
    "tiger_listen": {"horizon": 3},
    "lock": {"length": 2, "dials": 2},
    "random": {"states": 3, "observations": 2, "actions": 2, "horizon": 3},
}


@cache
def small(name: str) -> World:
    """A model of the zoo with at most a few hundred histories."""
    return models.load(name, **OPTIONS[name])


def differences(
    first: Run, second: Run, rounds: int | None = None, tolerance: float = 0.0
) -> list[str]:
    """The columns in which the records of two runs differ, up to a round.

    Differences of values up to the tolerance are ignored.
    """
    assert rounds is None or first.task.episodes_per_round == 1
    found = []
    for column in first.record.columns:
        ours, theirs = (run.record.columns[column][:rounds] for run in (first, second))
        alike = ours.shape == theirs.shape and ours.dtype == theirs.dtype
        if not alike or not np.all(
            np.abs(ours.astype(float) - theirs) <= tolerance * (ours.dtype.kind == "f")
        ):
            found.append(column)
    return found


def readable(name, explorer, episodes, seed=0, **options):
    """A run of the readable loop with the history tree."""
    return learn(small(name), explorer, TREE, episodes, seed, compiled=False, **options)


def hearing(accuracies=(0.6, 0.75, 0.85, 0.95)):
    """HOP-V for the tiger problem: T is known, O is one of a few tables."""
    tiger = small("tiger")
    return explorers.hop_v([tiger], [tiger.homdp.at(accuracy=p) for p in accuracies], delta=0.5)


def losing(*gaps, episodes_per_round=1, optimistic=1.0):
    """A saved run with the given gaps to an optimum of 1 and the given optimistic values."""
    values, played = 1 - np.array(gaps), np.repeat(1 - np.array(gaps), episodes_per_round)
    about = {
        "model": "house",
        "optimum": 1.0,
        "horizon": 1,
        "episodes_per_round": episodes_per_round,
    }
    nothing = Record.empty(Spaces(("x",), ("y",), ("a",), 1))
    filled = np.broadcast_to(np.asarray(optimistic, dtype=float), values.shape)
    return Saved(about, replace(nothing, values=values, played=played, optimistic=filled), {})

"""Similar histories among revealed episodes: what the states were, and what came of the actions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.core.episode_validation import incomplete_problems
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.precision import Array


class Taken(NamedTuple):
    """How often an action was taken after similar histories, and what came of it."""

    episodes: int
    value: float  # mean return of the remaining steps, in the user's units


class Similar(NamedTuple):
    """Revealed episodes with the same last observations and actions at the same step."""

    episodes: int
    steps: int  # how many of the last observations agree, with the actions between them
    states: dict[str, int]  # how often each state was revealed at this step
    actions: dict[str, Taken]  # by action, those that were taken


def similar(homdp: HOMDP, past: Episodes | None, seen: Array, done: Array) -> Similar | None:
    """The revealed episodes whose history agrees for as many steps as possible; None without any.

    Parameters
    ----------
    homdp
        The declaration.
    past
        The revealed episodes.
    seen, done
        The observations and actions so far.
    """
    if past is None or not len(past) or incomplete_problems(past):
        return None
    h = len(seen)
    agree = past.length >= h
    found, steps = np.zeros(0, dtype=int), 0
    for back in range(1, h + 1):
        agree = agree & (past.observations[:, h - back] == seen[h - back])
        if back > 1:
            agree = agree & (past.actions[:, h - back] == done[h - back])
        if not agree.any():
            break
        found, steps = np.flatnonzero(agree), back
    if not steps:
        return None
    batch = past[found]
    states, _, actions = homdp.spaces.names
    rest = np.asarray(homdp.rewards_of(batch))[:, h - 1 :].sum(1)
    hidden, taken = batch.states[:, h - 1], batch.actions[:, h - 1]
    return Similar(
        len(found),
        steps,
        {states[x]: int(n) for x, n in zip(*np.unique(hidden, return_counts=True), strict=True)},
        {
            actions[a]: Taken(int((taken == a).sum()), float(rest[taken == a].mean()))
            for a in np.unique(taken)
        },
    )

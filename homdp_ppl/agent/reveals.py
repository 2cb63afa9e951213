"""Reveals: states that become known after an episode, validated like the data of a posterior."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from homdp_ppl.agent.events import Reveal
from homdp_ppl.agent.ledger import Session, filled, values_array
from homdp_ppl.agent.values import Value, encode
from homdp_ppl.core.arguments import is_count
from homdp_ppl.core.episode import Episode, hide
from homdp_ppl.core.episode_validation import excluded_problems
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.policy import Trajectory
from homdp_ppl.declare.clue_likelihood import evidence_of
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.returns import recorded_problems
from homdp_ppl.errors import DataError, Problem, shown
from homdp_ppl.learning.hindsight import SUMMED, UNUSED, hindsight_problems, how
from homdp_ppl.learning.learner import Learner

YET = "Leave out states that are not revealed yet: reveal(id, {step: state, ...})."
BIAS = (
    "None means that a state will never be revealed. Then counts of the others are biased if what "
    "is revealed depends on what happened: use a Bayesian rule such as posterior_sampling(), or "
    "abandon the episode. " + YET
)


class ExcludedError(DataError):
    """The error for states that are valid, but have probability zero under the declaration."""


def reveal_event(
    learner: Learner, session: Session, states: Any, rewards: Any, labels: Any
) -> Reveal | None:
    """The event of a reveal; None if it says nothing new. Raises DataError with all problems.

    The error is an ExcludedError if the declaration excludes what is revealed.
    """
    homdp = learner.homdp
    found, problems = _states(learner, session, states, f"episode {session.id!r}")
    recorded = {
        "rewards": _numbers("rewards", rewards, len(session.actions), problems),
        "labels": _numbers("labels", labels, len(session.actions) + 1, problems),
    }
    if not problems:
        noted = session.rewards if recorded["rewards"] is None else recorded["rewards"]
        problems, excluded = _episode_problems(homdp, session, {**session.states, **found}, noted)
        if excluded:
            raise ExcludedError(f"reveal of {session.id!r}", excluded)
    if problems:
        raise DataError(f"reveal of {session.id!r}", problems)
    known = session.states
    new = {h: value for h, value in found.items() if h not in known or known[h] != value}
    fresh = {
        name: values
        for name, values in recorded.items()
        if values is not None and values != getattr(session, name)
    }
    return Reveal(session.ordinal, new, **fresh) if new or fresh else None


def _states(
    learner: Learner, session: Session, given: Any, at: str
) -> tuple[dict[int, Value | None], list[Problem]]:
    """The revealed states by step, from a mapping or a sequence of all states."""
    spaces = learner.homdp.spaces
    last = len(session.actions) + 1
    problems: list[Problem] = []
    items = _items(given)
    if items is None:
        expected = "a sequence of states, or a dictionary {step: state, ...}"
        return {}, [Problem("states", shown(given), expected, at=at)]
    if len(items) != last and not isinstance(given, Mapping):
        expected = f"{last} states: one per step and the state after the last action"
        remedy = "For some of the states, pass a dictionary: {step: state, ...}."
        got = f"{len(items)} state{'s' * (len(items) != 1)}"
        return {}, [Problem("states", got, expected, remedy, at)]
    found: dict[int, Value | None] = {}
    for step, state in items:
        place = f"{at}, step {step}" if is_count(step) else at
        if not is_count(step) or step > last:
            problems.append(Problem("states", f"step {shown(step)}", f"a step in 1..{last}", at=at))
        elif state is None or state is np.ma.masked:
            found[int(step)], wrong = None, never_problems(learner, place)
            problems += wrong
        else:
            found[int(step)], wrong = encode("states", state, spaces.states, place)
            problems += wrong
    return found, problems


def never_problems(learner: Learner, at: str) -> list[Problem]:
    """Why a rule cannot use an episode with a state that is never revealed; empty if it can."""
    explorer = learner.explorer
    refused = hindsight_problems(explorer, learner.homdp, "partial")
    if refused and how(explorer) in (SUMMED, UNUSED):
        return [Problem("states", "None", refused[0].expected, YET, at)]
    if refused or explorer.about.guarantee == "frequentist":
        return [Problem("states", "None", f"a state, for {explorer.name}", BIAS, at)]
    return []


def _items(given: Any) -> list[tuple[Any, Any]] | None:
    """Steps with their states; None if these are neither a mapping nor a sequence."""
    if isinstance(given, Mapping):
        return list(given.items())
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return None
    try:
        return list(enumerate(given, start=1))
    except TypeError:  # an array without axes
        return None


def _numbers(where: str, given: Any, length: int, problems: list[Problem]) -> list[float] | None:
    """Recorded rewards or labels as plain numbers."""
    if given is None:
        return None
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.full(0, np.nan)
    if array.shape != (length,) or not np.isfinite(array).all() or np.ma.is_masked(given):
        problems.append(Problem(where, shown(given), f"{length} finite numbers"))
        return None
    numbers: list[float] = array.tolist()
    return numbers


def _episode_problems(
    homdp: HOMDP, session: Session, states: dict[int, Value | None], rewards: Any
) -> tuple[list[Problem], list[Problem]]:
    """Problems of the whole episode with the states that are revealed so far.

    The second list has outcomes that the declaration excludes.
    """
    steps, spaces = range(1, len(session.actions) + 2), homdp.spaces
    if not states:
        where = f"episode {session.id!r}"
        return [Problem("states", "no state", "at least one state", at=where)], []
    given = [states.get(step) for step in steps]
    missing = [state is None for state in given]
    hidden = values_array(filled(given, spaces), spaces.states)
    hidden = hide(hidden, ~np.array(missing)) if any(missing) else hidden
    seen = values_array(session.observations, spaces.observations)
    trajectory = Trajectory(seen, np.array(session.actions, dtype=np.int64))
    assert session.ended is not None
    noted = None if rewards is None else np.array(rewards, dtype=np.float64)
    episode = Episode(trajectory, hidden, noted, id=session.id, ended=session.ended)
    try:
        episodes = Episodes.of(episode, homdp)
    except DataError as error:
        return list(error.problems), []
    if not spaces.finite:
        return [], []
    excluded = excluded_problems(episodes, homdp.structure.support, homdp.form, spaces)
    if excluded or len(states) < len(given):  # the other states may still follow
        return [], excluded
    problems = recorded_problems(homdp, episodes)
    return problems, [] if problems or not any(missing) else gap_problems(homdp, episodes)


def gap_problems(homdp: HOMDP, episodes: Episodes) -> list[Problem]:
    """Missing states that no states explain."""
    try:
        evidence_of(homdp, episodes)
    except DataError as error:
        return list(error.problems)
    return []

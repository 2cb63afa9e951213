"""Validation of what was revealed: labels, and masks that the declared mechanism excludes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from homdp_ppl.core.clue_building import hindsight_counts
from homdp_ppl.core.episode_validation import IMPOSSIBLE
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.hindsight_form import LABEL, HindsightForm
from homdp_ppl.core.probabilities import entry_name
from homdp_ppl.core.spaces import entry_place
from homdp_ppl.declare.returns import recorded_problems
from homdp_ppl.errors import Problem

if TYPE_CHECKING:
    from homdp_ppl.declare.model import HOMDP

LISTED = 8
WHOLE = "One coin decides for a whole episode: reveal all or nothing, or declare a coin per step."


def revealed_problems(homdp: HOMDP, episodes: Episodes) -> list[Problem]:
    """Problems of recorded rewards, labels and masks of validated episodes."""
    problems, form = recorded_problems(homdp, episodes), homdp.hindsight_form
    if form is None:
        return problems
    wrong = _label_problems(homdp, form, episodes) + _unit_problems(form, episodes)
    return [*problems, *(wrong or _excluded(homdp, episodes))]


def unrevealed_problems(homdp: HOMDP, coin: bool) -> list[Problem]:
    """Problems of a declaration for rules that count revealed states.

    With ``coin``, a declared coin may decide which states are revealed.
    """
    form = homdp.hindsight_form
    if form is None or (coin and declares_coin(homdp)):
        return []
    where = "label" if form.label is not None else "revealed"
    expected = "a declaration whose states are all revealed, or revealed by a coin"
    remedy = (
        "Counts of revealed steps are biased if what is revealed depends on what happened, and "
        "labels do not determine the states. Use a Bayesian rule such as posterior_sampling(), or "
        "posterior(homdp, episodes)."
    )
    return [Problem(where, f"{homdp.name}, which declares {where}", expected, remedy)]


def declares_coin(homdp: HOMDP) -> bool:
    """Whether a declaration says that a coin decides which states are revealed."""
    form = homdp.hindsight_form
    return form is not None and form.label is None and form.is_coin


def _label_problems(homdp: HOMDP, form: HindsightForm, episodes: Episodes) -> list[Problem]:
    """Labels that do not exist, or that a revealed state excludes."""
    if form.label is None or episodes.labels is None:
        return []
    known, labels = form.items(episodes), episodes.labels
    if labels.dtype.kind not in "biuf":
        expected = f"integers in 0..{form.labels - 1}"
        return [Problem("labels", f"values of type {labels.dtype}", expected)]
    numbers = np.where(known, labels, 0.0)
    wrong = known & ~((numbers == np.floor(numbers)) & (numbers >= 0) & (numbers < form.labels))
    problems = [
        Problem(
            "labels",
            f"{numbers[tuple(index)]:g}",
            f"an integer in 0..{form.labels - 1}",
            at=entry_place(index, episodes.ids),
        )
        for index in np.argwhere(wrong)[:LISTED]
    ]
    if problems:
        return problems
    possible = homdp.structure.tables[LABEL].support
    both = known & episodes.revealed
    excluded = both & ~possible[np.where(both, episodes.states, 0), numbers.astype(int)]
    return [
        Problem(
            "labels",
            f"label {numbers[tuple(index)]:g} of {homdp.states[episodes.states[tuple(index)]]!r}",
            "a label that this state can have",
            IMPOSSIBLE,
            entry_place(index, episodes.ids),
        )
        for index in np.argwhere(excluded)[:LISTED]
    ]


def _unit_problems(form: HindsightForm, episodes: Episodes) -> list[Problem]:
    """Episodes that are revealed in part although one coin decides for a whole episode."""
    if not form.by_episode:
        return []
    present = np.arange(episodes.horizon + 1) <= episodes.length[:, None]
    items = form.items(episodes)
    mixed = (items & present).any(1) & (~items & present).any(1)
    where = "states" if form.label is None else "labels"
    return [
        Problem(
            where,
            "some missing and some revealed",
            "all revealed, or none",
            WHOLE,
            entry_place((k, 0), episodes.ids).partition(",")[0],
        )
        for k in np.flatnonzero(mixed)[:LISTED]
    ]


def _excluded(homdp: HOMDP, episodes: Episodes) -> list[Problem]:
    """Masks of revealed states that the declared mechanism excludes."""
    known = episodes.revealed & (np.arange(episodes.horizon + 1) <= episodes.length[:, None])
    counts = hindsight_counts(episodes, known, homdp.form) or {}
    problems = []
    for name, table in counts.items():
        support = homdp.structure.tables[name].support
        for index in np.argwhere((table > 0) & ~support)[:1]:
            shown = "revealed" if index[-1] else "missing"
            got = f"{table[tuple(index)]:g} states that are {shown}, declared impossible"
            at = entry_name(name, index[:-1], table.shape, homdp.spaces)
            problems.append(Problem("revealed", got, "what the mechanism allows", IMPOSSIBLE, at))
    return problems

"""The clues of hidden states, and the counts of revealed ones, from episodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from homdp_ppl.core.clues import SAME, Clues, distinct, outcomes_of
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.form import Form
from homdp_ppl.core.hindsight_form import LABEL, LAST, REVEALED, HindsightForm
from homdp_ppl.precision import Array


def clues_of(
    episodes: Episodes, form: Form, ends: Array, hidden: Array, known_rewards: Array | None
) -> tuple[Clues, Array, Array]:
    """The distinct clues of hidden states, the place of each state's clue among them, (N, H + 1),
    and whether it contains any information.

    Parameters
    ----------
    episodes
        Validated episodes.
    form
        The form of the model's tables.
    ends
        The terminal states, (X,).
    hidden
        Which states are hidden, (N, H + 1).
    known_rewards
        The rewards in the user's units, (H, X, Y|1, A), if they are known.
    """
    n, h = np.nonzero(hidden)
    L = episodes.length[n]
    last = h == L
    clues = Clues.none(len(n) + 1, form)  # the last one for all states without a clue
    over = np.flatnonzero(last & (episodes.ended[n] == "terminal"))
    if ends.any():
        clues.known[over] *= ends
    step = np.minimum(h, episodes.horizon - 1)
    y, a = episodes.observations[n, step], episodes.actions[n, step]
    hindsight = form.hindsight or HindsightForm()
    if hindsight.label is not None and episodes.labels is not None:
        known = hindsight.items(episodes)[n, h]
        clues.label[:-1][known] = episodes.labels[n, h][known].astype(np.int64)
    if hindsight.by_state:
        shown = hindsight.items(episodes)[n, h].astype(int)
        by_step, at_end = hindsight.mark(step, y, a, shown), hindsight.last_mark(L, shown)
        clues.mark[:-1] = np.where(last, at_end, by_step)
    if episodes.rewards is not None and episodes.rewards_known is not None:
        paid = np.flatnonzero(~last & episodes.rewards_known[n, step])
        rewards = episodes.rewards[n, step].astype(np.float64)
        if form.reward is not None:
            clues.paid[paid], clues.reward[paid] = 1, rewards[paid]
            uses = form.reward.shape[0] > 1, form.reward.shape[2] > 1, True
            for k, (part, used) in enumerate(zip((step, y, a), uses, strict=True)):
                clues.place[paid, k] = part[paid] if used else 0
        elif known_rewards is not None:
            seen = y if known_rewards.shape[2] > 1 else np.zeros_like(y)
            values = known_rewards[step[paid], :, seen[paid], a[paid]]  # (n, X)
            slack = SAME * max(1.0, float(np.ptp(known_rewards)))
            clues.known[paid] *= np.abs(values - rewards[paid, None]) <= slack
    found, place = distinct(clues)
    informed = np.full(hidden.shape, place[-1])
    informed[n, h] = place[:-1]
    return found, informed, informed != place[-1]


def hindsight_counts(episodes: Episodes, known: Array, form: Form) -> dict[str, Array] | None:
    """The counts of labels of revealed states and of the mechanism, by table; None without any.

    Parameters
    ----------
    episodes
        Validated episodes.
    known
        Which states are revealed, (N, H + 1).
    form
        The form of the model's tables.
    """
    hindsight = form.hindsight
    if hindsight is None or not hindsight.matters:
        return None
    counts = zero_counts(hindsight)
    items = hindsight.items(episodes)
    N, steps = len(episodes), np.arange(episodes.horizon + 1)
    present = steps <= episodes.length[:, None]
    if hindsight.label is not None and episodes.labels is not None:
        at = known & items
        pairs = episodes.states[at], episodes.labels[at].astype(np.int64)
        np.add.at(counts[LABEL], pairs, 1)
    if not hindsight.weighs:
        return counts
    shown = items.astype(int)
    if hindsight.by_episode:
        whole = (items & present).any(1).astype(int)
        counts[REVEALED][0, 0, 0, 0] += np.bincount(whole, minlength=2)
        return counts
    used = known if hindsight.by_state else present
    taken = used[:, :-1] & episodes.steps
    at_step = np.broadcast_to(steps[:-1], taken.shape), episodes.states[:, :-1]
    place = hindsight.place(*at_step, episodes.observations, episodes.actions)
    np.add.at(counts[REVEALED], tuple(part[taken] for part in (*place, shown[:, :-1])), 1)
    rows = np.arange(N), episodes.length
    last = hindsight.last_place(episodes.length, episodes.states[rows])
    ended = used[rows]
    np.add.at(counts[LAST], tuple(part[ended] for part in (*last, shown[rows])), 1)
    return counts


def zero_counts(form: HindsightForm) -> dict[str, Any]:
    """Counts of labels and of the mechanism without any data."""
    names = [name for name in form.tables if name == LABEL or form.weighs]
    return {name: np.zeros(form.tables[name], dtype=np.int64) for name in names}


def occupied_tables(clues: Clues, number: Array, form: Form) -> dict[str, Any]:
    """The counts of labels, of the mechanism and of rewards of hidden states, by table.

    Parameters
    ----------
    clues
        The distinct clues.
    number
        How many hidden states with each clue are in each state, (E, X).
    form
        The form of the model's tables.
    """
    hindsight = form.hindsight
    counts = zero_counts(hindsight) if hindsight is not None and hindsight.matters else {}
    if form.reward is not None and form.reward.outcomes is not None:
        outcome, _ = outcomes_of(clues, form.reward)
        e, x = np.nonzero(number * (clues.paid > 0)[:, None])
        place = form.reward.index(clues.place[e, 0], x, clues.place[e, 1], clues.place[e, 2])
        counts["reward"] = np.zeros(form.reward.outcomes.shape, dtype=np.int64)
        np.add.at(counts["reward"], (*place, outcome[e, x]), number[e, x])
    if hindsight is None or not counts:
        return counts
    if hindsight.label is not None:
        e, x = np.nonzero(number * (clues.label < hindsight.labels)[:, None])
        np.add.at(counts[LABEL], (x, clues.label[e]), number[e, x])
    if hindsight.by_state:
        _add_marks(counts, clues, number, hindsight)
    return counts


def _add_marks(counts: dict[str, Any], clues: Clues, number: Array, form: HindsightForm) -> None:
    """Add the marks of hidden states to the counts of the mechanism."""
    shapes: Any = form.revealed, form.revealed_last
    H, _, Y, A, _ = shapes[0]
    by_step = H * Y * A * 2
    e, x = np.nonzero(number * (clues.mark < by_step)[:, None])
    h, y, a, shown = np.unravel_index(clues.mark[e], (H, Y, A, 2))
    np.add.at(counts[REVEALED], (*form.place(h, x, y, a), shown), number[e, x])
    at_end = (clues.mark >= by_step) & (clues.mark < form.no_mark)
    e, x = np.nonzero(number * at_end[:, None])
    h, shown = np.unravel_index(clues.mark[e] - by_step, (shapes[1][0], 2))
    np.add.at(counts[LAST], (*form.last_place(h, x), shown), number[e, x])

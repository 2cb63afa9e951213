"""Exact binomial tests of counts from simulations."""

import numpy as np
from scipy.stats import binom

from homdp_ppl import POMDP, Episodes

ALARM = 1e-6  # the false-alarm rate of a test


def believable(hits: np.ndarray, chance: float, alarm: float = ALARM) -> bool:
    """Whether the number of hits fits independent trials with this probability.

    A two-sided exact test, with tails of ``alarm / 2``.
    """
    return bool(
        binom.ppf(alarm / 2, np.size(hits), chance)
        <= np.sum(hits)
        <= binom.isf(alarm / 2, np.size(hits), chance)
    )


def enough(hits: np.ndarray, chance: float, alarm: float = ALARM) -> bool:
    """Whether the number of hits fits independent trials with at least this probability.

    A one-sided exact test, with a tail of ``alarm``.
    """
    return bool(np.sum(hits) >= binom.ppf(alarm, np.size(hits), chance))


def frequency_errors(episodes: Episodes, pomdp: POMDP, visits: int = 150) -> list[str]:
    """Table entries whose frequency in episodes is too far from their probability.

    The outcomes of a row are taken in the order in which they occurred. The first ``visits`` of
    them, completed by new draws if there were fewer, are independent draws from that row for any
    policy. Each count is therefore exactly binomial. With M entries, each of the two tails is
    tested at ``ALARM / (2 M)``. Tables may depend on the previous action, but not on the step.
    """
    episodes = episodes.to_horizon(pomdp.spaces, "episodes")
    generator = np.random.default_rng(0)
    states, observations, actions = episodes.states, episodes.observations, episodes.actions
    X, _, A = pomdp.sizes
    rows = [("initial", pomdp.initial, states[:, 0])]
    before, after = states[:, :-1].ravel(), states[:, 1:].ravel()
    rows += [
        (f"T[{x}, {a}]", pomdp.moves(0)[x, a], after[(before == x) & (actions.ravel() == a)])
        for x in range(X)
        for a in range(A)
    ]
    previous = np.insert(actions, 0, A, axis=1)[:, :-1].ravel() * pomdp.form.answers_action
    rows += [
        (f"O[{a}, {x}]", shows[x], observations.ravel()[(before == x) & (previous == a)])
        for a, shows in enumerate(pomdp.emission[0])
        for x in range(X)
    ]
    entries = X + X * A * X + pomdp.emission[0].size
    errors = []
    for name, row, outcomes in rows:
        first = outcomes[:visits]
        filled = np.append(
            first, generator.choice(len(row), visits - len(first), p=row / row.sum())
        )
        counts = np.bincount(filled.astype(int), minlength=len(row))
        tails = np.minimum(binom.cdf(counts, visits, row), binom.sf(counts - 1, visits, row))
        errors += [
            f"{name} -> {k}: {counts[k]} of {visits} at {row[k]:.3f}"
            for k in np.flatnonzero(tails < ALARM / (2 * entries))
        ]
    return errors

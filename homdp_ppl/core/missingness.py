"""Whether the states that are missing depend on what was seen and done.

If a coin decides which states are revealed, then reveal patterns can be exchanged between episodes
of equal length. The test compares, at every step, how often the state was revealed after each
observation and with each action, and after each pair of observations, with what such exchanges
would give. Pairs show reveals that depend on the state: an observation that agrees with the one
before is probably right. The test is valid for coins per step and per episode.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.hindsight_form import HindsightForm
from homdp_ppl.core.spaces import Spaces, names_of
from homdp_ppl.errors import HindsightWarning
from homdp_ppl.precision import Array

FEWEST = 30  # episodes of equal length that are needed for the approximation by a normal law
LEVEL = 1e-4
LARGEST = 1000  # numbers of steps times observations and actions; larger problems are not tested


class Association(NamedTuple):
    """The result of the test, and the outcome after which states are revealed most unusually."""

    p_value: float  # probability of such an association if a coin decides
    outcome: str  # such as "the observation 'growl left'"
    share: float  # of states revealed with this outcome
    otherwise: float  # of states revealed at the same steps with other outcomes


def association(
    episodes: Episodes, spaces: Spaces, hindsight: HindsightForm | None = None
) -> Association | None:
    """Test whether reveals depend on observations and actions; None if there are too few data.

    Parameters
    ----------
    episodes
        Validated episodes of finite spaces.
    spaces
        Their spaces.
    hindsight
        The form of declared hindsight: whether labels are revealed instead of states.
    """
    items = (hindsight or HindsightForm()).items(episodes)
    _, Y, A, H = spaces.sizes
    if H * (Y + A) > LARGEST or not isinstance(spaces.observations, tuple):
        return None
    pairs = H * (Y + A + Y**2) <= LARGEST and H > 1
    F = Y + A + (Y**2 if pairs else 0)
    score, spread = np.zeros(H * F), np.zeros((H * F, H * F))
    seen, with_outcome = np.zeros((2, H, F)), np.zeros((H, F))
    tested = False
    for length in np.unique(episodes.length):
        rows = np.flatnonzero(episodes.length == length)
        if len(rows) < FEWEST or not length:
            continue
        tested = True
        known = items[rows, :length].astype(float)  # (N, L)
        happened = _happened(episodes[rows], int(length), (Y, A), pairs)  # (N, L, F)
        used = np.zeros((H, F), dtype=bool)
        used[:length] = True
        centred = known - known.mean(0)
        score[used.ravel()] += np.einsum("nl,nlf->lf", centred, happened).ravel()
        moved = np.repeat(np.cov(known.T, ddof=0).reshape(length, length), F, axis=0)
        features = happened.reshape(len(rows), -1)
        both = np.repeat(moved, F, axis=1) * np.cov(features.T, ddof=0)
        spread[np.ix_(used.ravel(), used.ravel())] += both * len(rows) ** 2 / (len(rows) - 1)
        with_outcome[:length] += happened.sum(0)
        seen[0, :length] += np.einsum("nl,nlf->lf", known, happened)
        seen[1, :length] += known.sum(0)[:, None]
    if not tested or not spread.any():
        return None
    values, vectors = np.linalg.eigh(spread)
    kept = values > 1e-9 * values.max()
    statistic = float(((vectors[:, kept].T @ score) ** 2 / values[kept]).sum())
    extreme = _extreme(score, spread, seen, with_outcome, spaces)
    return Association(float(chi2.sf(statistic, int(kept.sum()))), *extreme)


def _happened(episodes: Episodes, length: int, sizes: tuple[int, int], pairs: bool) -> Array:
    """Indicators of observations, actions and pairs of observations, (N, L, F)."""
    Y, A = sizes
    seen = np.eye(Y)[episodes.observations[:, :length]]
    parts = [seen, np.eye(A)[episodes.actions[:, :length]]]
    if pairs:
        both = np.zeros((*seen.shape, Y))
        both[:, 1:] = seen[:, :-1, :, None] * seen[:, 1:, None, :]
        parts.append(both.reshape(*seen.shape[:2], Y * Y))
    return np.concatenate(parts, axis=-1)


def warn_of_association(
    episodes: Episodes, spaces: Spaces, hindsight: HindsightForm | None = None
) -> None:
    """Warn if reveals depend on observations or actions; false-alarm rate 1e-4."""
    found = association(episodes, spaces, hindsight)
    if found is not None and found.p_value < LEVEL:
        warnings.warn(
            f"Which states are revealed depends on what was seen or done: {found.share:.0%} after "
            f"{found.outcome}, {found.otherwise:.0%} otherwise (p = {found.p_value:.1g}). "
            "Posteriors are right if reveals depend only on observations, actions and revealed "
            "states, and wrong if they also depend on the hidden states. Counts of the revealed "
            "steps alone are biased.",
            HindsightWarning,
            stacklevel=2,
        )


def _extreme(
    score: Array, spread: Array, seen: Array, with_outcome: Array, spaces: Spaces
) -> tuple[str, float, float]:
    """The outcome with the largest standardised score over all steps, and two shares."""
    H, F = with_outcome.shape
    sums = np.tile(np.eye(F), (H, 1))  # adds up the steps
    total, variance = score @ sums, np.einsum("if,ij,jf->f", sums, spread, sums)
    f = int(np.argmax(np.abs(total) / np.sqrt(np.where(variance > 0, variance, np.inf))))
    Y = len(spaces.observations)
    names = [f"the observation {name!r}" for name in names_of(spaces.observations)]
    names += [f"the action {name!r}" for name in spaces.actions]
    seen_names = names_of(spaces.observations)
    names += [f"the observation {y!r} after {x!r}" for x in seen_names for y in seen_names]
    possible = with_outcome[:, :Y].sum(1)  # episodes at each step
    other = possible.sum() - with_outcome[:, f].sum()
    revealed = seen[0, :, f].sum()
    return (
        names[f],
        float(revealed / max(with_outcome[:, f].sum(), 1)),
        float((seen[1, :, f].sum() - revealed) / max(other, 1)),
    )

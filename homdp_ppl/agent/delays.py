"""Whether the delay of a reveal depends on the states that it reveals.

The delay of an episode is the number of episodes that began or were revealed between it and its
reveal. If delays are independent of states, the delays of neighbouring episodes can be exchanged.
The test measures how strongly delays and visited states are correlated within blocks of
neighbouring episodes, and compares this with random exchanges within blocks.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from homdp_ppl.agent.ledger import Ledger, Session
from homdp_ppl.core.spaces import Spaces, names_of
from homdp_ppl.errors import HindsightWarning
from homdp_ppl.precision import Array

BLOCK = 20  # neighbouring episodes whose delays are exchanged
FEWEST = 32  # revealed episodes before the first automatic test, then after each doubling
PERMUTATIONS = 2000
LEVEL = 1e-3  # false-alarm rate of an automatic test
WIDEST = 200  # states; larger problems are not tested


class Association(NamedTuple):
    """The result of the test, and the state whose episodes are revealed latest."""

    p_value: float
    state: str
    delay: float  # mean delay of episodes that ended in this state
    otherwise: float  # of the other episodes


def delayed(sessions: Sequence[Session]) -> list[Session]:
    """The sessions with a known delay and without missing states."""
    return [s for s in sessions if s.is_complete and s.delay is not None]


def association(
    sessions: Sequence[Session], spaces: Spaces, seed: int = 0, permutations: int = PERMUTATIONS
) -> Association | None:
    """Test whether delays depend on states; None if there are too few data or states are real.

    Parameters
    ----------
    sessions
        Sessions with known delays, in the order in which they began.
    spaces
        Their spaces.
    seed
        The seed of the exchanges.
    permutations
        The number of exchanges.
    """
    delay = np.array([session.delay for session in sessions], dtype=float)
    if len(delay) < 2 or not spaces.finite or len(spaces.states) > WIDEST:
        return None
    X, generator = len(spaces.states), np.random.default_rng(seed)
    visited = np.zeros((len(delay), 2, X))  # at any step, and at the end
    for k, session in enumerate(sessions):
        last = len(session.actions) + 1
        for step in range(1, last + 1):
            visited[k, int(step == last), int(session.states[step])] = 1.0  # type: ignore[arg-type]
    features = visited.reshape(len(delay), 2 * X)
    score, spread, permuted = np.zeros(2 * X), np.zeros(2 * X), np.zeros((permutations, 2 * X))
    for start in range(0, len(delay), BLOCK):
        some = slice(start, start + BLOCK)
        ranks = _ranks(delay[some])
        centred = features[some] - features[some].mean(0)
        score += ranks @ centred
        spread += (ranks @ ranks) * (centred**2).sum(0) / max(len(ranks) - 1, 1)
        again = generator.permuted(np.broadcast_to(ranks, (permutations, len(ranks))), axis=1)
        permuted += again @ centred
    if not (spread > 0).any():
        return None
    scale = np.where(spread > 0, spread, np.inf)
    found = (score**2 / scale).sum()
    beyond = int(((permuted**2 / scale).sum(1) >= found * (1 - 1e-9)).sum())
    ends, which = features[:, X:], int(np.argmax((score / np.sqrt(scale))[X:]))
    with_state = ends[:, which] > 0
    means = [float(delay[mask].mean()) if mask.any() else 0.0 for mask in (with_state, ~with_state)]
    p_value = (1 + beyond) / (1 + permutations)
    return Association(p_value, names_of(spaces.states)[which], means[0], means[1])


def _ranks(values: Array) -> Array:
    """Centred ranks; equal values share the mean of their ranks."""
    _, place, number = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(number) - (number + 1) / 2)[place]
    return np.asarray(ranks - ranks.mean())


def warn_of_delays(ledger: Ledger, sound: bool) -> None:
    """Warn if delays and revealed states are associated; tested when the data have doubled.

    Parameters
    ----------
    ledger
        The ledger, after a reveal.
    sound
        Whether the rule uses only data that are sound for every mechanism of delay.
    """
    n = ledger.delays
    if n < FEWEST or n & (n - 1):  # not a power of two
        return
    found = association(delayed(ledger.sessions), ledger.spaces)
    if found is None or found.p_value > LEVEL:
        return
    effect = (
        "The rule uses only data for which this does not matter; the posterior uses all of them."
        if sound
        else "Until the other states are revealed, the rule and the posterior are biased."
    )
    warnings.warn(
        f"How late states are revealed depends on them: episodes that end in {found.state!r} were "
        f"revealed after {found.delay:.3g} other events, the rest after {found.otherwise:.3g} "
        f"(p = {found.p_value:.1g}). {effect}",
        HindsightWarning,
        stacklevel=3,
    )

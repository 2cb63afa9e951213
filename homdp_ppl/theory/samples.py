"""PAC sample sizes: the number of episodes after which the regret bounds guarantee a small gap.

Online-to-batch conversion: the gap of the uniform mixture over the policies of a run is the average
regret, so bound(K) / K <= accuracy is sufficient. One policy drawn from the mixture has this gap in
expectation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from homdp_ppl.core.arguments import check_sizes
from homdp_ppl.theory._ranges import ACCURACY, PROBABILITY
from homdp_ppl.theory.regret import hop_b_bound, hop_b_class_bound, hop_v_bound


class SampleSize(NamedTuple):
    """A sufficient number of episodes."""

    episodes: int  # the smallest K with bound(K) / K <= accuracy
    leading: float  # the paper's leading order, without constants, logarithms and lower orders
    probability: float  # with which the bound holds


def hop_b_samples(
    states: int, observations: int, actions: int, horizon: int, accuracy: float, delta: float = 0.1
) -> SampleSize:
    """Episodes of HOP-B; leading order (X Y H^5 + X A H^4) / accuracy^2 (after the tabular
    theorem).

    With the corrected martingale (see :func:`hop_b_bound`), the sum has a third term H^6, which
    dominates if X Y < H.

    Parameters
    ----------
    states, observations, actions, horizon
        X, Y, A and H.
    accuracy
        The required gap v(pi*) - v(mixture).
    delta
        The delta of Algorithm 1.

    Examples
    --------
    >>> size = hop_b_samples(2, 2, 3, 4, accuracy=0.4)
    >>> f"{size.episodes:.3g}, leading order {size.leading:.3g}"
    '2.03e+12, leading order 3.52e+04'
    """
    sizes = {"states": states, "observations": observations, "actions": actions, "horizon": horizon}
    X, Y, A, H = check_sizes(
        "hop_b_samples", {"accuracy": (accuracy, ACCURACY), "delta": (delta, PROBABILITY)}, **sizes
    )
    accuracy, delta = float(accuracy), float(delta)
    episodes = smallest(lambda K: hop_b_bound(X, Y, A, H, K, delta).total <= accuracy * K)
    return SampleSize(
        episodes, (X * Y * H**5 + X * A * H**4) / accuracy**2, max(0.0, 1 - 5 * delta)
    )


def hop_b_class_samples(
    states: int, actions: int, horizon: int, size: int, accuracy: float, delta: float = 0.1
) -> SampleSize:
    """Episodes of HOP-B with an emission class.

    Leading order (H^5 X log |Theta| + H^5 X^2 A) / accuracy^2 (appendix C.6).

    Parameters
    ----------
    states, actions, horizon
        X, A and H.
    size
        Number of emission tables in the class.
    accuracy, delta
        As in :func:`hop_b_samples`.

    Examples
    --------
    >>> size = hop_b_class_samples(2, 3, 4, size=100, accuracy=0.4)
    >>> f"{size.episodes:.3g}, leading order {size.leading:.3g}"  # 1024 (2 log 100 + 12) / 0.16
    '1.05e+11, leading order 1.36e+05'
    """
    sizes = {"states": states, "actions": actions, "horizon": horizon, "size": size}
    X, A, H, size = check_sizes(
        "hop_b_class_samples",
        {"accuracy": (accuracy, ACCURACY), "delta": (delta, PROBABILITY)},
        **sizes,
    )
    accuracy, delta = float(accuracy), float(delta)
    episodes = smallest(lambda K: hop_b_class_bound(X, A, H, K, size, delta).total <= accuracy * K)
    return SampleSize(
        episodes, H**5 * (X * math.log(size) + X**2 * A) / accuracy**2, max(0.0, 1 - 3 * delta)
    )


def hop_v_samples(
    actions: int,
    horizon: int,
    transitions: int,
    emissions: int,
    rank: int,
    accuracy: float,
    delta: float = 0.1,
) -> SampleSize:
    """Episodes of HOP-V, with H episodes per epoch.

    Leading order A H^5 d log(|Theta| |T| / delta) / accuracy^2 (after its theorem).

    Parameters
    ----------
    actions, horizon
        A and H.
    transitions, emissions
        Numbers of tables in the two classes.
    rank
        d, the rank of the true transitions.
    accuracy, delta
        As in :func:`hop_b_samples`.

    Examples
    --------
    >>> size = hop_v_samples(3, 4, transitions=10, emissions=100, rank=2, accuracy=0.4)
    >>> f"{size.episodes:.3g}, leading order {size.leading:.3g}"  # 3 1024 2 log(10000) / 0.16
    '1.58e+10, leading order 3.54e+05'
    """
    sizes = {
        "actions": actions,
        "horizon": horizon,
        "transitions": transitions,
        "emissions": emissions,
        "rank": rank,
    }
    A, H, transitions, emissions, d = check_sizes(
        "hop_v_samples", {"accuracy": (accuracy, ACCURACY), "delta": (delta, PROBABILITY)}, **sizes
    )
    accuracy, delta = float(accuracy), float(delta)
    epochs = smallest(
        lambda k: hop_v_bound(A, H, H * k, transitions, emissions, d, delta).total <= accuracy * k
    )
    logarithm = math.log(transitions) + math.log(emissions) - math.log(delta)
    return SampleSize(H * epochs, A * H**5 * d * logarithm / accuracy**2, max(0.0, 1 - 3 * delta))


def smallest(enough: Callable[[int], bool]) -> int:
    """The smallest sufficient number, at least 1, by doubling and bisection.

    All larger numbers must be sufficient too.
    """
    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high

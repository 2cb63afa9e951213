"""A regret bound of HOP-B by total variation, with a complete proof."""

from __future__ import annotations

import math
from typing import NamedTuple

from homdp_ppl.core.arguments import check_sizes
from homdp_ppl.theory._ranges import PROBABILITY
from homdp_ppl.theory.regret import C_O, C_T


class HopBTvBound(NamedTuple):
    """Terms of the total-variation bound on sum_k v(pi*) - v(pi_k) of HOP-B.

    Here G = 5 H^2 / 2, and P(S) = H S + 2 sqrt(H S K) bounds a sum of 1 / sqrt(n) over S cells.
    """

    concentration: float  # (10 H^3 + 4 H^2) sqrt(K log(1/delta) / 2), Azuma-Hoeffding
    emission: float  # (G + H) sqrt(b_O) 2 sqrt(H X K)
    transition: float  # G sqrt(b_T) 2 sqrt(H X A K)
    bonus: float  # sqrt(b_1) 2 sqrt(H X A K), the bonuses eps(x, a)
    emission_residual: float  # (G + H) sqrt(b_O) H X, first visits
    transition_residual: float  # (G sqrt(b_T) + sqrt(b_1)) H X A, first visits
    probability: float  # 1 - 4 delta, or 0

    @property
    def total(self) -> float:
        """The bound."""
        return math.fsum(self[:-1])


def hop_b_tv_bound(
    states: int, observations: int, actions: int, horizon: int, episodes: int, delta: float = 0.1
) -> HopBTvBound:
    """Regret of Algorithm 1, of order sqrt(H^5 X^2 A K + H^5 X Y K), with a complete proof.

    The proof of the paper's bound (:func:`hop_b_bound`), of order sqrt(H^4 X A K) in the
    transitions, uses a lemma that is false as stated. This bound compares the learned model with
    the true one by their total variation instead, as appendix C.6 does, and has one more factor X
    under the root. `docs/explanation/regret.md` has the proof. It is about Algorithm 1 as printed:
    ``replan_every_episode(hop_b(known=False))``.

    With b_O = max(4, beta_2), b_1 = max(4 H^2, beta_1) and, for X > 1, b_T = max(4, 2 log((2^X - 2)
    X A K H / delta)); b_T = 0 for X = 1.

    Parameters
    ----------
    states, observations, actions, horizon
        X, Y, A and H, in the order of ``Spaces.sizes``.
    episodes
        K.
    delta
        The delta of Algorithm 1.

    Examples
    --------
    >>> bound = hop_b_tv_bound(2, 2, 3, 4, episodes=1000)
    >>> f"{bound.total:.3g}, trivial {4 * 1000}, probability {bound.probability:.1f}"
    '2.25e+05, trivial 4000, probability 0.6'
    >>> from homdp_ppl.theory import hop_b_bound
    >>> bound.total < hop_b_bound(2, 2, 3, 4, episodes=1000).total  # its constants are smaller
    True
    """
    sizes = {
        "states": states,
        "observations": observations,
        "actions": actions,
        "horizon": horizon,
        "episodes": episodes,
    }
    X, Y, A, H, K = check_sizes("hop_b_tv_bound", {"delta": (delta, PROBABILITY)}, **sizes)
    delta = float(delta)
    half = 2.5 * H**2  # G: the sum of optimistic rewards is in [0, 5 H^2]
    emission = math.sqrt(max(4, C_O * Y * math.log(Y * X * K * H / delta)))
    bonus = math.sqrt(max(4 * H**2, C_T * H**3 * math.log(Y * X * A * H * K / delta)))
    subsets = X * math.log(2) + math.log1p(-(2.0 ** (1 - X))) if X > 1 else 0.0  # log(2^X - 2)
    transition = (
        math.sqrt(max(4, 2 * (subsets + math.log(X * A * K * H / delta)))) if X > 1 else 0.0
    )
    visits, pairs = 2 * math.sqrt(H * X * K), 2 * math.sqrt(H * X * A * K)
    return HopBTvBound(
        concentration=(10 * H**3 + 4 * H**2) * math.sqrt(K * math.log(1 / delta) / 2),
        emission=(half + H) * emission * visits,
        transition=half * transition * pairs,
        bonus=bonus * pairs,
        emission_residual=(half + H) * emission * H * X,
        transition_residual=(half * transition + bonus) * H * X * A,
        probability=max(0.0, 1 - 4 * delta),
    )

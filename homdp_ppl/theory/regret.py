"""The paper's three regret bounds, term by term, with the constants from the last displays of their
proofs.

Compare them with the trivial bound: rewards are in [0, 1], so the regret is at most H per policy.
For other rewards, multiply the bounds by the range of one reward.
The paper treats every row of T and O as unknown; the known rows of a declaration do not matter. It
treats stationary tables, emissions that do not depend on the previous action, a known initial
distribution and known rewards. For other declarations no regret bound is stated in the paper. They
can be encoded in the state: with the last action in the state, pass (A + 1) X as the number of
states, which is also the number of emission rows; with the step in the state, H X; with an unknown
start, X + 1 states and a horizon of H + 1. The bounds hold for the encoded model and the rule that
learns it. No bound is known for rewards that have to be learned.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from homdp_ppl.core.arguments import check_sizes
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.theory._ranges import PROBABILITY

C_T, C_O = 4, 8  # of the events E_T and E_O (appendix C), and of beta_1 and beta_2 in Algorithm 1
C_T_CLASS, C_O_CLASS = 8, 8  # C_T' and C_O' of appendix C.6
C = 21  # of the recursive bound on alpha-vectors (appendix C)


class HopBBound(NamedTuple):
    """Terms of the bound on sum_k v(pi*) - v(pi_k) of HOP-B (appendix C, full statement)."""

    concentration: float  # 48 C e sqrt(H^6 K log(2/delta)), Azuma-Hoeffding
    emission: float  # 3 C e sqrt(C_O Y X H^5 K iota)
    transition: float  # 3 C e sqrt(C_T X A H^4 K iota)
    second_order: float  # C e H^3 max(2, H) X^2 A iota (2 + log K), of the transitions
    emission_residual: float  # C e H^3 X sqrt(C_O Y iota), first visits
    transition_residual: float  # C e H X A sqrt(C_T H^3 iota), first visits
    probability: float  # 1 - 5 delta, or 0

    @property
    def total(self) -> float:
        """The bound."""
        return math.fsum(self[:-1])


def hop_b_bound(
    states: int, observations: int, actions: int, horizon: int, episodes: int, delta: float = 0.1
) -> HopBBound:
    """Regret of HOP-B: the full statement of the tabular theorem (appendix C), last display of its
    proof.

    Here iota = log(2 X^2 Y A K H / delta). Differences from the printed version:

    - The proof's process is a martingale over episodes, not over steps. So the first term has H^6 K
      instead of H^5 K.
    - ``second_order`` uses c = max(1, H/2), since H/2 violates c >= 1 at H = 1, and 2 + log K from
      the corrected pigeonhole lemma.
    - The probability is that of the appendix; the main text says 1 - delta.

    The proof has a gap. It applies the corollary of E_T^c, which holds for functions g >= 0, to
    differences of alpha-vectors of both signs, and the lemma that results is false as stated. The
    step from X^2 A to X A in the transition term rests on it. The theorem is not refuted: only an
    expectation of the lemma is used. :func:`hop_b_tv_bound` is a bound with a complete proof.

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
    >>> bound = hop_b_bound(2, 2, 3, 4, episodes=1000)
    >>> f"{bound.total:.3g}, trivial {4 * 1000}"
    '3.77e+07, trivial 4000'
    >>> max(bound._fields[:-1], key=lambda term: getattr(bound, term))
    'second_order'
    """
    sizes = {
        "states": states,
        "observations": observations,
        "actions": actions,
        "horizon": horizon,
        "episodes": episodes,
    }
    X, Y, A, H, K = check_sizes("hop_b_bound", {"delta": (delta, PROBABILITY)}, **sizes)
    delta = float(delta)  # numbers of lower precision would overflow
    iota = math.log(2 * X**2 * Y * A * K * H / delta)
    return HopBBound(
        concentration=48 * C * math.e * math.sqrt(H**6 * K * math.log(2 / delta)),
        emission=3 * C * math.e * math.sqrt(C_O * Y * X * H**5 * K * iota),
        transition=3 * C * math.e * math.sqrt(C_T * X * A * H**4 * K * iota),
        second_order=C * math.e * H**3 * max(2, H) * X**2 * A * iota * (2 + math.log(K)),
        emission_residual=C * math.e * H**3 * X * math.sqrt(C_O * Y * iota),
        transition_residual=C * math.e * H * X * A * math.sqrt(C_T * H**3 * iota),
        probability=max(0.0, 1 - 5 * delta),
    )


class HopBClassBound(NamedTuple):
    """Terms of the regret bound of HOP-B with an emission class (appendix C.6)."""

    concentration: float  # 64 sqrt(H^6 K log(2/delta)), Azuma-Hoeffding
    emission: float  # 48 sqrt(C_O' H^5 X K (log |Theta| + iota))
    transition: float  # 48 sqrt(C_T' H^5 X^2 A K iota)
    emission_residual: float  # 16 H^3 X sqrt(C_O' (log |Theta| + iota)), first visits
    transition_residual: float  # 16 H^3 X A sqrt(C_T' X iota), first visits
    probability: float  # 1 - 3 delta, or 0

    @property
    def total(self) -> float:
        """The bound."""
        return math.fsum(self[:-1])


def hop_b_class_bound(
    states: int, actions: int, horizon: int, episodes: int, size: int, delta: float = 0.1
) -> HopBClassBound:
    """Regret of HOP-B with a finite emission class that contains the truth (proposition of appendix
    C.6, proof's displays).

    Here iota = log(2 X^2 A K H / delta). One difference from the printed version: H^6 K in the
    first term, as in :func:`hop_b_bound`. Its printed factor 64 is correct: an episode's sum of
    radii is in [0, 4H], for which Azuma-Hoeffding requires 64 H^3 sqrt(K log(1/delta) / 2). The
    proposition assumes radii with delta inside their logarithms. The printed eps(x, a) has no
    delta; its event fails with probability at most X A K H (2^X - 2) (X^2 A K H)^(-4X), which is
    below delta unless delta is tiny.

    Parameters
    ----------
    states, actions, horizon
        X, A and H. The bound does not depend on the number of observations.
    episodes
        K.
    size
        Number of emission tables in the class.
    delta
        The delta of the radii.

    Examples
    --------
    >>> round(hop_b_class_bound(2, 3, 4, episodes=1000, size=50).total)
    2923173
    """
    sizes = {
        "states": states,
        "actions": actions,
        "horizon": horizon,
        "episodes": episodes,
        "size": size,
    }
    X, A, H, K, size = check_sizes("hop_b_class_bound", {"delta": (delta, PROBABILITY)}, **sizes)
    delta = float(delta)  # numbers of lower precision would overflow
    iota = math.log(2 * X**2 * A * K * H / delta)
    emission = C_O_CLASS * (math.log(size) + iota)
    return HopBClassBound(
        concentration=64 * math.sqrt(H**6 * K * math.log(2 / delta)),
        emission=48 * math.sqrt(H**5 * X * K * emission),
        transition=48 * math.sqrt(C_T_CLASS * H**5 * X**2 * A * K * iota),
        emission_residual=16 * H**3 * X * math.sqrt(emission),
        transition_residual=16 * H**3 * X * A * math.sqrt(C_T_CLASS * X * iota),
        probability=max(0.0, 1 - 3 * delta),
    )


class HopVBound(NamedTuple):
    """The regret bound of HOP-V over its epochs (appendix E).

    Total = H^2 sqrt(64 A K' potential (ridge + ... + deviation)).
    """

    epochs: int  # K' = floor(K / H)
    ridge: float  # lambda d = 1
    transition: float  # beta_T = 2 log(K' |T| / delta)
    emission: float  # beta_Theta = 2 log(K' |Theta| / delta)
    deviation: float  # log(K' H |T| |Theta| / delta)
    potential: float  # 2 d log(1 + K'), the elliptical potential with lambda = 1/d
    total: float
    probability: float  # 1 - 3 delta, or 0


def hop_v_bound(
    actions: int,
    horizon: int,
    episodes: int,
    transitions: int,
    emissions: int,
    rank: int,
    delta: float = 0.1,
) -> HopVBound:
    """Regret of HOP-V over its K' policies, one per epoch (theorem on function approximation,
    appendix E, final steps of the proof).

    Differences from the printed version:

    - K' where the last display has K.
    - The elliptical potential is 2 d log(1 + K'); the display omits the factor 2.
    - The proof has three events, so the probability is 1 - 3 delta.

    lambda ||W||^2 is at most 16 lambda d, not 8 lambda d. This does not change the bound, as 16 <=
    64 A. The theorem requires ||int psi g|| <= sqrt(d) for every g with values in [0, 1]; tables
    satisfy it with d = X, phi(x, a) = T(. | x, a).

    Parameters
    ----------
    actions, horizon
        A and H. The bound does not depend on the numbers of states and observations.
    episodes
        K, at least H.
    transitions, emissions
        Numbers of tables in the two classes.
    rank
        d, the rank of the true transitions.
    delta
        The delta of Algorithm 2.

    Examples
    --------
    >>> bound = hop_v_bound(
    ...     actions=3, horizon=4, episodes=1000, transitions=1, emissions=50, rank=2
    ... )
    >>> bound.epochs, round(bound.total)
    (250, 120250)
    """
    numbers = {"transitions": transitions, "emissions": emissions, "rank": rank}
    sizes = {"actions": actions, "horizon": horizon, "episodes": episodes} | numbers
    A, H, K, transitions, emissions, d = check_sizes(
        "hop_v_bound", {"delta": (delta, PROBABILITY)}, **sizes
    )
    delta = float(delta)  # numbers of lower precision would overflow
    if K < H:
        raise ParameterError(
            "hop_v_bound", [Problem("episodes", str(K), f"at least {H}, the length of an epoch")]
        )
    epochs = K // H
    size_t, size_o, level = math.log(transitions), math.log(emissions), math.log(epochs / delta)
    transition, emission = 2 * (level + size_t), 2 * (level + size_o)
    deviation = level + math.log(H) + size_t + size_o
    potential = 2 * d * math.log1p(epochs)
    total = H**2 * math.sqrt(64 * A * epochs * potential * (1 + transition + emission + deviation))
    return HopVBound(
        epochs, 1.0, transition, emission, deviation, potential, total, max(0.0, 1 - 3 * delta)
    )

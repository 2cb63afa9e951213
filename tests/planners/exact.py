"""Independent solutions of small POMDPs, slow and plain, that planners are checked against."""

from fractions import Fraction
from itertools import product

import numpy as np

from homdp_ppl import POMDP


def random_pomdp(seed: int, X: int, Y: int, A: int, H: int, zeros: float = 0.0) -> POMDP:
    """Random tables with stage-dependent rewards; ``zeros`` is the chance that an entry is impossible."""
    generator = np.random.default_rng(seed)

    def rows(*shape: int) -> np.ndarray:
        weights = generator.exponential(size=shape) * (generator.uniform(size=shape) >= zeros)
        weights[..., 0] += (weights.sum(-1) == 0) * 1.0
        return weights / weights.sum(-1, keepdims=True)

    return POMDP(rows(X), rows(X, A, X), rows(X, Y), generator.uniform(size=(H, X, A)))


def optimum(pomdp: POMDP) -> float:
    """The optimal value by recursion over histories with unnormalised beliefs."""
    rho, T, O, r = pomdp  # noqa: E741

    def best(weights: np.ndarray, h: int) -> float:
        return max(
            weights @ r[h, :, a]
            + (sum(best((weights @ T[:, a]) * O[:, y], h + 1) for y in range(O.shape[1])) if h + 1 < len(r) else 0.0)
            for a in range(T.shape[1])
        )

    return sum(best(rho * O[:, y], 0) for y in range(O.shape[1]))


def rational_optimum(pomdp: POMDP, denominator: int) -> Fraction:
    """The optimal value in exact rational arithmetic, of the model whose numbers are multiples of 1/denominator."""
    rho, T, O, r = (np.vectorize(lambda v: Fraction(round(v * denominator), denominator), otypes=[object])(t) for t in pomdp)  # noqa: E741
    X, A, _ = T.shape

    def best(weights: list, h: int) -> Fraction:
        values = []
        for a in range(A):
            now = sum((weights[x] * r[h, x, a] for x in range(X)), Fraction(0))
            if h + 1 < len(r):
                moved = [sum((weights[x] * T[x, a, z] for x in range(X)), Fraction(0)) for z in range(X)]
                now += sum((best([moved[z] * O[z, y] for z in range(X)], h + 1) for y in range(O.shape[1])), Fraction(0))
            values.append(now)
        return max(values)

    return sum((best([rho[x] * O[x, y] for x in range(X)], 0) for y in range(O.shape[1])), Fraction(0))


def rational_pomdp(seed: int, X: int, Y: int, A: int, H: int, denominator: int = 12) -> POMDP:
    """A model whose numbers are exact multiples of 1/denominator."""
    generator = np.random.default_rng(seed)

    def rows(*shape: int) -> np.ndarray:
        return generator.multinomial(denominator, np.full(shape[-1], 1 / shape[-1]), shape[:-1]) / denominator

    return POMDP(rows(X), rows(X, A, X), rows(X, Y), generator.integers(0, denominator + 1, (H, X, A)) / denominator)


def best_by_enumeration(pomdp: POMDP) -> float:
    """The best of all deterministic history-dependent policies, each evaluated by summing over trajectories."""
    rho, T, O, r = pomdp  # noqa: E741
    X, A, _ = T.shape
    H, Y = len(r), O.shape[1]
    histories = [h for n in range(1, H + 1) for h in product(range(Y), repeat=n)]  # own actions follow from observations
    best = -np.inf
    for choice in product(range(A), repeat=len(histories)):
        policy = dict(zip(histories, choice, strict=True))
        total = 0.0
        for states in product(range(X), repeat=H):
            for seen in product(range(Y), repeat=H):
                actions = [policy[seen[: h + 1]] for h in range(H)]
                chance = rho[states[0]] * np.prod([O[states[h], seen[h]] for h in range(H)])
                chance *= np.prod([T[states[h], actions[h], states[h + 1]] for h in range(H - 1)])
                total += chance * sum(r[h, states[h], actions[h]] for h in range(H))
        best = max(best, total)
    return best

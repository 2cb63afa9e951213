"""Independent solutions of small POMDPs, slow and plain, that planners are checked against."""

from fractions import Fraction
from itertools import product

import numpy as np

from homdp_ppl import POMDP


def random_pomdp(seed: int, X: int, Y: int, A: int, H: int, zeros: float = 0.0) -> POMDP:
    """Random tables with stage-dependent rewards.

    ``zeros`` is the chance that an entry is impossible.
    """
    generator = np.random.default_rng(seed)

    def rows(*shape: int) -> np.ndarray:
        weights = generator.exponential(size=shape) * (generator.uniform(size=shape) >= zeros)
        weights[..., 0] += (weights.sum(-1) == 0) * 1.0
        return weights / weights.sum(-1, keepdims=True)

    return POMDP(rows(X), rows(X, A, X), rows(X, Y), generator.uniform(size=(H, X, A)))


def signed_pomdp(seed: int, zeros: bool, X: int = 3, Y: int = 2, A: int = 2, H: int = 4) -> POMDP:
    """The same with rewards of both signs; with ``zeros``, half of all entries are impossible."""
    model = random_pomdp(seed, X, Y, A, H, zeros / 2)
    return model._replace(reward=2 * model.reward - 1)


def same_models(model: POMDP) -> list[POMDP]:
    """A model of 3 states, 3 observations and 2 actions in other dress.

    Each of them has the same optimum.
    """
    rho, T, O, r = model  # noqa: E741
    p, q, s = np.array([2, 0, 1]), np.array([1, 2, 0]), np.array([1, 0])
    return [
        POMDP(rho[p], T[p][:, s][:, :, p], O[p][:, q], r[:, p][:, :, s]),  # other names
        POMDP(
            rho, np.concatenate([T, T[:, :1]], 1), O, np.concatenate([r, r[:, :, :1]], 2)
        ),  # an action twice
        POMDP(
            rho, T, np.concatenate([0.3 * O[:, :1], 0.7 * O[:, :1], O[:, 1:]], 1), r
        ),  # an observation split
    ]


def tree_values(pomdp: POMDP, joint: np.ndarray, h: int = 0) -> np.ndarray:
    """Optimal values of joint weights (n, X) at step h, by the tree of everything that can be done
    and seen after them.
    """
    gains = joint @ pomdp.reward[h]
    if h + 1 < pomdp.horizon:
        after = np.einsum(
            "naz,zy->nayz", np.einsum("nx,xaz->naz", joint, pomdp.transition), pomdp.emission
        )
        gains += (
            tree_values(pomdp, after.reshape(-1, joint.shape[1]), h + 1)
            .reshape(after.shape[:3])
            .sum(-1)
        )
    return gains.max(1)


def optimum(pomdp: POMDP) -> float:
    """The optimal value of a small model, exactly."""
    return float(tree_values(pomdp, (pomdp.initial[:, None] * pomdp.emission).T).sum())


def rational_optimum(pomdp: POMDP, denominator: int) -> Fraction:
    """The optimal value in exact rational arithmetic, of the model whose numbers are multiples of
    1/denominator.
    """
    rho, T, emission, r = (
        np.vectorize(lambda v: Fraction(round(v * denominator), denominator), otypes=[object])(t)
        for t in pomdp
    )
    X, A, _ = T.shape

    def best(weights: list, h: int) -> Fraction:
        values = []
        for a in range(A):
            now = sum((weights[x] * r[h, x, a] for x in range(X)), Fraction(0))
            if h + 1 < len(r):
                moved = [
                    sum((weights[x] * T[x, a, z] for x in range(X)), Fraction(0)) for z in range(X)
                ]
                now += sum(
                    (
                        best([moved[z] * emission[z, y] for z in range(X)], h + 1)
                        for y in range(emission.shape[1])
                    ),
                    Fraction(0),
                )
            values.append(now)
        return max(values)

    return sum(
        (best([rho[x] * emission[x, y] for x in range(X)], 0) for y in range(emission.shape[1])),
        Fraction(0),
    )


def rational_pomdp(seed: int, X: int, Y: int, A: int, H: int, denominator: int = 12) -> POMDP:
    """A model whose numbers are exact multiples of 1/denominator."""
    generator = np.random.default_rng(seed)

    def rows(*shape: int) -> np.ndarray:
        return (
            generator.multinomial(denominator, np.full(shape[-1], 1 / shape[-1]), shape[:-1])
            / denominator
        )

    return POMDP(
        rows(X),
        rows(X, A, X),
        rows(X, Y),
        generator.integers(0, denominator + 1, (H, X, A)) / denominator,
    )


def best_by_enumeration(model: POMDP) -> float:
    """The best of all deterministic history-dependent policies, each a column, valued by summing
    over all trajectories.
    """
    rho, T, O, r = model  # noqa: E741
    (H, X, A), Y = r.shape, O.shape[1]
    histories = [seen for h in range(1, H + 1) for seen in product(range(Y), repeat=h)]
    policies = dict(
        zip(histories, np.array(list(product(range(A), repeat=len(histories)))).T, strict=True)
    )
    values = np.zeros(A ** len(histories))
    for states, seen in product(product(range(X), repeat=H), product(range(Y), repeat=H)):
        chance, rewards = np.full(len(values), rho[states[0]]), np.zeros(len(values))
        for h, (x, y) in enumerate(zip(states, seen, strict=True)):
            action = policies[seen[: h + 1]]
            chance *= O[x, y] * (T[x, action, states[h + 1]] if h + 1 < H else 1)
            rewards += r[h, x, action]
        values += chance * rewards
    return values.max()

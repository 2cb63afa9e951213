"""Independent, simple and slow solutions of small POMDPs, as references for planners."""

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from homdp_ppl import POMDP


def random_pomdp(seed: int, X: int, Y: int, A: int, H: int, zeros: float = 0.0) -> POMDP:
    """Random tables with rewards that depend on the step.

    ``zeros`` is the probability that an entry is impossible.
    """
    generator = np.random.default_rng(seed)

    def rows(*shape: int) -> np.ndarray:
        weights = generator.exponential(size=shape) * (generator.uniform(size=shape) >= zeros)
        weights[..., 0] += (weights.sum(-1) == 0) * 1.0
        return weights / weights.sum(-1, keepdims=True)

    return POMDP.of(rows(X), rows(X, A, X), rows(X, Y), generator.uniform(size=(H, X, A)))


def dependent_pomdp(
    seed: int,
    X: int = 2,
    Y: int = 2,
    A: int = 2,
    H: int = 3,
    zeros: float = 0.0,
    kinds: str = "toy",
) -> POMDP:
    """Random tables of a model that is not stationary.

    ``kinds`` contains "t" if transitions depend on the step, "o" if emissions depend on the step
    and the previous action, "a" if they depend on the action only, "s" if they depend on the step
    only, and "y" if rewards depend on the observation.
    """
    generator = np.random.default_rng(seed)

    def rows(*shape: int) -> np.ndarray:
        weights = generator.exponential(size=shape) * (generator.uniform(size=shape) >= zeros)
        weights[..., 0] += (weights.sum(-1) == 0) * 1.0
        return weights / weights.sum(-1, keepdims=True)

    return POMDP.of(
        *_tables(rows, X, Y, A, H, kinds), generator.uniform(size=_rewards(X, Y, A, H, kinds))
    )


def _tables(rows: Callable, X: int, Y: int, A: int, H: int, kinds: str) -> tuple[Any, Any, Any]:
    """Initial distribution, transitions and emissions of the given kinds."""
    emissions = {"o": (H, A + 1, X, Y), "a": (A + 1, X, Y), "s": (H, 1, X, Y)}
    emission = next((emissions[kind] for kind in kinds if kind in emissions), (X, Y))
    return rows(X), rows(*(H,) * ("t" in kinds), X, A, X), rows(*emission)


def _rewards(X: int, Y: int, A: int, H: int, kinds: str) -> tuple[int, ...]:
    return (H, X, Y, A) if "y" in kinds else (H, X, A)


DEPENDENT = ("t", "o", "a", "y", "toy", "ta")  # kinds of dependence that planners must handle


def full(pomdp: POMDP) -> tuple[np.ndarray, ...]:
    """T[h, x, a, x'], O[h, previous action or A, x, y] and r[h, x, y, a] with all axes."""
    (_, X, A, _), Y, H = pomdp.transition.shape, pomdp.emission.shape[-1], len(pomdp.reward)
    return (
        np.broadcast_to(pomdp.transition, (H, X, A, X)),
        np.broadcast_to(pomdp.emission, (H, A + 1, X, Y)),
        np.broadcast_to(pomdp.reward, (H, X, Y, A)),
    )


def signed_pomdp(seed: int, zeros: bool, X: int = 3, Y: int = 2, A: int = 2, H: int = 4) -> POMDP:
    """Random tables with rewards of both signs; with ``zeros``, half the entries are impossible."""
    model = random_pomdp(seed, X, Y, A, H, zeros / 2)
    return model._replace(reward=2 * model.reward - 1)


def same_models(model: POMDP) -> list[POMDP]:
    """Models that are equivalent to a model of 3 states, 3 observations and 2 actions.

    Each of them has the same optimum.
    """
    rho, T, O, r = model.stationary()  # noqa: E741
    p, q, s = np.array([2, 0, 1]), np.array([1, 2, 0]), np.array([1, 0])
    return [
        POMDP.of(rho[p], T[p][:, s][:, :, p], O[p][:, q], r[:, p][:, :, s]),  # permuted
        POMDP.of(
            rho, np.concatenate([T, T[:, :1]], 1), O, np.concatenate([r, r[:, :, :1]], 2)
        ),  # a duplicate action
        POMDP.of(
            rho, T, np.concatenate([0.3 * O[:, :1], 0.7 * O[:, :1], O[:, 1:]], 1), r
        ),  # one observation split into two
    ]


def tree_values(
    pomdp: POMDP, joint: np.ndarray, h: int = 0, seen: np.ndarray | None = None
) -> np.ndarray:
    """Optimal values of joint weights (n, X) at step h after the observations ``seen`` (n,), by
    recursion over all actions and observations.
    """
    T, O, r = full(pomdp)  # noqa: E741
    seen = np.zeros(len(joint), int) if seen is None else seen
    gains = np.einsum("nx,xna->na", joint, r[h][:, seen])
    if h + 1 < pomdp.horizon:
        after = np.einsum("nx,xaz,azy->nayz", joint, T[h], O[h + 1, :-1])
        later = np.broadcast_to(np.arange(after.shape[2]), after.shape[:3]).ravel()
        gains += (
            tree_values(pomdp, after.reshape(-1, joint.shape[1]), h + 1, later)
            .reshape(after.shape[:3])
            .sum(-1)
        )
    return gains.max(1)


def optimum(pomdp: POMDP) -> float:
    """The optimal value of a small model, exactly."""
    first = full(pomdp)[1][0, -1]
    joint = (pomdp.initial[:, None] * first).T
    return float(tree_values(pomdp, joint, seen=np.arange(len(joint))).sum())


def everything_allowed(observations: tuple, actions: tuple) -> slice:
    """No restriction of the actions."""
    return slice(None)


def rational_optimum(
    pomdp: POMDP, denominator: int, allowed: Callable = everything_allowed
) -> Fraction:
    """The optimal value in exact rational arithmetic, for numbers that are multiples of
    1/denominator; ``allowed`` is asked only after histories of positive probability.
    """
    rho, T, O, r = (  # noqa: E741
        np.vectorize(lambda v: Fraction(round(v * denominator), denominator), otypes=[object])(t)
        for t in (pomdp.initial, *full(pomdp))
    )
    H, X, Y, A = r.shape

    def best(weights: list, h: int, seen: tuple, done: tuple) -> Fraction:
        if not any(weights):
            return Fraction(0)
        values = []
        for a in map(int, np.arange(A)[allowed(seen, done)]):
            now = sum((weights[x] * r[h, x, seen[-1], a] for x in range(X)), Fraction(0))
            if h + 1 < H:
                moved = [
                    sum((weights[x] * T[h, x, a, z] for x in range(X)), Fraction(0))
                    for z in range(X)
                ]
                for y in range(Y):
                    after = [moved[z] * O[h + 1, a, z, y] for z in range(X)]
                    now += best(after, h + 1, (*seen, y), (*done, a))
            values.append(now)
        return max(values)

    first = ([rho[x] * O[0, A, x, y] for x in range(X)] for y in range(Y))
    return sum((best(after, 0, (y,), ()) for y, after in enumerate(first)), Fraction(0))


def rational_pomdp(
    seed: int, X: int, Y: int, A: int, H: int, denominator: int = 12, kinds: str = ""
) -> POMDP:
    """A model whose numbers are exact multiples of 1/denominator."""
    generator = np.random.default_rng(seed)

    def rows(*shape: int) -> np.ndarray:
        return (
            generator.multinomial(denominator, np.full(shape[-1], 1 / shape[-1]), shape[:-1])
            / denominator
        )

    tables, size = _tables(rows, X, Y, A, H, kinds), _rewards(X, Y, A, H, kinds)
    return POMDP.of(*tables, generator.integers(0, denominator + 1, size) / denominator)


def best_by_enumeration(model: POMDP, allowed: Callable | None = None) -> float:
    """The best value of all deterministic history-dependent policies, by summing over all
    trajectories. Each policy is a column.

    With ``allowed``, policies are left out that take a forbidden action after a history of positive
    probability.
    """
    rho, (T, O, r) = model.initial, full(model)  # noqa: E741
    H, X, Y, A = r.shape
    histories = [seen for h in range(1, H + 1) for seen in product(range(Y), repeat=h)]
    policies = dict(
        zip(histories, np.array(list(product(range(A), repeat=len(histories)))).T, strict=True)
    )
    values = np.zeros(A ** len(histories))
    reached = {seen: np.zeros(len(values)) for seen in histories}  # probabilities
    for states, seen in product(product(range(X), repeat=H), product(range(Y), repeat=H)):
        chance, rewards = np.full(len(values), rho[states[0]]), np.zeros(len(values))
        before = np.full(len(values), A)  # the previous action; A before the first one
        for h, (x, y) in enumerate(zip(states, seen, strict=True)):
            action = policies[seen[: h + 1]]
            chance *= O[h, before, x, y] * (T[h, x, action, states[h + 1]] if h + 1 < H else 1)
            rewards += r[h, x, y, action]
            before = action
        values += chance * rewards
        for h in range(H):
            reached[seen[: h + 1]] += chance
    valid = np.ones(len(values), dtype=bool)
    for seen in histories if allowed is not None else ():
        done = np.array([policies[seen[: k + 1]] for k in range(len(seen) - 1)]).reshape(
            len(seen) - 1, len(values)
        )
        for k in np.flatnonzero(valid & (reached[seen] > 0)):
            assert allowed is not None
            valid[k] = allowed(seen, tuple(done[:, k]))[policies[seen][k]]
    return values[valid].max()

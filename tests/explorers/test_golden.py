"""Bonuses, models and optimistic values of all rules for fixed counts, from the definitions.

Six rows of the model are unknown, one of them on a smaller support; three are known. The reference
planner is a recursion over histories in plain Python.
"""

from dataclasses import replace
from itertools import product
from math import ceil, log, sqrt

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.stats import beta, norm

from homdp_ppl import POMDP, Counts, Kernels, evaluate, explorers, homdp, tabular
from tests.explorers.plain import backed_up, clipped_optimum, decide, sensor
from tests.planners.exact import optimum

X, Y, A, H = 3, 2, 2, 3
K, DELTA = 50, 0.2
INITIAL = np.array([0.5, 0.3, 0.2])
REWARD = (
    np.array([[[0, 3], [8, 1], [2, 5]], [[4, 0], [1, 7], [6, 2]], [[1, 8], [3, 3], [8, 0]]]) / 8
)

FULL = np.array([[2.0, 1, 1], [1, 1, 1], [1, 1, 2]])  # priors of T(.|0,0), T(.|1,1) and T(.|2,1)
PART = np.array([1.0, 2])  # of T(.|1,0), on the states 0 and 2
SEEN = np.array([[3.0, 1], [1, 2]])  # of O(.|0) and O(.|2)


@homdp(states=X, observations=Y, actions=A, horizon=H, reward=REWARD)
def partly_known():
    full = numpyro.sample("full", dist.Dirichlet(FULL).to_event(1))
    part = numpyro.sample("part", dist.Dirichlet(PART))
    seen = numpyro.sample("seen", dist.Dirichlet(SEEN).to_event(1))
    around = jnp.array([part[0], 0.0, part[1]])
    T = jnp.array([[full[0], [0, 0.5, 0.5]], [around, full[1]], [[0, 0, 1], full[2]]])
    return Kernels(INITIAL, T, jnp.array([seen[0], [0.25, 0.75], seen[1]]))


UNKNOWN_T = {
    (0, 0): [0, 1, 2],
    (1, 0): [0, 2],
    (1, 1): [0, 1, 2],
    (2, 1): [0, 1, 2],
}  # and their supports
UNKNOWN_O = (0, 2)
# The counts of the known rows (0, 1), (2, 0) of T and 1 of O are unlikely or impossible; (2, 1) was
# never visited.
N_T = np.array(
    [[[120, 40, 40], [0, 30, 10]], [[50, 0, 150], [100, 300, 400]], [[0, 0, 20], [0, 0, 0]]]
)
N_O = np.array([[180, 60], [500, 500], [10, 10]])
COUNTS = Counts(N_T, N_O)
FEW, MANY = Counts(N_T // 10, N_O // 10), Counts(N_T * 40, N_O * 40)

T_HAT = np.array(
    [
        [[0.6, 0.2, 0.2], [0, 0.5, 0.5]],
        [[0.25, 0, 0.75], [0.125, 0.375, 0.5]],
        [[0, 0, 1], [1 / 3, 1 / 3, 1 / 3]],
    ]
)
O_HAT = np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]])
VERBATIM_T = T_HAT.copy()  # nothing known: frequencies
VERBATIM_T[0, 1] = [0, 0.75, 0.25]
VERBATIM_O = np.array([[0.75, 0.25], [0.5, 0.5], [0.5, 0.5]])


def rows(of_transition, of_emission, known=True):
    """Radii of all rows, 0 for known rows: (X, A) and (X,)."""
    T = [
        [of_transition(x, a) if (x, a) in UNKNOWN_T or not known else 0.0 for a in range(A)]
        for x in range(X)
    ]
    return np.array(T), np.array(
        [of_emission(x) if x in UNKNOWN_O or not known else 0.0 for x in range(X)]
    )


def capped(scale, numerator, n, cap):
    return cap if n == 0 else min(scale * sqrt(numerator / n), cap)


def added(decision):
    return decision.model.reward[:, :, 0] - REWARD


# Optimism from counts


@pytest.mark.parametrize(("scale", "known"), [(1.0, True), (0.05, True), (0.05, False)])
def test_hop_b(scale, known):
    """Algorithm 1; at scale 1 all bonuses of this small problem are at their caps."""
    beta_1 = 4 * H**3 * log(Y * X * A * H * K / DELTA)
    beta_2 = 8 * Y * log(Y * X * K * H / DELTA)
    eps_T, eps_O = rows(
        lambda x, a: capped(scale, beta_1, N_T[x, a].sum(), 2 * H),
        lambda x: capped(scale, beta_2, N_O[x].sum(), 2),
        known,
    )
    bonus = H * eps_O[:, None] + eps_T
    _, decision = decide(explorers.hop_b(DELTA, scale, known), partly_known, COUNTS, K)
    np.testing.assert_allclose(added(decision), np.broadcast_to(bonus, (H, X, A)), atol=1e-12)
    model = POMDP.of(
        INITIAL, T_HAT if known else VERBATIM_T, O_HAT if known else VERBATIM_O, REWARD + bonus
    )
    assert decision.optimistic == pytest.approx(optimum(model), abs=1e-10)
    assert evaluate(decision.policy, model) == pytest.approx(optimum(model), abs=1e-10)


CLASS = np.array(
    [
        [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]],
        [[0.8, 0.2], [0.5, 0.5], [0.4, 0.6]],  # the likeliest for O(.|0) and O(.|2)
        [[0.7, 0.3], [0.5, 0.5], [0.1, 0.9]],
    ]
)


@pytest.mark.parametrize(("scale", "known"), [(1.0, False), (0.2, True)])
def test_hop_b_class(scale, known):
    """Appendix C.6; known rows stay exact, even if the class contradicts them."""
    likelihood = [
        sum(n * log(p) for n, p in zip(N_O.ravel(), table.ravel(), strict=True)) for table in CLASS
    ]
    assert int(np.argmax(likelihood)) == 1
    eps_T, eps_O = rows(
        lambda x, a: capped(scale, 8 * X * log(X**2 * A * K * H), N_T[x, a].sum(), 2),
        lambda x: capped(scale, 8 * log(3 * X * K / DELTA), N_O[x].sum(), 2),
        known,
    )
    bonus = 3 * H * eps_T + H * eps_O[:, None]
    _, decision = decide(explorers.hop_b_class(CLASS, DELTA, scale, known), partly_known, COUNTS, K)
    np.testing.assert_allclose(added(decision), np.broadcast_to(bonus, (H, X, A)), atol=1e-12)
    O_class = np.array([CLASS[1, 0], O_HAT[1], CLASS[1, 2]]) if known else CLASS[1]
    model = POMDP.of(INITIAL, T_HAT if known else VERBATIM_T, O_class, REWARD + bonus)
    np.testing.assert_allclose(decision.model.shows(0), O_class, atol=1e-15)
    np.testing.assert_allclose(decision.model.moves(0), model.moves(0), atol=1e-15)
    assert decision.optimistic == pytest.approx(optimum(model), abs=1e-10)


def centred(eps_T, eps_O, T):
    """Bonuses (H - h)/2 [eps_T(x, a) + sum_x' T(x'|x, a) eps_O(x')] at step h.

    The root gets (H/2) sum_x rho(x) eps_O(x).
    """
    bonus = np.zeros((H, X, A))
    for h, x, a in product(range(1, H + 1), range(X), range(A)):
        bonus[h - 1, x, a] = (
            (H - h) / 2 * (eps_T[x, a] + sum(T[x, a, z] * eps_O[z] for z in range(X)))
        )
    return bonus, H / 2 * sum(INITIAL * eps_O)


def weissman(dimension, level, n):
    return min(2.0, sqrt(2 * log((2**dimension - 2) / level) / n)) if n else 2.0


@pytest.mark.parametrize("known", [True, False])
def test_tight(known):
    """Weissman's radii on the declared supports.

    The start term is added at the root after clipping, with a maximum of H.
    """
    level = DELTA / ((X + X * A) * K * H)
    eps_T, eps_O = rows(
        lambda x, a: weissman(len(UNKNOWN_T[x, a]) if known else X, level, 40 * N_T[x, a].sum()),
        lambda x: weissman(Y, level, 40 * N_O[x].sum()),
        known,
    )
    T, O = (T_HAT, O_HAT) if known else (VERBATIM_T, VERBATIM_O)  # noqa: E741
    bonus, start = centred(eps_T, eps_O, T)
    proposal, decision = decide(explorers.tight(DELTA, known), partly_known, MANY, K)
    np.testing.assert_allclose(added(decision), bonus, atol=1e-12)
    assert proposal.parameters == pytest.approx(start, abs=1e-12)
    model = POMDP.of(INITIAL, T, O, REWARD + bonus)
    value = clipped_optimum(model)
    assert value + start < H - 0.01  # the minimum with H has no effect here
    assert decision.optimistic == pytest.approx(value + start, abs=1e-10)
    few = decide(explorers.tight(DELTA, known), partly_known, FEW, K)[1]
    assert few.optimistic == H


# Optimism from posteriors

ALPHA_T = {
    (0, 0): FULL[0],
    (1, 0): np.array([PART[0], 0, PART[1]]),
    (1, 1): FULL[1],
    (2, 1): FULL[2],
}
ALPHA_O = {0: SEEN[0], 2: SEEN[1]}


def posterior_rows(counts):
    """Concentrations of the unknown rows, and the mean tables."""
    alpha_T = {row: prior + counts.transition[row] for row, prior in ALPHA_T.items()}
    alpha_O = {x: prior + counts.emission[x] for x, prior in ALPHA_O.items()}
    T, O = T_HAT.copy(), O_HAT.copy()  # noqa: E741
    for row, alpha in alpha_T.items():
        T[row] = alpha / alpha.sum()
    for x, alpha in alpha_O.items():
        O[x] = alpha / alpha.sum()
    return alpha_T, alpha_O, T, O


def bonus_value(eps_T, eps_O, T, O):  # noqa: E741
    bonus, start = centred(eps_T, eps_O, T)
    return min(H, clipped_optimum(POMDP.of(INITIAL, T, O, REWARD + bonus)) + start)


def test_quantile_bonus_by_the_bound():
    """Radii sqrt(2 log((2^d - 2) / delta') / (alpha_0 + 1)) with delta' = delta / 6."""
    alpha_T, alpha_O, T, O = posterior_rows(COUNTS)  # noqa: E741
    eps_T, eps_O = rows(
        lambda x, a: weissman(len(UNKNOWN_T[x, a]), DELTA / 6, alpha_T[x, a].sum() + 1),
        lambda x: weissman(Y, DELTA / 6, alpha_O[x].sum() + 1),
    )
    _, decision = decide(explorers.quantile_bonus(DELTA, bound=True), partly_known, COUNTS, K)
    np.testing.assert_allclose(decision.model.moves(0), T, atol=1e-12)
    np.testing.assert_allclose(decision.model.shows(0), O, atol=1e-12)
    np.testing.assert_allclose(added(decision), centred(eps_T, eps_O, T)[0], atol=1e-12)
    assert decision.optimistic == pytest.approx(bonus_value(eps_T, eps_O, T, O), abs=1e-10)


def test_quantile_bonus_by_draws():
    """The result is between those of two exact quantiles around the requested one.

    The level of the k-th smallest of S draws is Beta(k, S + 1 - k): six rows leave its central part
    with probability 1e-6 in total. The reference uses so many new draws that its own error is far
    smaller.
    """
    alpha_T, alpha_O, T, O = posterior_rows(MANY)  # noqa: E741
    S = ceil(10 * 6 / DELTA)
    k = ceil(round((1 - DELTA / 6) * (S + 1), 9))
    levels = beta.ppf(1e-6 / 12, k, S + 1 - k), beta.isf(1e-6 / 12, k, S + 1 - k)
    generator = np.random.default_rng(0)

    def radii(alpha):
        alpha = alpha[alpha > 0]
        return np.quantile(
            np.abs(generator.dirichlet(alpha, 200_000) - alpha / alpha.sum()).sum(-1), levels
        )

    drawn = {row: radii(alpha) for row, alpha in (alpha_T | alpha_O).items()}
    low, high = (rows(lambda x, a, s=s: drawn[x, a][s], lambda x, s=s: drawn[x][s]) for s in (0, 1))
    _, decision = decide(explorers.quantile_bonus(DELTA), partly_known, MANY, K)
    assert (centred(*low, T)[0] <= added(decision)).all()
    assert (added(decision) <= centred(*high, T)[0]).all()
    assert bonus_value(*low, T, O) < decision.optimistic < bonus_value(*high, T, O) < H
    assert (
        decision.optimistic
        != decide(explorers.quantile_bonus(DELTA), partly_known, MANY, K, seed=1)[1].optimistic
    )


def second_moments(alpha, exact):
    """E[p_i p_j] of a Dirichlet row or a known row."""
    if alpha is None:
        return np.outer(exact, exact)
    total = alpha.sum()
    return (np.outer(alpha, alpha) + np.diag(alpha)) / (total * (total + 1))


def mean_and_variance(alpha_T, alpha_O, T, O, x, a, later):  # noqa: E741
    """The second moment of the sum over x', y' of T(x'|x, a) O(y'|x') alpha(y', x').

    The square is expanded over (x', y') and (x'', y'').
    """
    mean = sum(T[x, a, z] * O[z, y] * later[a, y, z] for z in range(X) for y in range(Y))
    moved, square = second_moments(alpha_T.get((x, a)), T[x, a]), 0.0
    for (z, y), (w, v) in product(product(range(X), range(Y)), repeat=2):
        seen = second_moments(alpha_O.get(z), O[z])[y, v] if z == w else O[z, y] * O[w, v]
        square += moved[z, w] * seen * later[a, y, z] * later[a, v, w]
    return mean, square - mean**2


@pytest.mark.parametrize("z", [1.645, 0.5, 0.0])
def test_quantile_backup(z):
    """Backups alpha = r + min(H - h, mu + z sigma) at every history.

    The same is applied at the root, with the first observation.
    """
    alpha_T, alpha_O, T, O = posterior_rows(FEW)  # noqa: E741

    def backup(h, later):
        moments = [
            [mean_and_variance(alpha_T, alpha_O, T, O, x, a, later) for a in range(A)]
            for x in range(X)
        ]
        return np.array(
            [[min(H - h, m + z * sqrt(max(v, 0.0))) for m, v in row] for row in moments]
        )

    first, actions = backed_up(POMDP.of(INITIAL, T, O, REWARD), backup)
    mean = sum(INITIAL[x] * O[x] @ first[:, x] for x in range(X))
    variance = 0.0
    for x in range(X):
        seen = second_moments(alpha_O.get(x), O[x])
        variance += INITIAL[x] ** 2 * (first[:, x] @ seen @ first[:, x] - (O[x] @ first[:, x]) ** 2)
    _, decision = decide(explorers.quantile_backup(z), partly_known, FEW, K)
    assert decision.optimistic == pytest.approx(min(H, mean + z * sqrt(variance)), abs=1e-9)
    for history, action in actions.items():
        chances = decision.policy.act(np.array(history[::2]), np.array(history[1::2], dtype=int))
        assert chances[action] == 1.0, history
    if z == 0.0:
        assert decision.optimistic == pytest.approx(
            optimum(POMDP.of(INITIAL, T, O, REWARD)), abs=1e-9
        )


def test_quantile_backup_by_draws():
    """Without a closed form: the ceil(Phi(z) 257)-th smallest of 256 backups.

    It is applied at every history and at the root.
    """
    model, z = sensor(), 0.7
    proposal, decision = decide(explorers.quantile_backup(z), model, Counts.zero(model))
    T, O = proposal.parameters.moves(0)[0], proposal.parameters.shows(0)[0]  # noqa: E741
    assert len(T) == len(O) == 256
    place = ceil(norm.cdf(z) * 257) - 1

    def backup(h, later):
        return np.minimum(
            np.sort(np.einsum("sxaz,szy,ayz->sxa", T, O, later), axis=0)[place], model.horizon - h
        )

    mean = POMDP(*(part[0] for part in proposal.models))
    first, _ = backed_up(mean, backup)
    values = sorted(mean.initial @ (O[s] * first.T).sum(-1) for s in range(256))
    assert decision.optimistic == pytest.approx(min(model.horizon, values[place]), abs=1e-10)
    np.testing.assert_allclose(
        mean.moves(0), T.mean(0), atol=0.08
    )  # the mean of all stored draws, up to their error


def test_posterior_sampling():
    """Plan for one draw, in which known rows are exact."""
    proposal, decision = decide(explorers.posterior_sampling(), partly_known, FEW, K)
    model = POMDP(*(part[0] for part in proposal.models))
    assert len(proposal.models.initial) == 1
    known = [row for row in product(range(X), range(A)) if row not in UNKNOWN_T]
    assert all(np.array_equal(model.moves(0)[row], T_HAT[row]) for row in known)
    assert model.moves(0)[1, 0, 1] == 0.0
    np.testing.assert_array_equal(model.shows(0)[1], O_HAT[1])
    assert decision.optimistic == pytest.approx(optimum(model), abs=1e-10)
    assert evaluate(decision.policy, model) == pytest.approx(optimum(model), abs=1e-10)


@pytest.mark.parametrize(
    ("q", "draws", "place"), [(0.5, 5, 3), (0.8, 5, 4), (0.81, 5, 5), (0.1, 1, 1), (1e-12, 5, 1)]
)
def test_value_quantile(q, draws, place):
    """The ceil(q S)-th smallest optimal value, and its plan.

    q = 0.07 and S = 100 give 7 in spite of floating-point errors.
    """
    assert explorers.value_quantile(0.07, 100).objective.pick == 7
    proposal, decision = decide(explorers.value_quantile(q, draws), partly_known, FEW, K)
    candidates = [POMDP(*(part[c] for part in proposal.models)) for c in range(draws)]
    values = [optimum(candidate) for candidate in candidates]
    assert decision.optimistic == pytest.approx(sorted(values)[place - 1], abs=1e-10)
    chosen = candidates[int(np.argsort(values)[place - 1])]
    np.testing.assert_array_equal(decision.model.transition, chosen.transition)
    assert evaluate(decision.policy, chosen) == pytest.approx(sorted(values)[place - 1], abs=1e-10)


# Baselines


@pytest.mark.parametrize("known", [True, False])
def test_greedy(known):
    _, decision = decide(explorers.greedy(known), partly_known, COUNTS, K)
    model = POMDP.of(
        INITIAL, T_HAT if known else VERBATIM_T, O_HAT if known else VERBATIM_O, REWARD
    )
    for planned, by_hand in zip(decision.model, model, strict=True):
        np.testing.assert_allclose(planned, by_hand, atol=1e-15)
    assert decision.optimistic == pytest.approx(optimum(model), abs=1e-10)


def test_greedy_without_data():
    """Uniform on the declared support, or on all entries if nothing is known."""
    blank = Counts.zero(partly_known)
    model = decide(explorers.greedy(), partly_known, blank, K)[1].model
    T, O = model.moves(0), model.shows(0)  # noqa: E741
    for row, support in UNKNOWN_T.items():
        np.testing.assert_allclose(T[row], np.isin(range(X), support) / len(support))
    np.testing.assert_array_equal(T[0, 1], T_HAT[0, 1])
    np.testing.assert_array_equal(O, [[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]])
    model = decide(explorers.greedy(known=False), partly_known, blank, K)[1].model
    T, O = model.moves(0), model.shows(0)  # noqa: E741
    np.testing.assert_allclose(T, np.full((X, A, X), 1 / 3))
    np.testing.assert_allclose(O, np.full((X, Y), 0.5))


def test_random_actions():
    """A share epsilon of greedy's actions is uniform, and all actions of uniform are.

    The planned value is that of greedy.
    """
    rules = explorers.greedy(), explorers.epsilon_greedy(0.3), explorers.uniform()
    greedy, mixed, random = (decide(rule, partly_known, COUNTS, K)[1] for rule in rules)
    np.testing.assert_allclose(
        mixed.policy.probabilities, 0.7 * greedy.policy.probabilities + 0.15, atol=1e-15
    )
    np.testing.assert_array_equal(
        random.policy.probabilities, np.full_like(greedy.policy.probabilities, 0.5)
    )
    assert greedy.optimistic == mixed.optimistic == random.optimistic
    assert (
        evaluate(random.policy, mixed.model)
        < evaluate(mixed.policy, mixed.model)
        < greedy.optimistic
    )


def test_oracle():
    """The optimum of the world for any data, even if the declaration excludes some outcomes."""
    world = partly_known.at(
        full=FULL / FULL.sum(1, keepdims=True),
        part=PART / 3,
        seen=SEEN / SEEN.sum(1, keepdims=True),
    )
    _, decision = decide(explorers.oracle(world), partly_known, COUNTS, K)
    assert decision.optimistic == pytest.approx(optimum(world.pomdp), abs=1e-10)
    sure = tabular(
        T=np.eye(2)[:, None].repeat(2, 1),
        O=np.eye(2),
        initial=[0.5, 0.5],
        reward=np.eye(2),
        horizon=2,
    ).at()
    strange = replace(
        sure, _pomdp=sure.pomdp.with_tables(emission=np.array([[0.8, 0.2], [0.3, 0.7]]))
    )
    _, decision = decide(explorers.oracle(strange), sure.homdp, Counts.zero(sure))
    assert decision.optimistic == pytest.approx(optimum(strange.pomdp), abs=1e-10)

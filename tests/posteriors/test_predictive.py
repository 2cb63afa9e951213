"""Predictive checks: uniform ranks for correct models, unusual findings for wrong ones."""

from functools import cache
from itertools import pairwise, product

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.stats import binom

from homdp_ppl import (
    DataError,
    Episodes,
    GraphPolicy,
    Kernels,
    Spaces,
    homdp,
    posterior,
    tabular,
)
from homdp_ppl.posteriors import predictive_check
from homdp_ppl.posteriors.predictive import FEWEST, PredictiveCheck
from homdp_ppl.posteriors.replication import Statistics
from tests.raising import raises
from tests.worlds import Parity, random_policy

INITIAL = np.array([0.9, 0.1])
MOVES = np.array([[[0.9, 0.1], [0.6, 0.4]], [[0.1, 0.9], [0.2, 0.8]]])
SIGNAL = np.array([[0.85, 0.15], [0.2, 0.8]])
REWARD = np.array([[1.0, 0.9], [0.0, 0.1]])
FLAT_T, FLAT_O = dist.Dirichlet(np.ones((2, 2, 2))), dist.Dirichlet(np.ones((2, 2)))
K = 100
SPACES = Spaces(("x0", "x1"), ("y0", "y1"), ("a0", "a1"), horizon=3)
POLICY = GraphPolicy.from_policy(random_policy(SPACES, seed=3), SPACES)


@cache
def declared(T=None, O=None, initial=(0.9, 0.1), horizon=3):  # noqa: E741
    """A model in which the given tables are known and the others unknown."""
    return tabular(
        T=FLAT_T if T is None else np.array(T),
        O=FLAT_O if O is None else np.array(O),
        initial=np.array(initial),
        reward=REWARD,
        horizon=horizon,
    )


def as_tuple(table):
    return tuple(map(as_tuple, table)) if isinstance(table, np.ndarray) else table


def played(seed, T, O, rho=INITIAL):  # noqa: E741
    """Episodes of POLICY, simulated without the library."""
    generator = np.random.default_rng(seed)

    def pick(rows):
        return (np.cumsum(rows, axis=-1) < generator.uniform(size=(len(rows), 1))).sum(-1)

    states, observations, actions, node = [pick(np.broadcast_to(rho, (K, 2)))], [], [], None
    for _ in range(3):
        observations.append(pick(O[states[-1]]))
        node = (
            POLICY.next(node, actions[-1], observations[-1])
            if actions
            else POLICY.first(observations[0])
        )
        actions.append(pick(POLICY.probabilities[node]))
        states.append(pick(T[states[-1], actions[-1]]))
    return Episodes(np.stack(observations, 1), np.stack(actions, 1), np.stack(states, 1))


def small_tails(model, data, seeds, alpha):
    """How often each finding has p <= alpha, over worlds drawn from the flat prior.

    ``data`` are the data of the posterior.
    """
    counted = np.zeros(4, int)
    for seed in range(seeds):
        generator = np.random.default_rng(1000 + seed)
        episodes = played(seed, generator.dirichlet([1, 1], (2, 2)), generator.dirichlet([1, 1], 2))
        check = predictive_check(
            jax.random.key(seed), posterior(model, data(episodes)), episodes, POLICY
        )
        counted += np.array([finding.p <= alpha for finding in check.findings])
    return counted


@pytest.mark.slow
def test_a_correct_model_is_seldom_unusual():
    """False-alarm rate 6e-6: six binomial tails at 1e-6.

    Under the prior, observed and replicated sets are exchangeable, so P(p <= alpha) <= alpha. Under
    the posterior of the same data it is at most 2 alpha (Meng, "Posterior predictive p-values",
    1994) for statistics with a fixed reference, such as those of the returns. There is one world
    per seed, so the p-values are independent.
    """
    seeds, alpha, level = 30, 0.1, 1e-6
    prior = small_tails(declared(), lambda episodes: [], seeds, alpha)
    assert (binom.sf(prior - 1, seeds, alpha) > level).all(), prior
    assert prior.sum() > 0
    same = small_tails(declared(), lambda episodes: episodes, seeds, alpha)
    assert (binom.sf(same[2:] - 1, seeds, 2 * alpha) > level).all(), same
    mean = declared(T=as_tuple(np.full((2, 2, 2), 0.5)), O=as_tuple(np.full((2, 2), 0.5)))
    planted = small_tails(
        mean, lambda episodes: [], seeds, alpha
    )  # replications from the mean model ignore the uncertainty
    assert (binom.sf(planted - 1, seeds, alpha) < level).all(), planted


TRUTH = {"T": as_tuple(MOVES), "O": as_tuple(SIGNAL)}
EVEN, CLEAR = (0.5, 0.5), np.array([[0.9, 0.1], [0.1, 0.9]])
STICKY, RESTLESS = (np.stack([np.array([[p, 1 - p], [1 - p, p]])] * 2, 1) for p in (0.9, 0.3))
WRONG = {  # the true model, the known tables, and the findings that must and cannot be unusual
    "emission": ((MOVES, SIGNAL), {"O": SIGNAL[::-1] / 2 + SIGNAL / 2}, "observations by step", ()),
    "transition": (
        (MOVES, SIGNAL),
        {"T": np.full((2, 2, 2), [0.1, 0.9]), "O": SIGNAL},
        "observations by step",
        (),
    ),
    "dynamics behind equal marginals": (
        (RESTLESS, CLEAR, EVEN),
        {"T": STICKY, "O": CLEAR, "initial": EVEN},
        "pairs of observations",
        ("observations by step",),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_model_is_unusual(case):
    """Unknown tables are learned from the same episodes that are checked."""
    truth, sure, unusual, usual = WRONG[case]
    model = declared(**{name: as_tuple(table) for name, table in sure.items()})
    for seed in range(5):
        episodes = played(seed, *truth)
        check = predictive_check(jax.random.key(seed), posterior(model, episodes), episodes, POLICY)
        assert unusual in check.unusual, check
        assert not set(usual) & set(check.unusual), check
        assert f"unusual: {', '.join(check.unusual)}\n" in repr(check)


def enumerated(T, O, rho, policy, reward):  # noqa: E741
    """Exact frequencies by step and of successive pairs, and the mean return, by enumeration."""
    X, A, _ = T.shape
    Y, H = O.shape[1], len(reward)
    frequency, pairs, mean = np.zeros((H, Y)), np.zeros((Y, Y)), 0.0
    for seen, done in product(product(range(Y), repeat=H), product(range(A), repeat=H)):
        chosen = np.prod([policy.act(seen[: h + 1], done[:h])[done[h]] for h in range(H)])
        for states in product(range(X), repeat=H):
            chance = chosen * rho[states[0]] * np.prod([O[states[h], seen[h]] for h in range(H)])
            chance *= np.prod([T[states[h], done[h], states[h + 1]] for h in range(H - 1)])
            mean += chance * sum(reward[h, states[h], done[h]] for h in range(H))
            for h in range(H):
                frequency[h, seen[h]] += chance
            for before, after in pairwise(seen):
                pairs[before, after] += chance / (H - 1)
    return Statistics(frequency, pairs, mean, None)


def too_far(average, number, exact):
    """Averages over independent episodes that are too far from the exact values.

    Two-sided Hoeffding bound, 1e-6 per array.
    """
    found = set()
    for name, span in (("frequency", 1.0), ("pairs", 1.0), ("mean", 3.0)):
        apart = np.abs(getattr(average, name) - getattr(exact, name))
        slack = span * np.sqrt(np.log(2 * np.size(apart) / 1e-6) / (2 * number))
        found |= {name} if np.any(apart > slack) else set()
    return found


def test_replications_follow_the_exact_frequencies():
    """False-alarm rate 3e-6, see :func:`too_far`."""
    model = declared(**TRUTH)
    check = predictive_check(
        jax.random.key(0), posterior(model, []), played(0, MOVES, SIGNAL), POLICY
    )
    average = Statistics(*(values.mean(0) for values in check.replicated))
    assert not too_far(average, 200 * K, enumerated(MOVES, SIGNAL, INITIAL, POLICY, model.reward))
    other = random_policy(model.spaces, seed=4)
    planted = (
        (MOVES[::-1], SIGNAL, INITIAL, POLICY),
        (MOVES, SIGNAL, INITIAL[::-1], POLICY),
        (MOVES, SIGNAL, INITIAL, other),
    )
    found = [too_far(average, 200 * K, enumerated(*wrong, model.reward)) for wrong in planted]
    assert all(found)
    assert set.union(*found) == {"frequency", "pairs", "mean"}


def test_every_replication_has_its_own_parameters():
    """Many tosses show whether a coin has probability 0.9 or 0.1; their mean is a fair coin.

    False-alarm rate below 1e-9.
    """

    @homdp(states=2, observations=2, actions=2, horizon=3, reward=REWARD)
    def coin():
        heads = jnp.where(numpyro.sample("biased", dist.Bernoulli(0.5)), 0.9, 0.1)
        return Kernels(
            [0.5, 0.5], MOVES, lambda x: dist.Categorical(probs=jnp.array([heads, 1 - heads]))
        )

    check = predictive_check(
        jax.random.key(0), posterior(coin, []), played(0, MOVES, SIGNAL), POLICY
    )
    shares = check.replicated.frequency[:, :, 0].mean(1)
    assert 200 * 2 * binom.cdf(0.75 * 3 * K, 3 * K, 0.9) < 1e-10
    assert (np.abs(shares - 0.5) > 0.25).all()
    assert 0 < np.sum(shares > 0.5) < 200


def test_ranks_and_discrepancies_by_hand():
    """Three replications of 10 one-step episodes with 4, 5, 6 heads; 7 were observed."""
    model = declared(**TRUTH, horizon=1)

    def heads(*numbers):
        share = np.array(numbers) / 10
        return np.stack([share, 1 - share], -1)[:, None]

    replicated = Statistics(
        heads(4, 5, 6),
        np.zeros((3, 2, 2)),
        np.array([0.1, 0.2, 0.3]),
        np.array([0.5, 0.5, 0.5 + 1e-14]),
    )
    observed = Statistics(heads(7)[0], np.zeros((2, 2)), np.array(0.2), np.array(0.5))
    check = PredictiveCheck(model, 10, observed, replicated)
    by_step, pairs, mean, spread = check.findings
    # expected heads (7 + 4 + 5 + 6) / 4 = 5.5: discrepancies (d^2 / 5.5 + d^2 / 4.5) with d = 1.5,
    # and 1.5, 0.5, 0.5
    assert by_step.observed == pytest.approx(1.5**2 / 5.5 + 1.5**2 / 4.5)
    assert by_step.high == pytest.approx(
        np.quantile([2.25, 0.25, 0.25], 0.95) * (1 / 5.5 + 1 / 4.5)
    )
    assert (
        by_step.p == 2 / 4
    )  # the observed set, and the replication equally far away on the other side
    assert (pairs.observed, pairs.p) == (0.0, 1.0)
    assert mean.p == 1.0  # twice (the observed set, 0.2 and 0.3) of four, at most 1
    assert spread.p == 1.0  # ties but for rounding
    assert {finding.p for finding in check.frequencies} == {2 * 1 / 4}
    assert check.unusual == ()
    assert check.summary().count("\n") == 6  # four findings and both frequencies


def test_custom_policies_are_converted_to_graphs():
    class Asked:
        def act(self, observations, actions):
            return POLICY.act(observations, actions)

    belief, episodes = posterior(declared(**TRUTH), []), played(1, MOVES, SIGNAL)
    one = predictive_check(jax.random.key(0), belief, episodes, Asked())
    other = predictive_check(jax.random.PRNGKey(0), belief, list(episodes), POLICY)
    assert one.summary() == other.summary()
    assert one.summary() != predictive_check(jax.random.key(1), belief, episodes, POLICY).summary()


def test_invalid_arguments_raise():
    model = declared(**TRUTH)
    belief, episodes = posterior(model, []), played(1, MOVES, SIGNAL)
    with raises(DataError, "draws", "episodes") as caught:
        predictive_check(jax.random.key(0), belief, [], POLICY, draws=FEWEST - 1)
    assert len(caught.value.problems) == 2
    first = np.argmax(
        episodes.actions[:, 0] != episodes.observations[:, 0]
    )  # Parity repeats its first observation
    with raises(DataError, f"policy[episode {first}, step 1]"):
        predictive_check(jax.random.key(0), belief, episodes, Parity(2))
    assert (
        2 / (FEWEST + 1) <= 0.05 / 4 < 2 / FEWEST
    )  # the smallest number of draws that allows an unusual finding

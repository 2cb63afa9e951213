"""The optimism lemmas with the smallest radii they allow, on simulated counts, and without
bonuses.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    POMDP,
    Counts,
    DataError,
    Kernels,
    ParameterError,
    Spaces,
    evaluate,
    explorers,
    homdp,
    models,
    rollout,
    theory,
    uniform_policy,
)
from homdp_ppl.confidence import events
from homdp_ppl.planners import history_tree
from homdp_ppl.theory import optimism as optimism_module
from homdp_ppl.theory.optimism import optimism
from tests.planners.exact import random_pomdp
from tests.raising import raises
from tests.worlds import random_policy, world


def tight(seed, policy):
    """Two models and the smallest radii for which E_T and E_O hold between them."""
    truth, other = random_pomdp(seed, 2, 2, 2, 3), random_pomdp(seed + 1000, 2, 2, 2, 3)
    learned = truth._replace(transition=other.transition, emission=other.emission)
    error = truth.moves(0) - learned.moves(0)
    g = events.continuations(policy, truth).values
    value_error = np.max([np.abs(np.einsum("naz,xaz->nxa", v, error)).max(0) for v in g], axis=0)
    emission = np.abs(truth.shows(0) - learned.shows(0)).sum(-1)
    return truth, learned, value_error, np.abs(error).sum(-1), emission


SPACES = Spaces(("x0", "x1"), ("y0", "y1"), ("a0", "a1"), 3)


def test_optimism_lemmas_with_the_smallest_radii_that_they_allow():
    """60 pairs of models. A bonus without one of its parts fails for some pair."""
    failed = {
        "no eps(x, a)": 0,
        "eps(x) without H": 0,
        "class: no eps(x, a)": 0,
        "class: no eps(x)": 0,
    }
    for seed in range(60):
        policy = random_policy(SPACES, seed)
        truth, learned, values, rows, emission = tight(seed, policy)

        def check(bonus, largest, policy=policy, truth=truth, learned=learned, emission=emission):
            return optimism(policy, truth, learned.with_bonus(bonus), emission, largest)

        state = 3 * emission[:, None]
        for sound in (check(state + values, 15), check(state + 9 * rows, 27)):
            assert sound.slack >= -1e-12
            assert sound.value >= -1e-12
            assert sound.size <= 1
        failed["no eps(x, a)"] += check(state, 15).slack < -1e-12
        failed["eps(x) without H"] += check(emission[:, None] + values, 15).slack < -1e-12
        failed["class: no eps(x, a)"] += check(state, 27).slack < -1e-12
        failed["class: no eps(x)"] += check(9 * rows, 27).slack < -1e-12
    assert all(failed.values()), failed


@pytest.fixture(scope="module")
def runs():
    """Small worlds with their optimal policy and counts of 0, 5 and 400 episodes of the uniform
    policy.
    """
    found = []
    keys = jax.random.split(jax.random.key(0), 400)
    for truth in (
        world("tiger"),
        models.load("random", states=2, observations=2, actions=3),
    ):  # all have the same shape, so they are compiled once
        episodes = rollout(keys, truth, uniform_policy(truth))
        counts = [Counts.zero(truth), Counts.of(episodes[:5], truth), Counts.of(episodes, truth)]
        found.append((truth, history_tree()(truth.pomdp).policy, counts))
    return found


@pytest.mark.parametrize("known", [True, False])
def test_hop_b_is_optimistic_on_simulated_counts(runs, known, monkeypatch):
    """By E_T and E_O, it fails with probability below 2 delta = 2e-4 per world.

    Without the bonus it fails.
    """
    for truth, best, some in runs:
        continuations = events.continuations(best, truth.pomdp)
        for counts in some:
            assert events.transition_event(truth, counts, 400, continuations, 1e-4, known).holds
            assert events.emission_event(truth, counts, 400, 1e-4, known).holds
            check = theory.hop_b_optimism(best, truth, counts, 400, 1e-4, known=known)
            assert check.slack >= -1e-12
            assert check.value >= -1e-12
            assert check.size <= 1
            with monkeypatch.context() as patched:
                patched.setattr(
                    optimism_module,
                    "hop_b_bonus",
                    lambda radii, horizon: np.zeros_like(radii.transition),
                )
                assert (
                    theory.hop_b_optimism(best, truth, counts, 400, 1e-4, known=known).slack < -0.1
                )


def test_hop_b_optimism_by_hand():
    """With zero counts and no known rows, R-hat = r + 2H + 2H at every step.

    So alpha-hat - alpha - H eps(x) is smallest at the last step: 2H.
    """
    truth = world("tiger")
    check = theory.hop_b_optimism(uniform_policy(truth), truth, Counts.zero(truth), 10, known=False)
    assert check.slack == pytest.approx(8)
    reward = truth.homdp.reward[0].mean(1).max()  # of the uniform policy, the same in both states
    assert check.size == pytest.approx((reward + 16) / 20)
    assert check.value == pytest.approx(4 * 16, abs=1e-9)


def test_hop_b_with_a_class_is_optimistic_for_every_policy(runs, monkeypatch):
    """By the events, it fails with probability at most 2 delta = 2e-4.

    The printed eps(x, a) has no delta, but here T is known.
    """
    truth, best, some = runs[0]
    accuracies = np.array([0.5, 0.6, 0.7, 0.85, 0.95])
    emissions = np.stack(
        [np.stack([accuracies, 1 - accuracies]), np.stack([1 - accuracies, accuracies])]
    ).transpose(2, 0, 1)
    policies = [
        best,
        uniform_policy(truth),
        *(random_policy(truth.spaces, seed) for seed in range(3)),
    ]
    for counts in some:
        check = theory.hop_b_class_optimism(policies, truth, counts, emissions, 400, 1e-4)
        assert check.slack >= -1e-12
        assert check.value >= -1e-12
        assert check.size <= 1
        worst = [
            theory.hop_b_class_optimism([policy], truth, counts, emissions, 400, 1e-4)
            for policy in policies
        ]
        assert check == (
            min(w.slack for w in worst),
            min(w.value for w in worst),
            max(w.size for w in worst),
        )
    monkeypatch.setattr(
        optimism_module, "hop_b_class_bonus", lambda radii, horizon: radii.transition
    )
    assert theory.hop_b_class_optimism(policies, truth, some[-1], emissions, 400, 1e-4).slack < -0.1
    for tables in (emissions[:, :1], emissions * 2, emissions[:0]):
        with pytest.raises(DataError) as caught:
            theory.hop_b_class_optimism(policies, truth, some[0], tables, 400)
        assert caught.value.problems[0].where in ("emissions", "emission")
    with raises(ParameterError, "policies"):
        theory.hop_b_class_optimism([], truth, some[0], emissions, 400)


@homdp(states=2, observations=2, actions=2, horizon=2, reward=np.eye(2))
def half_known():
    row = numpyro.sample("row", dist.Dirichlet(np.ones(2)))
    return Kernels([0.5, 0.5], np.full((2, 2, 2), 0.5), jnp.stack([jnp.array([0.9, 0.1]), row]))


@pytest.mark.parametrize("known", [True, False])
def test_known_rows_of_a_class_stay_exact(known):
    """The class is wrong about the first state, whose row is known.

    The model is that of hop_b_class without bonuses (scale 0).
    """
    truth = half_known.at(row=[0.3, 0.7])
    counts, emissions = (
        Counts(np.full((2, 2, 2), 5), np.full((2, 2), 10)),
        np.array([[[0.5, 0.5], [0.2, 0.8]]]),
    )
    policy = history_tree()(truth.pomdp).policy
    check = theory.hop_b_class_optimism(
        [policy], truth, counts, emissions, 100, scale=0.0, known=known
    )
    rule = explorers.hop_b_class(emissions, scale=0.0, known=known)
    planned = rule.propose(
        jax.random.key(0), replace(rule.init(half_known, 100), counts=counts)
    ).models
    learned = POMDP(*(part[0] for part in planned))
    np.testing.assert_allclose(
        learned.shows(0), [[0.9, 0.1] if known else [0.5, 0.5], [0.2, 0.8]], atol=1e-15
    )
    assert check.value == pytest.approx(
        evaluate(policy, learned) - evaluate(policy, truth.pomdp), abs=1e-12
    )


def test_planning_uses_the_most_likely_table_of_a_class():
    """9 of 10 growls are correct, so accuracy 0.9 is likelier than 0.5. Without bonuses (scale 0),
    v-hat is the value in that world.
    """
    truth = world("tiger").with_horizon(2)
    counts = Counts(np.zeros((2, 3, 2), int), np.array([[9, 1], [1, 9]]))
    emissions = np.array([[[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.1, 0.9]]])
    policy = history_tree()(truth.pomdp).policy
    check = theory.hop_b_class_optimism([policy], truth, counts, emissions, 100, scale=0.0)
    likely = truth.pomdp.with_tables(emission=emissions[1])
    assert check.value == pytest.approx(
        evaluate(policy, likely) - evaluate(policy, truth.pomdp), abs=1e-12
    )

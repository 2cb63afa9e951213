"""Declared restrictions of the actions, in learning: sequential diagnosis, each test once."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import Kernels, Real, explorers, homdp, learn
from homdp_ppl.errors import DeclarationError, PlanningError
from homdp_ppl.planners import alpha_vectors, auto, history_tree
from tests.raising import raises

TESTS, H = 3, 3
RATES = np.array([0.6, 0.75, 0.9])  # P(+ | ill) of each test; P(+ | well) = 0.2
COSTS = np.array([0.01, 0.03, 0.1])


def each_once(observations, actions):
    done = np.isin(np.arange(TESTS), actions)
    last = len(observations) == H
    return np.append(~done & (not last), [last, last])


def diagnosis(allowed=each_once):
    """Two states, and a diagnosis at the last step."""
    reward = np.full((H, 2, TESTS + 2), 0.3)
    reward[:, :, :TESTS] -= COSTS
    reward[-1, 0, TESTS], reward[-1, 1, TESTS + 1] = 1.0, 1.0

    @homdp(
        states=("well", "ill"),
        observations=("-", "+"),
        actions=(*(f"test {k}" for k in range(TESTS)), "call well", "call ill"),
        horizon=H,
        reward=reward,
        allowed=allowed,
    )
    def clinic():
        hit = numpyro.sample("hit", dist.Beta(4 * jnp.ones(TESTS), 2.0).to_event(1))
        positive = jnp.concatenate([hit, jnp.full(2, 0.5)])
        return Kernels(
            initial=[0.7, 0.3],
            transition=np.broadcast_to(np.eye(2)[:, None], (2, TESTS + 2, 2)),
            emission=lambda x, a: dist.Bernoulli(
                jnp.where(a < TESTS, jnp.where(x == 1, positive[a], 0.2), 0.5)
            ),
            first_emission=lambda x: dist.Bernoulli(0.5),
        )

    return clinic


def best_by_enumeration(world):
    """The optimum over all policies that do each test at most once, by recursion."""
    pomdp = world.pomdp

    def value(weights, observations, actions):
        h = len(observations) - 1
        results = []
        for a in np.flatnonzero(each_once(np.array(observations), np.array(actions, dtype=int))):
            total = weights @ pomdp.rewards(h)[:, 0, a]
            if h + 1 < H:
                moved = weights @ pomdp.moves(h)[:, a]
                for y in range(2):
                    after = moved * pomdp.shows(h + 1, a)[:, y]
                    total += value(after, [*observations, y], [*actions, int(a)])
            results.append(total)
        return max(results)

    return sum(value(pomdp.initial * pomdp.shows(0)[:, y], [y], []) for y in range(2))


def test_the_optimum_of_a_run_follows_the_restriction():
    world = diagnosis().at(hit=RATES)
    run = learn(world, explorers.greedy(), history_tree(), 5)
    assert run.optimum == pytest.approx(best_by_enumeration(world), abs=1e-12)
    free = learn(diagnosis(None).at(hit=RATES), explorers.greedy(), history_tree(), 5)
    assert free.optimum > run.optimum + 0.005


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    "rule",
    [
        explorers.hop_b(),
        explorers.quantile_backup(),
        explorers.posterior_sampling(),
        explorers.epsilon_greedy(0.5),
        explorers.uniform(),
    ],
    ids=lambda rule: rule.name,
)
def test_rules_take_allowed_actions_only(rule, compiled):
    run = learn(diagnosis().at(hit=RATES), rule, history_tree(), 12, compiled=compiled)
    for episode in run.episodes:
        for h, a in enumerate(episode.actions):
            assert each_once(episode.observations[: h + 1], episode.actions[:h])[a]


def test_other_planners():
    world = diagnosis().at(hit=RATES)
    chosen = learn(world, explorers.greedy(), auto(), 3)
    assert chosen.optimum == pytest.approx(best_by_enumeration(world), abs=1e-9)
    with raises(PlanningError, "allowed"):
        learn(world, explorers.greedy(), alpha_vectors(), 3)


def test_declarations_are_equal_if_their_restrictions_are():
    assert diagnosis() == diagnosis()
    assert diagnosis() != diagnosis(None)
    assert diagnosis() != diagnosis(lambda observations, actions: np.ones(TESTS + 2, dtype=bool))


counter = product(range(10**6), repeat=1)


@pytest.mark.parametrize(
    "allowed",
    [
        "all",
        lambda observations, actions: np.ones(2, dtype=bool),
        lambda observations, actions: np.zeros(TESTS + 2, dtype=bool),
        lambda observations, actions: np.arange(TESTS + 2) == next(counter)[0] % 2,
        lambda state: np.ones(TESTS + 2, dtype=bool),
    ],
    ids=["text", "shape", "nothing", "changing", "state"],
)
def test_each_misuse_is_reported(allowed):
    with raises(DeclarationError, "allowed"):
        diagnosis(allowed)


def test_errors_in_the_function_name_the_history():
    with pytest.raises(IndexError) as caught:
        diagnosis(lambda observations, actions: actions[-1])
    assert "step 1" in caught.value.__notes__[0]


def test_masks_are_reported_together_with_other_problems():
    """Also in real-valued spaces, where every feature that needs tables has a remedy."""
    rows = np.full((2, 2, 2), 0.5)
    with pytest.raises(DeclarationError) as caught:
        homdp(
            states=2,
            observations=2,
            actions=2,
            horizon=2,
            cost=np.zeros((3, 2)),
            allowed=lambda observations, actions: np.ones(5, dtype=bool),
        )(lambda: Kernels([0.5, 0.4], rows, np.eye(2)))
    assert [problem.where for problem in caught.value.problems] == ["cost", "initial", "allowed"]

    with pytest.raises(DeclarationError) as caught:
        homdp(
            states=2,
            observations=Real(1),
            actions=2,
            horizon=2,
            terminal=("x1",),
            reward_range=(0, 1),
            allowed=lambda observations, actions: np.ones(2, dtype=bool),
        )(
            lambda: Kernels(
                [0.5, 0.5],
                rows,
                lambda x: dist.Normal(1.0 * x, 1.0),
                reward=lambda x, a: dist.Bernoulli(0.5),
                label=lambda x: dist.Bernoulli(0.5),
                revealed=lambda x, y, a: 0.5,
            )
        )
    places = [problem.where for problem in caught.value.problems]
    assert places == ["terminal", "reward", "label", "revealed", "allowed"]
    assert all(problem.remedy for problem in caught.value.problems)


def test_real_valued_spaces_have_no_restriction():
    with raises(DeclarationError, "allowed"):
        homdp(
            states=2,
            observations=Real(1),
            actions=2,
            horizon=2,
            reward=[[0.0, 0.0], [1.0, 1.0]],
            allowed=lambda observations, actions: np.ones(2, dtype=bool),
        )(lambda: Kernels([0.5, 0.5], np.full((2, 2, 2), 0.5), lambda x: dist.Normal(1.0 * x, 1.0)))

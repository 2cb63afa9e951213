"""Reward kernels: tables, densities and misuse, against hand-encoded models and known rewards."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density
from scipy.stats import beta

from homdp_ppl import (
    Counts,
    DataError,
    DeclarationError,
    Episodes,
    Kernels,
    Real,
    evaluate,
    homdp,
    posterior,
    rollout,
    uniform_policy,
    x64,
)
from homdp_ppl.planners import history_tree
from homdp_ppl.posteriors import Sampling
from tests.raising import raises
from tests.random_rewards import CERTAIN, CHANCES, MOVES, PRIOR, SPACES, carried, in_states, native

PAYS = np.array([[-2.0, 0.5], [3.0, 1.0]])
KEYS = jax.random.split(jax.random.key(3), 12)


def paying(reward=None, kernel=None, **options):
    """A declaration with one unknown accuracy, and known rewards in one of two forms."""

    @homdp(**SPACES, horizon=3, reward=reward, reward_range=(-2.0, 3.0), **options)
    def model():
        q = numpyro.sample("q", dist.Beta(3.0, 2.0))
        return Kernels([0.5, 0.5], MOVES, jnp.array([[q, 1 - q], [1 - q, q]]), reward=kernel)

    return model


def density(model, episodes, **values):
    with x64():
        given = {name: jnp.asarray(value) for name, value in values.items()}
        return float(log_density(model.hindsight(episodes), (), {}, given)[0])


def test_a_certain_kernel_is_a_known_reward():
    known = paying(reward=PAYS)
    certain = paying(kernel=lambda x, a: dist.Delta(jnp.asarray(PAYS)[x, a]))
    worlds = known.at(q=0.8), certain.at(q=0.8)
    np.testing.assert_allclose(*(world.pomdp.reward for world in worlds), atol=1e-12)
    plans = [history_tree()(world.pomdp) for world in worlds]
    assert abs(plans[0].value - plans[1].value) < 1e-9
    played = [rollout(KEYS, world, uniform_policy(world)) for world in worlds]
    for name in ("states", "observations", "actions"):  # rewards have random numbers of their own
        np.testing.assert_array_equal(*(getattr(each, name) for each in played))
    np.testing.assert_allclose(known.rewards_of(played[0]), played[1].rewards, atol=1e-12)
    np.testing.assert_allclose(known.returns(played[0]), certain.returns(played[1]), atol=1e-12)
    assert abs(density(known, played[0], q=0.6) - density(certain, played[1], q=0.6)) < 1e-9
    beliefs = posterior(known, played[0]), posterior(certain, played[1])
    np.testing.assert_allclose(*(belief.closed for belief in beliefs))
    np.testing.assert_allclose(*(belief.mean.reward for belief in beliefs), atol=1e-12)


@pytest.mark.parametrize("moves", [MOVES, CERTAIN])
def test_values_are_those_of_the_model_with_rewards_in_the_state(moves):
    world = native(moves=moves).at(p=CHANCES, accuracy=0.8)
    by_hand = carried(moves, horizon=4).at(p=CHANCES, accuracy=0.8)
    assert abs(history_tree()(world.pomdp).value - history_tree()(by_hand.pomdp).value) < 1e-9
    np.testing.assert_allclose(world.pomdp.reward[0, :, 0], CHANCES)


def test_the_density_is_that_of_the_model_with_rewards_in_the_state():
    model, by_hand = native(), carried()
    world = model.at(p=CHANCES, accuracy=0.8)
    played = rollout(KEYS, world, uniform_policy(world))
    encoded = Episodes(played.observations, played.actions, in_states(played))
    for seed in range(3):
        values = model.draw(jax.random.key(seed)).parameters
        assert abs(density(model, played, **values) - density(by_hand, encoded, **values)) < 1e-9


def test_the_posterior_is_that_of_the_model_with_rewards_in_the_state():
    model, by_hand = native(moves=CERTAIN), carried(CERTAIN)
    world = model.at(p=CHANCES, accuracy=0.8)
    played = rollout(KEYS, world, uniform_policy(world))
    belief = posterior(model, played)
    other = posterior(by_hand, Episodes(played.observations, played.actions, in_states(played)))
    assert belief.method == other.method == "conjugate"
    for name, mean in belief.site_means.items():
        np.testing.assert_allclose(mean, other.site_means[name], atol=1e-9)
    np.testing.assert_allclose(belief.mean.reward[0, :, 0], belief.site_means["p"], atol=1e-9)


def test_simulated_rewards_follow_the_law_and_the_program():
    """5 standard errors in 8 rows: false alarms below 1e-5."""
    model = native("points", reward_range=(-1.0, 3.0))
    world = model.at(p=CHANCES, accuracy=0.8)
    keys = jax.random.split(jax.random.key(0), 2000)
    played = rollout(keys, world, uniform_policy(world))
    with x64(), numpyro.handlers.seed(rng_seed=1):
        given = {name: jnp.asarray(value) for name, value in world.parameters.items()}
        made = numpyro.handlers.substitute(model.program, data=given)
        trace = numpyro.handlers.trace(made).get_trace(episodes=2000)
    drawn = [played.states[:, :-1], played.actions, played.rewards]
    from_program = [np.asarray(trace[name]["value"]).T for name in ("x", "a", "r")]
    means = -1 + np.arange(2)[:, None] + 3 * CHANCES
    for states, actions, rewards in (drawn, from_program):
        for x, a in np.ndindex(2, 2):
            some = rewards[(states == x) & (actions == a)]
            assert set(some) <= {x - 1.0, x + 2.0}
            error = 3 * np.sqrt(CHANCES[x, a] * (1 - CHANCES[x, a]) / len(some))
            assert abs(some.mean() - means[x, a]) < 5 * error
    returns = model.returns(played)
    value = evaluate(uniform_policy(world), world.pomdp)
    assert abs(returns.mean() - value) < 5 * returns.std() / np.sqrt(len(returns))


def test_terminal_states_earn_nothing():
    @homdp(
        states=("on", "off"),
        observations=2,
        actions=("use", "stop"),
        horizon=3,
        reward_range=(1.0, 2.0),
        terminal=("off",),
    )
    def machine():
        p = numpyro.sample("p", dist.Beta(1.0, 1.0))
        both = dist.MixtureSameFamily(
            dist.Categorical(probs=jnp.stack([1 - p, p])), dist.Delta(jnp.array([1.0, 2.0]))
        )
        moves = [[[0.8, 0.2], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]]
        return Kernels([1.0, 0.0], moves, np.full((2, 2), 0.5), reward=lambda x, a: both)

    world = machine.at(p=0.25)
    assert machine.reward_range == (0.0, 2.0)
    np.testing.assert_allclose(world.pomdp.to_user(world.pomdp.reward, 1)[0, :, 0, 0], [1.25, 0.0])
    played = rollout(jax.random.split(jax.random.key(0), 50), world, uniform_policy(world))
    assert set(played.length) == {1, 2, 3}
    counts = machine.counts(played)
    assert counts.rewards.number.sum() == played.length.sum()
    belief = posterior(machine, played)
    ones = int((played.rewards[played.steps] == 2).sum())
    np.testing.assert_allclose(belief.closed.sum(), 2 + played.length.sum())
    assert sorted(belief.closed) == sorted([1 + ones, 1 + played.length.sum() - ones])
    first, second = (density(machine, played, p=p) for p in (0.3, 0.6))
    zeros = played.length.sum() - ones
    expected = ones * np.log(0.3 / 0.6) + zeros * np.log(0.7 / 0.4)
    assert abs(first - second - expected) < 1e-9


def test_rewards_by_step_and_observation():
    @homdp(**SPACES, horizon=2, reward_range=(0.0, 1.0))
    def model():
        p = numpyro.sample("p", dist.Beta(np.ones((2, 2, 2)), np.ones((2, 2, 2))).to_event(3))
        return Kernels(
            [0.5, 0.5],
            MOVES,
            [[0.8, 0.2], [0.2, 0.8]],
            reward=lambda y, h, a, x: dist.Bernoulli(p[h - 1, y, a]),
        )

    p = np.arange(8).reshape(2, 2, 2) / 10
    world = model.at(p=p)
    for h, y, a in np.ndindex(2, 2, 2):
        np.testing.assert_allclose(world.pomdp.reward[h, :, y, a], p[h, y, a], atol=1e-12)
    played = rollout(KEYS, world, uniform_policy(world))
    rows = model.counts(played).rewards.outcomes.sum(1)  # p does not depend on the state
    for h, y, a in np.ndindex(2, 2, 2):
        some = played.rewards[
            (played.observations == y) & (played.actions == a) & (np.arange(2) == h)
        ]
        np.testing.assert_array_equal(rows[h, y, a], [np.sum(some == 0), np.sum(some == 1)])
    with pytest.raises(DeclarationError):
        model.with_horizon(4)


def test_unrelated_sites_change_nothing_else():
    """With a further site in the reward kernel, the rest of the results is the same."""

    def model(more):
        @homdp(**SPACES, horizon=3, reward_range=(0.0, 1.0))
        def shop():
            accuracy = numpyro.sample("accuracy", dist.Beta(8.0, 2.0))
            p = numpyro.sample("p", dist.Beta(2.0, 2.0))
            q = numpyro.sample("q", dist.Beta(1.0, 3.0)) if more else 0.5
            shows = jnp.array([[accuracy, 1 - accuracy], [1 - accuracy, accuracy]])
            chance = lambda x, a: jnp.where(x == 0, p, q)  # noqa: E731
            return Kernels(
                [0.5, 0.5], MOVES, shows, reward=lambda x, a: dist.Bernoulli(chance(x, a))
            )

        return shop

    one, two = model(False), model(True)
    worlds = one.at(accuracy=0.8, p=0.3), two.at(accuracy=0.8, p=0.3, q=0.5)
    played = [rollout(KEYS, world, uniform_policy(world)) for world in worlds]
    assert played[0].same_as(played[1])
    beliefs = posterior(one, played[0]), posterior(two, played[1])
    for name in ("accuracy", "p"):
        np.testing.assert_array_equal(*(belief.site_means[name] for belief in beliefs))
    np.testing.assert_array_equal(*(belief.mean.emission for belief in beliefs))
    assert one.fingerprint != two.fingerprint


def test_equal_laws_have_equal_fingerprints():
    assert native() == native()
    assert native() != native("beta")
    assert native() != native(reward_range=(0.0, 2.0))
    assert native() != native(rewards_recorded="coin")


def wrong(reward=None, reward_range=(0.0, 1.0), kernel=None, **options):
    @homdp(**SPACES, horizon=2, reward=reward, reward_range=reward_range, **options)
    def model():
        p = numpyro.sample("p", dist.Uniform(0.0, 1.0))
        return Kernels([0.5, 0.5], MOVES, np.eye(2), reward=kernel(p) if kernel else None)

    return model


def coin(p):
    return lambda x, a: dist.Bernoulli(p)


MISUSES = {
    "both kinds": ({"reward": PAYS / 3, "kernel": coin}, "reward", "one of the two"),
    "no range": ({"reward_range": None, "kernel": coin}, "reward_range", "requires"),
    "outcome outside": ({"kernel": coin, "reward_range": (0.0, 0.5)}, "reward", "[0, 0.5]"),
    "mean outside": (
        {"kernel": lambda p: lambda x, a: dist.Normal(5 * p, 1.0)},
        "reward",
        "[0, 1]",
    ),
    "unknown outcomes": (
        {"kernel": lambda p: lambda x, a: dist.Delta(p)},
        "reward",
        "known outcomes",
    ),
    "equal outcomes": (
        {
            "kernel": lambda p: (
                lambda x, a: dist.MixtureSameFamily(
                    dist.Categorical(probs=jnp.stack([p, 1 - p])), dist.Delta(jnp.array([0.5, 0.5]))
                )
            )
        },
        "reward",
        "different values",
    ),
    "numbers": ({"kernel": lambda p: lambda x, a: p}, "reward", "a NumPyro distribution"),
    "an array": ({"kernel": lambda p: np.ones((2, 2))}, "reward", "a function"),
    "vectors": (
        {"kernel": lambda p: lambda x, a: dist.Beta(jnp.ones(2), 1.0)},
        "reward",
        "a scalar",
    ),
    "other arguments": (
        {"kernel": lambda p: lambda state, b, c: dist.Delta(0.0)},
        "reward",
        "(x, a)",
    ),
    "a bad word": ({"kernel": coin, "rewards_recorded": "often"}, "rewards_recorded", "coin"),
    "coin for known": (
        {"reward": PAYS / 3, "rewards_recorded": "coin"},
        "rewards_recorded",
        "kernel",
    ),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuses_are_reported(name):
    given, where, expected = MISUSES[name]
    if name == "coin for known":
        given = {**given, "reward": np.abs(PAYS) / 3}
    with pytest.raises(DeclarationError) as error:
        wrong(**given)
    found = {problem.where: problem for problem in error.value.problems}
    assert where in found
    assert expected in found[where].expected


def test_all_problems_are_reported_together():
    with pytest.raises(DeclarationError) as error:
        wrong(reward=PAYS, kernel=coin, reward_range=None, rewards_recorded="often")
    places = [problem.where for problem in error.value.problems]
    assert {"reward", "reward_range", "rewards_recorded"} <= set(places)


def test_missing_rewards_need_a_coin():
    model, tossed = native(), native(rewards_recorded="coin")
    world = model.at(p=CHANCES, accuracy=0.8)
    played = rollout(KEYS, world, uniform_policy(world))
    known = np.random.default_rng(0).random(played.rewards.shape) < 0.6
    gaps = Episodes(
        played.observations,
        played.actions,
        played.states,
        rewards=played.rewards,
        rewards_known=known,
    )
    nothing = Episodes(played.observations, played.actions, played.states)
    for call in (model.counts, model.hindsight, lambda data: posterior(model, data)):
        for data in (gaps, nothing):
            with pytest.raises(DataError) as error:
                call(data)
            assert error.value.problems[0].where == "rewards"
            assert "coin" in error.value.problems[0].remedy
    with pytest.raises(DataError):  # counts do not hide the gaps
        posterior(model, Counts.of(gaps, model))
    belief = posterior(tossed, gaps)
    counted = tossed.counts(gaps).rewards
    assert counted.number.sum() == known.sum()
    for x, a in np.ndindex(2, 2):
        some = known & (played.states[:, :-1] == x) & (played.actions == a)
        assert counted.total[0, x, 0, a] == played.rewards[some].sum()
    first, second = (density(tossed, gaps, p=p, accuracy=0.7) for p in (CHANCES, CHANCES / 2))
    ones = counted.outcomes[0, :, 0, :, 1] * (np.log(CHANCES) - np.log(CHANCES / 2))
    zeros = counted.outcomes[0, :, 0, :, 0] * (np.log(1 - CHANCES) - np.log(1 - CHANCES / 2))
    prior = beta.logpdf(CHANCES, *PRIOR) - beta.logpdf(CHANCES / 2, *PRIOR)
    assert abs(first - second - (ones + zeros + prior).sum()) < 1e-9
    assert belief.method == "conjugate"
    with pytest.raises(DataError):
        tossed.returns(gaps)


def test_rewards_are_evidence_of_missing_states():
    model = native(rewards_recorded="coin")
    world = model.at(p=CHANCES, accuracy=0.8)
    played = rollout(KEYS, world, uniform_policy(world))
    revealed = np.ones(played.states.shape, dtype=bool)
    revealed[0, 1] = False
    parts = played.observations, played.actions, played.states, revealed
    hidden = Episodes(*parts, rewards=played.rewards)
    short = Sampling(chains=1, warmup=5, draws=8)
    belief = posterior(model, hidden, sampling=short, force=True)
    assert belief.method == "gibbs"
    assert "recorded reward" in belief.explanation
    with raises(DataError, "states"):
        model.returns(hidden)


def test_real_valued_spaces_need_known_rewards():
    @homdp(states=2, observations=Real(1), actions=1, horizon=2, reward=[[0.0], [1.0]])
    def known():
        return Kernels([0.5, 0.5], np.full((2, 1, 2), 0.5), lambda x: dist.Normal(x, 1.0))

    def random():
        law = lambda x, a: dist.Bernoulli(0.5)  # noqa: E731
        return known.function()._replace(reward=law)

    with pytest.raises(DeclarationError) as error:
        homdp(states=2, observations=Real(1), actions=1, horizon=2, reward_range=(0, 1))(random)
    assert "real-valued" in error.value.problems[0].expected


def test_recorded_rewards_must_be_possible():
    model = native()
    world = model.at(p=CHANCES, accuracy=0.8)
    played = rollout(KEYS, world, uniform_policy(world))
    parts = played.observations, played.actions, played.states
    with pytest.raises(DataError) as error:
        posterior(model, Episodes(*parts, rewards=played.rewards + 0.5))
    assert error.value.problems[0].where == "rewards"
    with pytest.raises(DataError):
        posterior(native("beta"), Episodes(*parts, rewards=played.rewards + 1.5))

"""Kernels that depend on the step or on the previous action, against hand-encoded declarations.

The reference has the last action, or the step, in its state. It declares the same process, with
more states. Optimum, density of the program and posterior must agree.
"""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density

from homdp_ppl import Episodes, Kernels, evaluate, homdp, posterior, rollout, uniform_policy, x64
from homdp_ppl.errors import DeclarationError
from homdp_ppl.planners import history_tree
from tests.raising import raises

X, Y, A, H = 2, 2, 3, 3
MOVES = np.array(
    [[[0.9, 0.1], [0.3, 0.7], [0.5, 0.5]], [[0.2, 0.8], [0.6, 0.4], [0.5, 0.5]]]
)  # (X, A, X)
REWARD = np.array([[0.1, 1.0, 0.0], [0.1, 0.0, 1.0]])
FIRST = np.array([[0.6, 0.4], [0.5, 0.5]])


def shows(accuracy, x, a):
    """Action 0 listens; after the others, the observation says nothing."""
    heard = jnp.where(a == 0, accuracy, 0.5)
    return jnp.where(x == 1, heard, 1 - heard)


def native():
    @homdp(states=X, observations=Y, actions=A, horizon=H, reward=REWARD)
    def listening():
        accuracy = numpyro.sample("accuracy", dist.Beta(8.0, 2.0))
        return Kernels(
            initial=[0.5, 0.5],
            transition=MOVES,
            emission=lambda x, a: dist.Bernoulli(shows(accuracy, x, a)),
            first_emission=FIRST,
        )

    return listening


def encoded():
    """The state is (last action or none) * X + x; none is index A."""
    S = (A + 1) * X
    transition = np.zeros((S, A, S))
    for b, x, a, z in product(range(A + 1), range(X), range(A), range(X)):
        transition[b * X + x, a, a * X + z] = MOVES[x, a, z]
    initial = np.zeros(S)
    initial[A * X :] = 0.5

    @homdp(states=S, observations=Y, actions=A, horizon=H, reward=np.tile(REWARD, (A + 1, 1)))
    def listening():
        accuracy = numpyro.sample("accuracy", dist.Beta(8.0, 2.0))
        rows = [
            [1 - shows(accuracy, x, b), shows(accuracy, x, b)] if b < A else FIRST[x]
            for b in range(A + 1)
            for x in range(X)
        ]
        return Kernels(
            initial, transition, jnp.array([[jnp.asarray(p) for p in row] for row in rows])
        )

    return listening


def with_last_action(episodes):
    previous = np.concatenate([np.full((len(episodes), 1), A), episodes.actions], axis=1)
    return Episodes(episodes.observations, episodes.actions, previous * X + episodes.states)


@pytest.fixture(scope="module")
def played():
    world = native().at(accuracy=0.8)
    return rollout(jax.random.split(jax.random.key(3), 40), world, uniform_policy(world))


def test_native_and_encoded_optimum_agree():
    plans = [history_tree()(model.at(accuracy=0.8).pomdp) for model in (native(), encoded())]
    assert plans[0].value == pytest.approx(plans[1].value, abs=1e-12)
    value = evaluate(plans[0].policy, encoded().at(accuracy=0.8).pomdp)
    assert value == pytest.approx(plans[0].value, abs=1e-12)


def test_native_and_encoded_density_agree(played):
    with x64():
        densities = [
            float(log_density(model.hindsight(data), (), {}, {"accuracy": 0.7})[0])
            for model, data in ((native(), played), (encoded(), with_last_action(played)))
        ]
    assert densities[0] == pytest.approx(densities[1], abs=1e-9)


def test_native_and_encoded_posterior_agree_with_fewer_rows(played):
    ours, theirs = posterior(native(), played), posterior(encoded(), with_last_action(played))
    assert ours.method == theirs.method == "conjugate"
    assert np.allclose(ours.closed, theirs.closed, atol=1e-9)
    assert ours.counts.emission.size < theirs.counts.emission.size * X
    assert ours.mean.emission.shape == (1, A + 1, X, Y)


@pytest.mark.parametrize("shift", [1, -1])
def test_an_action_of_the_wrong_step_is_caught(played, shift):
    """Planted bug: observations are attributed to the action of another step."""
    moved = Episodes(played.observations, np.roll(played.actions, shift, axis=1), played.states)
    right, wrong = posterior(native(), played).closed, posterior(native(), moved).closed
    assert not np.allclose(right, wrong, atol=0.5)


def by_step():
    """Transitions and emissions of each step, as functions."""

    @homdp(states=X, observations=Y, actions=A, horizon=H, reward=REWARD)
    def seasons():
        p = numpyro.sample("p", dist.Dirichlet(jnp.ones((H, 2))))
        return Kernels(
            initial=[0.5, 0.5],
            transition=lambda x, a, h: dist.Bernoulli((x + a + h) / 10),
            emission=lambda x, h: dist.Categorical(
                probs=jnp.where(x == 0, jnp.asarray(p)[h - 1], jnp.asarray(p)[h - 1][::-1])
            ),
        )

    return seasons


def test_functions_and_arrays_of_the_step_agree():
    world = by_step().draw(jax.random.key(0))
    h, x, a = np.meshgrid(np.arange(H), np.arange(X), np.arange(A), indexing="ij")
    right = (x + a + h + 1) / 10
    assert world.homdp.form.transition == (H, X, A, X)
    assert world.homdp.form.emission == (H, 1, X, Y)
    assert np.allclose(world.pomdp.transition, np.stack([1 - right, right], -1), atol=1e-12)
    rows = world.parameters["p"]
    assert np.allclose(world.pomdp.emission[:, 0, 0], rows, atol=1e-12)
    assert np.allclose(world.pomdp.emission[:, 0, 1], rows[:, ::-1], atol=1e-12)


def test_steps_are_counted_separately():
    model = by_step()
    world = model.draw(jax.random.key(0))
    data = rollout(jax.random.split(jax.random.key(1), 30), world, uniform_policy(world))
    counts = model.counts(data)
    assert counts.emission.sum((1, 2, 3)).tolist() == [30] * H
    expected = np.ones((H, 2))
    for h, states, seen in zip(range(H), data.states.T, data.observations.T, strict=False):
        same = (states == seen).sum()
        expected[h] += same, 30 - same
    assert np.allclose(posterior(model, data).closed.reshape(H, 2), expected)


def test_equal_steps_are_the_stationary_model():
    def declared(emission, transition):
        @homdp(states=X, observations=Y, actions=A, horizon=H, reward=REWARD)
        def model():
            return Kernels([0.5, 0.5], transition, emission)

        return history_tree()(model.at().pomdp).value

    stationary = declared(FIRST, MOVES)
    steps = declared(np.tile(FIRST, (H, 1, 1, 1)), np.tile(MOVES, (H, 1, 1, 1)))
    actions = declared(np.tile(FIRST, (A + 1, 1, 1)), MOVES)
    assert steps == pytest.approx(stationary, abs=1e-12)
    assert actions == pytest.approx(stationary, abs=1e-12)


def test_unused_rows_depend_on_no_site():
    @homdp(states=X, observations=Y, actions=A, horizon=H, reward=REWARD)
    def model():
        p = numpyro.sample("p", dist.Beta(2.0, 2.0))
        return Kernels(
            [0.5, 0.5],
            MOVES,
            lambda x, a, h: dist.Bernoulli(p * h / H),
            lambda x: dist.Bernoulli(p),
        )

    known = model.structure.known.emission
    assert known[0, :A].all()
    assert not known[0, A].any()
    assert not known[1:, :A].any()
    assert known[1:, A].all()


def test_the_start_may_be_unknown():
    @homdp(states=X, observations=Y, actions=A, horizon=H, reward=REWARD)
    def model():
        start = numpyro.sample("start", dist.Dirichlet(jnp.array([1.0, 3.0])))
        return Kernels(start, MOVES, FIRST)

    world = model.at(start=[0.25, 0.75])
    data = rollout(jax.random.split(jax.random.key(1), 60), world, uniform_policy(world))
    belief = posterior(model, data)
    expected = np.bincount(data.states[:, 0], minlength=2) + np.array([1.0, 3.0])
    assert belief.method == "conjugate"
    assert np.allclose(belief.closed, expected)
    assert np.allclose(belief.mean.initial, expected / expected.sum())
    total = expected.sum()
    assert np.allclose(belief.variance.initial, expected.prod() / (total**2 * (total + 1)))
    drawn = belief.draws(jax.random.key(0), 4000).initial
    assert np.allclose(drawn.mean(0), expected / total, atol=0.01)


def declared(**changes):
    given = {"transition": MOVES, "emission": FIRST, **changes}

    @homdp(states=X, observations=Y, actions=A, horizon=H, reward=REWARD)
    def model():
        return Kernels([0.5, 0.5], **given)

    return model


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"emission": lambda x, a: dist.Bernoulli(0.5)}, "first_emission"),
        ({"emission": np.full((A, X, Y), 0.5)}, "emission"),
        ({"emission": np.full((A + 1, X, Y), 0.5), "first_emission": FIRST}, "emission"),
        ({"emission": np.full((H + 1, 1, X, Y), 0.5)}, "emission"),
        ({"transition": np.full((H + 1, X, A, X), 0.5)}, "transition"),
        ({"transition": lambda b, c, d: dist.Bernoulli(0.5)}, "transition"),
        ({"first_emission": lambda x, a: dist.Bernoulli(0.5)}, "first_emission"),
        ({"emission": lambda x, h: dist.Bernoulli(h / 2)}, "emission"),
    ],
)
def test_each_misuse_is_reported(changes, where):
    with raises(DeclarationError, where):
        declared(**changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"emission": np.full((A, X, Y), 0.5)}, "is the last one"),
        (
            {"emission": np.full((A + 1, X, Y), 0.5), "first_emission": FIRST},
            "Leave out first_emission",
        ),
        ({"emission": lambda x, action: dist.Bernoulli(0.5)}, "lambda x, a"),
        ({"transition": np.full((X, A, X, H), 0.5)}, "(step, state, action, next state)"),
        ({"first_emission": [0.5, 0.5]}, "(state, observation)"),
    ],
)
def test_remedies_fit_the_misuse(changes, words):
    with pytest.raises(DeclarationError) as caught:
        declared(**changes)
    (problem,) = caught.value.problems
    assert words in problem.remedy


def test_an_initial_distribution_is_no_function():
    with pytest.raises(DeclarationError) as caught:
        homdp(states=X, observations=Y, actions=A, horizon=H, reward=REWARD)(
            lambda: Kernels(lambda: dist.Bernoulli(0.5), MOVES, FIRST)
        )
    (problem,) = caught.value.problems
    assert problem.where == "initial"
    assert "without lambda" in problem.remedy


def test_misuses_of_several_features_are_reported_together():
    with pytest.raises(DeclarationError) as caught:
        homdp(
            states=("a", "b"),
            observations=Y,
            actions=A,
            horizon=H,
            cost=np.zeros((3, A)),
            terminal=("B",),
            allowed=lambda x: np.ones(A, dtype=bool),
        )(lambda: Kernels([0.5, 0.4], MOVES, lambda x, a: dist.Bernoulli(0.5)))
    problems = caught.value.problems
    assert [problem.where for problem in problems] == [
        "terminal",
        "cost",
        "first_emission",
        "initial",
        "allowed",
    ]
    assert all(problem.remedy for problem in problems[1:])


def test_a_horizon_of_step_dependent_tables_is_fixed():
    with raises(DeclarationError, "horizon"):
        by_step().with_horizon(2)

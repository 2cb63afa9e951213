"""The episode program: NumPyro's tools work on it, and it agrees with a computation by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import handlers
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from numpyro.infer.util import log_density
from scipy.stats import beta

from homdp_ppl import Episodes, HOMDPError, PolicyError, rollout, uniform_policy, x64
from tests.chances import frequency_errors
from tests.raising import raises
from tests.worlds import Parity, random_policy, world


def data_of(episodes):
    return {
        "x": jnp.asarray(episodes.states[:, :-1].T),
        "y": jnp.asarray(episodes.observations.T),
        "a": jnp.asarray(episodes.actions.T),
        "x_last": jnp.asarray(episodes.states[:, -1]),
    }


def play(name, n, key=0):
    made = world(name)
    return rollout(jax.random.split(jax.random.key(key), n), made, uniform_policy(made))


def test_density_of_tiger_from_its_story():
    """The expected density does not use the library.

    Growls are right or wrong, doors reset, three actions are equally likely.
    """
    episodes = play("tiger", 7)
    accuracy, hits = 0.77, (episodes.observations == episodes.states[:, :-1])
    expected = beta(8, 2).logpdf(accuracy)
    expected += hits.sum() * np.log(accuracy) + (~hits).sum() * np.log(1 - accuracy)
    expected += hits.size * np.log(1 / 3)  # actions
    expected += 7 * np.log(1 / 2) + (episodes.actions != 0).sum() * np.log(
        1 / 2
    )  # first states and resets
    with x64():
        program = world("tiger").homdp.program
        found = log_density(
            program, (None, 7), {}, {"accuracy": jnp.asarray(accuracy), **data_of(episodes)}
        )[0]
        prior_error = float(numpyro.distributions.Beta(8, 2).log_prob(accuracy)) - beta(
            8, 2
        ).logpdf(accuracy)
    assert float(found) - prior_error == pytest.approx(expected, abs=1e-12)
    assert abs(prior_error) < 1e-5  # NumPyro's normaliser of Beta, through jax's betaln


@pytest.mark.parametrize("name", ["tiger", "lock", pytest.param("checkup", marks=pytest.mark.slow)])
def test_with_hindsight_only_user_sites_are_latent(name):
    model = world(name).homdp
    episodes = play(name, 4)
    with x64():
        trace = handlers.trace(handlers.seed(model.hindsight(episodes), 0)).get_trace()
        open_sites = {k for k, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}
        assert open_sites == {site.name for site in model.sites}
        conditioned = handlers.condition(model.program, data=data_of(episodes))
        again = handlers.trace(handlers.seed(conditioned, 0)).get_trace(episodes=4)
    for site, shape in (
        ("x", (model.horizon, 4)),
        ("y", (model.horizon, 4)),
        ("a", (model.horizon, 4)),
        ("x_last", (4,)),
    ):
        for seen in (trace, again):
            assert seen[site]["is_observed"]
            assert seen[site]["value"].shape == shape
            assert np.array_equal(seen[site]["value"], data_of(episodes)[site])


def test_without_hindsight_states_are_latent():
    """Conditioned on y and a only, x is latent in addition to the parameters, as in a POMDP."""
    data = {k: v for k, v in data_of(play("tiger", 2)).items() if k in ("y", "a")}
    with x64():
        seen = handlers.condition(world("tiger").homdp.program, data=data)
        trace = handlers.trace(handlers.seed(seen, 0)).get_trace(episodes=2)
    assert {k for k, s in trace.items() if s["type"] == "sample" and not s["is_observed"]} == {
        "accuracy",
        "x",
        "x_last",
    }


@pytest.mark.parametrize("name", ["tiger", "lock"])
def test_predictive_simulates_under_a_policy(name):
    """Compare frequencies in a simulation of the program with the tables and the policy.

    False alarm: 1e-6.
    """
    made = world(name)
    policy = random_policy(made.spaces, seed=0)
    n = 1500
    with x64():
        fixed = handlers.substitute(
            made.homdp.program, data={k: jnp.asarray(v) for k, v in made.parameters.items()}
        )
        drawn = jax.jit(lambda key: Predictive(fixed, num_samples=1)(key, policy, n))(
            jax.random.key(0)
        )
    states = np.append(drawn["x"][0], drawn["x_last"], axis=0).T
    episodes = Episodes(drawn["y"][0].T, drawn["a"][0].T, states)
    assert frequency_errors(episodes, made.pomdp) == []
    wrong = Episodes(episodes.observations, np.roll(episodes.actions, 1, axis=1), states)
    assert frequency_errors(wrong, made.pomdp) != []


def test_program_accepts_policies_that_are_not_graphs():
    made = world("tiger")
    policy = Parity(3)
    with x64():
        trace = handlers.trace(handlers.seed(made.homdp.program, 0)).get_trace(policy, 5)
    y, a = np.asarray(trace["y"]["value"]).T, np.asarray(trace["a"]["value"]).T
    for k in range(5):
        assert all(policy.act(y[k, : h + 1], a[k, :h])[a[k, h]] == 1 for h in range(4))


def test_policy_of_another_model_raises_an_error():
    with raises(PolicyError, "policy"):
        world("lock").homdp.program(uniform_policy(world("tiger")))


def test_picture_shows_dependences():
    """In the source of the drawing, actions depend on observations and actions only."""
    made = world("tiger")
    with x64():
        drawing = numpyro.render_model(
            made.homdp.unrolled, (random_policy(made.spaces, 0),), {"steps": 2}
        )
    arrows = {
        tuple(part.strip(' \t"') for part in line.split("->"))
        for line in drawing.source.splitlines()
        if "->" in line
    }
    assert arrows == {
        ("accuracy", "y[1]"),
        ("x[1]", "y[1]"),
        ("y[1]", "a[1]"),
        ("x[1]", "x[2]"),
        ("a[1]", "x[2]"),
        ("accuracy", "y[2]"),
        ("x[2]", "y[2]"),
        ("y[1]", "a[2]"),
        ("a[1]", "a[2]"),
        ("y[2]", "a[2]"),
        ("x[2]", "x_last"),
        ("a[2]", "x_last"),
    }
    assert "cluster_episodes" in drawing.source
    with x64():
        assert "x_last" in numpyro.render_model(made.homdp.program).source


def test_unrolled_and_scanned_programs_have_the_same_density():
    made = world("tiger_listen")
    episodes = play("tiger_listen", 3)
    data = data_of(episodes)
    flat = {f"{k}[{h + 1}]": data[k][h] for k in "xya" for h in range(made.spaces.horizon)}
    with x64():
        accuracy = {"accuracy": jnp.asarray(0.7)}
        scanned = jax.jit(
            lambda: log_density(made.homdp.program, (None, 3), {}, {**accuracy, **data})[0]
        )()
        unrolled = jax.jit(
            lambda: log_density(
                made.homdp.unrolled, (None, 3), {}, {**accuracy, **flat, "x_last": data["x_last"]}
            )[0]
        )()
    assert float(scanned) == pytest.approx(float(unrolled), abs=1e-12)


@pytest.mark.slow
def test_mcmc_and_svi_run_on_the_conditioned_program_and_agree_with_the_closed_form():
    """The closed form is Beta(8 + hits, 2 + misses).

    Thresholds: 5 Monte Carlo standard errors with at least 100 effective draws of 600 (false alarm
    below 1e-6). A program with the growls of the wrong state is 20 posterior deviations away, and
    is detected.
    """
    episodes = play("tiger", 60)
    hits = int((episodes.observations == episodes.states[:, :-1]).sum())
    closed = beta(8 + hits, 2 + episodes.observations.size - hits)
    shifted = Episodes(1 - episodes.observations, episodes.actions, episodes.states)
    model = world("tiger").homdp
    with x64():
        means = []
        for data in (episodes, shifted):
            sampler = MCMC(
                NUTS(model.hindsight(data)), num_warmup=200, num_samples=600, progress_bar=False
            )
            sampler.run(jax.random.key(0))
            means.append(float(sampler.get_samples()["accuracy"].mean()))
        guide = AutoNormal(model.hindsight(episodes))
        svi = SVI(model.hindsight(episodes), guide, numpyro.optim.Adam(0.05), Trace_ELBO())
        fit = svi.run(jax.random.key(1), 500, progress_bar=False)
        middle = float(guide.median(fit.params)["accuracy"])
    threshold = 5 * closed.std() / np.sqrt(100)
    assert abs(means[0] - closed.mean()) < threshold
    assert abs(means[1] - closed.mean()) > 10 * threshold
    assert abs(middle - closed.mean()) < 3 * closed.std()


def test_before_the_first_episode_hindsight_is_the_prior():
    model = world("tiger").homdp
    with x64():
        trace = handlers.trace(handlers.seed(model.hindsight([]), 0)).get_trace()
    assert [name for name, site in trace.items() if site["type"] == "sample"] == ["accuracy"]
    for wrong in (lambda: model.program(episodes=0), lambda: model.unrolled(steps=0)):
        with pytest.raises(HOMDPError) as caught:
            wrong()
        assert caught.value.problems[0].where in ("episodes", "steps")


def test_hindsight_works_in_the_precision_of_the_caller():
    episodes = play("tiger", 3)
    model = world("tiger").homdp
    outside = model.hindsight(episodes)
    with x64():
        inside = model.hindsight(episodes)
        one, other = (
            jax.jit(lambda p, m=m: log_density(m, (), {}, p)[0])({"accuracy": 0.7})
            for m in (outside, inside)
        )
        assert one.dtype == jnp.float64
    assert float(one) == float(other)
    assert (
        jax.jit(lambda p: log_density(inside, (), {}, p)[0])({"accuracy": 0.7}).dtype == jnp.float32
    )

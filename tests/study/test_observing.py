"""Extra observations in hindsight: the joint model, policies that do not see them, and runs."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    Kernels,
    ParameterError,
    Reveal,
    evaluate,
    explorers,
    homdp,
    learn,
    models,
    study,
)
from homdp_ppl.planners import history_tree
from homdp_ppl.report import draw_hindsight
from homdp_ppl.study.observing import FirstSensor, observed_again, observing
from tests.declare.test_terminal import native
from tests.raising import raises
from tests.richer import richer

RULE = explorers.posterior_sampling()


def worlds():
    return models.load("tiger_table", horizon=3), native().draw(jax.random.key(3)), richer("start")


@pytest.mark.parametrize("k", [0, 1])
def test_sensors_are_independent_given_the_state(k):
    world = worlds()[k]
    again = observed_again(world.homdp, 2).at(**world.parameters)
    ends = bool(world.spaces.terminal)
    one, joint = (np.asarray(w.pomdp.emission)[0, 0] for w in (world, again))
    Y, alive = one.shape[-1] - ends, ~np.asarray(world.pomdp.terminal)
    found = joint[alive][:, : Y**3].reshape(-1, Y, Y, Y)
    rows = one[alive][:, :Y]
    assert np.allclose(found, np.einsum("xa,xb,xc->xabc", rows, rows, rows))
    assert np.allclose(again.pomdp.transition, world.pomdp.transition)
    assert again.homdp.rewards is world.homdp.rewards


@pytest.mark.parametrize("k", [0, 1, 2])
def test_policies_see_the_first_sensor_only(k):
    world = worlds()[k]
    extended, planner, _ = observing(world, RULE, history_tree(), world.homdp, 1)
    plan, joint = history_tree()(world.pomdp), planner(extended.pomdp)
    assert joint.value == pytest.approx(plan.value, abs=1e-12)
    assert evaluate(joint.policy, extended.pomdp) == pytest.approx(plan.value, abs=1e-10)
    everything = history_tree()(extended.pomdp).value  # would see both sensors
    assert everything >= plan.value - 1e-12
    if k != 2:
        assert everything > plan.value + 1e-6


def test_random_numbers_of_the_world_are_the_same():
    world = worlds()[0]
    extended, planner, _ = observing(world, RULE, history_tree(), world.homdp, 1)
    options = {"reveal": Reveal(0.0)}
    one = learn(world, explorers.uniform(), history_tree(), 6, 3, **options)
    other = learn(extended, explorers.uniform(), planner, 6, 3, **options)
    assert np.array_equal(one.record.states, other.record.states)
    assert np.array_equal(one.record.observations, other.record.observations // 2)
    assert not np.array_equal(other.record.observations // 2, other.record.observations % 2)


@pytest.fixture(scope="module")
def found():
    options = {"shares": (0.0, 1.0), "observations": 1}
    return study.hindsight(worlds()[0], [RULE], history_tree(), 8, [0, 1], **options)


def test_rows_and_lines(found):
    assert [row.hindsight for row in found.rows] == ["states"] * 2 + ["foresight", "observations"]
    last = found.rows[-1]
    lost = [run.lost[-1] for run in found.extra["posterior_sampling"]]
    assert last.regret == pytest.approx(np.mean(lost))
    assert last.more == pytest.approx(np.mean(lost) - found.rows[1].regret)
    assert "posterior_sampling, 1 more observation: " in repr(found)
    axes = draw_hindsight(found)
    assert "posterior_sampling, 1 more observation" in [text.get_text() for text in axes.texts]
    axes.figure.clear()


def test_runs_use_the_world_and_its_optimum(found):
    some, more = found.runs["posterior_sampling"][0.0][0], found.extra["posterior_sampling"][0]
    assert more.optimum == pytest.approx(some.optimum)
    assert more.model_name == some.model_name
    assert not more.episodes.revealed.any()


def test_what_cannot_be_studied():
    world = worlds()[0]
    for rule in (explorers.tight(), explorers.quantile_backup()):
        with raises(ParameterError, "observations"):
            study.hindsight(world, [rule], None, 2, [0], observations=1)
    with raises(ParameterError, "observations"):
        study.hindsight(world, [RULE], None, 2, [0], observations=-1)
    with raises(ParameterError, "observations"):
        study.hindsight(world, [RULE], None, 2, [0], observations=12)
    with raises(ParameterError, "observations"):
        study.hindsight(models.load("gaussian_tiger"), [RULE], None, 2, [0], observations=1)


SHARP = np.array([0.5, 0.65, 0.8, 0.95])


@homdp(states=2, observations=2, actions=2, horizon=2, reward=np.eye(2))
def mirror():
    """The prior says which observation belongs to which state, but not how well it shows it."""
    p = jnp.asarray(SHARP)[numpyro.sample("k", dist.Categorical(probs=jnp.full(4, 0.25)))]
    shows = jnp.array([[p, 1 - p], [1 - p, p]])
    return Kernels([0.5, 0.5], np.full((2, 2, 2), 0.5), shows)


def test_more_observations_are_evidence():
    """Two observations of a state identify how sharp they are, one does not.

    The state is drawn again in every step, so a single observation is 0 with probability 1/2 for
    every p, and the posterior is the prior. With 200 pairs, the true value has most of the
    probability; false-alarm rate 1e-4.
    """
    world = mirror.at(k=3)
    extended, planner, model = observing(world, RULE, history_tree(), mirror, 1)
    run = learn(extended, RULE, planner, 100, 0, model, reveal=Reveal(0.0))
    alone = learn(world, RULE, history_tree(), 100, 0, reveal=Reveal(0.0))
    assert run.posterior.atoms.probabilities[3] > 0.9
    assert alone.posterior.atoms.probabilities == pytest.approx(np.full(4, 0.25), abs=1e-9)
    assert isinstance(planner, FirstSensor)

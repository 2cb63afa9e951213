"""Learners whose declaration differs from that of the world, and foresight."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import Kernels, evaluate, explorers, homdp, learn, models
from homdp_ppl.errors import DataError, ParameterError
from homdp_ppl.models.tiger_listen import LISTEN
from tests.planners.exact import optimum
from tests.raising import raises
from tests.runs import TREE, readable, small


def test_a_learner_without_structure():
    """The tiger without structure: the learner estimates all tables."""
    run = learn(
        small("tiger"),
        explorers.greedy(),
        TREE,
        400,
        model=small("tiger_table").homdp,
        compiled=False,
    )
    assert run.posterior.homdp.name == "tiger_table"
    assert (run.to_dataset().attrs["model"], run.to_dataset().attrs["learner"]) == (
        "tiger",
        "tiger_table",
    )
    assert run.gaps[-100:].mean() < 0.02
    assert np.abs(run.posterior.mean.moves(0)[:, 0] - np.eye(2)).max() < 0.05


def test_a_checkup_without_structure():
    world = models.load("checkup", horizon=2)
    run = learn(
        world, explorers.greedy(), TREE, 5, model=models.load("checkup_table", horizon=2).homdp
    )
    assert len(run.values) == 5
    assert run.optimum == pytest.approx(optimum(world.pomdp), abs=1e-12)


@pytest.mark.parametrize(
    "explorer",
    [
        explorers.greedy(),
        explorers.tight(),
        explorers.posterior_sampling(),
        explorers.quantile_backup(),
        explorers.quantile_bonus(bound=True),
        explorers.value_quantile(draws=3),
        explorers.uniform(),
        explorers.oracle(small("tiger")),
    ],
    ids=str,
)
def test_a_world_that_the_declaration_excludes(explorer):
    """The tiger moves while you listen.

    The readable loop runs, says why, and still evaluates exactly.
    """
    wild = small("tiger_table").homdp.at(
        T=np.full((2, 3, 2), 0.5), O=small("tiger_table").pomdp.shows(0)
    )
    run = learn(wild, explorer, TREE, 1500, stop_after=12, model=small("tiger").homdp)
    assert run.loop == (
        "readable loop (the world allows outcomes that the learner's declaration excludes)"
    )
    assert run.gaps.min() >= -1e-9
    assert run.values[5] == pytest.approx(evaluate(run.policy_at(5), wild.pomdp), abs=1e-12)
    with raises(DataError, "counts.transition"):
        run.posterior  # noqa: B018


def test_observations_that_the_declaration_excludes():
    """The policy continues, and the run counts these observations."""
    world = small("tiger_listen")  # silence, and growls after listening

    @homdp(**world.spaces._asdict(), reward=world.homdp.reward[0])
    def deaf():
        p = numpyro.sample("p", dist.Beta(1, 1))
        opened = jnp.array([[p, 1 - p], [1 - p, p]])  # (X, X) after opening a door
        moves = jnp.stack([jnp.eye(2), opened, opened], axis=1)
        return Kernels(world.pomdp.initial, moves, np.array([[1.0, 0.0, 0.0]] * 2))

    run = learn(world, explorers.greedy(), TREE, 8, model=deaf)
    listened = (run.record.actions[:, :-1] == 0).sum(1)
    np.testing.assert_array_equal(run.impossible, listened)
    assert listened.sum() > 0


# Foresight


def test_foresight_learns_nothing_about_observations():
    """A collector that sees the tiger opens the correct door at every step, with value H.

    The evaluated policy is the one that acts on observations.
    """
    seeing, hindsight = (
        readable("tiger_listen", explorers.greedy(), 60, foresight=seeing)
        for seeing in (True, False)
    )
    assert (seeing.record.actions != 0).all()
    assert (hindsight.record.actions == 0).any()
    np.testing.assert_allclose(seeing.played, 3.0, atol=1e-12)
    right = np.where(seeing.record.states[:, :-1] == 0, 2, 1)  # tiger on the left: open right
    np.testing.assert_array_equal(seeing.record.actions, right)
    for k in (0, 30, 59):
        assert seeing.values[k] == pytest.approx(
            evaluate(seeing.policy_at(k), small("tiger_listen").pomdp), abs=1e-12
        )
    assert (seeing.values == seeing.values[0]).all()  # nothing relevant is learned
    assert seeing.state.counts.emission[LISTEN].sum() == 0
    assert hindsight.gaps[-1] < 0.001 < seeing.gaps[-1]
    assert seeing.loop == "readable loop (foresight is played step by step)"
    assert seeing.to_dataset().attrs["foresight"] == 1


def test_foresight_refuses_rules_that_play_uniform_actions():
    """HOP-V's version spaces need its uniform actions; a collector that sees the state drops them,
    and the guarantee would not hold.
    """
    world = models.load("tiger", horizon=2)
    rule = explorers.hop_v([world], [world])
    with raises(ParameterError, "foresight") as caught:
        learn(world, rule, TREE, 8, foresight=True)
    assert rule.name in caught.value.problems[0].got


def test_foresight_uses_the_same_random_numbers():
    seeing, hindsight = (
        readable("tiger_listen", explorers.greedy(), 40, foresight=seeing)
        for seeing in (True, False)
    )
    np.testing.assert_array_equal(seeing.record.states[:, 0], hindsight.record.states[:, 0])

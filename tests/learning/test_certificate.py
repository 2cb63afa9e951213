"""Certificates of runs, and stopping when they are good enough."""

import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    Counts,
    Kernels,
    OptimismWarning,
    ParameterError,
    PolicyError,
    SpacesError,
    explorers,
    homdp,
    learn,
    models,
    study,
    tabular,
)
from homdp_ppl.cli.main import main
from homdp_ppl.confidence import confidence_sets, interval, value_ranges
from homdp_ppl.explorers.anytime import optimistic_proposal
from homdp_ppl.learning.certificate import Certificate, checkpoints
from homdp_ppl.learning.planning import TablePlanning
from homdp_ppl.planners import alpha_vectors, particle_tree
from homdp_ppl.report import comparison_table
from tests import rules
from tests.confidence.boxes import DECLARATIONS
from tests.raising import raises
from tests.runs import TREE

TIGER = models.load("tiger", horizon=3)
FINITE = ["anytime", "greedy", "hop_b", "hop_v", "posterior_sampling", "tight", "uniform"]


@pytest.mark.parametrize("name", FINITE)
def test_every_rule_has_certificates(name):
    """Bounds hold, are for the policies of their rounds, and upper bounds never grow."""
    run = learn(TIGER, rules.example(name, TIGER), TREE, episodes=24, compiled=False)
    certificate = run.certificate
    assert certificate is run.certificate
    assert certificate.rounds[-1] == len(run.values)
    values = run.values[certificate.rounds - 1]
    assert (certificate.lower <= values + 1e-9).all()
    assert (certificate.upper >= run.optimum - 1e-9).all()
    assert (np.diff(certificate.upper) <= 0).all()
    assert (certificate.gap >= run.gaps[certificate.rounds - 1] - 1e-9).all()
    assert certificate.delta == 0.1


def test_what_a_certificate_is():
    """The interval of the policy, and the optimistic value of `anytime`, with all data so far."""
    run = learn(TIGER, explorers.greedy(), TREE, episodes=30, compiled=False)
    certificate = run.certificate
    k = 11
    after = int(certificate.rounds[k])
    low, _ = interval(TIGER.homdp, run.episodes[:after], run.policy_at(after - 1))
    assert certificate.lower[k] == pytest.approx(float(low), abs=1e-12)
    values = []
    for rounds in certificate.rounds[: k + 1]:
        sets = confidence_sets(TIGER.homdp, Counts.of(run.episodes[:rounds], TIGER.homdp))
        planning = TablePlanning(explorers.anytime(), TREE, TIGER.homdp)
        values.append(
            float(planning.plan(optimistic_proposal(sets, value_ranges(sets))).optimistic)
        )
    assert certificate.upper[k] == pytest.approx(min(values), abs=1e-12)


def test_options_of_the_rule_are_shared():
    run = learn(TIGER, explorers.anytime(delta=0.01), TREE, episodes=3, compiled=False)
    assert run.certificate.delta == 0.01
    wider = learn(TIGER, explorers.anytime(known=False), TREE, episodes=3, compiled=False)
    assert wider.certificate.gap[-1] > run.certificate.gap[-1]


def test_stopping():
    """At the first checkpoint with a small enough gap, in both loops at the same."""
    stopped = learn(TIGER, explorers.anytime(), TREE, 3000, stop_when=0.4, compiled=False)
    assert stopped.certificate is stopped.certified
    assert stopped.certificate.gap[-1] <= 0.4
    assert (stopped.certificate.gap[:-1] > 0.4).all()
    assert len(stopped.values) == stopped.certificate.rounds[-1] < 3000
    assert stopped.gaps[-1] <= 0.4
    assert "Certificate after" in repr(stopped)
    assert "value at least" in repr(stopped)
    other = learn(TIGER, explorers.anytime(), TREE, 3000, [0, 1], stop_when=0.4, compiled=True)
    assert len(other[0].values) == len(stopped.values)
    np.testing.assert_allclose(other[0].certificate.lower, stopped.certificate.lower, atol=1e-9)
    assert other[1].certificate.gap[-1] <= 0.4
    data = stopped.to_dataset()
    np.testing.assert_array_equal(data["upper"], stopped.certificate.upper)
    np.testing.assert_array_equal(data["certified_round"], stopped.certificate.rounds)


def test_resuming_a_stopped_run():
    run = learn(TIGER, explorers.greedy(), TREE, 200, stop_when=0.9, compiled=False)
    again = run.resume(len(run.values) + 5)
    assert len(again.values) == len(run.values) + 5
    assert again.certified is None
    assert "Certificate" not in repr(again)
    assert again.certificate.rounds[-1] == len(again.values)


def test_runs_that_never_stop():
    run = learn(TIGER, explorers.uniform(), TREE, 40, stop_when=0.0, compiled=False)
    assert len(run.values) == 40
    assert run.certificate.rounds.tolist() == list(checkpoints(0, 40))


def test_checkpoints():
    """About 10 % more each time; few even for long runs."""
    found = list(checkpoints(0, 10_000))
    assert found[:3] == [1, 2, 3]
    assert found[-1] == 10_000
    assert len(found) < 100
    assert list(checkpoints(0, 0)) == []


def test_planners_without_caps():
    run = learn(TIGER, explorers.greedy(), alpha_vectors(), episodes=6)
    other = learn(TIGER, explorers.greedy(), TREE, episodes=6, compiled=False)
    assert (run.certificate.upper >= other.certificate.upper - 1e-6).all()


def test_nothing_to_learn():
    """Without unknown rows the certificate is exact."""
    known = tabular(
        T=np.full((2, 2, 2), 0.5), O=np.eye(2), initial=[0.5, 0.5], reward=np.eye(2), horizon=2
    )
    run = learn(known.at(), explorers.greedy(), TREE, 5, stop_when=0.01, compiled=False)
    assert len(run.values) == 1
    assert run.certificate.gap[-1] == pytest.approx(0.0, abs=1e-9)


def test_text():
    certificate = Certificate.empty(0.1)
    assert repr(certificate) == "Certificate: no rounds yet"
    text = repr(certificate.add(5, 0.25, 0.5))
    expected = "value at least 0.25, optimum at most 0.5, with probability 0.9"
    assert text == f"Certificate after 5 rounds: {expected}"
    assert certificate.add(5, 0.25, 0.5).add(6, 0.1, 0.7).upper.tolist() == [0.5, 0.5]


def test_what_is_refused():
    continuous = models.load("gaussian_tiger", horizon=2)
    with raises(ParameterError, "stop_when"):
        learn(continuous, explorers.posterior_sampling(), particle_tree(), 3, stop_when=0.1)
    with raises(ParameterError, "stop_when"):
        learn(TIGER, explorers.greedy(), TREE, 3, stop_when=-1.0)
    with raises(ParameterError, "stop_when"):
        jax.jit(lambda gap: learn(TIGER, explorers.greedy(), TREE, 3, stop_when=gap))(0.1)
    run = learn(TIGER, explorers.greedy(), TREE, 3, compiled=False)
    with raises(SpacesError, "counts of states and observations"):
        replace(run, task=replace(run.task, world=continuous)).certificate  # noqa: B018
    online = particle_tree(simulations=10)(TIGER).policy
    deployed = replace(run, decision=run.decision._replace(policy=online))
    with raises(PolicyError, "policy"):
        deployed.certificate  # noqa: B018


def test_the_command_line(capsys):
    command = ["learn", "tiger", "--horizon", "2", "--episodes", "300", "--explorer", "anytime"]
    assert main([*command, "--stop-when", "1.5"]) == 0
    assert "Certificate after" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([*command, "--stop-when", "-1"])


def test_episodes_that_end_early():
    """They are counted up to their end."""
    model = DECLARATIONS["ends"]
    world = model.draw(jax.random.key(3))
    run = learn(world, explorers.anytime(), TREE, 30, stop_when=0.0, compiled=False)
    values = run.values[run.certificate.rounds - 1]
    assert (run.certificate.lower <= values).all()
    assert (run.certificate.upper >= run.optimum).all()


# An optimistic value that the run's own certificate refutes


def guess(concentration):
    """The observation is the state with an unknown accuracy, believed to be about 1/2."""

    @homdp(states=2, observations=2, actions=2, horizon=1, reward=np.eye(2))
    def guess():
        p = numpyro.sample("p", dist.Beta(concentration, concentration))
        return Kernels([0.5, 0.5], np.full((2, 2, 2), 0.5), jnp.array([[p, 1 - p], [1 - p, p]]))

    return guess.at(p=0.99)


def test_a_refuted_optimistic_value_is_reported():
    """In the warning, repr and the table; by the best policy that was certified so far."""
    run = learn(guess(200.0), explorers.quantile_backup(), TREE, 60, compiled=False)
    assert not run.below_certificate  # nothing is computed for repr
    with pytest.warns(OptimismWarning):
        certificate = run.certificate
    assert run.below_certificate
    assert run.optimistic[-1] < certificate.lower[-1] <= run.optimum
    assert "NOT OPTIMISTIC" in repr(run)
    assert not run.was_optimistic[-1]
    (row,) = study.summarise({"quantile_backup": [run]})
    assert row.below == 1
    table = comparison_table([row])
    assert list(table.columns[0].cells) == ["quantile_backup !"]
    assert table.caption
    with pytest.warns(OptimismWarning):
        stopped = learn(
            guess(200.0), explorers.quantile_backup(), TREE, 60, stop_when=0.0, compiled=False
        )
    assert stopped.below_certificate


@pytest.mark.parametrize("rule", [explorers.anytime(), explorers.tight(), explorers.uniform()])
def test_no_false_alarm(rule):
    """Bounds of one event do not contradict each other; a rule of random actions is not optimistic.

    The probability of a false alarm is at most delta = 0.1 for rules with a guarantee of their own.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", OptimismWarning)
        run = learn(guess(200.0), rule, TREE, 60, compiled=False)
        assert len(run.certificate.rounds) > 10
    assert not run.below_certificate
    assert "NOT OPTIMISTIC" not in repr(run)
    (row,) = study.summarise({"rule": [run]})
    assert row.below == 0
    assert comparison_table([row]).caption is None


def test_the_best_lower_bound_counts():
    """Lower bounds of earlier policies also bound the optimum."""
    certificate = Certificate(np.array([1, 2, 4]), np.array([0.2, 0.6, 0.3]), np.ones(3), 0.1)
    values = np.array([0.5, 0.5, 9.0, 0.5])
    assert certificate.exceeds(values).tolist() == [False, True, True]
    assert certificate.exceeds(values, tie=0.2).tolist() == [False, False, False]

"""The events of appendix C.6 and E: by hand, by simulation, and what they imply."""

import math

import jax
import numpy as np
import pytest

from homdp_ppl import Counts, ParameterError, confidence, models, rollout, uniform_policy
from tests.raising import raises

DELTA = 0.1


def world():
    return models.load("random", states=2, observations=3, actions=2, horizon=3, seed=1)


def limit(runs):
    """The largest share of failures with a false-alarm rate of 1e-6, if DELTA is the true one."""
    return DELTA + 4.75 * math.sqrt(DELTA * (1 - DELTA) / runs)


def test_events_of_an_emission_class_by_hand():
    made = world()
    episodes = rollout(jax.random.split(jax.random.key(0), 20), made, uniform_policy(made))
    counts = Counts.of(episodes, made)
    found = confidence.class_transition_event(made, counts, 50, DELTA)
    slacks = {}
    for x in range(2):
        for a in range(2):
            row = counts.transition[x, a]
            error = np.abs(row / row.sum() - made.pomdp.moves(0)[x, a]).sum()
            slacks[x, a] = math.sqrt(16 * math.log(8 * 50 * 3 / DELTA) / row.sum()) - error
    assert found.slack == pytest.approx(min(slacks.values()))
    assert found.where == min(slacks, key=slacks.get)
    truth = made.pomdp.shows(0)
    tables = np.stack([truth[::-1], truth, np.full((2, 3), 1 / 3)])
    log = [(counts.emission * np.log(table)).sum() for table in tables]
    likely = tables[int(np.argmax(log))]
    wanted = [
        math.sqrt(8 * math.log(2 * 50 * 3 / DELTA) / counts.emission[x].sum())
        - np.abs(truth[x] - likely[x]).sum()
        for x in range(2)
    ]
    found = confidence.class_emission_event(made, counts, tables, 50, DELTA)
    assert found.slack == pytest.approx(min(wanted))
    with raises(ParameterError, "emissions"):
        confidence.class_emission_event(made, counts, tables[:, :1], 50)


def test_events_of_an_emission_class_fail_for_another_truth():
    """Planted bug: counts of one world, events of another."""
    made, other = world(), models.load("random", states=2, observations=3, actions=2, seed=7)
    other = other.homdp.with_horizon(3).at(**other.parameters)
    episodes = rollout(jax.random.split(jax.random.key(0), 400), made, uniform_policy(made))
    many = Counts.of(episodes, made)
    many = Counts(many.transition * 50, many.emission * 50)
    tables = np.stack([made.pomdp.shows(0), other.pomdp.shows(0)])
    assert confidence.class_transition_event(made, many, 20_000).slack > -0.1
    assert not confidence.class_transition_event(other, many, 20_000).holds
    assert confidence.class_emission_event(made, many, tables, 20_000).holds
    assert not confidence.class_emission_event(other, many, tables, 20_000).holds


def drawn(generator, runs, epochs, steps):
    """Tuples of one class with two rows: rows, outcomes, the truth, and the class."""
    truth = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
    members = np.concatenate([truth[None], generator.dirichlet(np.ones(3), (4, 2))])
    rows = generator.integers(0, 2, (runs, epochs, steps))
    numbers = generator.random(rows.shape)
    outcomes = (numbers[..., None] > truth[rows].cumsum(-1)).sum(-1)
    return rows, outcomes, truth, members


def test_the_likelihood_event_by_simulation():
    """At most a share delta of 400 runs fails in any of 12 epochs (false-alarm rate 1e-6), and the
    truth survives wherever the event holds. Planted bug: with the other member as the truth, most
    runs fail.
    """
    rows, outcomes, truth, members = drawn(np.random.default_rng(0), 400, 12, 3)
    failed = wrong = 0
    for run in range(400):
        counts, held, other = np.zeros((2, 3)), True, True
        for k in range(12):
            np.add.at(counts, (rows[run, k], outcomes[run, k]), 1)
            held &= confidence.likelihood_event(truth, members, counts, 12, DELTA).holds
            other &= confidence.likelihood_event(members[1], members, 4 * counts, 12, DELTA).holds
            log = (counts * np.log(members)).sum((1, 2))
            if held:
                assert log[0] >= log.max() - 2 * math.log(12 * 5 / DELTA)
        failed += not held
        wrong += not other
    assert failed / 400 <= limit(400)
    assert wrong / 400 > 0.5


def test_the_likelihood_event_by_hand():
    """One row, ten draws: both sides from logarithms."""
    truth, member = np.array([[0.5, 0.5]]), np.array([[0.8, 0.2]])
    found = confidence.likelihood_event(truth, [member], [[7, 3]], epochs=5, delta=0.2)
    ratio = 7 * math.log(0.5 / 0.8) + 3 * math.log(0.5 / 0.2)
    assert found.slack == pytest.approx(8 * math.log(5 / 0.2) + 4 * ratio - 10 * 0.6**2)
    with raises(ParameterError, "counts"):
        confidence.likelihood_event(truth, [member], [7, 3], epochs=5)


def test_the_freedman_event_by_simulation():
    """Errors of two pairs in two rows that are visited with known probabilities: at most a share
    delta of 300 runs fails (false-alarm rate 1e-6). Planted bug: kept errors that are much smaller
    than expected fail.
    """
    generator, K, H = np.random.default_rng(1), 60, 2
    error = np.array([[0.5, 8.0], [3.0, 0.1]])  # by row and pair
    share = generator.random((300, K, H))
    rows = (generator.random(share.shape) < share).astype(int)
    kept = error[rows]
    expected = (1 - share)[..., None] * error[0] + share[..., None] * error[1]
    events = [
        confidence.freedman_event(e, k, K, 2, DELTA) for e, k in zip(expected, kept, strict=True)
    ]
    assert np.mean([not event.holds for event in events]) <= limit(300)
    assert not confidence.freedman_event(10 * expected[0], kept[0], K, 2, DELTA).holds
    one = events[0]
    slack = 32 * math.log(K * H * 2 / DELTA) + 2 * kept[0].cumsum(0) - expected[0].cumsum(0)
    assert one.slack == pytest.approx(slack.min())
    with raises(ParameterError, "kept"):
        confidence.freedman_event(expected[0], kept[0][:1], K, 2)

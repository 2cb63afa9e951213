"""Checks of agents: wrong declarations are reported, correct ones at the stated rate only."""

import jax
import numpy as np
import pytest
from scipy.stats import binom

from homdp_ppl import DataError, HindsightWarning, ParameterError, evaluate, explorers
from homdp_ppl.agent import check as checks
from homdp_ppl.agent import delays as delays_module
from homdp_ppl.agent.actor import Actor
from homdp_ppl.agent.check import EXCLUDED, FEWEST, LEVEL
from homdp_ppl.agent.delays import association
from homdp_ppl.agent.importance import derivatives
from homdp_ppl.agent.ledger import Session
from homdp_ppl.agent.outcomes import Outcomes, drift
from homdp_ppl.agent.replaying import Groups, groups_of, observed, replay
from homdp_ppl.evaluation.exact import policy_value
from homdp_ppl.posteriors.tables import tables_at
from tests.agent import wrong
from tests.raising import raises
from tests.richer import RICHER
from tests.runs import TREE

TABLES = ("initial", "transition", "emission")

# Wrong declarations


def test_a_repair_that_works_less_often_than_always():
    """Reveals that the declaration excludes are refused and remembered until a correction."""
    agent = wrong.repairs(0, 25)
    found = agent.check()
    assert found.unusual == (EXCLUDED,)
    refused = [s for s in agent._keeper.ledger.sessions if s.refused]
    assert len(refused) == len(agent.pending) > 2
    assert "repair" in found.notes[0]
    assert repr(found).count(EXCLUDED) == 2
    for session in refused:
        events = agent.status.events
        with raises(DataError, "data"):
            agent.reveal(session.id, _failed_repair(session))
        assert agent.status.events <= events + 1
        agent.reveal(session.id, _possible(session))
    assert EXCLUDED not in {finding.what for finding in agent.check().findings}


def _failed_repair(session):
    """Broken before and after the first repair."""
    return [1] * (len(session.actions) + 1)


def _possible(session):
    """Broken until the first repair, then fine."""
    states = [1]
    for action in session.actions:
        states.append(1 if action == 0 and states[-1] == 1 else 0)
    return states


def nearly_always(seed, episodes):
    """A repair that is declared to work in 98 %, and works in 70 %."""
    tables = wrong.tables_of(wrong.OFTEN.at(wear=0.3, ear=0.8))
    return wrong.live(wrong.agent_of(wrong.machine(0.98), seed), tables, episodes, seed)


@pytest.mark.parametrize(
    ("process", "finding"),
    [
        (nearly_always, "states given their causes"),
        (wrong.shared_errors, "observations given their causes"),
        (wrong.worse_ears, "drift of observations"),
    ],
)
def test_wrong_declarations_are_reported(process, finding):
    """Within tens of episodes, with the reason."""
    assert finding in process(0, 50).check().unusual


@pytest.mark.slow
@pytest.mark.parametrize(
    ("process", "episodes"),
    [(wrong.repairs, 20), (nearly_always, 40), (wrong.shared_errors, 30), (wrong.worse_ears, 60)],
)
def test_wrong_declarations_are_reported_by_most_agents(process, episodes):
    assert sum(bool(process(seed, episodes).check().unusual) for seed in range(10)) >= 9


# Correct declarations


def alarms(agents):
    """At most 5 % of checks are unusual; the test fails by chance with probability below 1e-4."""
    found = sum(bool(wrong.right(seed).check().unusual) for seed in range(agents))
    assert found <= binom.ppf(1 - 1e-4, agents, LEVEL)


def test_correct_declarations_are_rarely_reported():
    alarms(12)


@pytest.mark.slow
def test_correct_declarations_are_rarely_reported_by_more_agents():
    alarms(30)


@pytest.mark.long
@pytest.mark.slow
def test_correct_declarations_are_rarely_reported_by_many_agents():
    alarms(300)


def test_episodes_are_replayed_under_the_policy_in_force(monkeypatch):
    """Planted bug: with another policy for all episodes, a correct declaration looks wrong."""
    world = wrong.OFTEN.at(wear=0.3, ear=0.8)
    agent = wrong.agent_of(wrong.OFTEN, 1, explorers.uniform())
    wrong.live(agent, wrong.tables_of(world), 40, 1)
    assert agent.check().unusual == ()
    best = TREE(agent.posterior.mean).policy
    monkeypatch.setattr(Actor, "policy", lambda actor, ledger, session: best)
    assert "mean return" in agent.check().unusual


# Parts, compared with independent computations


def data_of(model, rule, episodes=12):
    """An agent, its groups, and the tables of a world."""
    world = model.draw(jax.random.key(1))
    agent = wrong.agent_of(model, 0, rule)
    wrong.live(agent, wrong.tables_of(world), episodes, 0)
    return agent, world, groups_of(agent._keeper.ledger, agent._keeper.actor, 1000)[0]


def test_replays_have_the_exact_values_of_the_policies():
    """In one world, against exact evaluation; 4 standard errors, false alarms below 1e-3."""
    agent, world, groups = data_of(wrong.two_sensors, wrong.RULE)
    assert len(groups.policies) > 2
    D, homdp = 2000, agent.homdp
    values = {name: np.repeat(value[None], D, 0) for name, value in world.parameters.items()}
    models = homdp.model_of(tables_at(homdp, values, D))
    found = replay(homdp, groups, models, values, 0)
    for graph, where in groups.policies:
        error = found.returns[:, where].std() / np.sqrt(D * len(where))
        assert abs(found.returns[:, where].mean() - evaluate(graph, world.pomdp)) < 4 * error
    assert isinstance(groups, Groups)
    first = found.seen[:, 0].sum(0) / found.seen[:, 0].sum()
    exact = world.pomdp.initial @ world.pomdp.shows(0)
    np.testing.assert_allclose(first, exact, atol=4 * np.sqrt(0.25 / (12 * D)))
    assert found.pairs.sum() == 12 * D * (homdp.horizon - 1)
    mine = observed(homdp, groups, np.zeros(12))
    assert mine.seen.sum() == 12 * homdp.horizon
    by_hand = np.bincount([s.observations[0] for s in groups.sessions], minlength=4)
    np.testing.assert_array_equal(mine.seen[0, 0], by_hand)


@pytest.mark.parametrize(
    "name",
    ["sensors", "answers", *(pytest.param(n, marks=pytest.mark.slow) for n in ("steps", "start"))],
)
def test_derivatives_of_values(name):
    """Against differences of exact values when one row moves towards another."""
    homdp = wrong.two_sensors if name == "sensors" else RICHER[name]
    one, two = (homdp.draw(jax.random.key(k)).pomdp for k in (1, 2))
    graph = TREE(one).policy
    slopes = derivatives(homdp, graph, one)
    full = homdp.form.full(slopes.transition, slopes.emission)
    small = 1e-6
    for field, slope in zip(TABLES, (slopes.initial, *full), strict=True):
        move = getattr(two, field) - getattr(one, field)
        nearby = one._replace(**{field: getattr(one, field) + small * move})
        change = (policy_value(graph, nearby) - policy_value(graph, one)) / small
        assert change == pytest.approx(float((slope * move).sum()), abs=1e-5)


def test_uncertain_rows():
    """A parameter in two rows is listed once; its draws are those of both."""
    agent = wrong.worse_ears(0, 10)
    (row,) = agent.check().rows
    assert (row.table, row.row, row.draws) == ("emission", "left; right", 40)
    assert 0 < row.spread < 1


def test_drift_is_a_correlation_with_time():
    """For one row with two outcomes, the statistic is (n - 1) times the squared correlation, for
    each outcome.
    """
    generator = np.random.default_rng(0)
    outcome, n = generator.integers(2, size=30), 30
    part = Outcomes("initial", np.zeros(n, int), outcome, np.arange(n))
    found, permuted = drift(generator, wrong.two_sensors, [part], 200)
    r = np.corrcoef(np.arange(n), outcome)[0, 1]
    assert found == pytest.approx(2 * (n - 1) * r**2)
    assert permuted.mean() == pytest.approx(2, rel=0.3)


def sessions(delays, states):
    made = []
    for k, (delay, state) in enumerate(zip(delays, states, strict=True)):
        session = Session(k, str(k), 0, observations=[0], actions=[0], ended="horizon")
        session.states, session.delay = {1: 0, 2: int(state)}, int(delay)
        made.append(session)
    return made


def test_delays_that_depend_on_states(monkeypatch):
    """Trends of delays and of states are no association; false alarms of the test below 1e-3.

    Planted bug: with exchanges between distant episodes they look associated.
    """
    generator, spaces = np.random.default_rng(5), wrong.two_sensors.spaces
    made = []
    for _ in range(60):
        states = generator.random(80) < np.linspace(0.1, 0.9, 80)
        delays = generator.poisson(np.linspace(1, 8, 80))
        made.append(sessions(delays, states))

    def small():
        found = [association(each, spaces, permutations=199).p_value for each in made]
        return np.sum(np.array(found) <= 0.05)

    most = binom.ppf(1 - 1e-3, 60, 0.05)
    assert small() <= most
    with monkeypatch.context() as patch:
        patch.setattr(delays_module, "BLOCK", 1000)
        assert small() > most
    states = generator.random(60) < 0.5
    late = association(sessions(10 * states, states), spaces)
    assert late.p_value < 0.001
    assert (late.state, late.delay, late.otherwise) == ("ill", 10, 0)
    assert association(sessions([3] * 60, states), spaces) is None


def test_associated_delays_are_reported():
    """A warning when the data have doubled, and a finding of the check."""
    tables = wrong.tables_of(wrong.two_sensors.at(scan=0.7, blood=0.7))
    source = wrong.live(wrong.agent_of(wrong.two_sensors, 0), tables, 64, 0)
    agent, states = wrong.agent_of(wrong.two_sensors, 0), {}
    for session in source._keeper.ledger.sessions:
        episode = agent.begin(session.id)
        for y in session.observations:
            episode.act(y)
        states[session.id] = [session.states[h] for h in range(1, 5)]
    late = [name for name, row in states.items() if row[-1] == 1]
    order = [*(name for name in states if name not in late), *late]
    for name in order[:-1]:
        agent.reveal(name, states[name])
    with pytest.warns(HindsightWarning, match="'ill' were revealed"):
        agent.reveal(order[-1], states[order[-1]])
    unusual = agent.check().unusual
    assert [what for what in unusual if what.startswith("delay of reveals by state")]
    assert not source.check().unusual


# Arguments and reports


def test_arguments():
    agent = wrong.agent_of(wrong.two_sensors, 0)
    with raises(DataError, "episodes"):
        agent.check()
    with raises(DataError, "draws"):
        agent.check(draws=FEWEST - 1)
    with raises(ParameterError, "last"):
        agent.check(last=0)


def test_the_result():
    agent = wrong.worse_ears(0, 30)
    found = agent.check(last=20)
    assert (found.episodes, found.revealed, found.draws) == (20, 20, checks.DRAWS)
    assert [w.episodes for w in found.windows] == [3, 3, 3, 3, 2, 2, 2, 2]
    assert found.windows[-1].last == 30
    delivered = np.average([w.delivered for w in found.windows], weights=[3] * 4 + [2] * 4)
    assert delivered == pytest.approx(np.mean(agent.homdp.returns(agent.episodes[10:])))

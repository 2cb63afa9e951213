"""States that will never be revealed: evidence for Bayesian rules, refused by the others."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    Agent,
    DataError,
    Episodes,
    Kernels,
    ParameterError,
    explorers,
    homdp,
    learn,
    models,
    posterior,
    rollout,
    uniform_policy,
)
from homdp_ppl import Reveal as Protocol
from homdp_ppl.agent.events import Reveal
from homdp_ppl.planners import history_tree
from tests.agent.processes import density_case
from tests.posteriors import programs
from tests.raising import raises

TREE = history_tree()
WORLD = models.load("tiger_table", horizon=2)
N = 6


@pytest.fixture(scope="module")
def run():
    """A run in which a coin reveals few states."""
    return learn(WORLD, explorers.posterior_sampling(), TREE, N, 0, reveal=Protocol(0.3))


def agent_at(path=None, rule=None, **options):
    rule = explorers.posterior_sampling() if rule is None else rule
    return Agent(WORLD.homdp, rule, TREE, path, **options)


def states_of(run, k):
    mask = run.episodes.revealed[k]
    return [int(x) if known else None for x, known in zip(run.record.states[k], mask, strict=True)]


def play(agent, run, first=0, last=N):
    """Show the observations of a run; returns the actions."""
    taken = []
    for k in range(first, last):
        episode = agent.begin(f"e{k}")
        taken.append([episode.act(int(y)) for y in run.record.observations[k]])
    return taken


def follow(agent, run, first=0, last=N):
    """Show the observations of a run and reveal the same states; returns the actions."""
    taken = []
    for k in range(first, last):
        taken += play(agent, run, k, k + 1)
        agent.reveal(f"e{k}", states_of(run, k))
    return taken


def test_agents_take_the_actions_of_learn(run):
    """Also after every state that a coin hides, so the agent uses the rest as evidence."""
    assert not run.episodes.revealed.all(1).any()
    agent = agent_at()
    names = WORLD.spaces.actions
    assert follow(agent, run) == [[names[a] for a in row] for row in run.record.actions]
    assert (agent.status.used, agent.pending) == (N, ())
    np.testing.assert_array_equal(agent.episodes.revealed, run.episodes.revealed)
    np.testing.assert_allclose(
        agent.posterior.mean.transition, run.posterior.mean.transition, atol=0.2
    )


def test_the_order_of_reveals_does_not_matter(run):
    means = []
    for order in (range(N), reversed(range(N))):
        agent = agent_at()
        play(agent, run)
        for k in order:
            states = states_of(run, k)
            agent.reveal(f"e{k}", {1: states[0]})
            agent.reveal(f"e{k}", {2: states[1], 3: states[2]})
        means.append(agent.posterior.mean.emission)
    np.testing.assert_array_equal(*means)


def test_reopened_agents_continue(run, tmp_path):
    whole = agent_at()
    actions = follow(whole, run)
    with agent_at(tmp_path / "agent") as agent:
        assert follow(agent, run, 0, 3) == actions[:3]
    with agent_at(tmp_path / "agent") as agent:
        assert follow(agent, run, 3) == actions[3:]
        np.testing.assert_array_equal(agent.posterior.mean.emission, whole.posterior.mean.emission)
        agent.forget("e0")
        assert agent.status.used == N - 1
        with raises(ParameterError, "horizon"):
            agent.migrate(models.load("tiger_table", horizon=3).homdp)
        agent.migrate(models.load("tiger", horizon=2).homdp)
        assert (agent.status.used, agent.posterior.method) == (N - 1, "gibbs")
        agent.begin("next").act(0)


def test_a_missing_state_may_be_revealed_after_all(run):
    agent, complete = agent_at(), agent_at()
    for each in (agent, complete):
        play(each, run, 0, 1)
    agent.reveal("e0", [0, None, 1])
    assert agent.posterior.method == "gibbs"
    agent.reveal("e0", {2: "left"})
    complete.reveal("e0", [0, 0, 1])
    np.testing.assert_array_equal(agent.posterior.closed, complete.posterior.closed)
    assert agent._keeper.ledger.with_gaps == 0
    agent.reveal("e0", {2: None})
    assert agent.posterior.method == "gibbs"


def test_certificates_end_before_missing_states(run):
    for delay, known in (("any", 1), ("independent", 2)):
        agent = agent_at(delay=delay)
        play(agent, run, 0, 5)
        agent.reveal("e0", [0, 0, 0])
        agent.reveal("e2", [0, 0, 0])
        agent.reveal("e3", [0, None, 0])
        agent.reveal("e4", [0, 0, 0])
        found = agent.certificate()
        assert (found.episodes, found.unused) == (known, 4 - known)


def test_diagnostics(run):
    agent = agent_at()
    follow(agent, run)
    assert agent.check().unusual == ()
    assert agent.expected_gap(5).mean >= 0
    assert "->" in str(agent.explain("e0", draws=5))


@pytest.mark.parametrize("name", ["tight", "greedy", "hop_v"])
def test_rules_that_count_refuse_them(name):
    options = ([WORLD], [WORLD]) if name == "hop_v" else ()
    rule = getattr(explorers, name)(*options)
    agent = agent_at(rule=rule, episodes=10 if rule.about.needs_episodes else None)
    episode = agent.begin("one")
    for _ in range(2):
        episode.act(0)
    with raises(DataError, "states[episode 'one', step 2]") as caught:
        agent.reveal("one", [0, None, 0])
    assert name in caught.value.problems[0].expected
    assert agent.pending == ("one",)
    agent.reveal("one", {1: 0})  # the others may still follow


def test_real_valued_states_must_be_revealed():
    world, rule, planner = density_case("posterior_sampling")
    agent = Agent(world.homdp, rule, planner)
    episode = agent.begin("one")
    for _ in range(world.spaces.horizon):
        episode.act(0.0)
    with raises(DataError, "states"):
        agent.reveal("one", [0, None, 0])


def test_journals_of_other_rules_are_refused(run, tmp_path):
    """A journal with missing states that the rule cannot use was not written by this agent."""
    with agent_at(tmp_path / "agent", explorers.greedy()) as agent:
        play(agent, run, 0, 1)
        agent._keeper.append(Reveal(0, {1: 0, 2: None, 3: 0}))
    with raises(ParameterError, "reveal"):
        agent_at(tmp_path / "agent", explorers.greedy())


@homdp(states=2, observations=2, actions=1, horizon=2, reward=[[1.0], [0.0]])
def wearing():
    """State 1 is for good, and observations show the state."""
    wear = numpyro.sample("wear", dist.Beta(1, 1))
    return Kernels([0.5, 0.5], jnp.array([[[1 - wear, wear]], [[0, 1]]]), [[1, 0], [0, 1]])


@homdp(states=2, observations=2, actions=1, horizon=2, reward=[[1.0], [0.0]])
def paid():
    """The reward shows the state; which of two coins moves it is unknown."""
    fair = numpyro.sample("fair", dist.Bernoulli(0.5), infer={"enumerate": "parallel"})
    chance = jnp.where(fair == 1, 0.5, 0.1)
    moves = jnp.array([[[1 - chance, chance]], [[chance, 1 - chance]]])
    return Kernels([0.5, 0.5], moves, [[0.5, 0.5], [0.5, 0.5]])


def test_evidence_that_no_states_explain():
    """It is refused, and the check reports it."""
    agent = Agent(wearing, explorers.posterior_sampling(), TREE)
    episode = agent.begin("one")
    for seen in (1, 0):
        episode.act(seen)
    with raises(DataError, "data"):
        agent.reveal("one", [1, None, None])
    assert agent.pending == ("one",)
    assert "reveals that the declaration excludes" in agent.check().unusual


def recorded(world, n=5):
    """Episodes of others, without every third state."""
    log = rollout(jax.random.split(jax.random.key(1), n), world, uniform_policy(world))
    mask = np.arange(log.states.size).reshape(log.states.shape) % 3 == 1
    return Episodes(log.observations, log.actions, np.ma.array(log.states, mask=mask))


def test_episodes_of_others_may_lack_states():
    """Without sampling, the posterior is exactly that of the log; adding it twice is harmless."""
    world = programs.one_of_two().draw(jax.random.key(0))
    log = recorded(world)
    wanted = posterior(world.homdp, log).atoms.probabilities
    for calls in ([log], [log[:2], log[2:]], [*log]):
        agent = Agent(world.homdp, explorers.posterior_sampling(), TREE)
        for part in calls:
            agent.add(part)
        np.testing.assert_allclose(agent.posterior.atoms.probabilities, wanted)
        np.testing.assert_array_equal(agent.episodes.revealed, log.revealed)
    assert (agent.status.used, agent.pending) == (5, ())


def test_recorded_rewards_are_evidence_of_the_missing_states_of_others():
    """The reward of a step says which state it was; some steps lack one."""
    log = Episodes([[0, 0], [0, 0]], [[0, 0], [0, 0]], [[None, None, 1], [0, None, None]],
                   rewards=[[1.0, None], [1.0, 0.0]], ids=["a", "b"])  # fmt: skip
    agent = Agent(paid, explorers.posterior_sampling(), TREE)
    agent.add(log)
    agent.add(log)
    assert agent.status.used == 2
    wanted = posterior(paid, log).atoms.probabilities
    without = posterior(paid, Episodes(log.observations, log.actions, log.states,
                                       revealed=log.revealed)).atoms.probabilities  # fmt: skip
    assert not np.allclose(wanted, without)
    np.testing.assert_allclose(agent.posterior.atoms.probabilities, wanted)


def test_reopened_agents_continue_after_episodes_of_others(run, tmp_path):
    log, whole = recorded(WORLD), agent_at()
    whole.add(log)
    actions = follow(whole, run, 0, 3)
    with agent_at(tmp_path / "agent") as agent:
        agent.add(log[:2])
        agent.add(log[2:])
    with agent_at(tmp_path / "agent") as agent:
        assert follow(agent, run, 0, 3) == actions
        np.testing.assert_array_equal(agent.posterior.mean.emission, whole.posterior.mean.emission)
        agent.reveal("added 1", {2: agent._keeper.ledger["added 1"].states[1]})
        assert agent._keeper.ledger["added 1"].is_complete
        agent.migrate(models.load("tiger", horizon=2).homdp)
        assert agent.status.used == 8


@pytest.mark.parametrize("name", ["tight", "greedy"])
def test_rules_that_count_refuse_episodes_of_others_with_missing_states(name):
    agent = agent_at(rule=getattr(explorers, name)(), episodes=10)
    with raises(DataError, "states") as caught:
        agent.add(recorded(WORLD))
    assert "posterior_sampling" in caught.value.problems[0].remedy
    assert agent.status.revealed == 0

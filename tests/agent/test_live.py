"""Live episodes: several at once, retries, late and corrected reveals, early ends, slots."""

import itertools

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    Agent,
    DataError,
    ParameterError,
    explain,
    explorers,
    models,
    posterior,
    tabular,
)
from homdp_ppl.core.episode import Episode
from tests.agent.processes import agent_of, density_case, finite_case, follow, play, run_of, tiger
from tests.explorers.test_contract import MODEL
from tests.raising import raises
from tests.runs import TREE, hearing
from tests.sensors import declared

H = 3


def tiger_agent(rule=None, **options):
    return Agent(tiger().homdp, rule or explorers.posterior_sampling(), TREE, **options)


def played(agent, n, names=None):
    """Play n episodes in the tiger problem; returns the ids and their states."""
    keys = jax.random.split(jax.random.key(7), n)
    names = names or [f"e{k}" for k in range(n)]
    return dict(play(agent, tiger(), key, name) for key, name in zip(keys, names, strict=True))


def state_of(agent):
    keeper = agent._keeper
    with keeper.turn():
        return keeper.actor.knowledge.state(keeper.ledger)


# Episodes


def test_episodes_are_interleaved():
    """Actions do not depend on what happens in other open episodes."""
    case = finite_case("posterior_sampling")
    one, two = agent_of(case), agent_of(case)
    rows = [[0, 1], [1, 1], [1, 0]]
    alone = []
    for k in range(3):
        one.begin(f"e{k}")
    for k, row in enumerate(rows):
        alone.append([one.episode(f"e{k}").act(y) for y in row])
    live = [two.begin(f"e{k}") for k in range(3)]
    first = {k: live[k].act(rows[k][0]) for k in (2, 0, 1)}
    second = {k: live[k].act(rows[k][1]) for k in (1, 2, 0)}
    assert [[first[k], second[k]] for k in range(3)] == alone
    assert two.pending == ("e0", "e1", "e2")


def test_observations_of_several_sensors():
    """A dict, a tuple, a joint name and an index are the same observation."""
    model, given = (
        declared("plain"),
        ({"ear": "right", "eye": "dim"}, ("right", 1), "right, dim", 4),
    )
    agent = Agent(model, explorers.greedy(), TREE)
    taken = [agent.begin(f"e{k}").act(observation) for k, observation in enumerate(given)]
    assert len(set(taken)) == 1
    assert [agent.episode(f"e{k}").trajectory.observations.tolist() for k in range(4)] == [[4]] * 4
    world = model.draw(jax.random.key(0))
    policy = TREE(world.pomdp).policy
    texts = [str(explain(policy, world, [observation], [])) for observation in given]
    assert len(set(texts)) == 1
    with raises(DataError, "observation[ear]", "observation"):
        agent.begin("wrong").act({"ear": "up", "nose": 1, "eye": 0})


def test_calls_may_be_repeated():
    agent = tiger_agent()
    episode = agent.begin("one")
    assert agent.begin("one").id == "one"
    assert agent.status.begun == 1
    first = episode.act("growl left", step=1)
    events = agent.status.events
    assert episode.act("growl left", step=1) == first
    assert episode.act(0, step=1) == first
    assert agent.status.events == events
    with raises(DataError, "observation"):
        episode.act("growl right", step=1)
    with raises(DataError, "step"):
        episode.act("growl left", step=3)
    second = episode.act("growl left", step=2)
    third = episode.act("growl left")
    assert episode.ended == "horizon"
    assert episode.act("growl left", step=3) == third
    assert episode.act("growl left", step=2) == second
    with raises(DataError, "id"):
        episode.act("growl left")
    with raises(DataError, "id"):
        agent.begin("one")
    agent.reveal("one", ["left"] * 4)
    events = agent.status.events
    agent.reveal("one", [0, 0, 0, 0])
    episode.end()
    assert agent.status.events == events


def test_names_are_generated():
    agent = tiger_agent()
    agent.begin("episode 2")
    assert agent.begin().id == "episode 3"
    assert agent.begin().id == "episode 4"
    for name in ("", "x" * 501, "\ud800"):
        with raises(DataError, "id"):
            agent.begin(name)


def test_observations_are_validated():
    episode = tiger_agent().begin()
    for wrong in ("growl", 2, -1, 0.5, None, [0], True, np.array([0])):
        with raises(DataError, "observation"):
            episode.act(wrong)
    assert len(episode.trajectory.actions) == 0
    assert episode.act(np.int64(1)) in tiger().spaces.actions
    with raises(DataError, "id"):
        tiger_agent().episode("unknown")
    episode = agent_of(density_case("uniform")).begin()
    for wrong in (np.nan, "left", [0.1, 0.2], None):
        with raises(DataError, "observation"):
            episode.act(wrong)
    assert episode.act(0.25) in tiger().spaces.actions


# Reveals


@pytest.mark.parametrize("name", ["posterior_sampling", "tight", "hop_b_class"])
def test_the_order_of_reveals_does_not_matter(name):
    """Permuted, repeated and split reveals give the same posterior and the same state."""
    case = finite_case(name)
    run = run_of(case, 4)
    found = []
    for order in itertools.permutations(range(4)):
        agent = agent_of(case, 10)
        follow(agent, run, reveal=False)
        for k in order:
            states = run.record.states[k]
            if k % 2:
                agent.reveal(f"e{k}", {3: states[2]})
                agent.reveal(f"e{k}", {1: states[0], 2: states[1]})
            agent.reveal(f"e{k}", states)
        state = state_of(agent)
        found.append((agent.posterior.closed, state.counts.transition, state.counts.emission))
    for parts in zip(*found, strict=True):
        for part in parts:
            np.testing.assert_array_equal(part, parts[0])


def test_the_order_of_reveals_does_not_matter_if_posteriors_are_sampled():
    """Random numbers of inference depend on the data, not on the order of reveals."""
    case = density_case("hop_v")[0], explorers.posterior_sampling(), density_case("hop_v")[2]
    run = run_of((case[0], explorers.uniform(), case[2]), 3)
    found = []
    for order in ((0, 1, 2), (2, 0, 1)):
        agent = agent_of(case)
        for k in range(3):
            agent.begin(f"e{k}")
        for k in range(3):
            for y in run.record.observations[k]:
                agent.episode(f"e{k}").act(y)
        for k in order:
            agent.reveal(f"e{k}", run.record.states[k])
            agent.posterior  # noqa: B018  # updates the state of the rule
        found.append(agent.posterior)
    np.testing.assert_array_equal(found[0].closed, found[1].closed)
    if found[0].atoms is not None:
        for name, values in found[0].atoms.values.items():
            np.testing.assert_array_equal(values, found[1].atoms.values[name])


def test_pending_episodes_are_no_data():
    agent = tiger_agent()
    states = played(agent, 3)
    agent.reveal("e1", states["e1"])
    agent.reveal("e2", {1: states["e2"][0]})
    assert agent.pending == ("e0", "e2")
    assert (agent.status.revealed, agent.status.used) == (1, 1)
    expected = posterior(tiger().homdp, agent.episodes)
    np.testing.assert_array_equal(agent.posterior.closed, expected.closed)
    assert agent.posterior.counts.visits.sum() == H


def test_a_correction_replaces_states():
    """The posterior is that of the corrected data, and the rule plans again."""
    agent, other = tiger_agent(explorers.tight(), episodes=50), tiger_agent()
    states = played(agent, 12)
    for name, revealed in states.items():
        agent.reveal(name, revealed)
    agent.begin("next")
    planned = agent.status.decisions
    flipped = {name: [1 - x for x in row] for name, row in states.items()}
    for name, revealed in flipped.items():
        agent.reveal(name, revealed)
    agent.begin("after")
    assert agent.status.decisions == planned + 1
    episodes = agent.episodes
    np.testing.assert_array_equal(episodes.states, list(flipped.values()))
    other.add(episodes)
    np.testing.assert_array_equal(agent.posterior.closed, other.posterior.closed)
    np.testing.assert_array_equal(state_of(agent).counts.emission, agent.posterior.counts.emission)


def test_reveals_are_validated_together():
    agent = tiger_agent(explorers.greedy())
    played(agent, 1)
    with raises(DataError, "states[episode 'e0', step 2]", "states[episode 'e0', step 3]"):
        agent.reveal("e0", ["left", "lion", 7, "left"])
    with raises(DataError, "states[episode 'e0', step 4]") as caught:
        agent.reveal("e0", ["left", "left", "left", None])
    assert [problem.got for problem in caught.value.problems] == ["None"]
    for wrong in (["left"], 3, "left", {0: "left"}, {5: "left"}, {"1": "left"}, {}):
        with raises(DataError, "states"):
            agent.reveal("e0", wrong)
    with raises(DataError, "rewards"):
        agent.reveal("e0", [0] * 4, rewards=[0.0])
    with raises(DataError, "labels"):
        agent.reveal("e0", [0] * 4, labels=["a"] * 4)
    with raises(DataError, "id"):
        agent.reveal("e1", [0] * 4)
    agent.begin("open")
    with raises(DataError, "id"):
        agent.reveal("open", {1: 0})
    assert agent.pending == ("e0",)
    agent.reveal("e0", [0] * 4, rewards=[0.5] * 3)
    assert agent.pending == ()


def test_impossible_states_are_refused():
    """As in ``posterior``, also while states are missing."""
    lock = models.load("lock", length=2, dials=2)
    agent = Agent(lock.homdp, explorers.posterior_sampling(), TREE)
    support, names = lock.homdp.structure.support, lock.spaces
    episode = agent.begin("one")
    while episode.ended is None:
        episode.act(0)
    a = int(episode.trajectory.actions[0])
    x, z = np.argwhere(~support.transition[:, a])[0]
    with raises(DataError, "data"):
        agent.reveal("one", {1: int(x), 2: int(z)})
    assert agent.pending == ("one",)
    assert names.horizon == len(episode.trajectory.actions)


# The data of rules


def test_frequentist_rules_use_the_revealed_prefix():
    agent = tiger_agent(explorers.tight(), episodes=50)
    states = played(agent, 5)
    for name in ("e1", "e3", "e0"):
        agent.reveal(name, states[name])
    assert agent.status.used == 2
    assert state_of(agent).played == 2
    assert agent.status.revealed == 3
    agent.abandon("e2", "lost")
    assert agent.status.used == 2
    agent.reveal("e4", states["e4"])
    assert agent.status.used == 2
    assert agent.posterior.counts.visits.sum() == 4 * H
    with raises(DataError, "id"):
        agent.reveal("e2", states["e2"])
    with raises(DataError, "id"):
        agent.abandon("e1")


def test_independent_delays_let_rules_use_everything():
    agent = tiger_agent(explorers.tight(), episodes=50, delay="independent")
    states = played(agent, 5)
    agent.abandon("e2")
    for name in ("e4", "e3", "e0"):
        agent.reveal(name, states[name])
    assert agent.status.used == 3
    np.testing.assert_array_equal(state_of(agent).counts.emission, agent.posterior.counts.emission)


def test_the_number_of_episodes_is_limited():
    with raises(ParameterError, "episodes"):
        tiger_agent(explorers.tight())
    agent = tiger_agent(explorers.tight(), episodes=2)
    agent.begin()
    agent.abandon("episode 1")
    agent.begin()
    with raises(ParameterError, "episodes"):
        agent.begin()
    assert agent.status.begun == 2


def slots(agent):
    return [session.slot for session in agent._keeper.ledger.sessions]


def test_slots_of_an_epoch():
    """They are handed out in order, abandoned ones again; extra episodes are not used."""
    agent = tiger_agent(hearing(), episodes=2 * H + 1)
    states = played(agent, H)
    assert slots(agent) == [0, 1, 2]
    states |= played(agent, 2, ["extra", "more"])
    assert slots(agent)[H:] == [None, None]
    agent.abandon("e1")
    agent.reveal("e2", states["e2"])
    agent.reveal("extra", states["extra"])
    agent.reveal("e0", states["e0"])
    assert agent.status.used == 1
    states |= played(agent, 1, ["again"])
    assert slots(agent)[-1] == 1
    assert agent.status.decisions == 1
    agent.reveal("again", states["again"])
    assert agent.status.used == H
    assert state_of(agent).played == H
    states |= played(agent, H, ["f0", "f1", "f2"])
    assert slots(agent)[-H:] == [3, 4, 5]
    assert agent.status.decisions == 2
    for name in ("f0", "f1", "f2"):
        agent.reveal(name, states[name])
    with raises(ParameterError, "episodes"):  # both epochs are complete
        agent.begin()
    with raises(ParameterError, "episodes"):
        tiger_agent(hearing(), episodes=H - 1)


def test_extra_episodes_are_not_uniform_at_any_step():
    agent = tiger_agent(hearing(), episodes=30)
    played(agent, H + 1)
    actor, ledger = agent._keeper.actor, agent._keeper.ledger
    rows = [actor.policy(ledger, session).probabilities for session in ledger.sessions]
    assert [(row == 1 / 3).all(1).any() for row in rows] == [True, True, True, False]


# Early ends

ENDING = tabular(
    T=dist.Dirichlet(np.ones((3, 2, 3))),
    O=np.array([[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]]),
    initial=[0.5, 0.5, 0.0],
    reward=np.array([[1.0, 0.3], [0.0, 0.8], [0.0, 0.0]]),
    horizon=3,
    states=("well", "ill", "gone"),
    terminal=("gone",),
)


def test_an_episode_ends_in_a_terminal_state():
    agent = Agent(ENDING, explorers.posterior_sampling(), TREE)
    episode = agent.begin("one")
    episode.act(0)
    with raises(DataError, "observation"):
        episode.act("ended")
    episode.end()
    assert episode.ended == "terminal"
    with raises(DataError, "ended"):
        agent.reveal("one", ["well", "ill"])
    agent.reveal("one", ["well", "gone"])
    direct = Episode.of([0], episode.trajectory.actions, [0, 2], ENDING, ended="terminal")
    np.testing.assert_array_equal(agent.posterior.closed, posterior(ENDING, direct).closed)
    other = agent.begin("two")
    other.act(1)
    other.end("truncated")
    agent.reveal("two", ["well", "ill"])
    assert agent.posterior.counts.visits.sum() == 2
    agent.begin("three").act(0)


def test_an_episode_is_cut_short():
    """Without terminal states, an early end truncates the episode; its steps are used."""
    agent = tiger_agent()
    episode = agent.begin("one")
    with raises(DataError, "reason"):
        episode.end("terminal")
    episode.act(0)
    episode.end()
    assert episode.ended == "truncated"
    agent.reveal("one", ["left", "left"])
    assert agent.posterior.counts.visits.sum() == 1
    assert state_of(agent).played == 1


def test_a_slot_that_ends_before_its_step_is_handed_out_again():
    agent = tiger_agent(hearing(), episodes=30)
    agent.begin("one").end()
    agent.begin("two")
    assert slots(agent) == [0, 0]


# Arguments


def test_arguments_are_validated():
    homdp, rule = tiger().homdp, explorers.greedy()
    with raises(ParameterError, "planner", "seed", "episodes"):
        Agent(homdp, rule, 3, seed=-1, episodes=0)
    with raises(ParameterError, "homdp"):
        Agent(tiger(), rule, TREE)
    with raises(ParameterError, "delay"):
        Agent(homdp, rule, TREE, delay="none")
    with raises(ParameterError, "explorer"):
        Agent(density_case("hop_v")[0].homdp, rule, TREE)
    with raises(ParameterError, "id"):
        Agent(homdp, rule, TREE).begin(3)


def test_the_policy_of_the_next_episode():
    """Looking at the policy changes nothing."""
    agent, other = tiger_agent(), tiger_agent()
    states = played(agent, 4)
    for name, revealed in states.items():
        agent.reveal(name, revealed)
    events = agent.status.events
    policy = agent.policy
    assert agent.status.events == events
    assert agent.status.decisions == 4
    agent.begin("next")
    session = agent._keeper.ledger["next"]
    used = agent._keeper.actor.policy(agent._keeper.ledger, session)
    np.testing.assert_array_equal(used.probabilities, policy.probabilities)
    assert other.policy is not None


def test_episodes_of_others():
    case = finite_case("posterior_sampling")
    run = run_of(case, 5)
    agent, other = agent_of(case), agent_of(case)
    follow(agent, run)
    other.add(run.episodes)
    np.testing.assert_array_equal(agent.posterior.closed, other.posterior.closed)
    assert other.status.begun == 5
    other.begin("mine")
    named = agent.episodes
    third = agent_of(case)
    third.add(named[:3])
    third.add(named)
    assert third.status.begun == 5
    with raises(DataError, "ids"):
        wrong = Episode(named[1].trajectory, named[1].states, id="e0")
        third.add(wrong)
    with raises(ParameterError, "episodes"):
        agent_of(finite_case("hop_v"), 10).add(run.episodes)
    with raises(DataError, "episodes"):
        agent_of(finite_case("tight"), 3).add(run.episodes)
    assert case[0].homdp == MODEL

"""Agents in directories: kills at every event and at random bytes, several processes, rewriting."""

import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from homdp_ppl import Agent, DataError, ParameterError, StorageError, explorers, models
from homdp_ppl.planners import history_tree, particle_tree
from homdp_ppl.storage.records import walk
from homdp_ppl.storage.whole_journal import read_journal
from tests.agent.script import agent_at, play_script, world
from tests.raising import raises

ROOT = Path(__file__).parents[2]


def journal(path):
    return Path(path, "agent.journal")


@pytest.fixture(scope="module", params=["posterior_sampling", "tight", "hop_v"])
def whole(request, tmp_path_factory):
    """The directory of an undisturbed agent, its rule and the actions it took."""
    path = tmp_path_factory.mktemp(request.param) / "agent"
    with agent_at(path, request.param) as agent:
        actions = play_script(agent)
    return path, request.param, actions


def cut(path, to, size):
    """A copy of an agent whose journal was cut, without policies that were saved later."""
    shutil.copytree(path, to)
    content = journal(path).read_bytes()[:size]
    journal(to).write_bytes(content)
    used = {
        block.facts["made"]["policy"]
        for block in read_journal(journal(to)).blocks
        if "made" in block.facts
    }
    for file in Path(to, "policies").glob("*.npz"):
        if file.stem not in used:
            file.unlink()


def continues(path, to, rule, actions):
    """Open a cut agent and repeat the script: the journal becomes that of the whole agent."""
    with agent_at(to, rule) as agent:
        assert play_script(agent) == actions
    assert journal(to).read_bytes() == journal(path).read_bytes()
    shutil.rmtree(to)


def test_reopened_agents_continue(whole, tmp_path):
    """Killed after some events: same actions, same journal, byte by byte."""
    path, rule, actions = whole
    places = [place.offset for place, _ in walk(journal(path))]
    chosen = random.Random(1).sample(places, 6)
    for k, size in enumerate(chosen):
        cut(path, tmp_path / str(k), size)
        continues(path, tmp_path / str(k), rule, actions)


@pytest.mark.slow
def test_kills_at_every_event(whole, tmp_path):
    path, rule, actions = whole
    places = [place for place, _ in walk(journal(path))]
    for place in places[:: 4 if rule == "hop_v" else 1]:  # which plans again for many pairs
        cut(path, tmp_path / "agent", place.offset)
        continues(path, tmp_path / "agent", rule, actions)


def test_kills_inside_a_write(whole, tmp_path):
    """A torn record was never returned; it is removed and written again."""
    path, rule, actions = whole
    first = next(walk(journal(path)))[0].offset
    size = journal(path).stat().st_size
    generator = random.Random(2)
    for k in range(4):
        cut(path, tmp_path / str(k), generator.randrange(first, size))
        continues(path, tmp_path / str(k), rule, actions)


def start(path, rule, rounds, width=3, prefix=""):
    arguments = [sys.executable, "-m", "tests.agent.script", path, rule, rounds, width, prefix]
    return subprocess.Popen(
        list(map(str, arguments)),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def go(child, rounds=1):
    child.stdin.write("\n" * rounds)
    child.stdin.flush()


def is_ready(child):
    return child.stdout.readline() == "ready\n"


def kills(path, tmp_path, rule, actions, number, rounds):
    """Kill a process at random times until the script is complete; then compare."""
    generator, done = random.Random(3), 0
    seconds = 0.3
    while done < number:
        to = tmp_path / f"killed{done}"
        while done < number:
            child = start(to, rule, rounds)
            assert is_ready(child)
            go(child, rounds)
            time.sleep(generator.uniform(0, seconds))
            ended = child.poll() is not None
            child.kill()
            child.communicate()
            done += 1
            if ended:
                break
        with agent_at(to, rule) as agent:
            assert play_script(agent, rounds) == actions
        assert journal(to).read_bytes() == journal(path).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [20, pytest.param(200, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_processes_that_are_killed(whole, tmp_path, number):
    path, rule, actions = whole
    if rule != "posterior_sampling":
        pytest.skip("one rule is enough: the others are cut at every event")
    kills(path, tmp_path, rule, actions, number, 4)


def two_processes(path, rounds, width=10):
    """Two processes use one agent at the same time; nothing is lost or doubled.

    Each has ``width`` open episodes. Both start every round together, so that their episodes are
    interleaved however the processes are scheduled.
    """
    agent_at(path).close()
    children = [start(path, "posterior_sampling", rounds, width, prefix) for prefix in ("a", "b")]
    for _ in range(rounds):
        assert all(is_ready(child) for child in children)
        for child in children:
            go(child)
    for child in children:
        output, _ = child.communicate(timeout=3000)
        assert output == "done\n"
        assert child.returncode == 0
    with agent_at(path) as agent:
        status = agent.status
        sessions = agent._keeper.ledger.sessions
        assert status.begun == len({session.id for session in sessions}) == 2 * width * rounds
        assert (status.open, status.pending) == ((), ())
        assert status.abandoned == 2
        assert all(len(session.actions) == 3 for session in sessions)
        mixed = [session.id[0] for session in sessions]
        assert mixed not in (sorted(mixed), sorted(mixed, reverse=True))
        assert play_script(agent, rounds, "a", width) == {
            session.id: session.actions for session in sessions if session.id[0] == "a"
        }
        np.testing.assert_array_equal(agent.status.events, status.events)


@pytest.mark.slow
def test_two_processes_share_an_agent(tmp_path):
    two_processes(tmp_path / "agent", 4)


@pytest.mark.long
@pytest.mark.slow
def test_two_processes_share_an_agent_for_a_thousand_episodes(tmp_path):
    two_processes(tmp_path / "agent", 50)


def test_two_agents_in_one_process(tmp_path):
    """They see each other's events."""
    one, two = agent_at(tmp_path / "agent"), agent_at(tmp_path / "agent")
    episode = one.begin("shared")
    first = episode.act("growl left")
    assert two.begin("shared").act("growl left", step=1) == first
    two.episode("shared").act("growl left")
    assert len(episode.trajectory.actions) == 2
    two.abandon("shared")
    assert episode.ended == "abandoned"
    two.begin("other").end()
    one.reveal("other", ["left"])
    two.forget("other")  # replaces the journal
    assert "other" not in one._keeper.ledger or one.status.revealed == 0
    assert one.status.begun == two.status.begun == 2
    with raises(DataError, "id"):
        one.episode("other")


def test_policies_that_cannot_be_saved_are_planned_again(tmp_path):
    """The open episode continues with the same policy, although data were revealed since."""
    homdp = models.load("tiger", horizon=3).homdp

    def opened(path):
        planner = particle_tree(simulations=30, particles=50)
        return Agent(homdp, explorers.greedy(), planner, path)

    actions = []
    for k in range(2):
        agent = opened(tmp_path / str(k))
        first = agent.begin("first")
        for _ in range(3):
            first.act(0)
        agent.begin("open").act(1)
        agent.reveal("first", [0, 0, 0, 0])
        if k:
            agent.close()
            agent = opened(tmp_path / str(k))
        actions.append([agent.episode("open").act(1), agent.episode("open").act(1)])
    assert agent._keeper.ledger.decisions[0].policy is None
    assert actions[0] == actions[1]


# Forgetting and migrating


def test_forgotten_episodes_leave_no_trace(tmp_path):
    path = tmp_path / "agent"
    with agent_at(path) as agent:
        play_script(agent, 2, "secret")
        agent.begin("keep").act("growl left")
        before = agent.status
        agent.forget("secretr0e1")
        status = agent.status
        assert status.begun == before.begun
        assert status.revealed == before.revealed - 1
        assert status.abandoned == before.abandoned + 1
        assert agent.posterior.counts.visits.sum() == 3 * status.revealed
        action = agent.episode("keep").act("growl left")
        events = agent.status.events
    assert b"secretr0e1" not in journal(path).read_bytes()
    assert b"secretr0e0" in journal(path).read_bytes()
    with agent_at(path) as agent:  # the chain of checksums is intact
        assert agent.status.events == events
        assert agent.episode("keep").act("growl left", step=2) == action
        agent.forget("keep")
        assert agent.status.open == ()
        with raises(DataError, "id"):
            agent.forget("keep")


def test_a_forgotten_episode_ends_the_prefix(tmp_path):
    with agent_at(tmp_path / "agent", "tight") as agent:
        for name in "abc":
            episode = agent.begin(name)
            for _ in range(3):
                episode.act(0)
            agent.reveal(name, [0] * 4)
        assert agent.status.used == 3
        agent.forget("b")
        assert agent.status.used == 1


def test_a_forgotten_slot_of_the_current_epoch_is_handed_out_again(tmp_path):
    with agent_at(tmp_path / "agent", "hop_v") as agent:
        for name in "ab":
            agent.begin(name)
        agent.forget("a")
        agent.begin("c")
        assert [session.slot for session in agent._keeper.ledger.sessions] == [0, 1, 0]


def test_a_changed_declaration_is_refused(tmp_path):
    path, rule, planner = tmp_path / "agent", explorers.posterior_sampling(), history_tree()
    with agent_at(path) as agent:
        play_script(agent, 2)
    changed = tiger_with(prior=(7.0, 2.0))
    with raises(ParameterError, "homdp") as caught:
        Agent(changed, rule, planner, path, seed=4)
    assert "prior" in str(caught.value)
    for other in (models.load("tiger", horizon=2).homdp, models.load("tiger_listen").homdp):
        with raises(ParameterError, "homdp"):
            Agent(other, rule, planner, path, seed=4)
    with raises(ParameterError, "seed", "explorer", "planner", "episodes", "delay"):
        from homdp_ppl.planners import alpha_vectors

        Agent(
            world().homdp,
            explorers.greedy(),
            alpha_vectors(),
            path,
            seed=5,
            episodes=9,
            delay="independent",
        )
    Agent(tiger_with(), rule, planner, path, seed=4)  # written again, but the same


def tiger_with(prior=(8.0, 2.0), states=("left", "right")):
    """The tiger problem, declared again, with another prior or another order of states."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    from homdp_ppl import Kernels, homdp

    known = world()
    turn = [states.index(name) for name in ("left", "right")]
    back = np.argsort(turn)

    @homdp(
        states=states,
        observations=known.spaces.observations,
        actions=known.spaces.actions,
        horizon=3,
        reward=known.homdp.reward[0][back],
    )
    def tiger():
        p = numpyro.sample("accuracy", dist.Beta(*prior))
        shows = jnp.array([[p, 1 - p], [1 - p, p]])
        moves = np.asarray(known.pomdp.moves(0))[back][:, :, back]
        return Kernels(np.asarray(known.pomdp.initial)[back], moves, shows[back])

    return tiger


def test_migration_replays_the_journal(tmp_path):
    path, rule, planner = tmp_path / "agent", explorers.posterior_sampling(), history_tree()
    with agent_at(path) as agent:
        play_script(agent, 2)
        episodes = agent.episodes
        agent.begin("open")
        new = tiger_with((2.0, 2.0), ("right", "left"))
        with raises(ParameterError, "homdp"):
            agent.migrate(new)
        agent.abandon("open")
        agent.migrate(new)
        assert agent.homdp == new
        np.testing.assert_array_equal(agent.episodes.states, 1 - episodes.states)
        closed = agent.posterior.closed
        direct = Agent(new, rule, planner)
        direct.add(agent.episodes)
        np.testing.assert_array_equal(closed, direct.posterior.closed)
        action = agent.begin("next").act("growl left")
    with Agent(new, rule, planner, path, seed=4) as agent:
        assert agent.begin("next").act("growl left", step=1) == action
    with raises(ParameterError, "homdp"):
        agent_at(path)


def test_migration_refuses_data_that_the_new_declaration_excludes(tmp_path):
    with agent_at(tmp_path / "agent") as agent:
        play_script(agent, 2)
        before = journal(tmp_path / "agent").read_bytes()
        with raises(ParameterError, "horizon"):
            agent.migrate(models.load("tiger", horizon=2).homdp)
        with raises(DataError, "data"):
            agent.migrate(models.load("tiger_listen", horizon=3).homdp)
        with raises(ParameterError, "states"):
            agent.migrate(models.load("lock", length=2, dials=2).homdp)
        assert journal(tmp_path / "agent").read_bytes() == before
        agent.begin("still")


def test_other_directories_are_refused(tmp_path):
    Path(tmp_path, "notes.txt").write_text("mine")
    with raises(StorageError):
        agent_at(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]

"""The learner without the world: random numbers, replanning, deployment and validation of data."""

from dataclasses import replace
from itertools import product

import jax
import numpy as np
import pytest

from homdp_ppl import (
    Episode,
    GraphPolicy,
    Trajectory,
    evaluate,
    explorers,
    learn,
    models,
    posterior,
    x64,
)
from homdp_ppl.errors import DataError, PlanningError
from homdp_ppl.explorers import About, Deployment, Explorer, Objective, Proposal
from homdp_ppl.learning import stages
from homdp_ppl.learning.learner import Learner, out_of_date
from homdp_ppl.learning.noise import episode_noise, rule_number
from homdp_ppl.learning.planning import TablePlanning, choose_candidate, with_uniform
from homdp_ppl.learning.stages import impossible_steps
from homdp_ppl.planners import alpha_vectors, auto, bounded_search, history_tree
from homdp_ppl.precision import to_numpy
from tests.planners.exact import optimum, random_pomdp
from tests.raising import raises
from tests.runs import TREE, hearing, small
from tests.worlds import UniformAt

EPISODES = stages.BLOCK  # the block size of the loop: compiled once


def noise_of(seed: int, rule: str, first: int = 0, horizon: int = 3):
    """The keys and the random numbers of some episodes."""
    with x64():
        number = rule_number(rule_called(rule))
        found = episode_noise(jax.random.key(seed), number, first, EPISODES, horizon)
        return np.asarray(jax.random.key_data(found.proposal)), to_numpy(found.noise)


def rule_called(name: str, **facts) -> Explorer:
    """A rule of which only the attributes matter."""
    objective = Objective(**facts)
    return Explorer(
        About(name), propose=lambda key, state: Proposal(state.memory), objective=objective
    )


def test_rules_are_identified_by_crc32():
    """The check value of CRC-32 from its specification; options have no effect."""
    assert rule_number(rule_called("123456789")) == 0xCBF43926
    assert rule_number(explorers.hop_b(scale=0.1)) == rule_number(explorers.hop_b())


def test_random_numbers_depend_on_the_episode_alone():
    """Blocks may start at any episode: resumed and re-ordered runs use the same numbers.

    Runs with a longer horizon do, too.
    """
    keys, noise = noise_of(5, "greedy")
    for first in (1, 17):
        some_keys, some = noise_of(5, "greedy", first)
        np.testing.assert_array_equal(some_keys[: EPISODES - first], keys[first:])
        for part, whole in zip(some, noise, strict=True):
            np.testing.assert_array_equal(part[: EPISODES - first], whole[first:])
    longer = noise_of(5, "greedy", horizon=4)[1]
    for part, whole in zip(noise, longer, strict=True):
        np.testing.assert_array_equal(part, whole[:, : part.shape[1]])


def test_rules_share_the_world_and_nothing_else():
    """No number is used twice, neither in two episodes nor for two purposes."""
    (keys, ours), (other_keys, theirs), (_, others) = (
        noise_of(5, "greedy"),
        noise_of(5, "hop_b"),
        noise_of(6, "greedy"),
    )
    np.testing.assert_array_equal(ours.state, theirs.state)
    np.testing.assert_array_equal(ours.observation, theirs.observation)
    own = [ours.state, ours.observation, ours.action, theirs.action, *others]
    assert len(np.unique(np.concatenate([part.ravel() for part in own]))) == sum(
        part.size for part in own
    )
    assert len(np.unique(np.concatenate([keys, other_keys]), axis=0)) == 2 * EPISODES


def test_when_a_plan_is_out_of_date():
    """Doubled: some n(x, a) >= max(1, 2 n_then).

    A pair that was never seen triggers a plan as soon as it is seen.
    """
    doubled, always, once = (
        Deployment(replan=word) for word in ("doubled", "every episode", "once")
    )
    then = np.array([[0, 1], [3, 8]])
    for now, due in (
        (then, False),
        ([[1, 1], [3, 8]], True),
        ([[0, 2], [3, 8]], True),
        ([[0, 1], [5, 15]], False),
        ([[0, 1], [6, 8]], True),
        ([[0, 1], [3, 16]], True),
    ):
        now = np.array(now)
        assert bool(out_of_date(doubled, now, then)) == due
        assert bool(out_of_date(always, now, then))
        assert not bool(out_of_date(once, now, then))
    with x64():
        assert bool(jax.jit(lambda a, b: out_of_date(doubled, a, b))(2 * then, then))


def test_which_candidate_is_deployed():
    values = np.array([0.3, 0.9, 0.1, 0.9, 0.5])
    assert choose_candidate(rule_called("r"), values) == 1  # the first of the best
    assert [
        int(choose_candidate(rule_called("r", candidates=5, pick=k), values)) for k in range(1, 6)
    ] == [2, 0, 4, 1, 3]


def test_uniform_actions_are_mixed_in():
    policy = GraphPolicy([0, 1], [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], np.zeros((2, 1, 2), int))
    mixed = with_uniform(policy, 0.3)
    np.testing.assert_allclose(mixed.probabilities, [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]])
    assert with_uniform(policy, 0.0) is policy


def test_impossible_observations_against_enumeration():
    """An observation is impossible if no latent path explains it and the possible ones before."""
    model = random_pomdp(4, 3, 3, 2, 3, zeros=0.55)
    rho, T, O, _ = model.stationary()  # noqa: E741
    found = set()
    for seen in product(range(3), repeat=3):
        for done in product(range(2), repeat=3):
            explained: list[int] = []
            for h in range(3):
                chance = sum(
                    rho[path[0]]
                    * np.prod([T[path[k], done[k], path[k + 1]] for k in range(h)])
                    * np.prod([O[path[k], seen[k]] for k in [*explained, h]])
                    for path in product(range(3), repeat=h + 1)
                )
                explained += [h] if chance > 0 else []
            expected = 3 - len(explained)
            found.add(expected)
            assert impossible_steps(model, Trajectory(np.array(seen), np.array(done))) == expected
    assert found >= {0, 1, 2}


@pytest.mark.parametrize(
    "planner",
    [bounded_search(), alpha_vectors(), auto()],
    ids=["bounded_search", "alpha_vectors", "auto"],
)
def test_only_the_tree_supports_optimistic_backups(planner):
    homdp = small("tiger").homdp
    with raises(PlanningError, "planner"):
        TablePlanning(explorers.quantile_backup(), planner, homdp)
    TablePlanning(explorers.tight(), planner, homdp)  # works without clipping


def test_exact_rules_reject_planners_with_a_gap():
    world = small("tiger_table")
    rule = explorers.value_quantile(draws=2)
    state = rule.init(world.homdp, 10)
    deaf = world.pomdp.with_tables(emission=np.full((2, 2), 0.5))
    both = Proposal(jax.tree.map(lambda *parts: np.stack(parts), world.pomdp, deaf))
    with raises(PlanningError, "planner"):
        Learner(world.homdp, rule, bounded_search(gap=0.9)).plan(both, state)
    for exact in (history_tree(), alpha_vectors()):
        decision = Learner(world.homdp, rule, exact).plan(both, state)
        assert decision.plans == 2
        assert float(decision.optimistic) == pytest.approx(
            optimum(world.pomdp), abs=1e-9
        )  # more accurate hearing has a higher value
    two = replace(explorers.greedy(), objective=Objective(candidates=2))
    Learner(world.homdp, two, bounded_search(gap=0.9)).plan(both, state)


# The learner without a simulation


def agent(rule, model, episodes=40, seed=3):
    """An agent that uses the functions of a learner, without a simulation."""
    return Learner(model, rule, TREE, episodes, seed)


@pytest.mark.parametrize(
    "rule", [explorers.greedy(), explorers.tight(), explorers.posterior_sampling()], ids=str
)
def test_an_agent_decides_like_learn(rule):
    """The agent receives the episodes of a run one at a time, with their numbers."""
    world = small("tiger_table")
    run = learn(world, rule, TREE, 40, seed=3, stop_after=15, compiled=False)
    learner = agent(rule, world.homdp)
    state, decision = learner.init(), None
    for k, episode in enumerate(run.episodes):
        planned = learner.out_of_date(state, decision)
        assert planned == run.record.planned[k]
        decision = learner.decide(k, state) if planned else decision
        assert float(decision.optimistic) == run.optimistic[k]
        policy = learner.policy_of(decision, 1)
        assert evaluate(policy, world.pomdp) == pytest.approx(run.values[k], abs=1e-12)
        state = learner.update(state, episode)
    np.testing.assert_array_equal(state.counts.transition, run.state.counts.transition)


def test_an_agent_with_version_spaces():
    """Epochs of H episodes, with a uniform action at step h of the h-th."""
    world = small("tiger")
    run = learn(world, hearing(), TREE, 18, seed=2)
    learner = agent(hearing(), world.homdp, 18, 2)
    assert learner.episodes_per_round == 3
    state = learner.init()
    for epoch in range(6):
        decision = learner.decide(3 * epoch, state)
        assert float(decision.optimistic) == run.optimistic[epoch]
        for h in (1, 2, 3):
            policy, expected = learner.policy_of(decision, h), UniformAt(decision.policy, h)
            assert evaluate(policy, world.pomdp) == pytest.approx(evaluate(expected, world.pomdp))
            state = learner.update(state, run.episodes[3 * epoch + h - 1])
    np.testing.assert_array_equal(state.memory.emissions, run.state.memory.emissions)


def seen(observations=(0, 1, 0), actions=(0, 0, 1), states=(0, 0, 0, 1)):
    return Episode(Trajectory(np.array(observations), np.array(actions)), np.array(states))


@pytest.mark.parametrize(
    "wrong",
    [
        {"states": (0, 0, 0, -1)},
        {"states": (0, 0, 0, 2)},
        {"observations": (0, 1, 5)},
        {"actions": (0, 0, -1)},
        {"observations": (0,), "actions": (0,), "states": (0, 0)},
        {"observations": (0, 1, 0), "actions": (0, 0, 1), "states": (0, 0, 0)},
        {"states": (0, 1, 1, 1)},  # the tiger stays while you listen
    ],
    ids=["state -1", "state 2", "observation 5", "action -1", "one step", "no last state", "moved"],
)
@pytest.mark.parametrize("rule", [explorers.greedy(), hearing()], ids=["greedy", "hop_v"])
def test_episodes_are_validated_as_posteriors_do(rule, wrong):
    """The same error; the rule itself would count state -1 as the last state."""
    model = small("tiger").homdp
    learner = agent(rule, model)
    state = learner.init()
    learner.update(state, seen())
    with pytest.raises(DataError) as raised:
        learner.update(state, seen(**wrong))
    with pytest.raises(DataError) as expected:
        posterior(model, seen(**wrong))
    assert raised.value.problems == expected.value.problems


def test_one_episode_at_a_time():
    model = small("tiger").homdp
    learner = agent(explorers.greedy(), model)
    state = learner.init()
    run = learn(small("tiger"), explorers.greedy(), TREE, 3)
    for wrong in (run.episodes, seen().trajectory, 3):
        with raises(DataError, "episode"):
            learner.update(state, wrong)


def test_simulated_episodes_may_contradict_the_declaration():
    """Learning with a wrong declaration is a valid experiment."""
    model = small("tiger").homdp
    learner = agent(explorers.greedy(), model)
    after = learner.update(learner.init(), seen(states=(0, 1, 1, 1)), simulated=True)
    assert after.counts.transition[0, 0, 1] == 1


def test_real_valued_episodes_are_validated():
    world = models.load("gaussian_tiger", horizon=3)
    learner = Learner(world.homdp, explorers.uniform(), TREE)
    state = learner.init()
    assert learner.update(state, seen((0.1, -0.2, 1.0))).played == 1
    for wrong in (seen((0.1, np.nan, 1.0)), seen((0.1, 0.2, 1.0), states=(0, 0, 0, -1))):
        with pytest.raises(DataError):
            learner.update(state, wrong)

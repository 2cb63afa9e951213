"""One round: where randomness comes from, when a plan is out of date and what counts as impossible."""

from dataclasses import replace
from itertools import product

import jax
import numpy as np
import pytest

from homdp_ppl import GraphPolicy, Trajectory, explorers, x64
from homdp_ppl.errors import PlanningError
from homdp_ppl.explorers import About, Deployment, Explorer, Objective, Proposal
from homdp_ppl.learning import stages
from homdp_ppl.learning.learner import Learner, out_of_date
from homdp_ppl.learning.noise import episode_noise, rule_number
from homdp_ppl.learning.planning import TablePlanning, choose_candidate, with_uniform
from homdp_ppl.learning.stages import impossible_steps
from homdp_ppl.planners import alpha_vectors, auto, bounded_search, history_tree
from homdp_ppl.precision import to_numpy
from tests.planners.exact import optimum, random_pomdp
from tests.runs import small

EPISODES = stages.BLOCK  # as the loop draws them: compiled once


def noise_of(seed: int, rule: str, first: int = 0, horizon: int = 3):
    """The keys and the noise of some episodes."""
    with x64():
        number = rule_number(rule_called(rule))
        found = episode_noise(jax.random.key(seed), number, first, EPISODES, horizon)
        return np.asarray(jax.random.key_data(found.proposal)), to_numpy(found.noise)


def rule_called(name: str, **facts) -> Explorer:
    """A rule of which only facts matter."""
    objective = Objective(**facts)
    return Explorer(
        About(name), propose=lambda key, state: Proposal(state.memory), objective=objective
    )


def test_rules_are_told_apart_by_crc32():
    """The check value of CRC-32 from its specification; options do not enter."""
    assert rule_number(rule_called("123456789")) == 0xCBF43926
    assert rule_number(explorers.hop_b(scale=0.1)) == rule_number(explorers.hop_b())


def test_luck_depends_on_the_episode_alone():
    """Blocks may begin anywhere: resumed and re-ordered runs see the same numbers.

    So do runs with a longer horizon.
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
    """No number is drawn twice, neither in two episodes nor for two purposes."""
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

    A pair that was never seen counts as soon as it is seen.
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
    """An observation is impossible if no latent path explains it together with the possible ones
    before it.
    """
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
def test_only_the_tree_plans_backups(planner):
    homdp = small("tiger").homdp
    with pytest.raises(PlanningError, match=r"planner=history_tree\(\)"):
        TablePlanning(explorers.quantile_backup(), planner, homdp)
    TablePlanning(explorers.tight(), planner, homdp)  # runs unclipped


def test_exact_rules_refuse_planners_with_a_gap():
    world = small("tiger_table")
    rule = explorers.value_quantile(draws=2)
    state = rule.init(world.homdp, 10)
    deaf = world.pomdp.with_tables(emission=np.full((2, 2), 0.5))
    both = Proposal(jax.tree.map(lambda *parts: np.stack(parts), world.pomdp, deaf))
    with pytest.raises(
        PlanningError, match=r"exact planner.*history_tree\(\) or alpha_vectors\(\)"
    ):
        Learner(world.homdp, rule, bounded_search(gap=0.9)).plan(both, state)
    for exact in (history_tree(), alpha_vectors()):
        decision = Learner(world.homdp, rule, exact).plan(both, state)
        assert decision.plans == 2
        assert float(decision.optimistic) == pytest.approx(
            optimum(world.pomdp), abs=1e-9
        )  # who hears is worth more
    two = replace(explorers.greedy(), objective=Objective(candidates=2))
    Learner(world.homdp, two, bounded_search(gap=0.9)).plan(both, state)

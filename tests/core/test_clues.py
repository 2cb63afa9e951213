"""Evidence of labels, mechanisms and rewards: the recursion against enumeration of all paths."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density

from homdp_ppl import DataError, Episodes, ParameterError, explorers, learn, x64
from homdp_ppl.declare import hindsight_program
from homdp_ppl.declare.clue_likelihood import evidence_of
from homdp_ppl.planners import history_tree
from tests.hindsight import MODELS, enumerated, noisy, paid, simulated
from tests.raising import raises


def density(world, episodes):
    """The log density of episodes under the conditioned program, without the prior."""
    model = world.homdp
    with x64():
        at = jax.tree.map(jnp.asarray, dict(world.parameters))
        found, trace = log_density(model.hindsight(episodes), (), {}, at)
        prior, _ = log_density(model.function, (), {}, at)
    latent = {n for n, s in trace.items() if s["type"] == "sample" and not s["is_observed"]}
    assert latent == set(world.parameters)
    return float(found) - float(prior)


@pytest.mark.parametrize("name", MODELS)
def test_the_recursion_equals_enumeration(name):
    model, known = MODELS[name]
    world = model.draw(jax.random.key(3))
    episodes = simulated(world, 15)
    exact = enumerated(world, known, episodes)
    assert np.isfinite(exact)
    assert np.isclose(density(world, episodes), exact, rtol=1e-12, atol=1e-11)


def test_known_rewards_are_indicators():
    """A reward that only one state can earn reveals that state."""
    world = MODELS["chosen"][0].draw(jax.random.key(1))
    rewards = np.array([[0.2, 0.6, 0.1]])  # of the states 0, 1 and 1
    hidden = Episodes([[0, 1, 1]], [[0, 0, 1]], [[None, None, None, 0]], rewards=rewards)
    known = Episodes([[0, 1, 1]], [[0, 0, 1]], [[0, 1, 1, 0]])
    tables = [density(world, each) for each in (hidden, known)]
    chances = [1 - float(world.parameters["right"])] * 2 + [1 - float(world.parameters["right"])]
    shown = [1 - c for c in chances]
    difference = np.log(chances).sum() - np.log(shown).sum()
    assert np.isclose(tables[0] - tables[1], difference, atol=1e-12)


def swapped(gaps):
    return gaps._replace(clue=np.roll(gaps.clue, 1, axis=1))


def last_forgotten(gaps):
    return gaps._replace(length=np.maximum(gaps.length - 1, 1))


def wrong_mark(gaps):
    mark = np.where(gaps.clues.mark % 4 < 2, gaps.clues.mark + 2, gaps.clues.mark - 2)
    return gaps._replace(clues=gaps.clues._replace(mark=mark))


def emission_at_the_end(gaps):
    none = gaps.seen.max()
    return gaps._replace(seen=np.where(gaps.seen == none, 0, gaps.seen))


@pytest.mark.parametrize("bug", [swapped, last_forgotten, wrong_mark, emission_at_the_end])
def test_planted_bugs_are_caught(bug, monkeypatch):
    """Evidence one step late, the last state forgotten, wrong actions, an emission at H + 1."""
    model, known = MODELS["chosen"]
    world = model.draw(jax.random.key(3))
    episodes = simulated(world, 40)
    evidence = evidence_of(model, episodes)
    assert (evidence.gaps.seen == 2).any()
    evidence.gaps = bug(evidence.gaps)
    with x64():
        at = jax.tree.map(jnp.asarray, dict(world.parameters))
        conditioned = hindsight_program.hindsight_with_gaps(model, evidence)
        found, _ = log_density(conditioned, (), {}, at)
        prior, _ = log_density(model.function, (), {}, at)
    assert abs(float(found) - float(prior) - enumerated(world, known, episodes)) > 1e-2


@pytest.mark.parametrize("name", ["noisy", "chosen", "paid", "ending"])
def test_evidence_of_parts_adds_up(name):
    model, _ = MODELS[name]
    world = model.draw(jax.random.key(3))
    one, other = simulated(world, 10, seed=1), simulated(world, 7, seed=2)
    whole = evidence_of(model, one + other)
    added = evidence_of(model, other) + evidence_of(model, one)
    equal = jax.tree.map(np.array_equal, (whole.counts, whole.gaps), (added.counts, added.gaps))
    assert all(jax.tree.leaves(equal))


def test_impossible_evidence_names_the_episode_and_the_step():
    states = [[None, None, None, 0]]
    wrong = Episodes(
        [[0, 1, 1]] * 2,
        [[0, 0, 1]] * 2,
        states * 2,
        rewards=[[2.0, 2, 2], [2, -0.5, 2]],
        ids=["a", "b"],
    )
    with raises(DataError, "data") as caught:
        evidence_of(paid, wrong)
    assert caught.value.problems[0].at == "episode 'b', step 2"


def test_rules_that_need_all_states_are_refused():
    for model, where in ((noisy, "label"), (MODELS["chosen"][0], "revealed")):
        with raises(ParameterError, where):
            learn(model.draw(jax.random.key(0)), explorers.tight(), history_tree(), episodes=3)


def test_labels_outside_the_declared_ones_are_errors():
    with raises(DataError, "labels"):
        noisy.hindsight(
            Episodes([[0, 0, 0]], [[0, 0, 0]], [[None] * 4], labels=[[0, 3, None, None]])
        )
    with raises(DataError, "labels"):
        noisy.hindsight(
            Episodes([[0, 0, 0]], [[0, 0, 0]], [[None] * 4], labels=[[0, 0.5, None, None]])
        )

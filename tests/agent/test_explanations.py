"""What would change a decision, and what was seen before, compared with definitions."""

import numpy as np
import pytest

from homdp_ppl import Agent, Episodes, explain, explorers, posterior
from homdp_ppl.agent.decision import moment, turnings
from homdp_ppl.agent.similar import similar
from tests.agent.processes import tiger
from tests.agent.test_diagnostics import by_hand
from tests.richer import richer
from tests.runs import TREE

WORLD = tiger()
POLICY = TREE(WORLD.pomdp).policy
NAMES = WORLD.spaces.names


def test_values_in_each_state():
    """Weighted by the belief, they give the value of the action by enumeration."""
    found = moment(POLICY, WORLD.pomdp, np.array([0, 1]), np.array([0]))
    for a in range(3):
        alpha, value = by_hand(POLICY, WORLD, [0, 1], [0], a)
        np.testing.assert_allclose(found.belief, alpha / alpha.sum())
        assert found.values[a] @ found.belief == pytest.approx(value)


def test_beliefs_that_change_the_decision():
    """At the reported probability both actions are equally good; below it, the first is better."""
    belief = np.array([0.5, 0.3, 0.2])
    generator = np.random.default_rng(0)
    for _ in range(20):
        values = generator.random((4, 3))
        chosen = int(np.argmax(values @ belief))
        for found in turnings(belief, values, chosen, "abc", "wxyz"):
            x, a = "abc".index(found.state), "wxyz".index(found.action)
            share = (found.then - belief[x]) / (1 - belief[x])
            there = (1 - share) * belief + share * np.eye(3)[x]
            assert (values @ there)[a] == pytest.approx((values @ there)[chosen])
            assert (values @ there).max() == pytest.approx((values @ there)[chosen])
            assert found.now == belief[x] <= found.then <= 1
        certain = values.argmax(0) != chosen  # states in which another action is best
        listed = {found.state for found in turnings(belief, values, chosen, "abc", "wxyz")}
        assert listed >= {name for name, other in zip("abc", certain, strict=True) if other}


def test_other_observations():
    """The actions of the policy after other last observations, and after the next ones."""
    found = explain(POLICY, WORLD, ["growl left"], [])
    names = WORLD.spaces.actions
    for y, name in enumerate(WORLD.spaces.observations):
        action = names[int(np.argmax(POLICY.act([y], [])))]
        assert found.instead.get(name, found.action) == action
        after = found.following[name]
        assert after.action == names[int(np.argmax(POLICY.act([0, y], [0])))]
    p = 0.85 * 0.85 + 0.15 * 0.15  # two growls agree
    assert found.following["growl left"].probability == pytest.approx(p)
    assert explain(POLICY, WORLD, [0, 0, 0], [0, 0]).following == {}
    assert found.similar is None


def test_similar_histories_by_hand():
    """The longest common end of the history, at the same step."""
    past = Episodes(
        [[0, 0, 1], [1, 0, 1], [0, 1, 1], [1, 1, 1]],
        [[0, 0, 1], [0, 0, 2], [0, 2, 0], [2, 0, 0]],
        [[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]],
    )
    reward = WORLD.homdp.reward
    found = similar(WORLD.homdp, past, np.array([0, 0]), np.array([0]))
    assert (found.episodes, found.steps, found.states) == (1, 2, {"left": 1})
    expected = reward[1, 0, 0] + reward[2, 0, 1]
    assert found.actions == {"listen": (1, pytest.approx(expected))}
    found = similar(WORLD.homdp, past, np.array([1, 0, 1]), np.array([1, 0]))
    assert (found.episodes, found.steps) == (2, 2)  # the first action differs in all of them
    assert found.states == {"left": 1, "right": 1}
    assert set(found.actions) == {"open left", "open right"}
    found = similar(WORLD.homdp, past, np.array([0, 0, 0]), np.array([0, 0]))
    assert found is None
    assert similar(WORLD.homdp, past[:0], np.array([0]), np.array([])) is None


def test_explanations_of_agents_look_at_other_episodes():
    agent = Agent(WORLD.homdp, explorers.greedy(), TREE)
    for name in ("one", "two"):
        episode = agent.begin(name)
        for y in (0, 0, 1):
            episode.act(y)
        agent.reveal(name, [0, 0, 0, 0])
    found = agent.explain("one")
    assert found.similar.episodes == 1
    assert found.similar.steps == 3
    assert "1 revealed episode with this history: left in 1" in str(found)
    belief = posterior(WORLD.homdp, agent.episodes)
    assert explain(agent.policy, belief, [0], []).similar.episodes == 2
    html = found._repr_html_()
    assert html.count("<table>") == 2
    assert "growl right" in html


def test_forbidden_actions_are_not_offered():
    """In values and turnings; the other values are those without the restriction."""
    world = richer("limited")
    policy = TREE(world.pomdp, allowed=world.homdp.allowed).policy
    values = moment(policy, world.pomdp, np.array([0, 0]), np.array([1]))
    found = explain(policy, world, [0, 0], [1])
    assert list(found.values) == ["a0"]
    assert found.values["a0"].value == pytest.approx(values.values[0] @ values.belief)
    assert found.turnings == ()
    again = explain(policy, world, [0, 0], [0])
    assert list(again.values) == ["a0", "a1"]

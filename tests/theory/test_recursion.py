"""The recursion lemmas against enumeration of all trajectories."""

from itertools import product

import jax
import numpy as np
import pytest

from homdp_ppl import Counts, models, rollout, theory, uniform_policy
from homdp_ppl.confidence import empirical, hop_b_bonus, hop_b_radii
from homdp_ppl.core.alphas import alphas_of
from homdp_ppl.evaluation import simulation_lemma
from homdp_ppl.planners import history_tree
from homdp_ppl.theory import recursion as module


def world(seed, horizon=3):
    return models.load("random", states=2, observations=2, actions=2, horizon=horizon, seed=seed)


def law(policy, model, steps):
    """The probability of every (x, y, a, .., x, y, a)."""
    found = {}
    for states, seen, acts in product(product((0, 1), repeat=steps), repeat=3):
        chance = model.initial[states[0]]
        for h in range(steps):
            chance *= model.shows(0)[states[h], seen[h]]
            chance *= policy.act(list(seen[: h + 1]), list(acts[:h]))[acts[h]]
            if h + 1 < steps:
                chance *= model.moves(0)[states[h], acts[h], states[h + 1]]
        found[states, seen, acts] = chance
    return found


def test_the_simulation_recursion_by_enumeration():
    for seed in range(3):
        truth = world(seed).pomdp
        other = world(seed + 10).pomdp._replace(initial=truth.initial, reward=truth.reward)
        policy = history_tree()(other).policy
        steps = theory.simulation_recursion(policy, truth, other)
        for h, left, right in steps:
            one, two = law(policy, truth, h), law(policy, other, h)
            assert left == pytest.approx(sum(abs(one[t] - two[t]) for t in one))
            assert left <= right + 1e-12
        assert steps[-1].left == pytest.approx(simulation_lemma(policy, truth, other).distance)


def test_the_recursion_needs_the_distance_of_transitions():
    """Planted bug: equal emissions, different transitions; without their distance it is false."""
    truth = world(0).pomdp
    other = truth.with_tables(transition=truth.moves(0)[::-1])
    steps = theory.simulation_recursion(history_tree()(truth).policy, truth, other)
    assert steps[1].left > steps[0].left + 0.01
    assert steps[1].left <= steps[1].right + 1e-12


def setup(seed, n):
    made = world(seed, horizon=2)
    episodes = rollout(jax.random.split(jax.random.key(seed), n), made, uniform_policy(made))
    counts = Counts.of(episodes, made)
    radii = hop_b_radii(made.homdp, counts, 1000, known=False)
    learned = empirical(made.homdp, counts, False).with_bonus(hop_b_bonus(radii, 2))
    return made, counts, radii, learned, history_tree()(learned).policy


def test_the_left_side_by_enumeration():
    """E[alpha-hat(x_h) - alpha(x_h)] from alpha-vectors and the law of the true model."""
    made, counts, _, learned, policy = setup(1, 30)
    truth = made.pomdp
    found = theory.alpha_recursion(policy, made, counts, 1000)
    hat, true = alphas_of(policy, learned), alphas_of(policy, truth)
    first = sum(
        truth.initial[x] * truth.shows(0)[x, y] * (hat[0] - true[0])[node(policy, 0, y), x]
        for x, y in product((0, 1), repeat=2)
    )
    assert found[0].left == pytest.approx(first)
    bonus = (learned.reward - truth.reward)[1, :, 0]
    second = sum(
        chance * bonus[states[1], acts[1]]
        for (states, _, acts), chance in law(policy, truth, 2).items()
    )
    assert found[1].left == pytest.approx(second)


def node(policy, step, y):
    """The place of the node after the first observation among the nodes of its step."""
    return int(np.searchsorted(np.unique(policy.start), policy.start[y]))


def test_the_alpha_recursion_on_simulated_counts(monkeypatch):
    """It holds at all steps; without the radii on the right side it does not."""
    for seed, n in product(range(3), (0, 5, 200)):
        made, counts, *_, policy = setup(seed, max(n, 1))
        counts = counts if n else Counts.zero(made)
        for _, left, right in theory.alpha_recursion(policy, made, counts, 1000):
            assert left <= right + 1e-9
    made, counts, *_, policy = setup(0, 50)
    true_radii = module.hop_b_radii
    monkeypatch.setattr(module, "C", 0)
    monkeypatch.setattr(module, "tilde_epsilon", lambda *given: np.zeros((2, 2)))
    learned = empirical(made.homdp, counts, False).with_bonus(
        hop_b_bonus(true_radii(made.homdp, counts, 1000, known=False), 2)
    )
    monkeypatch.setattr(
        module, "empirical", lambda *given: learned
    )  # keeps the bonuses, which the right side no longer has
    none = true_radii(made.homdp, counts, 1000, known=False)
    none = none._replace(emission=0 * none.emission, transition=0 * none.transition)
    monkeypatch.setattr(module, "hop_b_radii", lambda *given: none)
    assert any(
        left > right for _, left, right in theory.alpha_recursion(policy, made, counts, 1000)
    )

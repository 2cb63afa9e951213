"""Values of policies on a history tree, against the alpha-vectors of the policies."""

import jax
import numpy as np
import pytest

from homdp_ppl import POMDP, GraphPolicy, evaluate, x64
from homdp_ppl.planners import history_tree
from homdp_ppl.planners._histories import Support, generations
from homdp_ppl.planners._tree_score import follow, history_rewards
from tests.planners.exact import optimum, random_pomdp

SHAPES = [
    (3, 2, 2, 3, 0.0),
    (2, 3, 2, 3, 0.0),
    (3, 2, 2, 3, 0.4),
    (4, 3, 2, 3, 0.6),
    (3, 2, 3, 1, 0.0),
    (3, 3, 3, 1, 0.5),
]


def other_numbers(model: POMDP, seed: int) -> POMDP:
    """Another world with the same support, except that another entry is zero."""
    generator = np.random.default_rng(seed)

    def rows(table):
        weights = table * generator.exponential(size=table.shape)
        weights[np.unravel_index(weights.argmin(), weights.shape)] = 0.0
        return weights / weights.sum(-1, keepdims=True)

    initial, transition, emission = (rows(np.asarray(part)) for part in model[:3])
    return POMDP.of(initial, transition, emission, generator.uniform(size=model.reward.shape))


def random_behaviour(policy: GraphPolicy, seed: int, zeros: float = 0.3) -> GraphPolicy:
    """The same tree with random action probabilities, some of which are zero."""
    generator = np.random.default_rng(seed)
    chances = generator.exponential(size=policy.probabilities.shape) * (
        generator.uniform(size=policy.probabilities.shape) > zeros
    )
    chances[:, 0] += chances.sum(1) == 0
    return GraphPolicy(policy.start, chances / chances.sum(1, keepdims=True), policy.successor)


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
def test_scores_are_values(sizes):
    """Regular and pruned trees, one or several steps, stochastic policies, and worlds with fewer
    possible histories than the tree.
    """
    *counts, zeros = sizes
    for seed in range(5):
        support = random_pomdp(seed, *counts, zeros=zeros)
        tree = history_tree()
        policy = tree(support).policy
        for world in (support, other_numbers(support, seed)):
            score = tree.scorer(support, world)
            for k in range(4):
                stochastic = random_behaviour(policy, 10 * seed + k)
                assert float(score(stochastic)) == pytest.approx(
                    evaluate(stochastic, world), abs=1e-13
                )
        assert float(tree.scorer(support, support)(policy)) == pytest.approx(
            optimum(support), abs=1e-12
        )


def test_scores_can_be_traced():
    model = random_pomdp(0, 3, 2, 2, 3, zeros=0.3)
    tree = history_tree()
    score, policy = tree.scorer(model, model), tree(model).policy
    several = [random_behaviour(policy, k) for k in range(3)]
    with x64():
        batch = jax.tree.map(lambda *leaves: np.stack(leaves), *several)
        traced = np.asarray(jax.jit(jax.vmap(score))(batch))
    np.testing.assert_allclose(traced, [evaluate(one, model) for one in several], atol=1e-13)


def test_no_score_in_worlds_with_more_possible_histories():
    """A larger support of any of the three tables gives None; a smaller one gives a score."""
    model = random_pomdp(3, 3, 3, 2, 2, zeros=0.5)
    tree = history_tree()
    for part in ("initial", "transition", "emission"):
        table = np.asarray(getattr(model, part))
        assert (table == 0).any()
        wider = model._replace(**{part: np.full_like(table, 1 / table.shape[-1])})
        assert tree.scorer(model, wider) is None
        assert tree.scorer(wider, model) is not None


def test_rewards_of_histories_are_sums_over_paths():
    """P(history) E[r | history] at each history, by enumerating latent paths."""
    model = random_pomdp(1, 3, 2, 2, 2, zeros=0.3)
    shape = generations(Support.of(model), 2)
    first, second = history_rewards(shape, model)
    rho, T, O, r = model.stationary()  # noqa: E741
    for node, y in enumerate(shape[0].observation):
        np.testing.assert_allclose(
            first[node], sum(rho[x] * O[x, y] * r[0, x] for x in range(3)), atol=1e-15
        )
    for node, (parent, a, y) in enumerate(zip(*shape[1][:3], strict=True)):
        before = shape[0].observation[parent]
        paths = sum(
            rho[x] * O[x, before] * T[x, a, z] * O[z, y] * r[1, z]
            for x in range(3)
            for z in range(3)
        )
        np.testing.assert_allclose(second[node], paths, atol=1e-15)
    nodes = sum(map(len, (first, second)))
    # weight 1 for all actions gives the sum of all entries
    everything = follow(shape, [first, second], np.ones((nodes, 2)))
    assert everything == pytest.approx(first.sum() + second.sum())

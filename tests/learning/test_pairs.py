"""The search over pairs, compared with planning for all pairs."""

from itertools import product

import numpy as np
import pytest

from homdp_ppl import POMDP, PlanningError
from homdp_ppl.explorers import Pairs
from homdp_ppl.learning import pairs
from tests.planners.exact import optimum, random_pomdp
from tests.raising import raises
from tests.runs import TREE

X, Y, A, H = 3, 2, 2, 3


def some_pairs(seed, transitions=6, emissions=5, zeros=0.0):
    """Random classes, all alive; the first model gives the start and the rewards."""
    members = [
        random_pomdp(100 * seed + k, X, Y, A, H, zeros) for k in range(max(transitions, emissions))
    ]
    T, O = (  # noqa: E741
        np.stack([m.stationary()[k] for m in members[:n]])
        for k, n in ((1, transitions), (2, emissions))
    )
    alive = np.ones(transitions, dtype=bool), np.ones(emissions, dtype=bool)
    return Pairs(T, O, *alive, members[0])


def all_values(space):
    """The optimum of every pair, (N, M)."""
    every = product(space.transitions, space.emissions)
    start, reward = space.reference.initial, space.reference.reward
    values = [optimum(POMDP.of(start, T, O, reward[:, :, 0])) for T, O in every]  # noqa: E741
    return np.reshape(values, (len(space.transitions), len(space.emissions)))


class Counting:
    """A planner that counts its plans."""

    def __init__(self):
        self.plans = 0

    def __call__(self, model):
        """Plan and count."""
        self.plans += 1
        return TREE.solve(model)


def shrinking(generator, space):
    """Version spaces that lose members, and sometimes regain one, until one pair is left."""
    T, O = space.alive_transitions.copy(), space.alive_emissions.copy()  # noqa: E741
    while True:
        yield space._replace(alive_transitions=T.copy(), alive_emissions=O.copy())
        larger = T if T.sum() >= O.sum() else O
        if larger.sum() == 1:
            return
        larger[generator.choice(np.flatnonzero(larger))] = False
        if generator.uniform() < 0.15:
            larger[generator.integers(len(larger))] = True


def search(seeds, zeros=0.0):
    """The largest error of the found pairs, the number of plans, and the number of pairs."""
    worst, plans, pairs_met = 0.0, 0, 0
    for seed in seeds:
        space, solve = some_pairs(seed, zeros=zeros), Counting()
        values, finder = all_values(space), pairs.PairSearch(solve, pairs.TableBounds())
        for alive in shrinking(np.random.default_rng(seed), space):
            before = solve.plans
            solution, pair, count = finder.best(alive)
            masked = np.where(
                np.outer(alive.alive_transitions, alive.alive_emissions), values, -np.inf
            )
            assert count == solve.plans - before <= np.isfinite(masked).sum()
            found = optimum(alive.model(*pair))
            assert solution.upper == pytest.approx(found, abs=1e-10)
            worst = max(worst, masked.max() - found)
        plans, pairs_met = plans + solve.plans, pairs_met + values.size
    return worst, plans, pairs_met


@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_finds_the_best_pair_with_few_plans(zeros):
    """The same result as planning for all pairs, with a fraction of the plans."""
    worst, plans, pairs_met = search(range(8), zeros)
    assert worst <= 1e-10
    assert plans <= pairs_met / 3


def test_a_bound_that_is_too_low_is_caught(monkeypatch):
    right = pairs.root_value
    monkeypatch.setattr(
        pairs,
        "root_value",
        lambda model, vectors: (1 - model.moves(0)[0, 0, 0]) * right(model, vectors),
    )
    assert search(range(8))[0] > 1e-3


def test_the_plan_of_the_best_pair_is_returned():
    """Returns its plan, and makes no new plan if the same pair is still the best."""
    space, solve = some_pairs(3), Counting()
    best = np.unravel_index(np.argmax(all_values(space)), (6, 5))
    finder = pairs.PairSearch(solve, pairs.TableBounds())
    solution, pair, plans = finder.best(space)
    assert pair == best
    assert plans >= 1
    again, _, none = finder.best(space)
    assert none == 0
    assert again.upper == solution.upper


def test_empty_version_spaces_raise():
    space = some_pairs(0)
    with raises(PlanningError, "version spaces"):
        pairs.PairSearch(Counting(), pairs.TableBounds()).best(
            space._replace(alive_emissions=np.zeros(5, dtype=bool))
        )

"""The anytime rule: no model in the sets has a larger value, and planted bugs are caught."""

import importlib
from dataclasses import replace

import jax
import numpy as np
import pytest

from homdp_ppl import Counts, explorers, learn, models
from homdp_ppl.confidence import confidence_sets, transport_bound, value_ranges
from homdp_ppl.core.optimism import Limits, kept_deficit
from homdp_ppl.explorers import Proposal
from homdp_ppl.learning.planning import TablePlanning
from homdp_ppl.planners import alpha_vectors, bounded_search, history_tree
from tests.confidence.boxes import DECLARATIONS, inside, random_counts
from tests.planners.exact import full, optimum

rule = importlib.import_module("homdp_ppl.explorers.anytime")
TREE = history_tree()
MODELS = 12  # models in the sets of each case


def case(name, seed, most=12, known=True):
    model = DECLARATIONS[name]
    return model, confidence_sets(model, random_counts(model, seed, most), 0.5, known=known)


def optimistic(model, sets, planner=TREE, explorer=None):
    """The optimistic value at the root, with rewards in [0, 1]."""
    planning = TablePlanning(explorer or explorers.anytime(), planner, model)
    value = planning.plan(rule.optimistic_proposal(sets, value_ranges(sets))).optimistic
    return float(sets.centre.from_user(value))


def best_inside(sets, seed):
    """The largest optimum of some models in the sets."""
    return max(optimum(pomdp.unscaled) for pomdp in inside(sets, seed, MODELS))


@pytest.mark.parametrize("name", DECLARATIONS)
@pytest.mark.parametrize("known", [True, False])
def test_no_model_in_the_sets_exceeds_the_optimistic_value(name, known):
    for seed, most in ((0, 3), (1, 12), (2, 100)):
        model, sets = case(name, seed, most, known)
        explorer = explorers.anytime(known=known)
        assert best_inside(sets, seed) <= optimistic(model, sets, explorer=explorer) + 1e-9


def reference(sets):
    """The optimistic value by a recursion over histories in plain Python."""
    T, O, r = full(sets.centre._replace(reward=sets.reward.high))  # noqa: E741
    least = sets.least._replace(reward=sets.centre.reward)
    T_least, O_least, _ = full(least)
    ranges, (H, X, Y, A) = value_ranges(sets), r.shape
    high, low, caps = (
        np.broadcast_to(part, (H, X, Y, *part.shape[3:]))
        for part in (ranges.high_seen, ranges.low_seen, ranges.high_action)
    )

    def emission_bonus(h, previous):
        box = sets.shows(h, None if previous == A else previous)
        return transport_bound(box.up, box.down, high[h], low[h])

    def missing(h, weights, smallest, y, value):  # value: of weights, not normalised
        below = weights @ high[h, :, y] - value
        return kept_deficit(weights, smallest, high[h, :, y] - low[h, :, y], below)

    def value(h, weights, y):
        found = []
        for a in range(A):
            plain = weights @ r[h, :, y, a]
            cap = weights @ caps[h, :, y, a]
            if h + 1 < H:
                box = sets.moves(h)
                bonus = transport_bound(
                    box.up[:, a], box.down[:, a], ranges.high[h + 1], ranges.low[h + 1]
                )
                plain += weights @ (bonus + T[h, :, a] @ emission_bonus(h + 1, a))
                for z in range(Y):
                    following = (weights @ T[h, :, a]) * O[h + 1, a, :, z]
                    smallest = (weights @ T_least[h, :, a]) * O_least[h + 1, a, :, z]
                    later = value(h + 1, following, z)
                    plain += later
                    cap -= missing(h + 1, following, smallest, z, later)
            found.append(min(plain, cap))
        return max(found)

    start, first = sets.start(), sets.shows(0, None)
    most = start.centre @ ranges.high[0] + transport_bound(
        start.up, start.down, ranges.high[0], ranges.high[0]
    )
    plain = start.centre @ emission_bonus(0, A) + transport_bound(
        start.up, start.down, ranges.high[0], ranges.low[0]
    )
    cap = most
    for y in range(Y):
        weights = start.centre * first.centre[:, y]
        smallest = (start.centre - start.down) * (first.centre - first.down)[:, y]
        later = value(0, weights, y)
        plain += later
        cap -= missing(0, weights, smallest, y, later)
    return min(plain, most, cap)


@pytest.mark.parametrize("name", DECLARATIONS)
def test_optimistic_values_by_hand(name):
    for seed, most in ((3, 12), (4, 200)):
        model, sets = case(name, seed, most)
        assert optimistic(model, sets) == pytest.approx(reference(sets), abs=1e-9)


def caught(monkeypatch, bugs, explorer=None, names=("guess", "lock", "start", "steps", "answers")):
    """Whether some model in the sets exceeds the optimistic value with a planted bug."""
    with monkeypatch.context() as patch:
        for where, bug in bugs.items():
            patch.setattr(rule, where, bug)
        for name in names:
            for seed, most in ((0, 12), (1, 60), (2, 300), (3, 12)):
                model, sets = case(name, seed, most)
                if best_inside(sets, seed) > optimistic(model, sets, explorer=explorer) + 1e-6:
                    return True
    return False


def with_root(root):
    plain = explorers.anytime()
    return replace(plain, objective=replace(plain.objective, root=lambda homdp: root))


def test_planted_bugs_are_caught(monkeypatch):
    transport = rule.transport
    assert not caught(monkeypatch, {})
    halved = {"transport": lambda *parts: transport(*parts) / 2}
    assert caught(monkeypatch, halved)
    forgotten = with_root(lambda given, solution: np.minimum(solution.upper, given.most))
    assert caught(monkeypatch, {}, forgotten)
    second = with_root(  # the start is added to the second argument of the minimum only
        lambda given, solution: np.minimum(
            solution.upper + given.offset, given.joint.sum(0) @ given.limits.spread.high[0].max(-1)
        )
    )
    assert caught(monkeypatch, {}, second, names=("start", "everything"))
    swapped = {"transport": lambda up, down, high, low: transport(up, down, low, high)}
    assert caught(monkeypatch, swapped)
    unshrunk = {"kept_deficit": lambda joint, least, width, below: np.maximum(below, 0)}
    assert caught(monkeypatch, unshrunk)


def test_caps_make_optimistic_values_smaller():
    """Other planners leave them out: sound, and looser."""
    for seed in range(3):
        model, sets = case("start", seed, 60)
        capped = optimistic(model, sets)
        for planner in (alpha_vectors(), bounded_search()):
            assert optimistic(model, sets, planner) >= capped - 1e-6
        assert best_inside(sets, seed) <= optimistic(model, sets, alpha_vectors()) + 1e-9
        plain = explorers.anytime()
        without = replace(plain, objective=replace(plain.objective, caps=_only_caps))
        assert optimistic(model, sets, explorer=without) >= capped - 1e-9


def _only_caps(given, horizon):
    return Limits(given.limits.caps)


def test_learning():
    """The lock: `tight` has a regret of about 200 and an optimistic value 1.1 too high for long."""
    world, plain = models.load("lock"), explorers.replan_on_doubling(explorers.anytime())
    run = learn(world, plain, TREE, episodes=300, compiled=False)
    assert run.was_optimistic.all()
    assert run.optimistic[-1] - run.optimum < 0.25
    assert run.regret[-1] < 30
    assert run.gaps[-1] == pytest.approx(0.0, abs=1e-9)


def test_length_and_declared_mixture():
    """K is not needed; a declared prior that is right makes the optimistic value smaller."""
    world = models.load("tiger")
    assert not explorers.anytime().about.needs_episodes
    counts = Counts(np.zeros((2, 3, 2)), np.array([[80, 20], [20, 80]]))
    proposals = {
        mixture: explorers.anytime(mixture=mixture).propose(
            jax.random.key(0), replace(explorers.anytime().init(world.homdp, None), counts=counts)
        )
        for mixture in ("jeffreys", "declared")
    }
    assert all(isinstance(each, Proposal) for each in proposals.values())
    offsets = {name: float(each.parameters.offset[0]) for name, each in proposals.items()}
    assert offsets["declared"] < offsets["jeffreys"]
    assert explorers.anytime(mixture="declared").about.uses_prior
    assert not explorers.anytime().about.uses_prior

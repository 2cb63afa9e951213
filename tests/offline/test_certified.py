"""Certified intervals: coverage, equality with brute force, widths, and planted bugs."""

from itertools import product

import jax
import numpy as np
import pytest
from scipy.stats import binom

from homdp_ppl import GraphPolicy, evaluate, models, rollout, uniform_policy
from homdp_ppl.confidence import confidence_sets, policies
from homdp_ppl.confidence.policies import policy_interval
from homdp_ppl.confidence.ranges import largest_mean
from homdp_ppl.offline import tree
from homdp_ppl.planners import history_tree
from tests.confidence.boxes import DECLARATIONS, inside, random_counts
from tests.offline.simulated import behaviours, declaration, random_world
from tests.worlds import random_policy

ALARM = 1e-4  # false-alarm rate of the coverage tests
DELTA = 0.1


def missed(seeds, shrink=1.0):
    """Worlds in which the value of some policy is outside of its interval."""
    homdp = declaration()
    misses = 0
    for seed in seeds:
        world = random_world(homdp, seed)
        log = behaviours(homdp, world, seed, episodes=60)
        sets = confidence_sets(homdp, homdp.counts(log), DELTA)
        if shrink < 1:
            ups = [type(sets.up)(*(shrink * part for part in side)) for side in sets[1:3]]
            sets = sets._replace(up=ups[0], down=ups[1])
        tried = [random_policy(homdp.spaces, 10 * seed + k) for k in range(3)]
        tried += [history_tree()(model).policy for model in (sets.centre, world.pomdp)]
        bounds = [policy_interval(sets, policy) for policy in tried]
        values = [evaluate(policy, world.pomdp) for policy in tried]
        misses += not all(
            low - 1e-9 <= v <= high + 1e-9 for v, (low, high) in zip(values, bounds, strict=True)
        )
    return misses


def test_coverage_over_worlds_behaviours_and_policies():
    """All five policies of a world at once; false-alarm rate 1e-4."""
    assert missed(range(45)) <= binom.isf(ALARM, 45, DELTA)


def test_intervals_that_are_too_short_are_caught():
    assert missed(range(45), shrink=0.2) > binom.isf(ALARM, 45, DELTA)


@pytest.mark.slow
@pytest.mark.long
def test_coverage_over_many_worlds():
    assert missed(range(450)) <= binom.isf(ALARM, 450, DELTA)


TINY = declaration(horizon=2)


def enumerated(sets, policy):
    """The smallest and largest value over all vertices of all rows of all histories, and states.

    For a deterministic policy, two states, two observations and two steps. Plain loops: nothing is
    shared with the recursion or with the transport bound.
    """
    model = sets.centre
    boxes = {
        "T": (model.transition[0], sets.down.transition[0], sets.up.transition[0]),
        "O": (model.emission[0, 0], sets.down.emission[0, 0], sets.up.emission[0, 0]),
    }

    def ends(name, *place):  # the first entry of a row with two outcomes
        centre, down, up = (part[place][0] for part in boxes[name])
        back, forth = (part[place][1] for part in boxes[name][1:])
        low = centre - min(down, forth)
        return low, centre + min(up, back)

    first = {y: int(policy.act([y], []).argmax()) for y in (0, 1)}
    second = {
        (y, z): int(policy.act([y, z], [first[y]]).argmax()) for y, z in product((0, 1), repeat=2)
    }
    r, rho = model.reward[:, :, 0], model.initial
    emits = [ends("O", x) for x in (0, 1)]
    moves = {(y, x): ends("T", x, first[y]) for y in (0, 1) for x in (0, 1)}
    values = []
    for o in product(*emits):
        for t in product(*moves.values()):
            moved = dict(zip(moves, t, strict=True))
            for later in product(*[ends("O", x) for y in (0, 1) for x in (0, 1)]):
                shown = dict(zip([(y, x) for y in (0, 1) for x in (0, 1)], later, strict=True))
                total = 0.0
                for x, y in product((0, 1), repeat=2):
                    weight = rho[x] * (o[x] if y == 0 else 1 - o[x])
                    onward = 0.0
                    for z in (0, 1):
                        p = moved[y, x] if z == 0 else 1 - moved[y, x]
                        q = shown[y, z]
                        onward += p * (q * r[1, z, second[y, 0]] + (1 - q) * r[1, z, second[y, 1]])
                    total += weight * (r[0, x, first[y]] + onward)
                values.append(total)
    return min(values), max(values)


def deterministic(seed):
    """A policy that distinguishes all histories of two steps."""
    rng = np.random.default_rng(seed)
    actions = np.eye(2)[rng.integers(0, 2, 10)]
    successor = np.zeros((10, 2, 2), dtype=int)
    for node, (a, y) in product((0, 1), product((0, 1), repeat=2)):
        successor[node, a, y] = 2 + 4 * node + 2 * a + y
    return GraphPolicy([0, 1], actions, successor)


def differences():
    """How far intervals are from brute force, over cases; both ends."""
    found = []
    for seed in range(4):
        sets = confidence_sets(TINY, random_counts(TINY, seed, 12), delta=0.5)
        policy = deterministic(seed)
        exact = enumerated(sets, policy)
        interval = policy_interval(sets, policy)
        found.append(max(abs(interval.low - exact[0]), abs(interval.high - exact[1])))
    return max(found)


def test_intervals_equal_brute_force_over_rectangular_sets():
    assert differences() < 1e-9


def test_planted_bugs_differ_from_brute_force(monkeypatch):
    def swapped(box, g):  # the best emission for the worst transition
        emission = box.centre.ndim == 2 and box.centre.shape[0] == 2 and g.ndim >= 2
        return -largest_mean(box, -g) if emission and g.shape[-2] != 1 else largest_mean(box, g)

    def of_the_belief(box, g):  # one row for all states, as if nature saw only the history
        if g.ndim < 2 or g.shape[-2] == 1:
            return largest_mean(box, g)
        mean = largest_mean(box, g).mean(-1, keepdims=True)
        return np.broadcast_to(mean, g.shape[:-1])

    def wrong_child(graph, horizon):  # follows the first action
        graph.successor = np.repeat(graph.successor[:, :1], 2, axis=1)
        return layers(graph, horizon)

    layers = policies.layers
    for name, bug in (
        ("largest_mean", swapped),
        ("largest_mean", of_the_belief),
        ("layers", wrong_child),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(policies, name, bug)
            assert differences() > 1e-4, bug.__name__
    assert differences() < 1e-9


WIDTHS = {  # of the interval of the optimal policy after 10, 100, 1000 episodes
    "jeffreys": (0.40, 0.115, 0.038),
    "declared": (0.335, 0.100, 0.0335),
}


def test_widths_on_tiger():
    """Means over 20 logs of a uniform behaviour, delta 0.1."""
    world = models.load("tiger")
    plan = history_tree()(world.pomdp)
    keys = jax.random.split(jax.random.key(0), 20 * 1000)
    data = rollout(keys, world, uniform_policy(world))
    for mixture, most in WIDTHS.items():
        for n, limit in zip((10, 100, 1000), most, strict=True):
            widths = []
            for k in range(20):
                counts = world.homdp.counts(data[1000 * k : 1000 * k + n])
                sets = confidence_sets(world.homdp, counts, DELTA, mixture)
                widths.append(np.subtract(*policy_interval(sets, plan.policy)[::-1]))
            assert np.mean(widths) <= limit


@pytest.mark.parametrize("name", DECLARATIONS)
def test_the_tree_has_the_same_bounds(name):
    """The second implementation, which also returns the models that attain the bound."""
    homdp = DECLARATIONS[name]
    for seed in range(2):
        sets = confidence_sets(homdp, random_counts(homdp, seed, 12), delta=0.5)
        policy = random_policy(homdp.spaces, seed)
        rule = tree.unroll(policy, sets)
        low, high = (sets.centre.from_user(end) for end in policy_interval(sets, policy))
        assert tree.worst_models(sets, rule).lower == pytest.approx(low, abs=1e-9)
        assert -tree.best_value(sets, rule).lower == pytest.approx(high, abs=1e-9)
        graph = tree.as_graph(rule, sets.centre.sizes[1])
        assert evaluate(graph, sets.centre) == pytest.approx(evaluate(policy, sets.centre))


@pytest.mark.parametrize("name", DECLARATIONS)
def test_differences_of_policies_are_bounded(name):
    """In every model of the sets; and at least as tightly as by the two intervals."""
    homdp = DECLARATIONS[name]
    sets = confidence_sets(homdp, random_counts(homdp, 1, 12), delta=0.5)
    one, base = (random_policy(homdp.spaces, seed) for seed in (1, 2))
    rules = tree.unroll(one, sets), tree.unroll(base, sets)
    bound = tree.difference(sets, *rules)
    assert tree.difference(sets, rules[0], rules[0]) == pytest.approx(0, abs=1e-9)
    apart = tree.worst_models(sets, rules[0]).lower + tree.best_value(sets, rules[1]).lower
    assert bound >= apart - 1e-9
    gains = [evaluate(one, m.unscaled) - evaluate(base, m.unscaled) for m in inside(sets, 3, 10)]
    assert bound <= min(gains) + 1e-9

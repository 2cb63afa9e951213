"""Intervals for policies: no model in the sets has a value outside, and planted bugs are caught."""

import jax
import numpy as np
import pytest

from homdp_ppl import (
    Counts,
    GraphPolicy,
    PolicyError,
    SpacesError,
    evaluate,
    models,
    rollout,
    uniform_policy,
)
from homdp_ppl.confidence import confidence_sets, interval, policies
from homdp_ppl.confidence.policies import policy_interval
from homdp_ppl.confidence.ranges import largest_mean
from homdp_ppl.planners import history_tree, particle_tree
from tests.confidence.boxes import DECLARATIONS, inside, random_counts
from tests.raising import raises
from tests.worlds import Parity, random_policy

MODELS = 15  # models in the sets of each case


def excess(name, seed, policy=None):
    """How far a value is outside the interval, over models in the sets; at most 0 if sound."""
    model = DECLARATIONS[name]
    sets = confidence_sets(model, random_counts(model, seed, 12), delta=0.5)
    chosen = random_policy(model.spaces, seed) if policy is None else policy(sets.centre)
    low, high = policy_interval(sets, chosen)
    values = [evaluate(chosen, pomdp) for pomdp in inside(sets, seed, MODELS)]
    return max(max(values) - high, low - min(values))


@pytest.mark.parametrize("name", DECLARATIONS)
def test_intervals_contain_the_values_of_all_models_in_the_sets(name):
    for seed in range(3):
        assert excess(name, seed) <= 1e-9
        assert excess(name, seed, lambda pomdp: history_tree()(pomdp).policy) <= 1e-9


def test_intervals_are_attained_if_rows_are_used_once():
    """In a world of one step, the ends are the values of models in the sets."""
    model = DECLARATIONS["guess"]
    sets = confidence_sets(model, random_counts(model, 0), delta=0.5)
    policy = random_policy(model.spaces, 3)
    low, high = policy_interval(sets, policy)
    values = [evaluate(policy, pomdp) for pomdp in inside(sets, 0, 400)]
    assert max(values) == pytest.approx(high, abs=1e-9)
    assert min(values) == pytest.approx(low, abs=1e-9)


def caught(monkeypatch, name, value, names=("lock", "answers", "guess", "steps", "start")):
    """Whether some case is outside its interval with a planted bug."""
    with monkeypatch.context() as patch:
        patch.setattr(policies, name, value)
        return any(excess(world, seed) > 1e-6 for world in names for seed in range(3))


def test_planted_bugs_are_caught(monkeypatch):
    def wrong_way(box, g):  # the smallest instead of the largest mean
        return -largest_mean(box, -g)

    def emissions_swapped(box, g):
        return (wrong_way if box.centre.shape[-2:] == g.shape[-2:] else largest_mean)(box, g)

    def only_the_centre(box, g):
        return (box.centre * g).sum(-1)

    def halved(box, g):
        return (largest_mean(box, g) + only_the_centre(box, g)) / 2

    def averaged(box, g):  # one choice for all states, as if nature saw only the history
        if g.ndim < 2 or g.shape[-2] == 1:
            return largest_mean(box, g)
        mean = largest_mean(box, g).mean(-1, keepdims=True)
        return np.broadcast_to(mean, g.shape[:-1])

    assert not caught(monkeypatch, "largest_mean", largest_mean)
    for bug in (wrong_way, emissions_swapped, only_the_centre, halved, averaged):
        assert caught(monkeypatch, "largest_mean", bug), bug.__name__


def test_the_child_of_the_wrong_action_is_caught():
    """The value of a policy whose nodes follow action 0 is not in the interval of the original."""
    model = DECLARATIONS["answers"]
    found = []
    for seed in range(5):
        sets = confidence_sets(model, random_counts(model, seed, 200), delta=0.5)
        policy = random_policy(model.spaces, seed)
        wrong = GraphPolicy(
            policy.start,
            policy.probabilities,
            np.repeat(policy.successor[:, :1], policy.successor.shape[1], axis=1),
        )
        low, high = policy_interval(sets, wrong)
        values = [evaluate(policy, pomdp) for pomdp in inside(sets, seed, MODELS)]
        found.append(min(values) < low - 1e-6 or max(values) > high + 1e-6)
    assert any(found)


def test_without_uncertainty_it_is_the_value():
    """Counts so large that the intervals vanish, and a policy that is not a graph."""
    world = models.load("tiger")
    counts = Counts(np.zeros((2, 3, 2)), np.array([[85, 15], [15, 85]]) * 10**12)
    policy = Parity(3)
    low, high = interval(world.homdp, counts, policy)
    assert low == pytest.approx(evaluate(policy, world.pomdp), abs=1e-4)
    assert high == pytest.approx(evaluate(policy, world.pomdp), abs=1e-4)
    assert low <= high


def test_figures_of_the_prototype():
    """An independent program gave [3.648, 3.750] and [3.686, 3.722] for the optimal policy after
    100 and 1,000 episodes of a uniform policy; the data were others.
    """
    world = models.load("tiger")
    plan = history_tree()(world.pomdp)
    data = rollout(jax.random.split(jax.random.key(0), 1000), world, uniform_policy(world))
    for n, width in ((100, 0.102), (1000, 0.036)):
        low, high = interval(world.homdp, data[:n], plan.policy)
        assert low <= plan.value <= high
        assert high - low == pytest.approx(width, rel=0.2)


def test_units():
    """Bounds are in the user's units."""
    world = models.load("tiger")
    policy = uniform_policy(world)
    sets = confidence_sets(world.homdp, Counts.zero(world.homdp))
    low, high = policy_interval(sets, policy)
    scaled = sets._replace(centre=sets.centre._replace(scale=np.array(10.0), shift=np.array(-1.0)))
    np.testing.assert_allclose(policy_interval(scaled, policy), [10 * low - 4, 10 * high - 4])


def test_what_is_refused():
    with raises(SpacesError, "interval"):
        interval(models.load("gaussian_tiger").homdp, [], uniform_policy(models.load("tiger")))
    tiger = models.load("tiger", horizon=2)
    online = particle_tree(simulations=10)(tiger).policy
    with raises(PolicyError, "policy"):
        interval(tiger.homdp, Counts.zero(tiger), online)

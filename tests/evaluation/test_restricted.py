"""The best blind and memoryless policies, compared with enumeration."""

from itertools import product

import numpy as np
import pytest

from homdp_ppl import POMDP, PlanningError, evaluate, models
from homdp_ppl.evaluation import restricted
from homdp_ppl.evaluation.relaxations import mdp_values, root_value
from homdp_ppl.evaluation.restricted import best_blind, best_memoryless
from homdp_ppl.planners import history_tree
from tests import hand_encoded
from tests.encodings import encoded, ending_pomdp
from tests.planners.exact import DEPENDENT, dependent_pomdp, full, optimum, random_pomdp
from tests.raising import raises

SIZES = [(3, 2, 2, 3), (2, 3, 2, 2), (4, 2, 3, 2), (3, 1, 3, 3), (2, 2, 2, 1)]  # X, Y, A, H


def enumerated(pomdp: POMDP, blind: bool) -> float:
    """The best value of all deterministic policies, by a forward recursion of P(x_h)."""
    T, O, r = full(pomdp)  # noqa: E741
    H, X, Y, A = r.shape
    best = -np.inf
    for choice in product(range(A), repeat=H if blind else H * Y):
        rules = np.array(choice).reshape(H, -1)
        weights, total = np.zeros((A + 1, X)), 0.0  # of (previous action, state)
        weights[A] = pomdp.initial
        for h in range(H):
            after = np.zeros((A + 1, X))
            for b, x, y in np.ndindex(A + 1, X, Y):
                a, chance = rules[h, 0 if blind else y], weights[b, x] * O[h, b, x, y]
                total += float(chance * r[h, x, y, a])
                after[a] += chance * T[h, x, a]
            weights = after
        best = max(best, total)
    return best


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("zeros", [0.0, 0.6])
def test_equals_enumeration(size, zeros):
    for seed in range(4):
        pomdp = random_pomdp(seed, *size, zeros=zeros)
        assert best_blind(pomdp).value == pytest.approx(enumerated(pomdp, blind=True), abs=1e-9)
        assert best_memoryless(pomdp).value == pytest.approx(
            enumerated(pomdp, blind=False), abs=1e-9
        )


@pytest.mark.parametrize("kinds", DEPENDENT)
def test_dependent_tables(kinds):
    """Equal to enumeration and to the encoded model, also if episodes can end."""
    for seed, make in product(range(3), (dependent_pomdp, ending_pomdp)):
        pomdp = make(seed, H=2 if make is ending_pomdp else 3, kinds=kinds)
        blind, memoryless = best_blind(pomdp), best_memoryless(pomdp)
        assert blind.value == pytest.approx(enumerated(pomdp, blind=True), abs=1e-9)
        assert memoryless.value == pytest.approx(enumerated(pomdp, blind=False), abs=1e-9)
        stationary = encoded(pomdp)
        assert best_blind(stationary).value == pytest.approx(blind.value, abs=1e-9)
        assert best_memoryless(stationary).value == pytest.approx(memoryless.value, abs=1e-9)
        assert memoryless.value <= optimum(pomdp) + 1e-9


PLANTED = {
    "the first emission is ignored": lambda m: m._replace(
        emission=np.concatenate([m.emission[:, :1], m.emission[:, :-1]], 1)
    ),
    "the emission of another action": lambda m: m._replace(emission=np.roll(m.emission, 1, axis=1)),
    "transitions one step late": lambda m: m._replace(transition=np.roll(m.transition, 1, axis=0)),
    "emissions one step late": lambda m: m._replace(emission=np.roll(m.emission, 1, axis=0)),
    "the mean reward of an observation": lambda m: m._replace(
        reward=m.reward.mean(2, keepdims=True)
    ),
}


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_planted_bugs_are_caught(planted):
    """A search in the wrong tables gives other values than the enumeration."""
    pomdps = [dependent_pomdp(seed, kinds="toy") for seed in range(3)]
    expected = [enumerated(pomdp, blind=False) for pomdp in pomdps]
    found = [best_memoryless(planted(pomdp)).value for pomdp in pomdps]
    assert not np.allclose(found, expected, atol=1e-6)


def test_actions_after_the_end_are_not_searched():
    """The action after "ended" is irrelevant, so that the observation adds no unfinished policy."""
    pomdp = ending_pomdp(1, X=3, A=3, kinds="")
    silent = pomdp._replace(terminal=np.zeros(4, dtype=bool))
    widths = []
    for model in (pomdp, silent):
        tables = restricted._memoryless(model)
        widths.append(next(2**k for k in range(20) if not restricted._Search(tables).run(2**k)))
    assert widths[0] < widths[1]
    assert best_memoryless(pomdp).value == pytest.approx(best_memoryless(silent).value, abs=1e-12)


def test_narrow_searches_are_widened(monkeypatch):
    """Starting with one unfinished policy, until none is dropped.

    Planted bug: a bound that ignores future rewards is caught.
    """
    monkeypatch.setattr(restricted, "FIRST", 1)
    monkeypatch.setattr(restricted, "WIDER", 2)
    pomdps = [random_pomdp(seed, 3, 2, 2, 3) for seed in range(10)]
    expected = [enumerated(pomdp, blind=False) for pomdp in pomdps]
    np.testing.assert_allclose(
        [best_memoryless(pomdp).value for pomdp in pomdps], expected, atol=1e-9
    )
    monkeypatch.setattr(restricted, "fast_informed_bound", lambda pomdp: 0 * pomdp.reward[:, :, 0])
    assert not np.allclose([best_memoryless(pomdp).value for pomdp in pomdps], expected, atol=1e-9)


def test_policies_belong_to_their_classes():
    pomdp = random_pomdp(3, 4, 3, 3, 3)
    blind, memoryless = best_blind(pomdp), best_memoryless(pomdp)
    for found in (blind, memoryless):
        assert found.value == evaluate(found.policy, pomdp)
    for h in range(1, 4):
        for actions in product(range(3), repeat=h - 1):
            for seen in product(range(3), repeat=h):
                chances = memoryless.policy.act(seen, actions)
                assert sorted(chances) == [0, 0, 1]
                assert np.array_equal(
                    chances, memoryless.policy.act([2] * (h - 1) + [seen[-1]], [0] * (h - 1))
                )
                assert np.array_equal(
                    blind.policy.act(seen, actions), blind.policy.act([0] * h, [0] * (h - 1))
                )


def test_values_increase_with_information():
    values = []
    for seed in range(5):
        pomdp = random_pomdp(seed, 4, 3, 3, 4)
        values.append(
            [best_blind(pomdp).value, best_memoryless(pomdp).value, history_tree()(pomdp).value]
        )
    gains = np.diff(values, axis=1)
    assert gains.min() > -1e-9
    assert (gains.max(0) > 0.01).all()


def test_memoryless_policies_are_optimal_in_mdps():
    pomdp = random_pomdp(1, 4, 4, 3, 5).with_tables(emission=np.eye(4))
    assert best_memoryless(pomdp).value == pytest.approx(
        root_value(pomdp, mdp_values(pomdp)[:1]), abs=1e-9
    )


def test_blind_policies_are_optimal_without_observations():
    pomdp = random_pomdp(2, 4, 1, 3, 5)
    assert best_blind(pomdp).value == best_memoryless(pomdp).value


def test_impossible_observations_are_not_searched():
    """Three observations that never occur do not increase the number of unfinished policies."""
    pomdp = random_pomdp(4, 3, 2, 2, 3)
    padded = pomdp.with_tables(emission=np.pad(pomdp.shows(0), ((0, 0), (0, 3))))
    widths = [next(n for n in range(1, 100) if suffices(model, n)) for model in (pomdp, padded)]
    assert 1 < widths[0] == widths[1]
    assert best_memoryless(padded).value == pytest.approx(best_memoryless(pomdp).value, abs=1e-12)


def suffices(pomdp: POMDP, max_nodes: int) -> bool:
    """Whether this number of unfinished policies is enough."""
    try:
        return best_memoryless(pomdp, max_nodes) is not None
    except PlanningError:
        return False


def test_searches_that_grow_too_large_raise():
    with raises(PlanningError, "max_nodes"):
        best_memoryless(random_pomdp(0, 6, 3, 3, 6), max_nodes=2)


def test_the_tiger_problem():
    """Listening gives a reward of 0.9 per step.

    Opening a door gives 0.85 in expectation after the last observation, and 1/2 without it.
    """
    tiger = models.load("tiger", horizon=3).pomdp
    assert best_memoryless(tiger).value == pytest.approx(2.7)
    sharper = models.load("tiger", horizon=3, accuracy=0.95).pomdp
    assert best_memoryless(sharper).value == pytest.approx(2.85)
    assert best_blind(sharper).value == pytest.approx(2.7)


def test_values_are_in_the_units_of_the_user():
    pomdp = random_pomdp(0, 3, 2, 2, 3)
    scaled = pomdp._replace(scale=np.array(10.0), shift=np.array(-4.0))
    for best in (best_blind, best_memoryless):
        assert best(scaled).value == pytest.approx(10 * best(pomdp).value - 12, abs=1e-12)


def test_observations_that_answer_actions():
    """The tiger that growls after listening, against the same with the last action in the state."""
    native, encoded_by_hand = models.load("tiger_listen", horizon=3), hand_encoded.tiger_listen(3)
    for best in (best_blind, best_memoryless):
        found, expected = best(native.pomdp), best(encoded_by_hand.pomdp)
        assert found.value == pytest.approx(expected.value, abs=1e-12)

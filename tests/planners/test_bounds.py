"""Bounds without search, against the belief tree written out."""

import numpy as np
import pytest

from homdp_ppl import POMDP
from homdp_ppl.planners.bounds import blind_policies, fast_informed_bound, mdp_values, qmdp, root_bounds, root_value


def random_model(seed: int, zeros: bool, X: int = 3, Y: int = 2, A: int = 2, H: int = 4) -> POMDP:
    """A model with another reward table at each step, of both signs; with ``zeros``, about half of all chances are zero."""
    generator = np.random.default_rng(seed)

    def rows(*shape: int) -> np.ndarray:
        chances = generator.dirichlet(np.ones(shape[-1]), shape[:-1])
        if zeros:
            chances *= generator.random(shape) < 0.5
            chances[..., 0] += chances.sum(-1) == 0
        return chances / chances.sum(-1, keepdims=True)

    return POMDP(rows(X), rows(X, A, X), rows(X, Y), generator.uniform(-1, 1, (H, X, A)))


def tree_values(pomdp: POMDP, joint: np.ndarray, h: int = 0) -> np.ndarray:
    """Optimal values of joint weights (n, X) at step h, by the tree of everything that can be done and seen after them."""
    gains = joint @ pomdp.reward[h]
    if h + 1 < pomdp.horizon:
        after = np.einsum("nx,xaz,zy->nayz", joint, pomdp.transition, pomdp.emission)
        gains += tree_values(pomdp, after.reshape(-1, joint.shape[1]), h + 1).reshape(after.shape[:3]).sum(-1)
    return gains.max(1)


def optimum(pomdp: POMDP) -> float:
    """The optimal value of a small model, exactly."""
    return float(tree_values(pomdp, (pomdp.initial[:, None] * pomdp.emission).T).sum())


def blind_values(pomdp: POMDP, action: int, state: int, h: int = 0) -> float:
    """The value of one action for ever, path by path."""
    value = float(pomdp.reward[h, state, action])
    if h + 1 < pomdp.horizon:
        chances = pomdp.transition[state, action]
        value += sum(chances[k] * blind_values(pomdp, action, int(k), h + 1) for k in np.flatnonzero(chances))
    return value


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("seed", range(50))
def test_bounds_are_ordered(seed: int, zeros: bool) -> None:
    pomdp = random_model(seed, zeros, X=2 + seed % 3, Y=1 + seed % 4, A=1 + seed % 3, H=1 + seed % 5)
    bounds = root_bounds(pomdp)
    ordered = [bounds.blind, optimum(pomdp), bounds.fast_informed, bounds.qmdp, bounds.mdp]
    assert np.all(np.diff(ordered) >= -1e-12)


@pytest.mark.parametrize("sizes", [{"X": 1}, {"Y": 1}, {"A": 1}])
def test_models_are_left_as_they_were(sizes: dict[str, int]) -> None:
    pomdp = random_model(0, zeros=False, **sizes)
    root_bounds(pomdp)
    for part, original in zip(pomdp, random_model(0, zeros=False, **sizes), strict=True):
        np.testing.assert_array_equal(part, original)


def test_values_by_hand() -> None:
    pomdp = random_model(0, zeros=True)
    Q = qmdp(pomdp)
    assert Q.shape == fast_informed_bound(pomdp).shape == pomdp.reward.shape
    np.testing.assert_array_equal(Q[-1], pomdp.reward[-1])
    np.testing.assert_allclose(Q[1, 2, 1], pomdp.reward[1, 2, 1] + pomdp.transition[2, 1] @ Q[2].max(1))
    np.testing.assert_array_equal(mdp_values(pomdp), Q.max(2))
    blind = blind_policies(pomdp)
    expected = [[blind_values(pomdp, a, x) for x in range(3)] for a in range(2)]
    np.testing.assert_allclose(blind[0], expected, atol=1e-14)


def test_fast_informed_bound_is_exact_one_step_from_a_known_state() -> None:
    pomdp = random_model(1, zeros=False, H=2)
    values = tree_values(pomdp, np.eye(3))
    np.testing.assert_allclose(fast_informed_bound(pomdp)[0].max(1), values, atol=1e-14)


def test_without_hidden_states_all_upper_bounds_are_the_optimum() -> None:
    pomdp = random_model(2, zeros=False, Y=3)._replace(emission=np.eye(3))
    bounds = root_bounds(pomdp)
    np.testing.assert_allclose([bounds.fast_informed, bounds.qmdp, bounds.mdp], optimum(pomdp), atol=1e-12)


def test_large_sparse_tables_take_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    pomdp = random_model(3, zeros=True, X=12, Y=3, A=3)
    dense = fast_informed_bound(pomdp)
    monkeypatch.setattr("homdp_ppl.relaxations.LARGE", 0)
    monkeypatch.setattr("homdp_ppl.relaxations.SPARSE", 1.0)
    monkeypatch.setattr("homdp_ppl.relaxations.CHUNK", 40)
    np.testing.assert_allclose(fast_informed_bound(pomdp), dense, atol=1e-14)


def test_root_value_sees_the_first_observation() -> None:
    pomdp = random_model(4, zeros=False)
    vectors = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    joint = pomdp.initial[:, None] * pomdp.emission
    assert root_value(pomdp, vectors) == pytest.approx(joint.max(0).sum())
    assert root_value(pomdp, vectors[:1]) == pytest.approx(pomdp.initial[0])

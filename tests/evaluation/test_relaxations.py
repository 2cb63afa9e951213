"""Upper bounds from agents that see more, compared with values by hand and the belief tree."""

from typing import Any

import numpy as np
import pytest

from homdp_ppl.evaluation.relaxations import fast_informed_bound, mdp_values, qmdp, root_value
from tests.encodings import encoded, ending_pomdp
from tests.planners.exact import (
    DEPENDENT,
    dependent_pomdp,
    full,
    optimum,
    signed_pomdp,
    tree_values,
)


def test_values_by_hand() -> None:
    pomdp = signed_pomdp(0, zeros=True)
    Q = qmdp(pomdp)
    reward = pomdp.reward[:, :, 0]
    assert Q.shape == fast_informed_bound(pomdp).shape == reward.shape
    np.testing.assert_array_equal(Q[-1], reward[-1])
    np.testing.assert_allclose(Q[1, 2, 1], reward[1, 2, 1] + pomdp.moves(0)[2, 1] @ Q[2].max(1))
    np.testing.assert_array_equal(mdp_values(pomdp), Q.max(2))


def test_fast_informed_bound_is_exact_one_step_from_a_known_state() -> None:
    pomdp = signed_pomdp(1, zeros=False, H=2)
    values = tree_values(pomdp, np.eye(3))
    np.testing.assert_allclose(fast_informed_bound(pomdp)[0].max(1), values, atol=1e-14)


def test_large_sparse_tables_give_the_same_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    pomdp = signed_pomdp(3, zeros=True, X=12, Y=3, A=3)
    dense = fast_informed_bound(pomdp)
    monkeypatch.setattr("homdp_ppl.core.sparsity.LARGE", 0)
    monkeypatch.setattr("homdp_ppl.core.sparsity.SPARSE", 1.0)
    monkeypatch.setattr("homdp_ppl.evaluation.relaxations.CHUNK", 40)
    np.testing.assert_allclose(fast_informed_bound(pomdp), dense, atol=1e-14)


def test_root_value_uses_the_first_observation() -> None:
    pomdp = signed_pomdp(4, zeros=False)
    vectors = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])
    joint = pomdp.initial[:, None] * pomdp.shows(0)
    assert root_value(pomdp, vectors) == pytest.approx(joint.max(0).sum())
    assert root_value(pomdp, vectors[:1]) == pytest.approx(pomdp.initial[0])


@pytest.mark.parametrize("kinds", DEPENDENT)
def test_dependent_tables(kinds: str) -> None:
    """Entry by entry, and in the order optimum <= fast informed bound <= QMDP <= MDP."""
    for seed in range(3):
        pomdp = dependent_pomdp(seed, X=3, Y=2, A=2, H=3, kinds=kinds)
        T, O, r = full(pomdp)  # noqa: E741
        Q, F = (
            np.broadcast_to(part if part.ndim == 4 else part[:, :, None], r.shape)
            for part in (qmdp(pomdp), fast_informed_bound(pomdp))
        )
        for x, y, a in np.ndindex(3, 2, 2):
            seeing = sum(
                T[1, x, a, z] * O[2, a, z, w] * Q[2, z, w].max() for z in range(3) for w in range(2)
            )
            assert Q[1, x, y, a] == pytest.approx(r[1, x, y, a] + seeing)
            late = sum(((T[1, x, a] * O[2, a, :, w]) @ F[2, :, w]).max() for w in range(2))
            assert F[1, x, y, a] == pytest.approx(r[1, x, y, a] + late)
        roots: list[Any] = [
            optimum(pomdp),
            root_value(pomdp, fast_informed_bound(pomdp)[0].T),
            root_value(pomdp, qmdp(pomdp)[0].T),
            root_value(pomdp, mdp_values(pomdp)[:1]),
        ]
        assert np.all(np.diff(roots) >= -1e-12)


@pytest.mark.parametrize("kinds", DEPENDENT)
def test_bounds_equal_those_of_the_encoded_model(kinds: str) -> None:
    """Also if episodes can end."""
    for seed in range(2):
        pomdp = ending_pomdp(seed, kinds=kinds)
        roots = [
            [
                root_value(model, fast_informed_bound(model)[0].T),
                root_value(model, qmdp(model)[0].T),
                root_value(model, mdp_values(model)[:1]),
            ]
            for model in (pomdp, encoded(pomdp))
        ]
        np.testing.assert_allclose(roots[0], roots[1], atol=1e-12)

"""Label symmetries: permutations of states that no data without hindsight can detect."""

from itertools import permutations

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import InferenceError, Kernels, SpacesError, homdp, models, tabular
from homdp_ppl.posteriors import label_symmetries
from homdp_ppl.posteriors.dirichlet import closed_form
from tests.posteriors import programs
from tests.raising import raises


def flat(initial, states=3, weights=None, reward=None):
    T = dist.Dirichlet(np.ones((states, 2, states)))
    O = dist.Dirichlet(np.ones((states, 2)) if weights is None else weights)  # noqa: E741
    reward = np.zeros((states, 2)) if reward is None else reward
    return tabular(T=T, O=O, initial=initial, reward=reward, horizon=2)


def chosen(model):
    return {symmetry.permutation for symmetry in label_symmetries(model)}


def test_flat_tables_have_all_permutations():
    assert chosen(flat(np.full(3, 1 / 3))) == set(permutations(range(3))) - {(0, 1, 2)}


def test_known_rows_and_priors_break_symmetries():
    assert chosen(flat([0.5, 0.25, 0.25])) == {(0, 2, 1)}
    assert chosen(flat([0.5, 0.3, 0.2])) == set()
    weights = np.array([[1.0, 1.0], [1.0, 1.0], [1.0, 2.0]])  # one prior differs: a planted bug
    assert chosen(flat(np.full(3, 1 / 3), weights=weights)) == {(1, 0, 2)}


def test_a_cycle_of_known_moves():
    """The three rotations of a cycle are symmetries; exchanges of two states are not."""
    moves = np.roll(np.eye(3), 1, axis=1)[:, None]
    ring = tabular(
        T=moves,
        O=dist.Dirichlet(np.ones((3, 2))),
        initial=np.full(3, 1 / 3),
        reward=np.eye(3)[:, :1],
        horizon=2,
    )
    assert chosen(ring) == {(1, 2, 0), (2, 0, 1)}


@pytest.mark.parametrize(("weights", "number"), [((2, 2), 1), ((8, 2), 0)])
def test_one_parameter_in_two_rows(weights, number):
    """Exchanging the states exchanges p and 1 - p, which is a symmetry if the prior is."""

    @homdp(states=2, observations=2, actions=1, horizon=2, reward=[[0.0], [1.0]])
    def mirror():
        p = numpyro.sample("p", dist.Beta(*weights))
        stay = np.eye(2)[:, None]
        return Kernels([0.5, 0.5], stay, jnp.array([[p, 1 - p], [1 - p, p]]))

    assert len(label_symmetries(mirror)) == number


@pytest.mark.parametrize("name", ["tiger_table", "checkup_table", "screening_table", "tiger"])
def test_moments_are_invariant(name):
    """Means and variances of the prior do not change under a symmetry, and rho neither."""
    model = models.load(name).homdp
    form = closed_form(model)
    prior = form.conjugate.concentration
    for symmetry in label_symmetries(model):
        order = np.array(symmetry.permutation)
        for tables in (form.mean(prior), form.variance(prior)):
            moved = np.take(np.take(tables.transition, order, -3), order, -1)
            assert np.allclose(moved, tables.transition)
            assert np.allclose(np.take(tables.emission, order, -2), tables.emission)
            assert np.allclose(tables.initial[order], tables.initial)


def test_whether_labels_matter():
    same = flat(np.full(3, 1 / 3))
    assert not any(symmetry.matters for symmetry in label_symmetries(same))
    rewarded = flat(np.full(3, 1 / 3), reward=np.array([[0, 0], [0, 0], [1, 0]]))
    found = {s.permutation: s.matters for s in label_symmetries(rewarded)}
    assert found[1, 0, 2] is False
    assert found[0, 2, 1] is True


def test_many_states_are_exchanged_in_pairs():
    found = label_symmetries(flat(np.full(9, 1 / 9), states=9))
    assert len(found) == 36
    assert all(len(symmetry.moves) == 2 for symmetry in found)


def test_what_has_no_answer():
    with raises(InferenceError, "homdp"):
        label_symmetries(programs.logistic())
    with pytest.raises(SpacesError):
        label_symmetries(models.load("gaussian_tiger", horizon=2).homdp)

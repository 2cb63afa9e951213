"""Parameter rows and their confidence sets: pooling, known rows, union bounds, mixtures."""

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import Counts, ParameterError, models, tabular, x64
from homdp_ppl.confidence import confidence_sequence, confidence_sets, parameter_rows, value_ranges
from homdp_ppl.confidence.parameter_rows import RowMap, row_map
from homdp_ppl.explorers.anytime import optimistic_proposal
from tests.confidence.boxes import DECLARATIONS, random_counts
from tests.raising import raises
from tests.richer import RICHER

EVERY = pytest.mark.parametrize("name", DECLARATIONS)


def test_one_parameter_in_two_table_rows_is_one_row():
    tiger = models.load("tiger").homdp
    rows = row_map(tiger)
    assert (rows.row.tolist(), rows.outcomes.tolist(), rows.intervals) == ([0, 0], [2, 2], 1)
    counts = Counts(np.zeros((2, 3, 2)), np.array([[7, 2], [1, 5]]))
    assert rows.pooled(counts).tolist() == [12, 3]  # heard on the right side, or not
    sets = confidence_sets(tiger, counts, delta=0.2)
    low, high = confidence_sequence(12, 15, 0.2)
    shows = sets.shows(3, 1)
    assert shows.centre[0].tolist() == shows.centre[1, ::-1].tolist() == [12 / 15, 3 / 15]
    np.testing.assert_allclose(shows.centre[0] + shows.up[0], [high, 1 - low], atol=1e-12)
    np.testing.assert_allclose(shows.centre[0] - shows.down[0], [low, 1 - high], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "known", "intervals"),
    [
        ("guess", True, 2 * 3),  # two rows with three outcomes
        ("guess", False, 2 * 3),  # transitions after the only step do not matter
        ("lock", True, 4 + 1),
        ("lock", False, 5 * 3 * 5 + 5 * 4),
        ("answers", True, 1 + 2 + 4),
        ("answers", False, 4 + 3 * 2),
        ("tables", True, 2 * 4 + 2 + 2 * 2 * 2),  # not T_3, no action before the first step
        ("steps", True, 2 * 4 + 3 * 2),
        ("start", True, 1 + 2 + 4),
        ("start", False, 1 + 2 + 4),
        ("everything", True, 1 + 2 * 4 + 2 * 2),  # only answers to the first action
        ("shop", True, 1),  # and four mean rewards
        ("wall", True, 3 + 1 + 1),  # two states show the same sum
        ("ends", True, 4 * 3 + 2),
        ("ends", False, 4 * 3 + 2),  # only terminal states show "ended"
    ],
)
def test_number_of_intervals(name, known, intervals):
    assert row_map(DECLARATIONS[name], known).intervals == intervals


@EVERY
@pytest.mark.parametrize("known", [True, False])
def test_centres_are_probabilities_inside_their_boxes(name, known):
    """Known rows and entries are exact; unknown rows have the relative frequencies."""
    model = DECLARATIONS[name]
    sets = confidence_sets(model, random_counts(model, 1), known=known)
    reference = model.model_of(model.structure.reference)
    for table in ("initial", "transition", "emission"):
        centre, up, down = (np.asarray(getattr(part, table)) for part in sets[:3])
        np.testing.assert_allclose(centre.sum(-1), 1.0, atol=1e-12)
        assert (up >= 0).all()
        assert (down >= 0).all()
        assert (centre + up <= 1 + 1e-12).all()
        assert (centre - down >= -1e-12).all()
        fixed = (up.sum(-1) == 0) & (down.sum(-1) == 0)
        np.testing.assert_allclose(centre[fixed], getattr(reference, table)[fixed], atol=1e-12)


def test_intervals_of_mean_rewards():
    """They count in the union bound, and are confidence sequences of sums."""
    model = DECLARATIONS["shop"]
    counts = random_counts(model, 5)
    sets, seen = confidence_sets(model, counts, delta=0.2), counts.rewards
    low, high = confidence_sequence(seen.total, seen.number, 0.2 / (1 + 4))
    np.testing.assert_allclose(sets.reward.low, np.broadcast_to(low, (3, 2, 1, 2)), atol=1e-12)
    np.testing.assert_allclose(sets.reward.high, np.broadcast_to(high, (3, 2, 1, 2)), atol=1e-12)
    known = DECLARATIONS["lock"]
    sets = confidence_sets(known, random_counts(known, 5))
    np.testing.assert_array_equal(sets.reward.low, sets.reward.high)


def test_sums_of_outcomes():
    """Table rows that show the same sums are one parameter row, with pooled counts."""
    model = DECLARATIONS["wall"]
    counts = random_counts(model, 0)
    rows = row_map(model)
    pooled = rows.pooled(counts)
    moves = counts.transition[:, 0]
    np.testing.assert_array_equal(pooled[rows.place.transition[1, 0]], moves[1])
    together = pooled[rows.place.transition[0, 0, :2]]
    np.testing.assert_array_equal(together, moves[0, :2] + moves[2, 1:])
    np.testing.assert_array_equal(together, pooled[rows.place.transition[2, 0, 1:]])
    assert rows.place.transition[0, 0, 2] == rows.place.transition[2, 0, 0] == -1


def test_terminal_rows_stay_known():
    model = DECLARATIONS["ends"]
    sets = confidence_sets(model, random_counts(model, 0), known=False)
    assert sets.moves(0).centre[2].tolist() == [[0, 0, 1], [0, 0, 1]]
    assert sets.shows(0, None).centre[:, -1].tolist() == [0, 0, 1]
    assert sets.moves(0).up[2].sum() == sets.shows(0, None).up[2].sum() == 0
    ranges = value_ranges(sets)
    np.testing.assert_array_equal(ranges.high[:, 2], ranges.low[:, 2])


def test_the_start_is_unknown_only_if_declared():
    for name, model in RICHER.items():
        width = confidence_sets(model, Counts.zero(model), known=False).start().up.sum()
        assert (width > 0) == (name in ("start", "everything"))


def test_declared_mixtures():
    """The marginals of declared Dirichlet rows; narrower where the prior is right."""
    model = tabular(
        T=[[[1.0]]],
        O=dist.Dirichlet(np.array([[8.0, 1.0, 1.0]])),
        initial=[1],
        reward=[[1]],
        horizon=1,
    )
    counts = Counts(np.full((1, 1, 1), 20), np.array([[16, 2, 2]]))
    box = confidence_sets(model, counts, delta=0.3, mixture="declared").shows(0, None)
    low, high = confidence_sequence(16, 20, 0.1, 8.0, 2.0)
    assert box.up[0, 0] == pytest.approx(high - 0.8, abs=1e-12)
    assert box.down[0, 0] == pytest.approx(0.8 - low, abs=1e-12)
    other = confidence_sets(model, counts, delta=0.3).shows(0, None)
    assert (box.up + box.down < other.up + other.down).all()
    with raises(ParameterError, "mixture"):
        confidence_sets(model, counts, mixture="flat")


@pytest.mark.parametrize("name", ["everything", "ends", "lock"])
def test_traced_and_computed_sets_agree(name):
    """Also the ranges and the proposal of the anytime rule."""
    model = DECLARATIONS[name]
    counts = random_counts(model, 2)

    def propose(counts):
        sets = confidence_sets(model, counts)
        return optimistic_proposal(sets, value_ranges(sets))

    with x64():
        traced = jax.jit(propose)(counts)
    for one, other in zip(jax.tree.leaves(traced), jax.tree.leaves(propose(counts)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


COINS = 30


def ever_outside(runs, delta, seed=0):
    """The share of runs in which one of the coins is outside its box after some episode."""
    coins = tabular(
        T=np.full((COINS, 1, COINS), 1 / COINS),
        O=dist.Dirichlet(np.ones((COINS, 2))),
        initial=np.full(COINS, 1 / COINS),
        reward=np.ones((COINS, 1)),
        horizon=1,
    )
    generator, missed = np.random.default_rng(seed), 0
    moves = np.zeros((COINS, 1, COINS))
    for _ in range(runs):
        draws = np.cumsum(generator.random((60, COINS)) < 0.3, axis=0)
        outside = False
        for n in (3, 6, 12, 25, 60):
            seen = np.stack([draws[n - 1], n - draws[n - 1]], axis=1)
            box = confidence_sets(coins, Counts(moves, seen), delta).shows(0, None)
            p = box.centre[:, 0]
            outside |= bool(((p + box.up[:, 0] < 0.3) | (p - box.down[:, 0] > 0.3)).any())
        missed += outside
    return missed / runs


def test_coverage_of_all_rows_together(monkeypatch):
    """At delta = 0.5 the share is about 0.15. With 60 runs, the first test fails by chance with
    probability below 1e-6. Without the union bound the share is about 0.95.
    """
    assert ever_outside(60, 0.5) <= 0.5
    monkeypatch.setattr(RowMap, "intervals", 1)
    assert ever_outside(60, 0.5) > 0.75


def test_rows_are_cached_by_declaration():
    tiger = models.load("tiger").homdp
    assert row_map(tiger) is row_map(tiger)
    assert row_map(tiger, known=False) is not row_map(tiger)
    assert parameter_rows.row_map(tiger.with_horizon(1), False).intervals == 2

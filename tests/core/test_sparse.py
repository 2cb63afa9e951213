"""Sparse transition tables: the same results as dense ones, and costs that follow the non-zeros."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy import sparse

from homdp_ppl import (
    POMDP,
    DataError,
    DeclarationError,
    Kernels,
    PlanningError,
    Sparse,
    evaluate,
    explorers,
    homdp,
    learn,
    models,
    posterior,
    rollout,
    tabular,
    uniform_policy,
    x64,
)
from homdp_ppl.core.moves import draw_next
from homdp_ppl.core.sparse import absorbing
from homdp_ppl.errors import TracedError
from homdp_ppl.evaluation import fast_informed_bound, mdp_values, occupancy, qmdp
from homdp_ppl.planners import auto, bounded_search, history_tree
from homdp_ppl.planners._bounds import blind_policies, root_bounds
from tests.planners.exact import dependent_pomdp, rational_optimum, rational_pomdp
from tests.problems import file, needs_problems
from tests.raising import raises

KINDS = ["", "t", "o", "toy"]


def as_sparse(model: POMDP) -> POMDP:
    return model._replace(transition=Sparse.of(model.transition))


def with_stored_zeros(model: POMDP) -> POMDP:
    """The same model with an entry for every next state, most of them stored zeros."""
    table = np.asarray(model.transition)
    columns = np.broadcast_to(np.arange(table.shape[-1]), table.shape)
    return model._replace(transition=Sparse.rows(columns, table))


def same_everywhere(dense: POMDP, stored: POMDP, compiled: bool = True) -> None:
    """All functions of sparse models agree with those of dense ones."""
    X, _, A = dense.sizes
    generator = np.random.default_rng(0)
    beliefs, values = generator.dirichlet(np.ones(X), 3), generator.normal(size=X)
    for h in range(dense.horizon - 1):
        np.testing.assert_allclose(stored.moves(h), dense.moves(h), atol=1e-15)
        for a in [*range(A), None]:
            ours, theirs = (model.predict(beliefs, a, h) for model in (stored, dense))
            np.testing.assert_allclose(ours, theirs, atol=1e-14)
            if compiled:
                with x64():
                    traced = jax.jit(lambda m, b, a=a, h=h: m.predict(b, a, h))(stored, beliefs)
                np.testing.assert_allclose(traced, theirs, atol=1e-14)
        np.testing.assert_allclose(stored.backup(values, h), dense.backup(values, h), atol=1e-14)
    for bound in (qmdp, mdp_values, fast_informed_bound, blind_policies):
        np.testing.assert_allclose(bound(stored), bound(dense), atol=1e-12)
    policy = uniform_policy(dense)
    np.testing.assert_allclose(occupancy(policy, stored), occupancy(policy, dense), atol=1e-14)
    assert evaluate(policy, stored) == pytest.approx(evaluate(policy, dense), abs=1e-12)
    np.testing.assert_allclose(root_bounds(stored), root_bounds(dense), atol=1e-12)


@pytest.mark.parametrize("kinds", KINDS)
def test_values_agree_on_random_models(kinds):
    for seed in range(3):
        model = dependent_pomdp(seed, X=5, Y=2, A=2, H=3, zeros=0.5, kinds=kinds)
        same_everywhere(model, as_sparse(model))
        same_everywhere(model, with_stored_zeros(model))


@pytest.mark.slow
@pytest.mark.parametrize("kinds", KINDS)
def test_values_and_plans_agree_on_many_random_models(kinds):
    """1,000 models over all kinds, of different sizes."""
    planner = bounded_search(gap=1e-6)
    for seed in range(250):
        X, Y, A = np.random.default_rng(seed).integers([2, 1, 1], [9, 4, 4])
        zeros = (0.0, 0.3, 0.6)[seed % 3]
        model = dependent_pomdp(seed, X=int(X), Y=int(Y), A=int(A), H=3, zeros=zeros, kinds=kinds)
        same_everywhere(model, as_sparse(model), compiled=False)
        plans = [planner(m) for m in (model, as_sparse(model), with_stored_zeros(model))]
        for plan in plans[1:]:
            assert plan.value == pytest.approx(plans[0].value, abs=1e-9)
            assert plan.upper == pytest.approx(plans[0].upper, abs=1e-9)


@pytest.mark.parametrize("name", ["tiger", "hallway", "rocksample", "screening"])
def test_plans_agree_on_the_zoo(name):
    model = models.load(name, horizon=3).pomdp
    for planner in (bounded_search(gap=1e-3), auto(), history_tree()):
        plans = [planner(m) for m in (model, as_sparse(model), with_stored_zeros(model))]
        for plan in plans[1:]:
            assert plan.value == pytest.approx(plans[0].value, abs=1e-9)
            assert plan.upper == pytest.approx(plans[0].upper, abs=1e-9)


@needs_problems
@pytest.mark.parametrize("name", ["hallway2", "saci-s100-a10-z31", "4x4.95", "shuttle.95"])
def test_files_read_as_sparse_have_the_same_tables(name, monkeypatch):
    from homdp_ppl.formats import grammar, reading

    path = file(f"corpus/{name}.POMDP")
    dense = reading.read_file(path)
    monkeypatch.setattr(grammar, "LARGE", 0)
    monkeypatch.setattr(reading, "is_sparse", lambda entries, size: True)
    stored = reading.read_file(path)
    assert isinstance(stored.transition, Sparse)
    np.testing.assert_allclose(stored.transition.dense()[0], dense.transition, atol=1e-15)
    np.testing.assert_allclose(stored.reward, dense.reward, atol=1e-12)


def brackets(number: int) -> int:
    """How many brackets of sparse models miss the exact rational optimum."""
    missed = 0
    for seed in range(number):
        kinds = KINDS[seed % len(KINDS)]
        model = rational_pomdp(seed, X=3, Y=2, A=2, H=3, denominator=4, kinds=kinds)
        exact = float(rational_optimum(model, 4))
        plan = bounded_search(gap=1e-6)(as_sparse(model))
        missed += not plan.value - 1e-12 <= exact <= plan.upper + 1e-12
    return missed


def test_brackets_contain_the_exact_optimum():
    assert brackets(20) == 0


@pytest.mark.slow
def test_many_brackets_contain_the_exact_optimum():
    assert brackets(2000) == 0


def test_duplicate_entries_are_added():
    columns = np.array([[[1, 0, 1]], [[0, 0, -1]]])
    chances = np.array([[[0.25, 0.5, 0.25]], [[0.25, 0.75, 9.0]]])
    table = Sparse.rows(columns, chances)
    assert table.dense()[0, :, 0].tolist() == [[0.5, 0.5], [1.0, 0.0]]
    with x64():
        traced = jax.jit(lambda p: Sparse.rows(columns, p).dense())(chances)
    np.testing.assert_array_equal(traced, table.dense())
    matrix = sparse.coo_array(([0.25, 0.75, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert Sparse.of([matrix]).dense()[0, :, 0].tolist() == [[0.0, 1.0], [1.0, 0.0]]
    overwritten = np.zeros((2, 1, 2))  # planted bug: the last duplicate replaces the others
    overwritten[np.arange(2)[:, None], 0, columns[:, 0]] = chances[:, 0]
    model = POMDP.of([1, 0], overwritten, np.eye(2), np.eye(2)[:, :1], horizon=2)
    with raises(PlanningError, "transition"):
        evaluate(uniform_policy(model), as_sparse(model))


def test_stored_zeros_are_not_possible():
    model = with_stored_zeros(dependent_pomdp(0, X=4, Y=2, A=2, H=3, zeros=0.6))
    chances = np.asarray(model.transition.values)
    assert (chances == 0).any()
    entries = np.count_nonzero(chances)
    compressed = bounded_search(gap=0.1)(model).model.transition
    assert np.count_nonzero(compressed.values) == entries
    # planted bug: a model that takes its support from the pattern instead of the probabilities
    world = _ring(4).at(p=np.tile([0.0, 1.0, 0.0], (4, 2, 1)))
    support = world.homdp.structure.support.transition
    assert support.all()
    assert not (np.asarray(world.pomdp.transition.values) > 0).all()
    episodes = rollout(jax.random.split(jax.random.key(0), 20), world, uniform_policy(world))
    assert ((episodes.states[:, 1:] - episodes.states[:, :-1]) % 4 == 1).all()


def test_unreachable_states_have_no_mass():
    generator = np.random.default_rng(0)
    columns = generator.integers(5, 40, (40, 2, 3))
    columns[::2, :, 2] = -1  # rows of different lengths, padded when they are drawn from
    chances = np.where(columns < 0, 0.0, generator.uniform(0.5, 1.0, columns.shape))
    chances /= chances.sum(-1, keepdims=True)
    table = Sparse.rows(columns, chances)
    start = np.eye(40)[5]
    model = POMDP.of(start, table, np.full((40, 2), 0.5), generator.random((40, 2)), horizon=6)
    visits = occupancy(uniform_policy(model), model)
    assert visits[1:, :5].sum() == 0
    np.testing.assert_allclose(visits.sum((1, 2)), 1.0)
    keys = np.linspace(0, 1, 50, endpoint=False)
    drawn = {int(draw_next(model, 0, x, a, u)) for x in range(40) for a in range(2) for u in keys}
    assert min(drawn) >= 5
    # planted bug: padding of short rows that counts as an outcome reaches states below 5
    padded = Sparse.rows(np.maximum(columns, 0), np.full(columns.shape, 1 / 3))
    assert occupancy(uniform_policy(model), model._replace(transition=padded))[1:, :5].sum() > 0


def _ring(X: int, stored: bool = True):
    """Stay, go ahead or go back on a ring with unknown probabilities."""
    import numpyro
    import numpyro.distributions as dist

    near = np.stack([np.arange(X), (np.arange(X) + 1) % X, (np.arange(X) - 1) % X], -1)
    columns = np.repeat(near[:, None], 2, axis=1)
    emission = np.full((X, 2), 0.2)
    emission[np.arange(X), np.arange(X) % 2] = 0.8

    @homdp(
        states=X,
        observations=2,
        actions=2,
        horizon=4,
        reward=np.random.default_rng(0).random((X, 2)),
    )
    def ring() -> Kernels:
        p = numpyro.sample("p", dist.Dirichlet(np.ones((X, 2, 3))).to_event(2))
        table = Sparse.rows(columns, p)
        return Kernels(np.eye(X)[0], table if stored else table.dense()[0], emission)

    return ring


def test_declarations_learn_the_same():
    stored, dense = _ring(5), _ring(5, stored=False)
    worlds = [model.draw(jax.random.key(1)) for model in (stored, dense)]
    assert worlds[0].pomdp.is_sparse
    assert stored.fingerprint != dense.fingerprint
    np.testing.assert_array_equal(worlds[0].pomdp.dense.transition, worlds[1].pomdp.transition)
    keys = jax.random.split(jax.random.key(0), 30)
    played = [rollout(keys, world, uniform_policy(world)) for world in worlds]
    np.testing.assert_array_equal(played[0].states, played[1].states)
    counts = [model.counts(played[0]) for model in (stored, dense)]
    assert counts[0].transition.shape == (5, 2, 3)
    assert counts[0].transition.sum() == counts[1].transition.sum()
    beliefs = [posterior(model, played[0]) for model in (stored, dense)]
    means = [belief.mean.dense.transition for belief in beliefs]
    np.testing.assert_allclose(means[0], means[1], atol=1e-12)
    for rule in (explorers.greedy(), explorers.posterior_sampling(), explorers.anytime()):
        runs = [learn(world, rule, bounded_search(gap=1e-2), episodes=2) for world in worlds]
        np.testing.assert_allclose(runs[0].values, runs[1].values, atol=1e-9)
        np.testing.assert_allclose(runs[0].optimistic, runs[1].optimistic, atol=1e-9)


def test_optimistic_backups_refuse_sparse_tables():
    world = _ring(5).draw(jax.random.key(1))
    with raises(PlanningError, "transition"):
        learn(world, explorers.quantile_backup(), history_tree(), episodes=1)


def test_rows_never_visited_keep_their_prior():
    model = _ring(50)
    world = model.draw(jax.random.key(0))
    episodes = rollout(jax.random.split(jax.random.key(0), 5), world, uniform_policy(world))
    mean = posterior(model, episodes).mean.transition
    visited = np.unique(episodes.states)
    assert visited.max() - visited.min() < 50
    rows = np.setdiff1d(np.arange(50), visited)
    np.testing.assert_allclose(mean.dense()[0, rows].max(-1), 1 / 3)


def test_terminal_states_absorb():
    table = Sparse.of(np.full((3, 2, 3), 1 / 3))
    dense = absorbing(table, np.array([False, True, False])).dense()[0]
    assert dense[1].tolist() == [[0, 1, 0], [0, 1, 0]]
    np.testing.assert_array_equal(dense[[0, 2]], table.dense()[0][[0, 2]])


def test_wrong_tables_are_refused():
    with raises(PlanningError, "columns"):
        Sparse.rows([[[3]]], [[[1.0]]])
    with raises(PlanningError, "probabilities"):
        Sparse.rows([[[0]]], [[0.5]])
    with raises(PlanningError, "table"):
        Sparse.of(np.ones((2, 2)))
    endless = np.array([[[np.inf, 0.0]], [[0.0, 1.0]]])
    with raises(PlanningError, "table"):
        Sparse.of(endless)
    with raises(PlanningError, "table"):
        Sparse.of([sparse.csr_array(endless[:, 0])])
    with raises(PlanningError, "probabilities"):
        Sparse.rows([[[0]], [[0]]], [[[np.nan]], [[1.0]]])
    assert len(Sparse.rows([[[0, -1]]], [[[1.0, np.nan]]]).values) == 1  # -1: ignored
    with raises(TracedError, "table"):
        jax.jit(lambda table: Sparse.of(table).values)(np.ones((2, 1, 2)) / 2)
    with raises(DeclarationError, "transition"):
        tabular(
            T=Sparse.rows([[[0]], [[1]]], [[[0.5]], [[1.0]]]),
            O=np.eye(2),
            initial=[1, 0],
            reward=np.eye(2)[:, :1],
            horizon=2,
        )
    model = _ring(5)
    world = model.draw(jax.random.key(0))
    episode = rollout(jax.random.key(0), world, uniform_policy(world))
    with raises(DataError, "data"):
        model.counts(replace(episode, states=np.array([0, 2, 4, 1, 3])))


def test_memory_follows_the_entries():
    X, A = 20_000, 3
    near = (np.arange(X)[:, None, None] + np.arange(2)) % X
    columns = np.broadcast_to(near, (X, A, 2))
    table = Sparse.rows(columns, np.full((X, A, 2), 0.5))
    assert len(table.values) == 2 * X * A
    start = np.zeros(X)
    start[0] = 1.0
    emission = np.ones((X, 1))
    model = POMDP.of(start, table, emission, np.ones((X, A)), horizon=3)
    assert evaluate(uniform_policy(model), model) == pytest.approx(3.0)
    assert bounded_search()(model).upper == pytest.approx(3.0)
    with raises(PlanningError, "transition"):  # 10 GB as a dense table
        history_tree()(model)

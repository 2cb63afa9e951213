"""Invalid data raise errors that name the place; results are never NaN."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    Counts,
    DataError,
    Episode,
    InferenceError,
    Kernels,
    Trajectory,
    posterior,
)
from homdp_ppl.posteriors import Sampling
from tests.posteriors import programs
from tests.posteriors.programs import seen
from tests.raising import raises
from tests.worlds import world

KEY = jax.random.key(0)


def tiger():
    return world("tiger").homdp


def growls(**changes):
    """Counts for tiger with some entries changed: transition=((x, a, x'), number)."""
    tables = {"transition": np.zeros((2, 3, 2)), "emission": np.ones((2, 2))}
    for where, (index, number) in changes.items():
        tables[where][index] = number
    return Counts(**tables)


def episode(states, observations, actions):
    return Episode(Trajectory(np.array(observations), np.array(actions)), np.array(states))


QUIET = episode([0, 0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0])  # the tiger stays on the left


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (
            Counts(np.zeros((2, 2, 2)), np.zeros((2, 3))),
            "counts.transition",
        ),
        (
            Counts(np.zeros((2, 2, 2)), np.zeros((2, 3))),
            "counts.emission",
        ),
        (
            growls(emission=((0, 1), -1)),
            "counts.emission[left, growl right]",
        ),
        (growls(emission=((1, 1), 0.5)), "counts.emission[right, growl right]"),
        (
            growls(transition=((0, 1, 1), np.nan)),
            "counts.transition[left, open left, right]",
        ),
        (
            growls(transition=((1, 2, 0), np.inf)),
            "counts.transition[right, open right, left]",
        ),
        (
            growls(transition=((0, 0, 1), 2)),
            "counts.transition[left, listen, right]",
        ),
        (
            Counts(np.full((2, 3, 2), "many"), np.zeros((2, 2))),
            "counts.transition",
        ),
        (
            replace(growls(), names=(("left", "west"), *tiger().spaces[1:3])),
            "names of states",
        ),
        (None, "data"),
        ("growl", "data"),
        ([QUIET, 3], "data"),
        (QUIET.trajectory, "data"),
        (
            episode([0, 0, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]),
            "states[episode 0, step 3]",
        ),
        (
            episode([0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]),
            "episode",
        ),
        (
            episode([0.0, 0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]),
            "states",
        ),
    ],
)
def test_invalid_data_are_named(data, where):
    with raises(DataError, where):
        posterior(tiger(), data)
    with raises(DataError, where):
        posterior(tiger(), growls()).update(data)


def certain(emission=programs.EYE, initial=(0.5, 0.5, 0.0)):
    """Three constant states, with one unknown emission row."""

    def certain():
        p = numpyro.sample("p", dist.Beta(1.0, 1.0))
        row = jnp.array([p, 1 - p, 0.0])
        return Kernels(initial, programs.STAY, jnp.stack([row, *emission[1:]]))

    return programs.declare(certain)


def test_impossible_steps_are_named():
    """All problems of several episodes are reported.

    They are ordered by episode, step, and then initial, emission and transition.
    """
    model = certain()
    good = episode([0, 0, 0, 0], [0, 1, 0], [0, 0, 1])
    moves = episode([0, 0, 1, 1], [0, 1, 1], [0, 1, 0])
    sees = episode([0, 0, 0, 0], [0, 0, 2], [0, 0, 0])
    starts = episode([2, 2, 2, 2], [2, 0, 2], [0, 0, 0])
    for faulty, at, got in (
        ([good, moves, sees], "episode 1, step 2", "transition (x0, a1, x1)"),
        ([good, good, sees, moves], "episode 2, step 3", "emission (x0, y2)"),
        ([starts, moves], "episode 0, step 1", "initial (x2)"),
    ):
        with raises(DataError, "data") as error:
            posterior(model, faulty)
        first = error.value.problems[0]
        assert first.at == at
        assert first.got.startswith(got)
        assert len({problem.at for problem in error.value.problems}) > 1
        with raises(DataError, f"data[{at}]"):
            posterior(model, good).update(faulty)
    assert posterior(model, [good, good]).method == "conjugate"


def test_jointly_impossible_data_raise():
    model = programs.one_of_two()
    one, other = seen([[1, 1, 0], [0, 0, 0], [0, 0, 0]]), seen([[1, 0, 1], [0, 0, 0], [0, 0, 0]])
    settled = posterior(model, one)
    assert settled.atoms.weights.tolist() == [1.0, 0.0]
    assert settled.mean.shows(0)[0].tolist() == [0.5, 0.5, 0.0]
    for refused in (lambda: posterior(model, one + other), lambda: settled.update(other)):
        with raises(DataError, "data"):
            refused()


@pytest.mark.slow
def test_jointly_impossible_data_raise_with_laplace():
    """The support depends on a continuous site, with a growl on each side of it."""

    def program():
        edge = numpyro.sample("edge", dist.Normal(0.0, 1.0))
        left = jnp.where(edge < 0, 0.5, 0.0)
        return Kernels(
            programs.EYE[0],
            programs.STAY,
            jnp.stack([jnp.array([0.5, left, 0.5 - left]), *programs.EYE[1:]]),
        )

    with raises(DataError, "data"):
        posterior(
            programs.declare(program), seen([[1, 1, 1], [0, 0, 0], [0, 0, 0]]), method="laplace"
        )


def test_an_unknown_initial_distribution_needs_counts_of_first_states():
    def program():
        first = numpyro.sample("first", dist.Beta(1.0, 1.0))
        return Kernels(jnp.array([first, 1 - first, 0.0]), programs.STAY, programs.EYE)

    with raises(DataError, "counts.initial"):
        posterior(programs.declare(program), seen(np.zeros((3, 3))))


def test_options_are_validated_first():
    model = programs.logistic()
    data = growls()
    with raises(InferenceError, "method"):
        posterior(model, data, method="vi")
    with raises(InferenceError, "sampling.chains", "sampling.warmup", "sampling.draws") as error:
        posterior(model, data, sampling=Sampling(0, 0, 3))
    assert [problem.where for problem in error.value.problems] == [
        "sampling.chains",
        "sampling.warmup",
        "sampling.draws",
    ]
    with raises(DataError, "homdp"):
        posterior(world("tiger"), data)
    with raises(DataError, "key"):
        posterior(model, data, key=3)
    belief = posterior(tiger(), data)
    with raises(DataError, "key"):
        belief.draws(3, 10)
    for number in (-1, 2.5):
        with raises(InferenceError, "draws"):
            belief.draws(KEY, number)


def discrete_program(prior, size):
    def program():
        with numpyro.plate("z's", size):
            z = numpyro.sample("z", prior)
        p = 1 / (2.0 + jnp.sum(z))
        return Kernels(
            programs.EYE[0],
            programs.STAY,
            jnp.stack([jnp.array([p, 1 - p, 0.0]), *programs.EYE[1:]]),
        )

    return programs.declare(program)


@pytest.mark.parametrize(
    ("prior", "size", "got"),
    [
        (dist.Poisson(1.0), 1, "z, "),
        (dist.Bernoulli(0.5).expand([2]).to_event(1), 1, "z, "),
        (dist.Bernoulli(0.5), 13, "8,192 joint values"),
        (dist.Bernoulli(0.5), 2000, "more than 10^12 joint values"),
    ],
    ids=["endless", "several", "many", "very many"],
)
def test_discrete_sites_with_too_many_values_raise(prior, size, got):
    with raises(InferenceError, "discrete sites") as error:
        posterior(discrete_program(prior, size), seen([[1, 2, 0], [0, 0, 0], [0, 0, 0]]))
    (problem,) = error.value.problems
    assert problem.got.startswith(got)
    assert "marginalise" in problem.remedy


def test_counts_are_converted_to_numpy():
    """Lists, JAX arrays and integer-valued floats are accepted as counts."""
    expected = posterior(
        tiger(), Counts(np.zeros((2, 3, 2), int), np.array([[3, 1], [1, 2]]))
    ).mean.shows(0)
    for array in (
        np.ndarray.tolist,
        jnp.asarray,
        lambda n: n.astype(np.float64),
        lambda n: n.astype(np.uint8),
    ):
        belief = posterior(
            tiger(), Counts(array(np.zeros((2, 3, 2), int)), array(np.array([[3, 1], [1, 2]])))
        )
        assert type(belief.mean.shows(0)) is np.ndarray
        assert np.array_equal(belief.mean.shows(0), expected)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 10**15])
def test_no_number_of_visits_gives_nan(number):
    """No data, one visit, and more visits than a float can count exactly.

    Moments are finite, variances are not negative, and rows sum to one.
    """
    for program in (programs.tables, programs.partly, programs.switch, programs.closed_switch):
        model = program()
        support = model.structure.support
        counts = Counts(number * support.transition, number * support.emission)
        belief = posterior(model, counts)
        for mean, variance in zip(belief.mean.stationary()[1:3], belief.variance[1:3], strict=True):
            assert np.isfinite(mean).all()
            assert np.allclose(mean.sum(-1), 1)
            assert (variance >= 0).all()

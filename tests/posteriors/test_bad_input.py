"""What posteriors refuse, in words that name the place; and never a NaN."""

import re
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
    DeclarationError,
    Episode,
    InferenceError,
    Kernels,
    Trajectory,
    posterior,
)
from homdp_ppl.posteriors import Sampling
from tests.posteriors import programs
from tests.posteriors.programs import seen
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
    ("data", "words"),
    [
        (
            Counts(np.zeros((2, 2, 2)), np.zeros((2, 3))),
            r"counts.transition: got shape \(2, 2, 2\); expected shape \(2, 3, 2\)",
        ),
        (
            Counts(np.zeros((2, 2, 2)), np.zeros((2, 3))),
            r"counts.emission: got shape \(2, 3\); expected shape \(2, 2\)",
        ),
        (
            growls(emission=((0, 1), -1)),
            r"counts.emission\[left, growl right\]: got -1; expected whole numbers",
        ),
        (growls(emission=((1, 1), 0.5)), r"counts.emission\[right, growl right\]: got 0.5"),
        (
            growls(transition=((0, 1, 1), np.nan)),
            r"counts.transition\[left, open left, right\]: got nan",
        ),
        (
            growls(transition=((1, 2, 0), np.inf)),
            r"counts.transition\[right, open right, left\]: got inf",
        ),
        (
            growls(transition=((0, 0, 1), 2)),
            r"counts.transition\[left, listen, right\]: got 2 of them, declared impossible",
        ),
        (
            Counts(np.full((2, 3, 2), "many"), np.zeros((2, 2))),
            "counts.transition: got entries of type .*; expected numbers",
        ),
        (
            replace(growls(), names=(("left", "west"), *tiger().spaces[1:3])),
            "names of states: got left, west; expected left, right",
        ),
        (None, "data: got a NoneType; expected Episodes, or Counts"),
        ("growl", "data: got a str"),
        ([QUIET, 3], "data: got a list"),
        (QUIET.trajectory, "a Trajectory lacks the states"),
        (
            episode([0, 0, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]),
            r"states\[episode 0, step 3\]: got 2; expected an index in 0..1",
        ),
        (
            episode([0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]),
            "expected 4 observations, 4 actions and 5 states",
        ),
        (
            episode([0.0, 0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]),
            "states: got values of type float64; expected integers",
        ),
    ],
)
def test_what_does_not_belong_is_named(data, words):
    with pytest.raises(DataError, match=words):
        posterior(tiger(), data)
    with pytest.raises(DataError, match=words):
        posterior(tiger(), growls()).update(data)


def certain(emission=programs.EYE, initial=(0.5, 0.5, 0.0)):
    """Three states that stay, with an unknown that moves one emission row."""

    def certain():
        p = numpyro.sample("p", dist.Beta(1.0, 1.0))
        row = jnp.array([p, 1 - p, 0.0])
        return Kernels(initial, programs.STAY, jnp.stack([row, *emission[1:]]))

    return programs.declare(certain)


def test_impossible_steps_are_named():
    """Several episodes with several faults, all reported.

    The first episode, then the first step, then start, emission, transition.
    """
    model = certain()
    good = episode([0, 0, 0, 0], [0, 1, 0], [0, 0, 1])
    moves = episode([0, 0, 1, 1], [0, 1, 1], [0, 1, 0])
    sees = episode([0, 0, 0, 0], [0, 0, 2], [0, 0, 0])
    starts = episode([2, 2, 2, 2], [2, 0, 2], [0, 0, 0])
    for faulty, words in (
        (
            [good, moves, sees],
            r"data\[episode 1, step 2\]: got transition \(x0, a1, x1\), declared impossible",
        ),
        (
            [good, good, sees, moves],
            r"data\[episode 2, step 3\]: got emission \(x0, y2\), declared impossible",
        ),
        ([starts, moves], r"data\[episode 0, step 1\]: got initial \(x2\), declared impossible"),
    ):
        with pytest.raises(DataError, match=words) as error:
            posterior(model, faulty)
        assert re.match(words, str(error.value.problems[0]))
        assert len({problem.at for problem in error.value.problems}) > 1
        with pytest.raises(DataError, match=words):
            posterior(model, good).update(faulty)
    assert posterior(model, [good, good]).method == "conjugate"


def test_jointly_impossible_data_are_told_apart():
    model = programs.one_of_two()
    one, other = seen([[1, 1, 0], [0, 0, 0], [0, 0, 0]]), seen([[1, 0, 1], [0, 0, 0], [0, 0, 0]])
    settled = posterior(model, one)
    assert settled.atoms.weights.tolist() == [1.0, 0.0]
    assert settled.mean.shows(0)[0].tolist() == [0.5, 0.5, 0.0]
    for refused in (lambda: posterior(model, one + other), lambda: settled.update(other)):
        with pytest.raises(DataError, match="not all of them under the same parameters"):
            refused()


@pytest.mark.slow
def test_jointly_impossible_data_are_told_apart_by_laplace():
    """A support that moves with a continuous site: a growl on each side of it."""

    def program():
        edge = numpyro.sample("edge", dist.Normal(0.0, 1.0))
        left = jnp.where(edge < 0, 0.5, 0.0)
        return Kernels(
            programs.EYE[0],
            programs.STAY,
            jnp.stack([jnp.array([0.5, left, 0.5 - left]), *programs.EYE[1:]]),
        )

    with pytest.raises(DataError, match="not all of them under the same parameters"):
        posterior(
            programs.declare(program), seen([[1, 1, 1], [0, 0, 0], [0, 0, 0]]), method="laplace"
        )


def test_an_unknown_start_is_refused():
    def program():
        first = numpyro.sample("first", dist.Beta(1.0, 1.0))
        return Kernels(jnp.array([first, 1 - first, 0.0]), programs.STAY, programs.EYE)

    with pytest.raises(
        DeclarationError, match="initial: got an initial distribution that depends on first"
    ) as error:
        posterior(programs.declare(program), seen(np.zeros((3, 3))))
    assert "hindsight" in str(error.value)


def test_options_are_checked_before_anything_runs():
    model = programs.logistic()
    data = growls()
    with pytest.raises(
        InferenceError, match="""method: got 'vi'; expected "auto", "nuts" or "laplace\""""
    ):
        posterior(model, data, method="vi")
    with pytest.raises(
        InferenceError, match=r"sampling.chains: got 0; expected at least 1"
    ) as error:
        posterior(model, data, sampling=Sampling(0, 0, 3))
    assert [problem.where for problem in error.value.problems] == [
        "sampling.chains",
        "sampling.warmup",
        "sampling.draws",
    ]
    with pytest.raises(DataError, match=r"homdp: got a World; expected a HOMDP.*world.homdp"):
        posterior(world("tiger"), data)
    with pytest.raises(DataError, match="key: got 3; expected a JAX random key"):
        posterior(model, data, key=3)
    belief = posterior(tiger(), data)
    with pytest.raises(DataError, match="key: got 3"):
        belief.draws(3, 10)
    for number in (-1, 2.5):
        with pytest.raises(InferenceError, match=f"draws: got {number}; expected a whole number"):
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
    ("prior", "size", "words"),
    [
        (dist.Poisson(1.0), 1, "got z, whose values cannot be listed; expected at most 4,096"),
        (
            dist.Bernoulli(0.5).expand([2]).to_event(1),
            1,
            "got z, whose values cannot be listed; .* write a plate for to_event",
        ),
        (dist.Bernoulli(0.5), 13, "got 8,192 joint values"),
        (dist.Bernoulli(0.5), 2000, r"got more than 10\^12 joint values"),
    ],
    ids=["endless", "several", "many", "very many"],
)
def test_discrete_sites_beyond_summation_are_refused(prior, size, words):
    with pytest.raises(InferenceError, match=words) as error:
        posterior(discrete_program(prior, size), seen([[1, 2, 0], [0, 0, 0], [0, 0, 0]]))
    assert "marginalise" in str(error.value)


def test_counts_of_any_array_kind_come_out_as_numpy():
    """Lists, JAX arrays and whole floats are counts too."""
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
def test_no_number_of_visits_makes_a_nan(number):
    """Nothing seen, one visit, more than a float counts.

    Moments are finite, variances not negative, rows sum to one.
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

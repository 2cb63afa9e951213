"""Declarations: what they accept, what they reject, and the errors they raise."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homdp_ppl import DataError, DeclarationError, Kernels, ParameterError, homdp, tabular, x64
from tests.raising import raises
from tests.worlds import world

TWO = {
    "states": ("off", "on"),
    "observations": ("dark", "light"),
    "actions": ("wait",),
    "horizon": 2,
}
REWARD = [[0.0], [1.0]]
EYE = np.eye(2)
STAY = EYE[:, None, :]


def declare(
    initial=(0.5, 0.5), transition=STAY, emission=EYE, reward=REWARD, sites=lambda: None, **changes
):
    @homdp(**{**TWO, **changes}, reward=reward)
    def lamp():
        sites()
        return Kernels(initial=initial, transition=transition, emission=emission)

    return lamp


def problems(**changes):
    with pytest.raises(DeclarationError) as caught:
        declare(**changes)
    return caught.value.problems


def hidden(x):
    numpyro.sample("secret", dist.Normal())
    return dist.Categorical(probs=jnp.ones(2) / 2)


def minibatch():
    with numpyro.plate("n", 10, subsample_size=2):
        numpyro.sample("p", dist.Normal())


def branch(x):
    return dist.Bernoulli(0.1) if x == 0 else dist.Bernoulli(0.9)


WRONG = {
    "row sum": ({"transition": STAY * 0.9}, "transition", "sums to 0.9", "off, wait"),
    "row sum of a function": (
        {"emission": lambda x: dist.Categorical(probs=jnp.array([0.5, 0.6]))},
        "emission",
        "1.1",
        "off",
    ),
    "float32 rounding": ({"initial": (0.5, 0.50000003)}, "initial", "float32", ""),
    "negative entry": ({"emission": [[1.5, -0.5], [0, 1]]}, "emission", "-0.5", "off, light"),
    "nan": ({"emission": [[np.nan, 1.0], [0, 1]]}, "emission", "nan", "off"),
    "outside its domain": (
        {"emission": lambda x: dist.Bernoulli(1.5)},
        "emission",
        "outside of a distribution's domain",
        "off",
    ),
    "shape": ({"transition": EYE}, "transition", "(2, 2)", ""),
    "not an array": ({"emission": "light"}, "emission", "str", ""),
    "numpy index": (
        {"emission": lambda x: dist.Categorical(probs=EYE[x])},
        "emission",
        "jnp.asarray(table)[x]",
        "",
    ),
    "list index": (
        {"emission": lambda x: dist.Bernoulli([0.1, 0.9][x])},
        "emission",
        "jnp.asarray(table)[x]",
        "",
    ),
    "python if": ({"emission": branch}, "emission", "jnp.where", ""),
    "python int": (
        {"emission": lambda x: dist.Bernoulli(float(x))},
        "emission",
        "not int(), float()",
        "",
    ),
    "infinite support": (
        {"emission": lambda x: dist.Poisson(1.0)},
        "emission",
        "finite support",
        "",
    ),
    "wrong support": (
        {"emission": lambda x: dist.Binomial(2, 0.5)},
        "emission",
        "support 0..1",
        "",
    ),
    "shifted support": (
        {"emission": lambda x: dist.DiscreteUniform(1, 2)},
        "emission",
        "support 0..1",
        "",
    ),
    "moving support": (
        {"emission": lambda x: dist.DiscreteUniform(0, x)},
        "emission",
        "same everywhere",
        "",
    ),
    "delta outside": (
        {"emission": lambda x: dist.Delta(x + 1)},
        "emission",
        "among the declared names",
        "on",
    ),
    "batched": (
        {"emission": lambda x: dist.Bernoulli(jnp.array([0.1, 0.9]))},
        "emission",
        "batch shape (2,)",
        "",
    ),
    "an array row": (
        {"emission": lambda x: jnp.ones(2) / 2},
        "emission",
        "dist.Categorical(probs=...)",
        "",
    ),
    "arguments": ({"emission": lambda: dist.Bernoulli(0.5)}, "emission", "Write lambda x:", ""),
    "emission of an action": (
        {"emission": lambda x, a: dist.Bernoulli(0.5)},
        "first_emission",
        "Add first_emission=lambda x: ...",
        "",
    ),
    "emission table with actions": (
        {"emission": STAY},
        "emission",
        "The table of the first observation, which follows no action, is the last one.",
        "",
    ),
    "hidden site": ({"emission": hidden}, "emission", "'secret'", ""),
    "reserved site": (
        {"sites": lambda: numpyro.sample("a", dist.Normal())},
        "site 'a'",
        "another name",
        "",
    ),
    "reserved in pictures": (
        {"sites": lambda: numpyro.sample("x[1]", dist.Normal())},
        "site 'x[1]'",
        "another name",
        "",
    ),
    "subsampling": ({"sites": minibatch}, "plate 'n'", "subsampling", ""),
    "twice": (
        {"sites": lambda: [numpyro.sample("p", dist.Normal()) for _ in range(2)]},
        "program",
        "unique names",
        "",
    ),
    "no sampler": (
        {"sites": lambda: numpyro.sample("p", dist.ImproperUniform(dist.constraints.real, (), ()))},
        "program",
        "sampled",
        "",
    ),
    "nan density": ({"sites": lambda: numpyro.factor("f", jnp.nan)}, "program", "nan", ""),
    "reserved last": (
        {"sites": lambda: numpyro.sample("x_last", dist.Normal())},
        "site 'x_last'",
        "another name",
        "",
    ),
    "param": ({"sites": lambda: numpyro.param("p", 0.5)}, "site 'p'", "numpyro.sample", ""),
    "invalid prior": (
        {"sites": lambda: numpyro.sample("p", dist.Beta(-1.0, 1.0))},
        "program",
        "concentration",
        "",
    ),
    "infinite reward": ({"reward": [[-np.inf], [1.0]]}, "reward", "finite", "off, wait"),
    "reward nan": ({"reward": [[np.nan], [1.0]]}, "reward", "nan", "off, wait"),
    "reward per step": (
        {"reward": [[[0.0], [1.0]], [[0.0], [np.nan]]]},
        "reward",
        "nan",
        "step 2, on, wait",
    ),
    "reward shape": ({"reward": [0.0, 1.0]}, "reward", "shape (2, 1)", ""),
    "reward function": ({"reward": lambda x, a: "much"}, "reward", "ValueError", ""),
    "horizon": ({"horizon": 0}, "horizon", "at least 1", ""),
    "horizon type": ({"horizon": 2.5}, "horizon", "an integer", ""),
    "duplicates": ({"states": ("on", "on")}, "states", "'on' 2 times", ""),
    "no names": ({"actions": ()}, "actions", "at least one", ""),
    "none of them": ({"actions": 0}, "actions", "got 0", ""),
    "empty name": ({"actions": ("",)}, "actions", "empty", ""),
    "random reward": ({"reward": dist.Beta(1, 1)}, "reward", "known numbers", ""),
    "a string of names": ({"states": "ab"}, "states", "tuple of names", ""),
}


@pytest.mark.parametrize("case", WRONG)
def test_each_mistake_is_reported(case):
    changes, where, words, at = WRONG[case]
    found = [p for p in problems(**changes) if p.where == where]
    assert found, case
    assert words in str(found[0])
    assert found[0].at == at
    assert found[0].expected


def test_all_problems_are_reported_together():
    found = problems(
        states=("on", "on"),
        horizon=0,
        reward=[[np.inf], [0.0]],
        initial=[0.5, 0.6],
        transition=lambda x, a: dist.Categorical(probs=EYE[x]),
        emission=lambda x: dist.Categorical(probs=jnp.array([0.5, 0.4])),
        sites=lambda: numpyro.sample("y", dist.Normal()),
    )
    assert {p.where for p in found} == {
        "states",
        "horizon",
        "reward",
        "initial",
        "transition",
        "emission",
        "site 'y'",
    }


def test_a_program_must_return_kernels_and_take_no_arguments():
    with raises(DeclarationError, "program"):
        homdp(**TWO, reward=REWARD)(lambda: (EYE, STAY, EYE))
    with raises(DeclarationError, "program"):
        homdp(**TWO, reward=REWARD)(lambda size: Kernels(EYE[0], STAY, EYE))
    assert (
        homdp(**TWO, reward=REWARD)(lambda *_, **__: Kernels(EYE[0], STAY, EYE)).horizon == 2
    )  # the signature of a wrapper


def test_python_control_flow_on_a_parameter_is_reported():
    def sites():
        if numpyro.sample("p", dist.Beta(1, 1)) > 0.5:
            pass

    (problem,) = problems(sites=sites)
    assert problem.where == "program"
    assert "jnp.where" in problem.remedy


def test_rows_must_be_valid_on_the_support_of_the_prior():
    """A probability with a normal prior is valid near its mean and invalid elsewhere.

    The error names a value at which it is invalid.
    """

    def program():
        p = numpyro.sample("p", dist.Normal(0.5, 0.5))
        return Kernels(EYE[0], STAY, jnp.array([[p, 1 - p], [0.5, 0.5]]))

    def clipped():
        p = numpyro.sample("p", dist.Normal())
        return Kernels(EYE[0], STAY, lambda x: dist.Binomial(1, p))

    def prior():
        k = numpyro.sample("k", dist.Normal())
        p = numpyro.sample("p", dist.Beta(k, 1.0))
        return Kernels(EYE[0], STAY, lambda x: dist.Bernoulli(p))

    for wrong in (program, clipped, prior):
        with pytest.raises(DeclarationError) as caught:
            homdp(**TWO, reward=REWARD)(wrong)
        assert re.search(r"Found at (p|k)=", caught.value.problems[0].remedy)


def test_errors_of_user_code_are_not_swallowed():
    def sites():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        declare(sites=sites)


def test_kernels_of_every_kind_tabulate_to_the_same_rows():
    p = np.array([0.3, 0.8])
    rows = np.stack([1 - p, p], 1)
    forms = [
        rows,
        lambda x: dist.Categorical(probs=jnp.asarray(rows)[x]),
        lambda x: dist.Categorical(logits=jnp.log(jnp.asarray(rows))[x]),
        lambda x: dist.Bernoulli(jnp.asarray(p)[x]),
        lambda x: dist.Bernoulli(logits=jnp.log(jnp.asarray(p) / (1 - p))[x]),
        lambda x: dist.Binomial(1, jnp.asarray(p)[x]),
        lambda x: dist.BetaBinomial(10 * jnp.asarray(p)[x], 10 * (1 - jnp.asarray(p))[x], 1),
    ]
    for form in forms:
        np.testing.assert_allclose(declare(emission=form).at().pomdp.shows(0), rows, atol=1e-15)


def test_known_zeros_are_exact():
    model = declare(
        emission=lambda x: dist.Bernoulli(jnp.where(x == 0, 0.0, 1.0)),
        transition=lambda x, a: dist.Delta(1 - x),
        initial=dist.Delta(1),
    )
    tables = model.at().pomdp
    assert np.array_equal(tables.shows(0), EYE)
    assert np.array_equal(tables.moves(0)[:, 0], EYE[::-1])
    assert np.array_equal(tables.initial, [0.0, 1.0])
    assert np.array_equal(model.tables({}).shows(0), EYE)


def test_discrete_uniform_and_names_by_number():
    model = declare(
        states=4,
        observations=4,
        reward=np.zeros((4, 1)),
        initial=dist.DiscreteUniform(0, 3),
        transition=lambda x, a: dist.DiscreteUniform(0, 3),
        emission=lambda x: dist.Delta(x),
    )
    assert model.states == ("x0", "x1", "x2", "x3")
    np.testing.assert_allclose(model.at().pomdp.moves(0), 0.25)


def test_reward_may_be_a_plain_python_function():
    model = declare(reward=lambda x, a: 1.0 if x == 1 else 0.25, horizon=3)
    assert model.reward.shape == (3, 2, 1)
    assert np.array_equal(model.reward[2], [[0.25], [1.0]])


def test_at_rejects_invalid_parameters():
    tiger = world("tiger").homdp
    for parameters, sites in (
        ({}, ["accuracy"]),
        ({"accuracy": 0.5, "size": 3.0}, ["size"]),
        ({"acuracy": 0.5}, ["acuracy", "accuracy"]),
        ({"accuracy": 1.5}, ["accuracy"]),
        ({"accuracy": np.nan}, ["accuracy"]),
        ({"accuracy": [0.5, 0.5]}, ["accuracy"]),
        ({"accuracy": "loud"}, ["accuracy"]),
    ):
        with raises(ParameterError, *(f"site {site!r}" for site in sites)):
            tiger.at(**parameters)


def test_a_discrete_site_takes_integers_of_any_type():
    def program():
        z = numpyro.sample("z", dist.Bernoulli(0.5))
        return Kernels(EYE[0], STAY, jnp.stack([jnp.asarray(EYE)[z], jnp.asarray(EYE)[1 - z]]))

    model = homdp(**TWO, reward=REWARD)(program)
    for one in (1, 1.0, True, np.int32(1), np.float32(1)):
        assert np.array_equal(model.at(z=one).pomdp.shows(0), EYE[::-1])
    for wrong in (0.5, np.nan, "on"):
        with raises(ParameterError, "site 'z'"):
            model.at(z=wrong)
    with raises(ParameterError, "site 'z'"):
        model.at(z=2)


def test_at_names_every_site_outside_its_support():
    with pytest.raises(ParameterError) as caught:
        world("lock").homdp.at(works=np.full((3, 3), 1.2), lamp=-1.0)
    assert [p.where for p in caught.value.problems] == ["site 'works'", "site 'lamp'"]


def test_a_switch_in_a_far_tail_raises_an_error_at_its_parameters():
    def program():
        k = numpyro.sample("k", dist.Normal())
        return Kernels(EYE[0], STAY, jnp.where(k > 20, EYE[::-1], EYE))

    model = homdp(**TWO, reward=REWARD)(program)
    assert model.at(k=3.0).pomdp.shows(0)[0, 0] == 1
    with raises(ParameterError, "emission") as caught:
        model.at(k=21.0)
    assert caught.value.problems[0].at == "off, light"


def test_draw_is_a_function_of_the_key():
    tiger = world("tiger").homdp
    with raises(DataError, "key"):
        tiger.draw(jax.random.split(jax.random.key(0)))
    with raises(DataError, "key"):
        tiger.draw(0)
    one, same, other = (tiger.draw(jax.random.key(k)).parameters["accuracy"] for k in (0, 0, 1))
    assert one == same != other
    assert one.dtype == np.float64


def test_tables_under_jit_vmap_and_grad():
    tiger = world("tiger").homdp
    values = np.array([0.6, 0.7, 0.9])
    one_by_one = np.stack([tiger.tables({"accuracy": v}).shows(0) for v in values])
    with x64():
        batched = jax.jit(jax.vmap(tiger.tables))({"accuracy": jnp.asarray(values)}).shows(0)
        slope = jax.grad(lambda p: tiger.tables({"accuracy": p}).shows(0)[0, 0])(0.7)
    np.testing.assert_allclose(batched, one_by_one, atol=1e-15)
    np.testing.assert_allclose(one_by_one[:, 0, 0], values, atol=1e-15)
    assert slope == pytest.approx(1.0)


def test_tables_check_shapes_and_at_rejects_traced_values():
    lock = world("lock").homdp
    with raises(ParameterError, "site 'works'"):
        lock.tables({"works": np.full(3, 0.5), "lamp": 0.5})
    with raises(ParameterError, "parameters"):
        jax.jit(lambda p: world("tiger").homdp.at(accuracy=p).pomdp.shows(0))(0.5)
    edge = world("tiger").homdp
    assert np.array_equal(
        edge.tables({"accuracy": 1.0}).shows(0), edge.at(accuracy=1.0).pomdp.shows(0)
    )


def test_another_horizon():
    longer = world("tiger").with_horizon(7)
    assert longer.spaces.horizon == 7
    assert longer.pomdp.reward.shape == (7, 2, 1, 3)
    with raises(DeclarationError, "horizon"):
        world("tiger").with_horizon(0)
    with raises(DeclarationError, "horizon"):
        declare(reward=[[[0.0], [1.0]], [[1.0], [0.0]]]).with_horizon(3)


def test_tabular_is_the_same_as_a_program():
    T, O = dist.Dirichlet(np.ones((2, 1, 2))), dist.Dirichlet(np.full((2, 2), 2.0))  # noqa: E741
    short = tabular(T=T, O=O, initial=[0.5, 0.5], reward=REWARD, horizon=2)

    @homdp(states=2, observations=2, actions=1, horizon=2, reward=REWARD)
    def long():
        return Kernels(
            [0.5, 0.5], numpyro.sample("T", T.to_event(2)), numpyro.sample("O", O.to_event(1))
        )

    for one, other in zip(
        short.draw(jax.random.key(0)).pomdp, long.draw(jax.random.key(0)).pomdp, strict=True
    ):
        assert np.array_equal(one, other)
    for wrong in (np.eye(2), [[[1.0, 0.0]], [[1.0]]]):
        with raises(DeclarationError, "T"):
            tabular(T=wrong, O=O, initial=[0.5, 0.5], reward=REWARD, horizon=2)
    with raises(DeclarationError, "states"):
        tabular(T=T, O=O, initial=[0.5, 0.5], reward=REWARD, horizon=2, states=())


@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 2**16),
)
def test_known_tables_are_returned_unchanged(X, Y, A, H, seed):
    generator = np.random.default_rng(seed)
    T, O = generator.dirichlet(np.ones(X), (X, A)), generator.dirichlet(np.ones(Y), X)  # noqa: E741
    initial, reward = generator.dirichlet(np.ones(X)), generator.uniform(size=(X, A))
    tables = tabular(T=T, O=O, initial=initial, reward=reward, horizon=H).at().pomdp.stationary()
    for got, expected in zip(
        tables, (initial, T, O, np.broadcast_to(reward, (H, X, A))), strict=True
    ):
        assert np.array_equal(got, expected)


def test_repeated_remedies_are_printed_once():
    with pytest.raises(DeclarationError) as caught:
        declare(reward=[[-1.0], [10.0]], reward_range=(0, 1))
    assert str(caught.value).count("Widen") == 1
    assert [p.remedy.startswith("Widen") for p in caught.value.problems] == [True, True]


def test_repr_says_what_is_known():
    assert repr(world("tiger").homdp).splitlines()[1].strip() == (
        "T: known; O: 1 shared parameter (accuracy), conjugate; initial: known"
    )
    assert repr(world("tiger")) == "World 'tiger' at accuracy=0.85"

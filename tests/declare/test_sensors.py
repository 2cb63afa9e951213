"""Several sensors, against declarations with one hand-encoded joint emission."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density

from homdp_ppl import Kernels, Real, evaluate, homdp, rollout, tabular, uniform_policy, x64
from homdp_ppl.core import sensors as core_sensors
from homdp_ppl.declare import kernels as kernels_module
from homdp_ppl.errors import DeclarationError
from homdp_ppl.planners import auto, history_tree
from tests.raising import raises
from tests.sensors import JOINT, KINDS, SENSORS, data, declared, worlds


def differences(kind):
    """The largest differences of tables, optimum and program density between both declarations.

    Rows that are never used may differ.
    """
    world, encoded = worlds(kind)
    used = world.form.steps(world.spaces.horizon)[1].reshape(world.pomdp.emission.shape[:3]) > 0
    tables = [
        np.abs(mine - theirs).max()
        for mine, theirs in (
            (world.pomdp.initial, encoded.pomdp.initial),
            (world.pomdp.transition, encoded.pomdp.transition),
            (world.pomdp.emission[used], encoded.pomdp.emission[used]),
            (world.pomdp.reward, encoded.pomdp.reward),
        )
    ]
    mine, theirs = (history_tree()(each.pomdp).value for each in (world, encoded))
    episodes = data(kind)
    densities = []
    with x64():
        for model in (world.homdp, encoded.homdp):
            hindsight = model.hindsight(episodes)
            values = {name: jnp.asarray(value) for name, value in world.parameters.items()}
            densities.append(float(log_density(hindsight, (), {}, values)[0]))
    return max(tables), abs(mine - theirs), abs(densities[0] - densities[1])


@pytest.mark.parametrize("kind", KINDS)
def test_two_sensors_are_the_hand_encoded_product(kind):
    world, encoded = worlds(kind)
    assert world.homdp.observations == encoded.homdp.observations
    assert max(differences(kind)) < 1e-9
    policy = uniform_policy(world)
    assert evaluate(policy, world.pomdp) == pytest.approx(
        evaluate(policy, encoded.pomdp), abs=1e-12
    )
    keys = jax.random.split(jax.random.key(0), 20)
    assert rollout(keys, world, policy).same_as(rollout(keys, encoded, policy))


def reversed_order(tables):
    return core_sensors.joint_table(list(tables)[::-1])


def first_twice(tables):
    ear, eye = tables
    return core_sensors.joint_table([ear[..., ::-1], eye])


@pytest.mark.parametrize("bug", [reversed_order, first_twice])
def test_a_wrong_product_is_noticed(bug, monkeypatch):
    monkeypatch.setattr(kernels_module, "joint_table", bug)
    declared.cache_clear()
    worlds.cache_clear()
    data.cache_clear()
    try:
        assert max(differences("plain")[:2]) > 1e-3
    finally:
        for made in (declared, worlds, data):
            made.cache_clear()


@pytest.mark.parametrize(
    ("kind", "rows"), [("plain", 4), ("answers", 6), ("returned", 3), ("steps", 12), ("shared", 1)]
)
def test_sensors_keep_their_closed_forms_with_fewer_rows(kind, rows):
    conjugate = declared(kind).structure.conjugate
    assert conjugate.row.max() + 1 == rows
    assert {site.name for site in declared(kind).sites} == set(conjugate.sites)
    assert declared(kind, joint=True).structure.conjugate.sites == ()
    joint = declared(kind, joint=True).form.emission
    sensors = [
        table.reference[..., 1:].size
        for name, table in declared(kind).structure.tables.items()
        if name.startswith("emission[")
    ]
    assert sum(sensors) < np.prod(joint[:-1]) * (joint[-1] - 1)


def test_each_sensor_has_the_form_that_it_needs():
    tables = declared("answers").structure.tables
    assert tables["emission[ear]"].reference.shape == (3, 2, 2)
    assert tables["emission[eye]"].reference.shape == (2, 3)
    assert declared("answers").form.emission == (3, 2, 6)
    assert declared("steps").form.emission == (3, 3, 2, 6)
    assert declared("ended").form.emission == (2, 7)


def test_names_and_text():
    model = declared("plain")
    assert list(model.observations) == JOINT
    assert dict(model.spaces.sensors) == SENSORS
    assert dict(declared("plain", joint=True).spaces.sensors) == {}
    first, second = repr(model).splitlines()
    assert "6 observations (ear: 2, eye: 3)" in first
    assert (
        second
        == "  T: known; O[ear]: Dirichlet, conjugate; O[eye]: Dirichlet, conjugate; initial: known"
    )
    assert "7 observations (ear: 2, eye: 3, ended)" in repr(declared("ended"))
    assert declared("ended").observations[-1] == "ended"
    assert model.spaces.entry("emission[eye]", (1, 2)) == "far, light"


def test_numbers_of_outcomes_give_names():
    model = tabular(
        T=[[[1.0]]], O={"ear": [[0.5, 0.5]], "eye": [[1.0]]}, initial=[1], reward=[[1]], horizon=1
    )
    assert model.observations == ("ear0, eye0", "ear1, eye0")


def test_tables_of_sensors():
    concentration = {"ear": np.array([[3.0, 1], [1, 2]]), "eye": np.array([[1.0, 2, 1], [1, 1, 4]])}
    model = tabular(
        T=np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.5, 0.5]]]),
        O={name: dist.Dirichlet(alpha) for name, alpha in concentration.items()},
        initial=[0.5, 0.5],
        reward=[[1.0, 0.1], [0.0, 0.7]],
        horizon=3,
        observations=SENSORS,
    )
    parameters = worlds("plain")[0].parameters
    world = model.at(O_ear=parameters["ear"], O_eye=parameters["eye"])
    assert np.array_equal(world.pomdp.emission, worlds("plain")[0].pomdp.emission)


def test_fingerprints_know_the_sensors():
    model, encoded = declared("plain"), declared("plain", joint=True)
    assert model.spaces[:1] + model.spaces[2:] == encoded.spaces[:1] + encoded.spaces[2:]
    assert model.fingerprint != encoded.fingerprint
    other = homdp(
        states=("near", "far"),
        observations={"nose": ("left", "right"), "eye": SENSORS["eye"]},
        actions=("wait", "look"),
        horizon=3,
        reward=[[1.0, 0.1], [0.0, 0.7]],
    )

    @other
    def plain():
        kernels = KINDS["plain"](False)
        return kernels._replace(
            emission={"nose": kernels.emission["ear"], "eye": kernels.emission["eye"]}
        )

    assert plain.fingerprint != model.fingerprint
    assert declared("plain").with_horizon(5).spaces.sensors == SENSORS
    restored = pickle.loads(pickle.dumps(declared("ended").spaces))
    assert restored == declared("ended").spaces
    assert repr(restored) == repr(declared("ended").spaces)


def with_coin(kind):
    """The declaration with a third, uninformative sensor in front."""
    model = declared(kind)

    def program():
        kernels = model.function()
        return kernels._replace(emission={"coin": [[0.25, 0.75]] * 2, **kernels.emission})

    program.__name__ = kind
    return homdp(
        states=model.states,
        observations={"coin": 2, **SENSORS},
        actions=model.actions,
        horizon=3,
        reward=[[1.0, 0.1], [0.0, 0.7]],
    )(program)


@pytest.mark.parametrize("kind", ["plain", "mixed"])
def test_an_uninformative_sensor_changes_no_value(kind):
    world = worlds(kind)[0]
    more = with_coin(kind).at(**world.parameters)
    assert more.pomdp.emission.shape[-1] == 12
    for planner in (history_tree(), auto()):
        mine, theirs = (planner(each.pomdp).value for each in (more, world))
        assert mine == pytest.approx(theirs, abs=1e-9)


def declare(observations, emission, first=None):
    """A declaration with two states, for errors."""

    def wrong():
        p = numpyro.sample("p", dist.Beta(2.0, 2.0))
        made = emission(p) if callable(emission) else emission
        return Kernels([0.5, 0.5], np.full((2, 1, 2), 0.5), made, first)

    return homdp(states=2, observations=observations, actions=1, horizon=2, reward=[[0.0], [1.0]])(
        wrong
    )


HALF = [[0.5, 0.5], [0.5, 0.5]]
TWO = {"ear": 2, "eye": 3}


@pytest.mark.parametrize(
    ("observations", "emission", "first", "wheres"),
    [
        (TWO, {"ear": [[1.0]], "nose": HALF}, None, ["emission[ear]", "emission[eye]", "emission"]),
        (
            TWO,
            lambda p: lambda x: {"nose": dist.Bernoulli(p), "eye": dist.Bernoulli(p)},
            None,
            ["emission[ear]", "emission[eye]", "emission"],
        ),
        (TWO, HALF, None, ["emission"]),
        (TWO, lambda p: lambda x: dist.Bernoulli(p), None, ["emission"]),
        (2, {"ear": HALF}, None, ["emission"]),
        (2, lambda p: lambda x: {"ear": dist.Bernoulli(p)}, None, ["emission"]),
        (
            TWO,
            lambda p: {"ear": lambda x, a: dist.Bernoulli(p), "eye": lambda x, z: None},
            {"nose": HALF},
            ["first_emission[ear]", "emission[eye]", "first_emission"],
        ),
        (
            {"ear": 2},
            {"ear": lambda x, a: dist.Bernoulli(0.5)},
            {"ear": HALF, "nose": HALF},
            ["first_emission"],
        ),
        (TWO, {"ear": [[0.5, 0.6]] * 2, "eye": [[1.0, 0, 0]] * 2}, None, ["emission[ear]"] * 2),
        ({}, HALF, None, ["observations"]),
        ({"ear": 0, "eye": "dark"}, HALF, None, ["observations[ear]", "observations[eye]"]),
        ({"ear": Real(1), 3: 2}, HALF, None, ["observations", "observations[ear]"]),
        (
            {"ear": ("a", "a, b"), "eye": ("b, c", "c")},
            {"ear": HALF, "eye": HALF},
            None,
            ["observations"],
        ),
        ({"ear": 10**5, "eye": 10**5}, HALF, None, ["observations"]),
    ],
)
def test_misuse_is_reported_all_at_once(observations, emission, first, wheres):
    with raises(DeclarationError) as caught:
        declare(observations, emission, first)
    assert [problem.where for problem in caught.value.problems] == wheres


def test_the_remedies_fit():
    with raises(DeclarationError) as caught:
        declare(TWO, {"ear": HALF, "eye": [[0.2, 0.3, 0.5]] * 2, "nose": HALF})
    (problem,) = caught.value.problems
    assert problem.got == "unknown sensor 'nose'"
    assert "ear, eye" in problem.expected
    with raises(DeclarationError) as caught:
        declare(2, {"ear": HALF})
    assert "observations={" in caught.value.problems[0].remedy
    with raises(DeclarationError) as caught:
        declare({"ear": Real(1), "eye": 2}, HALF)
    (problem,) = caught.value.problems
    assert problem.expected == "finitely many outcomes"
    assert "Real(n)" in problem.remedy

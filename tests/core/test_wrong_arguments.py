"""Functions of the core raise errors for invalid models, policies and episodes."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import ArrayLike

from homdp_ppl import (
    BlindPolicy,
    Counts,
    DataError,
    Episode,
    Episodes,
    GraphPolicy,
    HOMDPError,
    PlanningError,
    PolicyError,
    Real,
    Spaces,
    SpacesError,
    make_plan,
    models,
    uniform_policy,
)
from homdp_ppl.core.kinds import kinds_of
from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.core.plan import Plan
from homdp_ppl.core.pomdp import POMDP

LAMP = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=2)
TABLES: dict[str, Any] = {
    "initial": np.array([0.5, 0.5]),
    "transition": np.full((2, 2, 2), 0.5),
    "emission": np.eye(2),
    "reward": np.eye(2),
}
MODEL = POMDP.of(**TABLES, horizon=2)
BY_STEP = POMDP.of(**{**TABLES, "transition": np.full((2, 2, 2, 2), 0.5)})


def repr_without_address(value):
    return repr(value).split(" at 0x")[0]


def wheres(error, run):
    with pytest.raises(error) as caught:
        run()
    return [problem.where for problem in caught.value.problems]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    "wrong",
    [["a", "b"], [[0.5], [0.5, 0.5]], None, "tiger", [None, 1.0], {"a": 1}, [1j, 0], object()],
    ids=repr_without_address,
)
def test_tables_that_are_not_numbers(name, wrong):
    assert name in wheres(PlanningError, lambda: POMDP.of(**{**TABLES, name: wrong}, horizon=2))
    if wrong is not None:
        assert name in wheres(PlanningError, lambda: MODEL.with_tables(**{name: wrong}))


@pytest.mark.parametrize("name", TABLES)
def test_masked_entries_are_missing(name):
    """The values under the mask, which would be a valid model here, are not used."""
    masked = np.ma.array(TABLES[name])
    assert POMDP.of(**{**TABLES, name: masked}, horizon=2).horizon == 2
    masked[..., 0] = np.ma.masked
    with pytest.raises(PlanningError) as caught:
        POMDP.of(**{**TABLES, name: masked}, horizon=2)
    first = caught.value.problems[0]
    assert (first.where, first.at) == (name, ", ".join("0" * masked.ndim))


@pytest.mark.parametrize("shape", [(2,), (3, 3), (2, 2, 3), ()])
def test_tables_that_do_not_fit_the_model(shape):
    assert "transition" in wheres(
        PlanningError, lambda: MODEL.with_tables(transition=np.full(shape, 0.5))
    )


def test_short_tables_of_another_size():
    wrong = {"initial": np.ones(3) / 3, "emission": np.ones((3, 2)) / 2, "reward": np.ones((2, 2))}
    for name, table in wrong.items():
        assert wheres(PlanningError, lambda n=name, t=table: MODEL.with_tables(**{n: t}))
    assert MODEL.with_tables(emission=np.full((2, 5), 0.2)).sizes == (2, 5, 2)


def test_four_arrays_are_not_a_model():
    assert wheres(PlanningError, lambda: POMDP(*TABLES.values())) == ["arguments"]


@pytest.mark.parametrize("model", [MODEL, BY_STEP, POMDP(*map(jnp.asarray, BY_STEP))])
@pytest.mark.parametrize("h", [2, 9, -1, 0.5, "a", None])
def test_steps_beyond_the_horizon(model, h):
    """Even where NumPy would count from the end, JAX would clamp, or one table has all steps."""
    for method in (model.moves, model.shows, model.shows_after, model.rewards):
        assert wheres(PlanningError, lambda m=method: m(h)) == ["step"]


def test_actions_and_observations_out_of_range():
    belief = np.array([0.5, 0.5])
    assert wheres(PlanningError, lambda: MODEL.predict(belief, 2, 0)) == ["action"]
    assert wheres(PlanningError, lambda: MODEL.shows(0, 3)) == ["action"]
    assert wheres(PlanningError, lambda: MODEL.likelihood(2, 0, 0)) == ["observation"]
    assert MODEL.shows(1, 2).shape == (2, 2)  # index A: before the first action


@pytest.mark.parametrize(
    "bonus",
    [[["a", "b"], ["c", "d"]], np.full((2, 2), np.nan), np.full((2, 2), np.inf), None, [1.0]],
    ids=repr_without_address,
)
def test_bonuses(bonus):
    assert set(wheres(PlanningError, lambda: MODEL.with_bonus(bonus))) == {"bonus"}
    assert MODEL.with_bonus(np.full((2, 2), -7.0)).reward.min() == -7  # may be outside [0, 1]


@pytest.mark.parametrize("dimension", ["a", 0, -1, 1.5, None, True, [2]])
def test_dimensions(dimension):
    assert wheres(SpacesError, lambda: Real(dimension)) == ["dimension"]


@pytest.mark.parametrize("model", ["tiger", None, 3, object(), {}])
def test_values_without_spaces(model):
    values = ["dark", "light"], ["press", "wait"], ["off", "on", "on"]
    episode = Episode.of(*values, LAMP)
    for run in (
        lambda: Episode.of(*values, model),
        lambda: Episodes.of([episode], model),
        lambda: Counts.of([episode], model),
        lambda: Counts.zero(model),
        lambda: uniform_policy(model),
    ):
        assert wheres(DataError, run) == ["model"]


@pytest.mark.parametrize("steps", [0, "a", None, 1.5])
def test_spaces_without_a_horizon(steps):
    assert wheres(DataError, lambda: uniform_policy(LAMP._replace(horizon=steps))) == ["horizon"]


@pytest.mark.parametrize("where", ["observations", "actions", "states"])
@pytest.mark.parametrize("wrong", [None, 3, "dark", object()], ids=repr_without_address)
def test_episodes_without_a_sequence(where, wrong):
    given = {"observations": [0, 1], "actions": [1, 0], "states": [0, 1, 1], where: wrong}
    assert where in wheres(DataError, lambda: Episode.of(**given, model=LAMP))


@pytest.mark.parametrize("wrong", ["a", [0.5], [0.5, "a"], 3.0])
def test_recorded_rewards(wrong):
    episode = [0, 1], [1, 0], [0, 1, 1], LAMP
    assert "rewards" in wheres(DataError, lambda: Episode.of(*episode, rewards=wrong))
    assert Episode.of(*episode, rewards=[0.5, None]).rewards.mask.tolist() == [False, True]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("start", np.ma.array([0, 0], mask=[False, True])),
        ("probabilities", np.ma.array([[0.5, 0.5]], mask=[[False, True]])),
        ("successor", np.ma.array([[[0, 0]]], mask=[[[False, True]]])),
        ("start", [[0], [0, 1]]),
        ("probabilities", [[1.0], [0.5, 0.5]]),
        ("successor", [[[0], [0, 1]]]),
        ("probabilities", None),
    ],
)
def test_graphs(name, wrong):
    given = {"start": [0, 0], "probabilities": [[0.5, 0.5]], "successor": [[[0, 0]]], name: wrong}
    assert name in wheres(PolicyError, lambda: GraphPolicy(**given))


@pytest.mark.parametrize("given", [None, "a", [0.5, 0.5], np.ma.array([[1.0]], mask=True)])
def test_blind_policies(given):
    policy = BlindPolicy(given)
    assert wheres(PolicyError, lambda: policy.act([0], []))[0] == "probabilities"
    assert wheres(PolicyError, lambda: policy.graph(2))[0] == "probabilities"


def test_policies_that_give_different_answers():
    """A conversion would keep only one of the answers. The caller samples actions."""
    generator = np.random.default_rng(0)

    class Fickle:
        def act(self, observations, actions):
            return generator.dirichlet([1.0, 1.0])

    assert wheres(PolicyError, lambda: GraphPolicy.from_policy(Fickle(), LAMP)) == ["act"]


@pytest.mark.parametrize("limit", [0, None, "many", 1.5])
def test_limits_of_nodes(limit):
    policy = uniform_policy(LAMP)
    run = lambda: GraphPolicy.from_policy(policy, LAMP, limit)  # noqa: E731
    assert wheres(HOMDPError, run) == ["max_nodes"]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"policy": None}, "policy"),
        ({"policy": BlindPolicy(np.ones((2, 2)) / 2)}, "policy"),
        ({"value": None}, "value"),
        ({"value": "much"}, "value"),
        ({"upper": [1.0, 2.0]}, "upper"),
        ({"model": None}, "model"),
        ({"model": models.load("tiger")}, "model"),
        ({"model": models.load("tiger").pomdp}, "policy"),
        ({"value": np.nan}, "certificate"),
        ({"upper": np.nan}, "certificate"),
        ({"value": 2.0}, "certificate"),
        ({"value": np.inf, "upper": np.inf}, "certificate"),
        ({"planner": None}, "planner"),
    ],
    ids=repr_without_address,
)
def test_plans(change, where):
    given = {"policy": uniform_policy(MODEL), "value": 1.0, "upper": 1.5, "model": MODEL}
    given |= {"planner": "test"}
    assert make_plan(**given).gap == 0.5
    assert wheres(HOMDPError, lambda: make_plan(**{**given, **change})) == [where]


def test_certificates_of_plans_created_directly():
    given = uniform_policy(MODEL), np.nan, 1.0
    assert wheres(PlanningError, lambda: Plan(*given, True, "test", {}, LAMP, MODEL)) == [
        "certificate"
    ]
    assert not Plan(*given, False, "test", {}, LAMP, MODEL).certified
    endless = uniform_policy(MODEL), 1.0, np.inf
    assert wheres(PlanningError, lambda: Plan(*endless, True, "test", {}, LAMP, MODEL)) == [
        "certificate"
    ]


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_beliefs_and_values_are_finite(number):
    wrong = np.array([0.5, number])
    assert wheres(PlanningError, lambda: MODEL.predict(wrong, 0, 0)) == ["b"]
    assert wheres(PlanningError, lambda: MODEL.backup(wrong, 0)) == ["v"]


@pytest.mark.parametrize(
    "mask",
    [
        np.full((1, 3), "2026-01-01", dtype="datetime64[D]"),
        np.full((1, 3), 2),
        np.full((1, 3), 0.5),
        np.full((1, 3), "yes"),
    ],
    ids=["dates", "indices", "fractions", "text"],
)
def test_masks_are_true_or_false(mask):
    given = np.zeros((1, 2), int), np.zeros((1, 2), int), np.zeros((1, 3), int)
    assert wheres(DataError, lambda: Episodes(*given, revealed=mask)) == ["revealed"]
    for valid in ([[True, False, True]], np.array([[1, 0, 1]]), np.array([[1.0, 0.0, 1.0]])):
        assert Episodes(*given, revealed=valid).revealed.tolist() == [[True, False, True]]


def test_ids_are_not_arrays():
    given = np.zeros((2, 2), int), np.zeros((2, 2), int), np.zeros((2, 3), int)
    ragged = np.zeros((2, 3)), np.zeros(2)
    assert wheres(DataError, lambda: Episodes(*given, ids=ragged)) == ["ids"]


@pytest.mark.parametrize("name", ["length", "ended", "ids"])
def test_one_value_per_episode(name):
    """Found by fuzzing: an array with further axes was broadcast, or raised a ValueError."""
    given = np.zeros((2, 2), int), np.zeros((2, 2), int), np.zeros((2, 3), int)
    value = {"length": 2, "ended": "horizon", "ids": "a"}[name]
    assert wheres(DataError, lambda: Episodes(*given, **{name: np.full((2, 1), value)})) == [name]
    assert len(Episodes(*given, **{name: np.full(2, value)})) == 2


def test_plans_have_no_tables_to_count():
    """Found by fuzzing: an AttributeError."""
    plan = make_plan(
        policy=uniform_policy(MODEL), value=1.0, upper=1.5, model=MODEL, planner="test"
    )
    wrong: Any = plan
    assert wheres(DataError, lambda: Counts.zero(wrong)) == ["model"]


def test_numbers():
    for given in (np.ma.array([1.0]), jnp.ones(2), np.float32([1]), [True], range(3)):
        numbers, problems = as_numbers("x", given, "shape (n,)")
        assert numbers is not None
        assert not problems
    many = np.ma.masked_all((4, 5))
    problems = as_numbers("x", many, "shape (n,)")[1]
    assert len(problems) == 9
    assert problems[0].at == "0, 0"


def test_unions_without_arrays_accept_no_arrays():
    """From NumPy 2.5 on, ArrayLike is a named alias without parts."""

    def run(episodes: Episodes | None, numbers: ArrayLike | None) -> None:
        """A function of a union without arrays, and of one with arrays."""

    kinds = kinds_of(run)
    assert [kinds["episodes"].accepts(value) for value in (None, np.ones(2), 1.0)] == [
        True,
        False,
        False,
    ]
    assert [kinds["numbers"].accepts(value) for value in (None, np.ones(2), "a")] == [
        True,
        True,
        False,
    ]

"""Every public function that takes a POMDP raises PlanningError for an invalid one.

The functions are found by their recipes: an argument takes a POMDP if the valid call passes one, or
if the call succeeds with one in place of a world, a declaration or spaces.
"""

import contextlib
import inspect
import io
from functools import cache
from typing import get_args

import jax
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from homdp_ppl import HOMDP, POMDP, HOMDPError, ParameterError, PlanningError, Spaces, World
from homdp_ppl.core.pomdp_validation import check_candidates, check_pomdp
from homdp_ppl.planners import Support
from tests.mistakes.cases import recipes
from tests.mistakes.public import public
from tests.mistakes.things import tiger
from tests.planners.exact import random_pomdp

# Records: what they hold is validated when it is used (in learning, and in backups).
RECORDS = {"explorers.Proposal", "explorers.Pairs", "confidence.Moments", "confidence.Sets"}
# A support is a pattern of entries that can be non-zero: its rows need not be probabilities.
PATTERNS = {"planners.Support.of"}
ANYTHING = {"explorers.Objective.root"}  # calls a function of the user with any declaration


def half_a_start(model):
    return model._replace(initial=model.initial / 2)


def a_negative_emission(model):
    emission = model.emission.copy()
    emission[..., 0] -= 1.5
    emission[..., 1] += 1.5
    return model._replace(emission=emission)


def a_reward_of_nan(model):
    reward = model.reward.copy()
    reward.flat[-1] = np.nan
    return model._replace(reward=reward)


def a_transition_of_nan(model):
    transition = model.transition.copy()
    transition.flat[0] = np.nan
    return model._replace(transition=transition)


ATTACKS = {
    half_a_start: "initial",
    a_negative_emission: "emission",
    a_reward_of_nan: "reward",
    a_transition_of_nan: "transition",
}


def call(recipe, name, model):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return recipe.call(**recipe.arguments | {name: model})
    finally:
        plt.close("all")


def model_for(recipe, name):
    """A valid POMDP that this argument accepts, or None."""
    given = recipe.arguments[name]
    if isinstance(given, POMDP):
        return given
    if not isinstance(given, World | HOMDP | Spaces):
        return None
    world = given if isinstance(given, World) and given.spaces.finite else tiger()
    try:
        call(recipe, name, world.pomdp)
    except HOMDPError:
        return None
    return world.pomdp


@cache
def taking_models():
    matplotlib.use("Agg")
    return [
        (recipe, name, model)
        for recipe in recipes()
        if recipe.name not in RECORDS | PATTERNS | ANYTHING
        for name in recipe.arguments
        if (model := model_for(recipe, name)) is not None
    ]


@pytest.mark.filterwarnings("ignore")
def test_all_functions_that_declare_a_pomdp_are_found():
    found = {recipe.name for recipe, _, _ in taking_models()}
    declared = {
        name
        for name, thing in public().items()
        if inspect.isfunction(thing)
        and any(_mentions(each) for each in inspect.signature(thing).parameters.values())
    }
    assert declared - found == set()
    assert {"theory.report", "confidence.continuations", "planners.root_bounds", "Plan"} <= found
    assert len(taking_models()) > 30


def _mentions(parameter):
    hint = parameter.annotation
    return "POMDP" in str(hint).split(" | ") or POMDP in (hint, *get_args(hint))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_invalid_models_raise(attack):
    accepted = []
    for recipe, name, model in taking_models():
        wrong = attack(POMDP(*map(np.array, model)))
        try:
            call(recipe, name, wrong)
        except PlanningError as error:
            if any(problem.where == ATTACKS[attack] for problem in error.problems):
                continue
        accepted.append((recipe.name, name))
    assert not accepted


@pytest.mark.parametrize("number", [np.nan, -0.5])
@pytest.mark.parametrize("field", ["initial", "transition", "emission"])
def test_supports_refuse_nan_and_negative_numbers(field, number):
    model = random_pomdp(0, 2, 3, 2, 2)
    table = getattr(model, field).copy()
    table.flat[0] = number
    with pytest.raises(ParameterError) as caught:
        Support.of(model._replace(**{field: table}))
    assert [problem.where for problem in caught.value.problems] == [field]


# Candidates along leading axes


def batch(*models):
    return POMDP(*(np.stack(parts) for parts in zip(*models, strict=True)))


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
@pytest.mark.parametrize("convert", [np.asarray, jax.numpy.asarray, np.ma.asarray])
def test_one_invalid_candidate_raises(attack, convert):
    valid = [random_pomdp(seed, 2, 3, 2, 2) for seed in range(3)]
    models = batch(*valid)
    assert check_candidates(POMDP(*map(convert, models)), "test").initial.shape == (3, 2)
    models = batch(*valid[:2], attack(valid[2]))
    with pytest.raises(PlanningError) as caught:
        check_candidates(POMDP(*map(convert, models)), "test")
    assert {problem.where for problem in caught.value.problems} == {ATTACKS[attack]}


def test_candidates_need_the_same_axes_in_all_fields():
    valid = random_pomdp(0, 2, 3, 2, 2)
    models = batch(valid, valid)
    with pytest.raises(PlanningError):
        check_candidates(models._replace(initial=valid.initial), "test")
    with pytest.raises(PlanningError):
        check_pomdp(models, "test")


# Models that need a closer look than plain float64 arrays


@pytest.mark.parametrize(
    "convert",
    [
        lambda part: np.asarray(part, dtype=np.float32),
        lambda part: np.asarray(part).astype(part.dtype.newbyteorder(">")),
        lambda part: np.asarray(part).tolist(),
        jax.numpy.asarray,
        np.ma.asarray,
    ],
    ids=["float32", "big-endian", "lists", "JAX", "masked arrays"],
)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_other_number_types_are_validated(convert, attack):
    model = random_pomdp(0, 2, 3, 2, 2)
    check_pomdp(POMDP(*map(convert, model)), "test")
    with pytest.raises(PlanningError) as caught:
        check_pomdp(POMDP(*map(convert, attack(model))), "test")
    assert {problem.where for problem in caught.value.problems} == {ATTACKS[attack]}


@pytest.mark.parametrize("field", ["scale", "shift"])
def test_scale_and_shift_must_be_finite(field):
    model = random_pomdp(0, 2, 3, 2, 2)
    for wrong in (np.array(np.inf), np.array(np.nan), float("nan"), None):
        with pytest.raises(PlanningError) as caught:
            check_pomdp(model._replace(**{field: wrong}), "test")
        assert {problem.where for problem in caught.value.problems} == {field}


def test_terminal_must_be_true_or_false():
    model = random_pomdp(0, 2, 3, 2, 2)
    check_pomdp(model._replace(terminal=np.array([0.0, 1.0])), "test")
    with pytest.raises(PlanningError) as caught:
        check_pomdp(model._replace(terminal=np.array([0.0, 2.0])), "test")
    assert {problem.where for problem in caught.value.problems} == {"terminal"}


def test_sums_may_differ_by_the_rounding_of_float32():
    model = random_pomdp(0, 2, 3, 2, 2)
    check_pomdp(model._replace(initial=model.initial * (1 + 9e-7)), "test")
    for factor in (1 + 1.1e-6, 1 - 1.1e-6):
        with pytest.raises(PlanningError):
            check_pomdp(model._replace(initial=model.initial * factor), "test")

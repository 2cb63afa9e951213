"""Cases: recipes with one or two arguments replaced by mistakes, and how to run them."""

from __future__ import annotations

import contextlib
import io
import random
import signal
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import jax
import matplotlib.pyplot as plt

from homdp_ppl.precision import x64
from tests.mistakes import (
    recipes_agent,
    recipes_check,
    recipes_core,
    recipes_field,
    recipes_learning,
    recipes_logs,
    recipes_maths,
    recipes_offline,
    recipes_report,
    recipes_rules,
    recipes_studies,
    recipes_worth,
)
from tests.mistakes.recipe import Recipe
from tests.mistakes.values import Mistake, mistakes
from tests.mistakes.verdicts import Outcome, of_error, of_result

SECONDS = 20.0  # of processor time; a call that takes longer counts as hanging
CALL_ERRORS = ("unexpected keyword argument", "positional argument", "got multiple values")


class Case(NamedTuple):
    """A call with mistakes."""

    recipe: Recipe
    replaced: dict[str, Mistake]
    shape: str = ""  # "keyword" or "positional": a mistake in the form of the call

    def __str__(self) -> str:
        parts = [f"{name}={mistake.label}" for name, mistake in self.replaced.items()]
        return f"{self.recipe.name}({', '.join([*parts, self.shape] if self.shape else parts)})"


class TakesTooLongError(BaseException):
    """Raised in a call that hangs; not an Exception, so that nothing catches it."""


@cache
def recipes() -> tuple[Recipe, ...]:
    """All recipes."""
    families = [
        recipes_core.declaring,
        recipes_core.numbers,
        recipes_learning.acting,
        recipes_learning.believing,
        recipes_learning.learning,
        recipes_agent.agents,
        recipes_check.checks,
        recipes_field.histories,
        recipes_logs.logs,
        recipes_rules.rules,
        recipes_rules.planning,
        recipes_rules.files,
        recipes_studies.studies,
        recipes_worth.hindsight,
        recipes_maths.confidences,
        recipes_maths.evaluating,
        recipes_maths.inferring,
        recipes_maths.statements,
        recipes_offline.offline_recipes,
        recipes_report.tables,
        recipes_report.pictures,
    ]
    return tuple(recipe for family in families for recipe in family())


def case(seed: int, number: int) -> Case:
    """The case with this number; it depends only on the seed and the number."""
    chance = random.Random(f"{seed}:{number}")
    choices = [recipe for recipe in recipes() if recipe.arguments]
    recipe = chance.choice(choices)
    shape = chance.random()
    if shape < 0.01:
        return Case(recipe, {}, "keyword")
    if shape < 0.02:
        return Case(recipe, {}, "positional")
    count = 2 if shape > 0.9 and len(recipe.arguments) > 1 else 1
    names = chance.sample(sorted(recipe.arguments), count)
    return Case(recipe, {name: _mistake(recipe, name, chance) for name in names})


def _mistake(recipe: Recipe, name: str, chance: random.Random) -> Mistake:
    value = recipe.arguments[name]
    allowed = [
        each
        for each in mistakes(value)
        if not (name in recipe.patient and each.label == "a huge number")
    ]
    drawn = chance.choice(allowed)
    loose = recipe.record or name in recipe.free
    return drawn._replace(verdict="any") if loose and drawn.verdict == "refuse" else drawn


def run(case: Case) -> Outcome:
    """Run a case with a time limit; returns its outcome."""
    traced = any(mistake.traced for mistake in case.replaced.values())
    verdicts = {mistake.verdict for mistake in case.replaced.values()}
    verdict = "any" if not verdicts or len(verdicts) > 1 else verdicts.pop()
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with _quiet():
            result = _traced(case) if traced else _called(case)
            if not case.recipe.record:
                _use(result)
    except TakesTooLongError:
        return Outcome("hang", f"more than {SECONDS:g} s of processor time")
    except TypeError as error:
        if case.shape and any(text in str(error) for text in CALL_ERRORS):
            return Outcome("refused", str(error))
        return of_error(error)
    except Exception as error:
        return of_error(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        plt.close("all")
    if traced or case.recipe.record or case.replaced.keys() & case.recipe.free:
        return Outcome("accepted")
    return of_result(result, valid(case.recipe), verdict)


_REFERENCES: dict[int, tuple[Recipe, Any]] = {}  # keeping the recipe keeps its id unique


def valid(recipe: Recipe) -> Any:
    """The result of the valid call, computed once."""
    place = id(recipe)
    if place not in _REFERENCES:
        with _quiet():
            _REFERENCES[place] = recipe, recipe.call(**recipe.arguments)
        plt.close("all")
    return _REFERENCES[place][1]


def _called(case: Case) -> Any:
    given = case.recipe.arguments | {name: m.value for name, m in case.replaced.items()}
    if case.shape == "keyword":
        return case.recipe.call(**given, no_such_argument=1)
    if case.shape == "positional":
        return case.recipe.call(*range(20))
    return case.recipe.call(**given)


def _traced(case: Case) -> Any:
    """Call inside a JAX transformation."""
    given = case.recipe.arguments | {name: m.value for name, m in case.replaced.items()}
    names = [name for name, mistake in case.replaced.items() if mistake.traced]

    def inside(*values: Any) -> Any:
        case.recipe.call(**given | dict(zip(names, values, strict=True)))
        return 0

    with x64():
        jax.make_jaxpr(inside)(*(given[name] for name in names))
    return None


def _use(result: Any) -> None:
    """Use a result as users do first: print it and read its properties."""
    repr(result)
    if not type(result).__module__.startswith("homdp_ppl"):
        return
    for name, part in vars(type(result)).items():
        if isinstance(part, property) and not name.startswith("_"):
            getattr(result, name)


def _too_long(*_: Any) -> None:
    raise TakesTooLongError


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield

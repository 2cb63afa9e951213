"""Fuzzing of the public API: plausible mistakes raise a HOMDPError or are harmless.

Each case replaces one or two arguments of a valid call. Other exceptions, silently wrong results,
calls that hang and exhausted memory are failures. ``python -m tests.mistakes --calls 10000`` prints
a summary.
"""

import numpy as np
import pytest

from homdp_ppl import HOMDPError, Problem, confidence, explorers
from homdp_ppl.core import checked
from tests.mistakes import cases, driver, things
from tests.mistakes.driver import results, summary
from tests.mistakes.public import required
from tests.mistakes.recipe import recipe
from tests.mistakes.values import Mistake, mistakes
from tests.mistakes.verdicts import of_message

SEED = 18


def failures(calls, first=0):
    found = list(results(calls, SEED, first=first))
    assert len(found) == calls - first, summary(found)
    return [str(result) for result in found if result.failed]


def test_everything_public_has_a_recipe():
    """A new function, class, method or property needs a recipe: a valid call."""
    assert {each.name for each in cases.recipes()} == required()


def test_every_argument_of_a_recipe_has_mistakes():
    """There is a plausible mistake for every argument of every recipe."""
    for each in cases.recipes():
        assert all(mistakes(value) for value in each.arguments.values()), each.name


def test_a_few_hundred_mistakes():
    assert not failures(300)


@pytest.mark.slow
def test_a_thousand_mistakes():
    assert not failures(1300, first=300)


@pytest.mark.slow
@pytest.mark.long
def test_ten_thousand_mistakes():
    assert not failures(11_300, first=1300)


# Tests of the suite itself, with planted bugs


def outcome(each, **replaced):
    return cases.run(cases.Case(each, replaced))


def test_raw_errors_are_caught(monkeypatch):
    """Without the type check, an AttributeError is raised."""
    each = recipe("has_moments", confidence.has_moments, homdp=things.tiger().homdp)
    wrong = Mistake("a World", things.tiger(), "any")
    assert outcome(each, homdp=wrong).kind == "refused"
    bare = each._replace(call=confidence.has_moments.__wrapped__)
    found = outcome(bare, homdp=wrong)
    assert found.failed
    assert found.kind == "raw"
    assert found.detail.startswith("AttributeError")


def test_silently_wrong_results_are_caught(monkeypatch):
    """Without the check of the flag, "yes" is treated as True."""
    each = recipe("tight", explorers.tight, delta=0.1, known=True)
    wrong = Mistake("yes", "yes", "refuse")
    assert outcome(each, known=wrong).kind == "refused"
    assert outcome(each._replace(call=explorers.tight.__wrapped__), known=wrong).kind == "nonsense"
    doubled = recipe("double", lambda x: 2 * np.float32(x), x=0.1)
    same = Mistake("float32", np.float32(0.1), "same")
    assert outcome(doubled, x=same).kind == "accepted"
    broken = doubled._replace(call=lambda x: 2 * x if type(x) is float else x)
    assert outcome(broken, x=same).kind == "nonsense"


def test_results_out_of_range_are_caught():
    """The result is NaN although that of the valid call is a number."""
    each = recipe("logarithm", lambda x: float(np.log(x)), x=1.0)
    assert outcome(each, x=Mistake("negative", -1.0, "any")).kind == "nonsense"


def test_hanging_calls_and_memory_errors_are_caught(monkeypatch):
    monkeypatch.setattr(cases, "SECONDS", 0.2)

    def count(n):
        while n:
            n -= 1

    each = recipe("count", count, n=1)
    assert outcome(each, n=Mistake("a huge number", 2**70, "any")).kind == "hang"

    def allocate(n):
        raise MemoryError

    each = recipe("allocate", allocate, n=1)
    assert outcome(each, n=Mistake("a huge number", 2**70, "any")).kind == "memory"


def test_a_process_that_runs_no_case_is_an_error(monkeypatch):
    """Planted: the time for imports is too short. Without the error, no case would have failed."""
    monkeypatch.setattr(driver, "PATIENCE", 0.01)
    with pytest.raises(RuntimeError):
        list(driver.results(1, SEED))


def test_unknown_keywords_may_raise_a_type_error():
    each = recipe("tight", explorers.tight, delta=0.1)
    assert cases.run(cases.Case(each, {}, "keyword")).kind == "refused"
    assert cases.run(cases.Case(each, {}, "positional")).kind == "refused"


@pytest.mark.parametrize(
    "error",
    [
        HOMDPError("explorer", []),
        HOMDPError("f", [Problem("explorer", "", "an Explorer")]),
        HOMDPError("f", [Problem("explorer", repr(object()), "an Explorer")]),
    ],
)
def test_incomplete_messages_are_caught(error):
    assert of_message(error).failed


def test_the_subject_may_be_the_argument():
    assert not of_message(HOMDPError("policy", [Problem("policy", "3", "a Policy")])).failed


def test_cases_depend_only_on_seed_and_number():
    first = [str(cases.case(SEED, number)) for number in range(40)]
    assert first == [str(cases.case(SEED, number)) for number in reversed(range(40))][::-1]
    assert len(set(first)) > 30
    assert first != [str(cases.case(SEED + 1, number)) for number in range(40)]


def test_annotations_are_analysed_only_once():
    """Later calls use the cached result, because the learning loop calls such functions."""
    asked = []

    @checked.checked  # type: ignore[untyped-decorator]
    def function(count: int):
        return count

    original = checked.kinds_of
    try:
        checked.kinds_of = lambda each: asked.append(each) or original(each)
        assert [function(k) for k in range(5)] == list(range(5))
    finally:
        checked.kinds_of = original
    assert len(asked) == 1

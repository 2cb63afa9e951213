"""Errors: formatting, pickling and suggestions."""

import pickle

from homdp_ppl import DeclarationError, HOMDPError, Problem
from homdp_ppl.errors import LISTED, did_you_mean, in_one_line

SIZE = Problem("size", "3", "at most 2", "Take less.")


def test_a_problem_says_where_what_and_what_to_do():
    assert str(SIZE) == "size: got 3; expected at most 2. Take less."
    assert str(SIZE._replace(at="left", remedy="")) == "size[left]: got 3; expected at most 2"


def test_problems_are_numbered_and_repeated_remedies_are_omitted():
    error = HOMDPError(
        "model", [SIZE, SIZE._replace(got="4"), SIZE._replace(remedy="Or more."), SIZE]
    )
    assert str(error).splitlines() == [
        "model: 4 problems",
        "  1. size: got 3; expected at most 2. Take less.",
        "  2. size: got 4; expected at most 2",
        "  3. size: got 3; expected at most 2. Or more.",
        "  4. size: got 3; expected at most 2. Take less.",
    ]
    assert all(problem.remedy for problem in error.problems)


def test_problems_beyond_the_limit_are_counted():
    error = HOMDPError("model", [SIZE._replace(got=str(k)) for k in range(LISTED + 5)])
    assert len(str(error).splitlines()) == LISTED + 2
    assert str(error).endswith("... and 5 more in .problems")
    assert len(error.problems) == LISTED + 5


def test_errors_are_picklable():
    error = DeclarationError("model", [SIZE])
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is DeclarationError
    assert (str(copy), copy.problems) == (str(error), error.problems)


def test_errors_on_one_line():
    error = HOMDPError("model", [SIZE, Problem("name", "a\nb", "one line")])
    assert (
        in_one_line(error)
        == "model: size: got 3; expected at most 2. Take less. | name: got a b; expected one line"
    )
    error = HOMDPError("model", [SIZE, SIZE._replace(got="4"), SIZE._replace(remedy="Or more.")])
    assert in_one_line(error) == (
        "model: size: got 3; expected at most 2 | size: got 4; expected at most 2. Take less. "
        "| size: got 3; expected at most 2. Or more."
    )


def test_similar_names_are_suggested():
    assert did_you_mean("listn", ("listen", "open")) == "Did you mean 'listen'?"
    assert did_you_mean("LISTEN ", ("listen", "open")) == "Did you mean 'listen'?"
    assert did_you_mean("zebra", ("listen", "open")) == did_you_mean("listen", ()) == ""

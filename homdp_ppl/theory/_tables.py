"""The models to which the paper's statements apply."""

from __future__ import annotations

from homdp_ppl.core.form import Form
from homdp_ppl.core.pomdp_validation import spaces_of
from homdp_ppl.core.spaces import HasTables
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem, with_article

KNOWN_REWARDS = "Pass model.spaces for the statements about models with known rewards."
KNOWN_START = (
    "Pass Spaces with one more state, from which every episode starts, and one more step. Or pass "
    "model.spaces for the statements about models with a known start."
)


def require_covered(model: HasTables, subject: str, start: bool = False) -> None:
    """Raise an error unless the paper's proofs apply: one transition and one emission table for
    all steps, and known rewards.

    Rewards may depend on the step and, by the remark in section 3, on the observation; a terminal
    state is an absorbing state with a known row.

    Parameters
    ----------
    model
        A declaration, a world, a POMDP or spaces, all finite. Only the first two say what is known.
    subject
        The calling function, named in the error.
    start
        Whether the initial distribution has to be known, too.
    """
    form = getattr(model, "form", None)
    if not isinstance(form, Form):  # something else with spaces, such as a plan
        expected = "a declaration, a world, a POMDP or spaces"
        raise ParameterError(
            subject, [Problem("model", with_article(type(model).__name__), expected)]
        )
    X, _, A, H = spaces_of(model, subject).sizes
    step = (
        "Include the step in the states, and pass that model or Spaces with "
        f"H X = {H * X:,} states."
    )
    action = (
        "Include the action in the states, and pass that model or Spaces with "
        f"(A + 1) X = {(A + 1) * X:,} states, one for each emission row."
    )
    dependence = [
        ("transition", "the step", form.moves_by_step, step),
        ("emission", "the step", form.shows_by_step, step),
        ("emission", "the previous action", form.answers_action, action),
    ]
    problems = [
        Problem(where, f"a table that depends on {what}", "one table for all steps", remedy)
        for where, what, depends, remedy in dependence
        if depends
    ]
    problems += _unknown_problems(model, start)
    if problems:
        raise ParameterError(subject, problems)


def _unknown_problems(model: HasTables, start: bool) -> list[Problem]:
    """Report rewards, and optionally a start, that a declaration leaves to be learned."""
    declared = model.homdp if isinstance(model, World) else model
    if not isinstance(declared, HOMDP):
        return []
    tables, problems = declared.structure.tables, []
    if start and not tables["initial"].known.all():
        got, expected = "a distribution that has to be learned", "a known initial distribution"
        problems.append(Problem("initial", got, expected, KNOWN_START))
    if "reward" in tables and not tables["reward"].known.all():
        got, expected = "rewards that have to be learned", "known rewards"
        problems.append(Problem("reward", got, expected, KNOWN_REWARDS))
    return problems

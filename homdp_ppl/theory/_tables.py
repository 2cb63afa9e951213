"""The models to which the paper's statements apply."""

from __future__ import annotations

from homdp_ppl.core.form import Form
from homdp_ppl.core.spaces import HasTables
from homdp_ppl.errors import ParameterError, Problem, with_article

EXTENDED = "Include them in the states, and pass that model or its Spaces."


def require_single_tables(model: HasTables, subject: str) -> None:
    """Raise an error unless one transition and one emission table apply at every step.

    The paper's proofs need this. Rewards may depend on the step and, by the remark in section 3,
    on the observation; a terminal state is an absorbing state with a known row.

    Parameters
    ----------
    model
        A declaration, a world, a POMDP or spaces, all finite.
    subject
        The calling function, named in the error.
    """
    form = getattr(model, "form", None)
    if not isinstance(form, Form):  # something else with spaces, such as a plan
        expected = "a declaration, a world, a POMDP or spaces"
        raise ParameterError(
            subject, [Problem("model", with_article(type(model).__name__), expected)]
        )
    dependence = [
        ("transition", "the step", form.moves_by_step),
        ("emission", "the step", form.shows_by_step),
        ("emission", "the previous action", form.answers_action),
    ]
    problems = [
        Problem(where, f"a table that depends on {what}", "one table for all steps", EXTENDED)
        for where, what, depends in dependence
        if depends
    ]
    if problems:
        raise ParameterError(subject, problems)

"""The models to which the paper's statements apply."""

from __future__ import annotations

from typing import Any

import numpy as np

from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem

EXTENDED = "Include them in the states, and pass that model or its Spaces."


def require_single_tables(model: Any, subject: str) -> None:
    """Raise an error unless one transition and one emission table apply at every step.

    The paper's proofs need this. Rewards may depend on the step and, by the remark in section 3,
    on the observation; a terminal state is an absorbing state with a known row.

    Parameters
    ----------
    model
        A declaration, a world, a POMDP or spaces.
    subject
        The calling function, named in the error.
    """
    transition, emission = _shapes(model)
    problems = []
    if transition[0] > 1:
        problems.append(_problem("transition", "the step"))
    if emission[0] > 1:
        problems.append(_problem("emission", "the step"))
    if emission[1] > 1:
        problems.append(_problem("emission", "the previous action"))
    if problems:
        raise ParameterError(subject, problems)


def _shapes(model: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Numbers of transition tables, by step, and of emission tables, by step and action."""
    if isinstance(model, HOMDP | World) and not model.spaces.finite:
        return (1,), (1, 1)
    if isinstance(model, HOMDP):
        tables = model.structure.reference
        leading = np.shape(tables.transition)[:-3], np.shape(tables.emission)[:-2]
        return (1, *leading[0])[-1:], (1, 1, *leading[1])[-2:]
    pomdp = model.pomdp if isinstance(model, World) else model
    if isinstance(pomdp, POMDP):
        return np.shape(pomdp.transition)[-4:-3], np.shape(pomdp.emission)[-4:-2]
    return (1,), (1, 1)


def _problem(where: str, what: str) -> Problem:
    return Problem(where, f"a table that depends on {what}", "one table for all steps", EXTENDED)

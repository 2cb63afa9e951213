"""Policies that are written as plain functions of names, such as the guideline of a clinic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.core.policy import as_history, history_problems, range_problems
from homdp_ppl.core.policy_card import PolicyCard, too_long
from homdp_ppl.core.pomdp_validation import spaces_of
from homdp_ppl.core.probabilities import FLOAT32, normalised
from homdp_ppl.core.sensors import Sensors
from homdp_ppl.core.spaces import HasSpaces, Real, shape_of
from homdp_ppl.errors import PolicyError, Problem, shown, unknown
from homdp_ppl.precision import Array

# The observations and actions so far, as tuples of names, to the next action.
Guideline: TypeAlias = Callable[[tuple[Any, ...], tuple[str, ...]], Any]

SUBJECT = "FunctionPolicy.act"
ANSWER = "the name or the index of an action, {action: probability}, or one probability per action"


class FunctionPolicy:
    """A policy that is written as a plain function of the names of observations and actions.

    Parameters
    ----------
    function
        A function of y_1 .. y_h and a_1 .. a_{h-1}, which are tuples of names. Observations of
        several sensors are dicts {sensor: outcome}, and real-valued ones are numbers or arrays. It
        returns the name or the index of the next action, a dict {action: probability}, or an array
        of probabilities, (A,).
    model
        The HOMDP, World or POMDP in which it acts, or its spaces.

    Examples
    --------
    >>> from homdp_ppl import FunctionPolicy, evaluate, models
    >>> tiger = models.load("tiger")
    >>> def guideline(observations, actions):
    ...     if len(observations) < 2 or observations[-1] != observations[-2]:
    ...         return "listen"
    ...     return "open right" if observations[-1] == "growl left" else "open left"
    >>> policy = FunctionPolicy(guideline, tiger)
    >>> policy.act(["growl left"], [])
    array([1., 0., 0.])
    >>> round(evaluate(policy, tiger.pomdp), 3)
    3.641
    """

    @checked
    def __init__(self, function: Guideline, model: HasSpaces) -> None:
        self.function = function
        self.spaces = spaces_of(model, "FunctionPolicy")

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}.

        Values are names or indices.
        """
        seen, done = self._history(observations, actions)
        names = self.spaces.actions
        answer = self.function(tuple(map(self._named, seen)), tuple(names[a] for a in done))
        chances, problems = self._chances(answer)
        refuse(PolicyError, SUBJECT, [p._replace(at=f"step {len(seen)}") for p in problems])
        return normalised(chances)

    def _history(self, observations: ArrayLike, actions: ArrayLike) -> tuple[Array, Array]:
        """The indices, or the real-valued observations, of a valid history."""
        space, names = self.spaces.observations, self.spaces.actions
        seen, done = as_history(SUBJECT, observations, actions, (space, names))
        if isinstance(space, Real):
            shape = (len(np.atleast_1d(done)) + 1, *shape_of(space))
            problems = range_problems("actions", done, len(names))
            if seen.shape != shape or seen.dtype.kind not in "iuf" or not np.isfinite(seen).all():
                expected = f"finite numbers of shape {shape}, one observation more than actions"
                problems.append(Problem("observations", shown(seen), expected))
        else:
            problems = history_problems(seen, done, len(space), len(names))
        problems = problems or too_long(PolicyCard(self.spaces.horizon), len(seen))
        refuse(PolicyError, SUBJECT, problems)
        return seen, done

    def _named(self, observation: Any) -> Any:
        """One observation, as the function receives it."""
        space = self.spaces.observations
        if isinstance(space, Real):
            return np.array(observation) if space.shape else float(observation)
        return space.split(observation) if isinstance(space, Sensors) else space[observation]

    def _chances(self, answer: Any) -> tuple[Array, list[Problem]]:
        """The probabilities that an answer of the function means, and its problems."""
        names = self.spaces.actions
        wrong = [Problem("function", f"the answer {shown(answer)}", ANSWER)]
        if isinstance(answer, str):
            answer = {answer: 1.0}
        elif isinstance(answer, int | np.integer) and not isinstance(answer, bool):
            if not 0 <= answer < len(names):
                return np.zeros(0), wrong
            answer = {names[answer]: 1.0}
        if isinstance(answer, Mapping):
            strange = [str(name) for name in answer if name not in names]
            if strange:
                return np.zeros(0), [
                    unknown("function", "action", name, names, "this model") for name in strange
                ]
            answer = [answer.get(name, 0.0) for name in names]
        try:
            chances = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError):
            return np.zeros(0), wrong
        if chances.shape != (len(names),) or not (chances >= 0).all():
            return chances, wrong
        return chances, [] if abs(chances.sum() - 1) <= FLOAT32 else wrong

    def __repr__(self) -> str:
        return f"FunctionPolicy({getattr(self.function, '__name__', self.function)})"

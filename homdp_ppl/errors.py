"""What a person reads when something is wrong: every problem at once, each with what was expected and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LISTED = 20  # problems printed in full; the rest are counted


class Problem(NamedTuple):
    """One thing that is wrong, where it stands and how to put it right."""

    where: str  # the argument, kernel or site: "transition", "horizon", "site 'accuracy'"
    got: str  # what was found there
    expected: str
    remedy: str = ""
    at: str = ""  # which entry, in the model's own names: "(left, listen)"

    def __str__(self) -> str:
        place = f"{self.where}[{self.at}]" if self.at else self.where
        line = f"{place}: got {self.got}; expected {self.expected}"
        return f"{line}. {self.remedy}" if self.remedy else line


class HOMDPError(ValueError):
    """The toolkit's errors: a ``ValueError`` that carries its problems one by one.

    Attributes
    ----------
    problems
        Everything that was found wrong, as :class:`Problem` tuples.
    """

    def __init__(self, subject: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        lines = [f"{subject}: {count}"]
        told = ""
        for k, problem in enumerate(self.problems[:LISTED], 1):  # a remedy that follows itself is told once
            lines.append(f"  {k}. {problem._replace(remedy='') if problem.remedy == told else problem}")
            told = problem.remedy
        if len(self.problems) > LISTED:
            lines.append(f"  ... and {len(self.problems) - LISTED} more in .problems")
        super().__init__(subject, self.problems)  # of which a copy is made in another process
        self._message = "\n".join(lines)

    def __str__(self) -> str:
        return self._message


def in_one_line(error: HOMDPError) -> str:
    """All that an error says, on one line.

    Examples
    --------
    >>> in_one_line(HOMDPError("model", [Problem("name", "'tigr'", "a name of the zoo", "Did you mean tiger?")]))
    "model: name: got 'tigr'; expected a name of the zoo. Did you mean tiger?"
    """
    lines = str(error).splitlines()
    problems = [str(problem) for problem in error.problems]
    told = f"{error.args[0]!s}: {' | '.join(problems)}" if len(lines) > 1 else lines[0]
    return " ".join(told.split())


class DeclarationError(HOMDPError):
    """A declaration that is not a HOMDP."""


class ParameterError(HOMDPError):
    """Parameters that do not belong to a declaration, or lie outside the support of its sites."""


class DataError(HOMDPError):
    """Episodes or counts that do not belong to a model."""


class InferenceError(HOMDPError):
    """A posterior that could not be computed well enough for what is asked of it, with the numbers and the remedy."""


class PlanningError(HOMDPError):
    """A problem that a planner cannot serve, with the numbers and the planner that can."""


class PolicyError(HOMDPError):
    """A policy that is not well formed, or does not fit the model or the history it is used with."""

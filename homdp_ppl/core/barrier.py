"""The information barrier of simulations: a policy runs where no calling frame holds the state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, final

from numpy.typing import ArrayLike

from homdp_ppl.core.graph_policy import BlindPolicy, GraphPolicy
from homdp_ppl.core.policy import Policy
from homdp_ppl.precision import Array, in_x64

# The history of a question, or None when there are no more; an answer, or what was raised.
_Questions: TypeAlias = "SimpleQueue[tuple[ArrayLike, ArrayLike] | None]"
_Answers: TypeAlias = "SimpleQueue[tuple[Any, BaseException | None]]"


@contextmanager
def separated(policy: Policy) -> Iterator[Policy]:
    """A policy whose ``act`` runs in a thread of its own for the length of a ``with`` block.

    The frames below a call of ``act`` then belong to this module and hold the history and nothing
    else: no state, no random numbers, no world. Graphs are data and cannot look, so they are
    called directly. Code that searches the whole process (``gc``, ``sys._current_frames``) is not
    stopped: nothing within one process can.
    """
    if isinstance(policy, GraphPolicy | BlindPolicy):
        yield policy
        return
    questions: _Questions = SimpleQueue()
    answers: _Answers = SimpleQueue()
    thread = Thread(target=_answer, args=(policy, questions, answers), daemon=True)
    thread.start()
    try:
        yield _Separated(questions, answers)
    finally:
        questions.put(None)


@final
class _Separated:
    """A policy as seen from outside its thread."""

    def __init__(self, questions: _Questions, answers: _Answers) -> None:
        self._questions, self._answers = questions, answers

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """What the policy answers; what it raises is raised here."""
        self._questions.put((observations, actions))
        answer, error = self._answers.get()
        if error is not None:
            raise error
        chances: Array = answer
        return chances


@in_x64
def _answer(policy: Policy, questions: _Questions, answers: _Answers) -> None:
    while (question := questions.get()) is not None:
        try:
            answers.put((policy.act(*question), None))
        except BaseException as error:  # raised again in the thread that asks
            answers.put((None, error))

"""The information barrier of simulations: policies run in a thread without access to the state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeAlias, final

from numpy.typing import ArrayLike

from homdp_ppl.core.blind_policy import BlindPolicy
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.policy import Policy
from homdp_ppl.precision import Array, in_x64

# A history, or None at the end; an answer, or the exception that was raised.
_Questions: TypeAlias = "SimpleQueue[tuple[ArrayLike, ArrayLike] | None]"
_Answers: TypeAlias = "SimpleQueue[tuple[Any, BaseException | None]]"


@contextmanager
def separated(policy: Policy) -> Iterator[Policy]:
    """Run the ``act`` of a policy in a separate thread inside a ``with`` block.

    The calling frames of ``act`` then belong to this module and contain only the history: no
    state, no random numbers, no world. Graphs are plain data without code, so they are called
    directly; their subclasses are not. Code that searches the whole process (``gc``,
    ``sys._current_frames``) can still find the state; this cannot be prevented within one process.
    """
    if type(policy) in (GraphPolicy, BlindPolicy):
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
    """A proxy that forwards calls to the policy's thread."""

    def __init__(self, questions: _Questions, answers: _Answers) -> None:
        self._questions, self._answers = questions, answers

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Return the policy's answer; its exceptions are raised here."""
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
        except BaseException as error:  # raised again in the calling thread
            answers.put((None, error))

"""Runs brought back to where their records end: they go on as if they had never stopped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from homdp_ppl.core.episodes import Episodes
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.learning.learn import stage_of
from homdp_ppl.learning.record import Record
from homdp_ppl.learning.run import ContinuousRun, Run
from homdp_ppl.precision import in_x64

R = TypeVar("R", Run, ContinuousRun)


@in_x64
def restore(run: R, record: Record) -> R:
    """A run without rounds, brought to where a record of it ends.

    The compiled loop runs again, which takes less time than anything else, and must come out the
    same. In the readable loop the rule is shown all episodes again, and the last plan is made once
    more; other plans are not.

    Parameters
    ----------
    run
        As :func:`homdp_ppl.learn` returns it with ``stop_after=0``.
    record
        What the same task wrote, in whole rounds.

    Raises
    ------
    DataError
        The record is not what this task, this software and this machine write.
    """
    if len(record.values) == 0:
        return run
    if run.compiled:
        again = run.resume(len(record.played))
        if not again.record.same_as(record):
            raise _another("rounds that come out differently")
        return replace(again, record=record)
    return _replay(run, record)


def _replay(run: R, record: Record) -> R:
    task, state = run.task, run.state
    stage, steps = stage_of(task), task.episodes_per_round
    episodes = Episodes(record.observations, record.actions, record.states)
    before: Any = state
    when = 0
    for k, planned in enumerate(record.planned):
        if planned:
            before, when = state, k
        for episode in range(k * steps, (k + 1) * steps):
            state = stage.rule.update(state, episodes[episode])
    luck = next(stage.fortunes(when * steps))
    decision, _ = stage.decide(stage.rule.propose(luck.proposal, before), before)
    decision = decision._replace(value=stage.value(decision.policy))
    told = record.values[when], record.optimistic[when]
    if not all(
        a == b or (a != a and b != b)
        for a, b in zip(told, (decision.value, decision.optimistic), strict=True)
    ):
        raise _another(f"round {when} with another plan")
    policies = {when: decision.policy} if state.memory is not None else {}
    return replace(run, record=record, state=state, decision=decision, policies=policies)


def _another(got: str) -> DataError:
    remedy = "Another version of the software or another kind of processor wrote it."
    return DataError("restore", [Problem("record", got, "what this task writes here", remedy)])

"""Runs restored from their records: they continue as if they had never stopped."""

from __future__ import annotations

from dataclasses import replace

from homdp_ppl.core.episodes import Episodes
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.learning.loop import stage_of
from homdp_ppl.learning.record import Record
from homdp_ppl.learning.run import Run
from homdp_ppl.precision import in_x64


@in_x64
def restore(run: Run, record: Record) -> Run:
    """Restore a run without rounds to where a record of it ends.

    The compiled loop runs again, which takes less time than anything else, and must give the same
    results. In the readable loop the rule is shown all episodes again, and only the last plan is
    made again.

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


def _replay(run: Run, record: Record) -> Run:
    task, state = run.task, run.state
    learner, steps = task.learner(), task.episodes_per_round
    shown = Episodes(record.observations, record.actions, record.states)
    episodes = Episodes.of(shown, task.model)  # raises DataError for what is not in the spaces
    before, when = state, 0
    for k, planned in enumerate(record.planned):
        if planned:
            before, when = state, k
        for episode in range(k * steps, (k + 1) * steps):
            state = learner.update(state, episodes[episode], simulated=True)
    decision = learner.decide(when * steps, before)
    made = stage_of(task).value(decision.policy), float(decision.optimistic)
    written = record.values[when], record.optimistic[when]
    if not all(a == b or (a != a and b != b) for a, b in zip(written, made, strict=True)):
        raise _another(f"round {when} with another plan")
    policies = {} if state.only_counts else {when: decision.policy}
    return replace(run, record=record, state=state, decision=decision, policies=policies)


def _another(got: str) -> DataError:
    remedy = "Another version of the software or another kind of processor wrote it."
    return DataError("restore", [Problem("record", got, "what this task writes here", remedy)])

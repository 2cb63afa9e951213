"""Restore runs from their records, so that they can be resumed."""

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
    """Restore a run to the end of its record.

    The compiled loop is run again, which is the fastest way, and must reproduce the record. With
    the readable loop, the rule is updated with all recorded episodes, and only the last plan is
    computed again.

    Parameters
    ----------
    run
        A run without rounds, as :func:`homdp_ppl.learn` returns it with ``stop_after=0``.
    record
        The record of the same task, in whole rounds.

    Raises
    ------
    DataError
        If the task does not reproduce the record with this software on this machine.
    """
    if len(record.values) == 0:
        return run
    if run.compiled:
        again = run.resume(len(record.played))
        if not again.record.same_as(record):
            raise _not_reproduced("rounds with different results")
        return replace(again, record=record)
    return _replay(run, record)


def _replay(run: Run, record: Record) -> Run:
    task, state = run.task, run.state
    learner, steps = task.learner(), task.episodes_per_round
    played = record.episodes(task.world.spaces)
    episodes = Episodes.of(played, task.model)  # raises DataError for episodes outside the spaces
    before, when = state, 0
    for k, planned in enumerate(record.planned):
        if planned:
            before, when = state, k
        for episode in range(k * steps, (k + 1) * steps):
            state = learner.update(state, task.shown(episodes[episode], episode), simulated=True)
    decision = learner.decide(when * steps, before)
    made = stage_of(task).value(decision.policy), float(decision.optimistic)
    written = record.values[when], record.optimistic[when]
    if not all(a == b or (a != a and b != b) for a, b in zip(written, made, strict=True)):
        raise _not_reproduced(f"round {when} with a different plan")
    policies = {} if state.only_counts else {when: decision.policy}
    return replace(run, record=record, state=state, decision=decision, policies=policies)


def _not_reproduced(got: str) -> DataError:
    remedy = "Use the software version and the kind of processor that wrote the record."
    return DataError(
        "restore", [Problem("record", got, "results that this task reproduces", remedy)]
    )

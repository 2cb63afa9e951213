"""Learning in a HOMDP: Algorithm 1 and Algorithm 2 as one readable loop.

The compiled loop, in compiled.py, takes the same decisions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.policy import Policy
from homdp_ppl.explorers.state import State
from homdp_ppl.learning.density_stage import DensityStage
from homdp_ppl.learning.record import Writer
from homdp_ppl.learning.stages import Stage, TableStage
from homdp_ppl.learning.task import Task
from homdp_ppl.learning.warm_start import COUNTING
from homdp_ppl.precision import in_x64

if TYPE_CHECKING:
    from homdp_ppl.learning.run import Run


def nothing(rounds: int) -> None:
    """Show no progress."""


@in_x64
def advance(run: Run, rounds: int, done: Callable[[int], None] = nothing) -> Run:
    """Continue a run to a number of rounds with the readable loop.

    Comments relate each line to Algorithm 1 and Algorithm 2 of the paper. A round is one episode,
    or an epoch of H episodes. Other rules differ only in what they propose and what they keep.

    Parameters
    ----------
    run
        The run so far.
    rounds
        The total number of rounds at which to stop.
    done
        Called after each round with the number of new rounds.
    """
    task, state = run.task, run.state
    decision: Any = run.decision
    learner, stage = task.learner(), stage_of(task)
    value = float(run.values[-1]) if len(run.values) else np.nan
    noises, written = stage.noise(len(run.played)), Writer(task.world)
    policies, clock = dict(run.policies), Clock(run.seconds)
    for k in range(len(run.values), rounds):
        noise = list(islice(noises, learner.episodes_per_round))
        first = k * learner.episodes_per_round
        planned = learner.out_of_date(state, decision)  # always True in the paper
        if planned:
            with clock("inference"):
                # 1: T-hat_k, O-hat_k, r-hat_k. 2: the spaces T_k, Theta_k
                proposal = learner.propose(noise[0].proposal, state)
            with clock("planning"):
                # 1: pi-hat_k = POP(T-hat_k, O-hat_k, r-hat_k). 2: argmax over the spaces
                decision = learner.plan(proposal, state)
            with clock("evaluation"):
                value = stage.value(decision.policy)  # the learner never sees it
            if not state.only_counts:
                policies[k] = decision.policy
        for h, numbers in enumerate(noise, start=1):  # 1: a single episode. 2: one per step h
            with clock("acting"):
                # 1: run pi-hat_k. 2: run pi-hat_k o_h Unif(A). Then x_{1:H+1} are revealed
                policy = learner.policy_of(decision, h)
                episode, played = stage.deploy(decision, value, policy, numbers)
            with clock("inference"):
                # 1: n_{k+1}, T-hat_{k+1}, O-hat_{k+1}. 2: step h's tuple; the spaces if h = H
                shown = task.shown(episode, first + h - 1)
                state = learner.update(state, shown, simulated=True)
            written.episode(episode, played, stage.impossible(decision, episode))
        plans = int(decision.plans) if planned else 0
        written.round(value, float(decision.optimistic), planned, plans)
        done(1)
    record = run.record + written.record()
    return replace(
        run, record=record, state=state, decision=decision, seconds=clock.seconds, policies=policies
    )


def stage_of(task: Task) -> Stage:
    """The stage of a task: tables or densities."""
    return TableStage(task) if task.world.spaces.finite else DensityStage(task)


@in_x64
def plan_again(run: Run, index: int) -> Policy:
    """The policy of a round, planned again from the state before that round."""
    state = state_before(run, index)
    learner = run.task.learner()
    policy: Policy = learner.decide(index * learner.episodes_per_round, state).policy
    return policy


def state_before(run: Run, index: int) -> State:
    """The state before a round, for rules whose state consists of counts only."""
    task, learner = run.task, run.task.learner()
    played = index * learner.episodes_per_round
    state, shown = learner.init(), run.episodes[:played]
    if task.reveal is None and task.explorer.update in COUNTING and state.counts is not None:
        counts = Counts.of(shown, task.model)
        return replace(state, counts=state.counts + counts, played=state.played + played)
    for episode in shown:
        state = learner.update(state, episode, simulated=True)
    return state


class Clock:
    """Measures seconds by activity."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self.seconds = dict(seconds)

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        """Time a block."""
        start = time.perf_counter()
        yield
        self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - start

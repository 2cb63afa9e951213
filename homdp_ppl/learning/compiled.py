"""The compiled twin of the learning loop.

Whole stretches of episodes as one XLA program, seeds side by side on all cores.

Plan, act, reveal, update, evaluate: the same decisions as the readable loop in learning.py takes
from the same seed, for rules and planners that are made of array functions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.plan import TreePlanner
from homdp_ppl.core.rollout import play
from homdp_ppl.declare.kernels import TRACER_ERRORS, tracer_problem
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError
from homdp_ppl.explorers.explorer import Explorer, State
from homdp_ppl.learning.record import Record
from homdp_ppl.learning.rounds import (
    Decision,
    Luck,
    Planner,
    Planning,
    check_numbers,
    check_proposal,
    choose_candidate,
    explore,
    impossible_steps,
    lucks,
    out_of_date,
    rule_number,
)
from homdp_ppl.learning.run import Run
from homdp_ppl.precision import Array, in_x64, to_numpy

STRETCH = 1000  # episodes in one call of the compiled program


class Line(NamedTuple):
    """What is written down of one episode."""

    value: Array
    optimistic: Array
    planned: Array
    impossible: Array
    observations: Array
    actions: Array
    states: Array


class Carry(NamedTuple):
    """What passes from one episode to the next."""

    state: State
    decision: Decision
    begun: Array  # ()  whether there is a decision yet


def why_not(
    world: World, explorer: Explorer, planner: Planner, model: HOMDP, foresight: bool
) -> str | None:
    """What keeps a run from being compiled; None if nothing does."""
    if not isinstance(planner, TreePlanner):
        return "the planner cannot be traced"
    if not explorer.compilable(model):
        return f"{explorer.name} needs more than array functions on {model.name}"
    if foresight:
        return "foresight is played step by step"
    if any(
        (real[~(mine > 0)] > 0).any()
        for mine, real in zip(explorer.support(model), world.pomdp.stationary()[:3], strict=True)
    ):
        return "the world can show what the learner's declaration excludes"
    return None


class Twin:
    """A rule in a world, compiled; made once for the same objects by :meth:`of`."""

    def __init__(self, world: World, explorer: Explorer, planner: Any, model: HOMDP) -> None:
        self._world = world.pomdp
        self.explorer = explorer
        planning = Planning(explorer, planner, model)
        self._root = planning.root
        tree: Any = planning.tree
        self._solve = tree.compile(planning.support)
        self._score: Callable[[GraphPolicy], Array] = tree.scorer(planning.support, world.pomdp)
        self._stretch: Callable[..., tuple[Carry, Line]] = jax.jit(self._run)
        self._empty: Decision | None = None

    @classmethod
    def of(cls, world: World, explorer: Explorer, planner: Planner, model: HOMDP) -> Twin:
        """The twin for these objects, compiled once."""
        name = ("twin", world, explorer, planner, model)
        return model.cache.get(name, lambda: cls(world, explorer, planner, model))

    @in_x64
    def advance(self, run: Run, rounds: int) -> Run:
        """Go on with one run."""
        return self.run([run], rounds, lambda n: None)[0]

    def run(self, runs: list[Run], rounds: int, done: Callable[[int], None]) -> list[Run]:
        """Go on with several runs, as many at a time as there are cores.

        Each is a program of its own: batched into one, a plan could be spared only when all seeds
        spare it.
        """
        if all(len(run.values) >= rounds for run in runs):
            return runs
        clock = [time.perf_counter()]
        try:
            np.asarray(self._some(runs[0], self._carry(runs[0]), 0, 0)[1].value)  # compiles
        except tuple(TRACER_ERRORS) as error:
            told = tracer_problem("propose or update", error)
            remedy = (
                f"{told.remedy} Or say so, for the readable loop: Explorer(..., "
                f"compilable=lambda homdp: False)."
            )
            raise ParameterError(self.explorer.name, [told._replace(remedy=remedy)]) from error
        clock.append(time.perf_counter())
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            ends = list(pool.map(lambda run: self._finish(run, rounds, done), runs))
        compiling, running = np.diff([*clock, time.perf_counter()]) / len(runs)
        return [
            _spend(run, {"compiling": float(compiling), "compiled": float(running)}) for run in ends
        ]

    @in_x64
    def _finish(self, run: Run, rounds: int, done: Callable[[int], None]) -> Run:
        """One run to its end."""
        carry, lines = self._carry(run), []
        for at in range(len(run.values), rounds, STRETCH):
            n = min(STRETCH, rounds - at)
            carry, line = self._some(run, carry, at, n)
            lines.append(jax.tree.map(lambda leaf, n=n: np.asarray(leaf)[:n], line))
            done(n)
        if not lines:
            return run
        check_numbers(
            self.explorer, to_numpy(carry.decision.model)
        )  # of the last plan: traced ones cannot be looked at
        return self._write(
            run,
            Line(*(np.concatenate(parts) for parts in zip(*lines, strict=True))),
            to_numpy(carry),
        )

    def _some(self, run: Run, carry: Carry, first: int, n: int) -> tuple[Carry, Line]:
        """N episodes of one run, at most STRETCH."""
        luck = lucks(
            jax.random.key(run.task.seed),
            rule_number(self.explorer),
            first,
            STRETCH,
            self._world.horizon,
        )
        return self._stretch(luck, carry, n)

    def _run(self, luck: Luck, carry: Carry, n: Array) -> tuple[Carry, Line]:
        """N episodes, at most STRETCH; the rest of what is returned stays empty."""
        shapes = jax.eval_shape(self._episode, carry, jax.tree.map(lambda leaf: leaf[0], luck))[1]
        lines = jax.tree.map(lambda leaf: jnp.zeros((STRETCH, *leaf.shape), leaf.dtype), shapes)

        def body(k: Array, carried: tuple[Carry, Line]) -> tuple[Carry, Line]:
            carry, lines = carried
            # slices, not indexing: gathers and scatters would copy the whole stretch for every
            # episode
            fortune = jax.tree.map(
                lambda leaf: jax.lax.dynamic_index_in_dim(leaf, k, keepdims=False), luck
            )
            carry, line = self._episode(carry, fortune)
            return carry, jax.tree.map(
                lambda page, new: jax.lax.dynamic_update_index_in_dim(page, new, k, 0), lines, line
            )

        ended: tuple[Carry, Line] = jax.lax.fori_loop(0, n, body, (carry, lines))
        return ended

    def _episode(self, carry: Carry, luck: Luck) -> tuple[Carry, Line]:
        """One round of Algorithm 1."""
        state, decision = carry.state, carry.decision
        planned = ~carry.begun | out_of_date(
            self.explorer, state.counts.state_action, decision.visits
        )
        if self.explorer.replan == "every episode":
            decision = self._decide(state, luck)
        else:
            decision = jax.lax.cond(planned, lambda: self._decide(state, luck), lambda: decision)
        episode = play(jax.tree.map(jnp.asarray, self._world), decision.policy, luck.noise)
        line = Line(
            decision.value,
            decision.optimistic,
            planned,
            impossible_steps(decision.model, episode.trajectory).astype(jnp.int32),
            *(
                part.astype(jnp.int32)
                for part in (episode.observations, episode.actions, episode.states)
            ),
        )
        return Carry(self.explorer.update(state, episode), decision, jnp.array(True)), line

    def _decide(self, state: State, luck: Luck) -> Decision:
        proposed: Any = self.explorer.propose(luck.proposal, state)
        check_proposal(self.explorer, proposed)
        proposal: Any = jax.tree.map(jnp.asarray, proposed)
        if len(proposal.models.initial) == 1:
            model, parameters = jax.tree.map(lambda leaf: leaf[0], tuple(proposal))
            solution = self._solve(model, parameters)
            value = self._root(parameters, solution)
        else:
            solutions = jax.vmap(self._solve)(*proposal)
            values = jax.vmap(self._root)(proposal.parameters, solutions)
            chosen = choose_candidate(self.explorer, values)
            every = (values, solutions, proposal.models)
            value, solution, model = jax.tree.map(lambda leaf: leaf[chosen], every)
        policy = explore(self.explorer, solution.policy)
        return Decision(policy, value, model, state.counts.state_action, self._score(policy))

    def _carry(self, run: Run) -> Carry:
        if run.decision is None:
            return Carry(run.state, self._undecided(run.state), np.array(False))
        return Carry(run.state, run.decision, np.array(True))

    def _undecided(self, state: State) -> Decision:
        """What stands in for a decision before the first one; traced once."""
        if self._empty is None:
            shapes = jax.eval_shape(lambda s: self._decide(s, Luck(jax.random.key(0), None)), state)  # type: ignore[arg-type]
            self._empty = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
        return self._empty

    def _write(self, run: Run, lines: Line, end: Carry) -> Run:
        record = Record(
            lines.value,
            lines.optimistic,
            lines.planned,
            lines.planned * self.explorer.candidates,
            lines.value,
            lines.impossible.astype(np.int64),
            *(part.astype(np.int64) for part in (lines.observations, lines.actions, lines.states)),
        )
        return replace(run, record=run.record + record, state=end.state, decision=end.decision)


def _spend(run: Run, seconds: Mapping[str, float]) -> Run:
    return replace(
        run, seconds={what: run.seconds.get(what, 0.0) + more for what, more in seconds.items()}
    )

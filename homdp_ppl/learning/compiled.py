"""The compiled loop: many episodes as one XLA program, seeds in parallel on all cores.

It plans, acts, reveals, updates and evaluates. For the same seed it takes the same decisions as the
readable loop in loop.py. Rules and planners must consist of array functions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.policy import Trajectory
from homdp_ppl.core.rollout import play, steps_taken
from homdp_ppl.declare.model import World
from homdp_ppl.declare.returns import draw_rewards
from homdp_ppl.explorers.state import State
from homdp_ppl.learning.learner import Decision, Learner
from homdp_ppl.learning.loop import nothing
from homdp_ppl.learning.noise import EpisodeNoise, episode_noise, rule_number
from homdp_ppl.learning.planning import check_numbers
from homdp_ppl.learning.record import Record
from homdp_ppl.learning.stages import impossible_steps
from homdp_ppl.learning.task import Task
from homdp_ppl.precision import Array, in_x64, to_numpy

if TYPE_CHECKING:
    from homdp_ppl.learning.run import Run

STRETCH = 1000  # episodes in one call of the compiled program


class Line(NamedTuple):
    """The entries of the record for one episode."""

    value: Array
    optimistic: Array
    planned: Array
    impossible: Array
    observations: Array
    actions: Array
    states: Array
    rewards: Array | None = None  # None if they are known


class Carry(NamedTuple):
    """The loop state between two episodes."""

    state: State
    decision: Decision
    value: Array | np.float64  # ()  of the decision's policy in the true world, in user's units
    begun: Array  # ()  whether there is a decision yet


class CompiledLoop:
    """The compiled loop of a rule in a world; cached by :func:`compiled_loop`."""

    def __init__(self, world: World, learner: Learner) -> None:
        self._world, self._rewards = world.pomdp, world.homdp.rewards
        self._parameters = dict(world.parameters)
        self._draw = None if world.homdp.rewards.law is None else draw_rewards(world.homdp)
        self.explorer = learner.explorer
        self._learner = learner.traced()
        planning = learner.planning
        self._score: Callable[[GraphPolicy], Array] = planning.tree.scorer(
            planning.support, world.pomdp, allowed=planning.allowed
        )
        self._stretch: Callable[..., tuple[Carry, Line]] = jax.jit(self._run)
        self._empty: Any = None
        self._ready = False  # whether the program has been compiled

    @in_x64
    def run(self, runs: list[Run], rounds: int, done: Callable[[int], None] = nothing) -> list[Run]:
        """Continue several runs, in parallel on all cores.

        Runs are not batched into one program: a batch could skip a plan only if all seeds skip it.
        """
        if all(len(run.values) >= rounds for run in runs):
            return runs
        clock = [time.perf_counter()]
        if not self._ready:
            np.asarray(self._some(runs[0], self._carry(runs[0]), 0, 0)[1].value)  # compiles
            self._ready = True
        clock.append(time.perf_counter())
        if len(runs) == 1:  # starting a thread takes longer than a short run
            ends = [self._finish(runs[0], rounds, done)]
        else:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                ends = list(pool.map(lambda run: self._finish(run, rounds, done), runs))
        compiling, running = np.diff([*clock, time.perf_counter()]) / len(runs)
        return [
            _spend(run, {"compiling": float(compiling), "compiled": float(running)}) for run in ends
        ]

    @in_x64
    def _finish(self, run: Run, rounds: int, done: Callable[[int], None]) -> Run:
        """Continue one run to a number of rounds."""
        carry, lines = self._carry(run), []
        for at in range(len(run.values), rounds, STRETCH):
            n = min(STRETCH, rounds - at)
            carry, line = self._some(run, carry, at, n)
            lines.append(jax.tree.map(lambda leaf, n=n: np.asarray(leaf)[:n], line))
            done(n)
        if not lines:
            return run
        last = to_numpy(carry.decision.model)
        support = self.explorer.objective.support(run.task.model)
        check_numbers(self.explorer, last, support)  # only the last model: the others were traced
        whole = jax.tree.map(lambda *parts: np.concatenate(parts), *lines)
        return self._write(run, whole, to_numpy(carry))

    def _some(self, run: Run, carry: Carry, first: int, n: int) -> tuple[Carry, Line]:
        """Run n episodes of one run, at most STRETCH."""
        seed, rule = jax.random.key(run.task.seed), rule_number(self.explorer)
        noise = episode_noise(seed, rule, first, STRETCH, self._world.horizon)
        return self._stretch(noise, carry, n)

    def _run(self, noise: EpisodeNoise, carry: Carry, n: Array) -> tuple[Carry, Line]:
        """Run n episodes, at most STRETCH; the remaining lines stay zero."""
        shapes = jax.eval_shape(self._episode, carry, jax.tree.map(lambda leaf: leaf[0], noise))[1]
        lines = jax.tree.map(lambda leaf: jnp.zeros((STRETCH, *leaf.shape), leaf.dtype), shapes)

        def body(k: Array, carried: tuple[Carry, Line]) -> tuple[Carry, Line]:
            carry, lines = carried
            # dynamic slices: gathers and scatters would copy the whole stretch in every episode
            own = jax.tree.map(
                lambda leaf: jax.lax.dynamic_index_in_dim(leaf, k, keepdims=False), noise
            )
            carry, line = self._episode(carry, own)
            return carry, jax.tree.map(
                lambda page, new: jax.lax.dynamic_update_index_in_dim(page, new, k, 0), lines, line
            )

        ended: tuple[Carry, Line] = jax.lax.fori_loop(0, n, body, (carry, lines))
        return ended

    def _episode(self, carry: Carry, noise: EpisodeNoise) -> tuple[Carry, Line]:
        """One round of the readable loop."""
        state, decision, value, begun = carry
        planned = ~begun | self._learner.out_of_date(state, decision)
        if self.explorer.deployment.replan == "every episode":
            decision, value = self._decide(state, noise.proposal)
        else:
            decision, value = jax.lax.cond(
                planned, lambda: self._decide(state, noise.proposal), lambda: (decision, value)
            )
        episode = play(jax.tree.map(jnp.asarray, self._world), decision.policy, noise.noise)
        if self._draw is not None:
            parts = episode.states, episode.observations, episode.actions
            rewards = self._draw(self._parameters, noise.rewards, *parts)
            episode = replace(episode, rewards=rewards)
        taken = self._taken(episode)
        actions = episode.actions if taken is None else jnp.where(taken, episode.actions, 0)
        line = Line(
            value,
            cast(Array, decision.optimistic),  # traced
            planned,
            impossible_steps(decision.model, episode.trajectory, taken).astype(jnp.int32),
            episode.observations.astype(jnp.int32),
            actions.astype(jnp.int32),
            episode.states.astype(jnp.int32),
            rewards=episode.rewards,
        )
        after = self._learner.update(state, episode if taken is None else _counted(episode, taken))
        return Carry(after, decision, value, jnp.array(True)), line

    def _taken(self, episode: Episode) -> Array | None:
        """Which steps were taken, (H,); None if the world has no terminal states."""
        terminal = np.asarray(self._world.terminal)
        if not terminal.any():
            return None
        return jnp.arange(self._world.horizon) < steps_taken(episode.states, terminal)

    def _decide(self, state: State, key: Array) -> tuple[Decision, Array]:
        """Decide, and evaluate the policy exactly."""
        decision = self._learner.decide(key, state)
        score = self._score(decision.policy)
        return decision, self._rewards.to_user(score, self._world.horizon)

    def _carry(self, run: Run) -> Carry:
        if run.decision is None:
            empty, value = self._undecided(run.state)
            return Carry(run.state, empty, value, np.array(False))
        return Carry(run.state, run.decision, np.float64(run.values[-1]), np.array(True))

    def _undecided(self, state: State) -> Any:
        """Zeros in the shape of a decision; traced once."""
        if self._empty is None:
            shapes = jax.eval_shape(lambda s: self._decide(s, jax.random.key(0)), state)
            self._empty = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
        return self._empty

    def _write(self, run: Run, lines: Line, end: Carry) -> Run:
        record = Record(
            lines.value,
            lines.optimistic,
            lines.planned,
            lines.planned * self.explorer.objective.candidates,
            lines.value,
            lines.impossible.astype(np.int64),
            lines.observations.astype(np.int64),
            lines.actions.astype(np.int64),
            lines.states.astype(np.int64),
            rewards=lines.rewards,
        )
        return replace(run, record=run.record + record, state=end.state, decision=end.decision)


def compiled_loop(task: Task) -> CompiledLoop:
    """The compiled loop of a task, shared by equal rules, planners and declarations.

    It is cached with the world.
    """
    name = "compiled loop", task.explorer, task.planner, task.model
    return task.world.cache.get(name, lambda: CompiledLoop(task.world, task.learner()))


def _counted(episode: Episode, taken: Array) -> Episode:
    """The episode with indices out of range after its end: JAX does not count them."""
    outside = np.iinfo(np.int32).max
    seen, done = (
        jnp.where(taken, part, outside) for part in (episode.observations, episode.actions)
    )
    return replace(episode, trajectory=Trajectory(seen, done))


def _spend(run: Run, seconds: Mapping[str, float]) -> Run:
    return replace(
        run, seconds={what: run.seconds.get(what, 0.0) + more for what, more in seconds.items()}
    )

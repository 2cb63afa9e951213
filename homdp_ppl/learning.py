"""Learning in a HOMDP: Algorithm 1 and Algorithm 2 as one readable loop. Its compiled twin stands beside it, in twin.py."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, overload

import jax
import numpy as np
from rich.console import Console
from rich.progress import Progress

from homdp_ppl.declare import HOMDP, World
from homdp_ppl.episode import Episode, play_by_asking
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.evaluation import evaluate, uniform_at
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.policy import GraphPolicy
from homdp_ppl.posteriors.data import refuse_unknown_start
from homdp_ppl.precision import in_x64, to_numpy
from homdp_ppl.rounds import (
    Decision,
    Luck,
    Planner,
    Planning,
    explorer_key,
    impossible_steps,
    lucks,
    out_of_date,
    play_seeing,
    rule_number,
    seeing_actions,
    seeing_value,
)
from homdp_ppl.run import Record, Run, Task, Writer, stop_after_rounds
from homdp_ppl.twin import Twin, why_not

BLOCK = 256  # episodes whose luck is drawn at once
FEW = 1000  # rounds of all seeds together that are not worth compiling
PATIENCE = 2.0  # seconds before progress is shown


@overload
def learn(
    world: World,
    explorer: Explorer,
    planner: Planner,
    episodes: int,
    seed: int = 0,
    model: HOMDP | None = None,
    stop_after: int | None = None,
    *,
    foresight: bool = False,
    compiled: bool | None = None,
    progress: bool | None = None,
) -> Run: ...


@overload
def learn(
    world: World,
    explorer: Explorer,
    planner: Planner,
    episodes: int,
    seed: Sequence[int],
    model: HOMDP | None = None,
    stop_after: int | None = None,
    *,
    foresight: bool = False,
    compiled: bool | None = None,
    progress: bool | None = None,
) -> list[Run]: ...


@in_x64
def learn(
    world: World,
    explorer: Explorer,
    planner: Planner,
    episodes: int,
    seed: int | Sequence[int] = 0,
    model: HOMDP | None = None,
    stop_after: int | None = None,
    *,
    foresight: bool = False,
    compiled: bool | None = None,
    progress: bool | None = None,
) -> Run | list[Run]:
    """Let a rule learn in a world for K episodes, and evaluate every policy that it deploys exactly.

    Parameters
    ----------
    world
        The truth, which the learner does not see.
    explorer
        The rule, from :mod:`homdp_ppl.explorers`.
    planner
        The planner, from :mod:`homdp_ppl.planners`.
    episodes
        K, the length of the whole run; it enters the bonuses.
    seed
        A number, or several for as many runs. The world's luck depends on (seed, episode, step) alone: rules can be paired.
    model
        The learner's own declaration (prior, structure); by default the world's.
    stop_after
        Stop after so many episodes; :meth:`Run.resume` goes on.
    foresight
        Let a collector that sees the state, optimal in the proposed model, gather the data; scored is the history policy all
        the same.
    compiled
        Run the compiled twin (True) or the readable loop (False); by default the twin wherever it can be and is worth
        compiling.
    progress
        Show progress; by default on a terminal when it takes longer than two seconds.

    Returns
    -------
    Run
        Or a list of runs, one a seed.

    Examples
    --------
    >>> from homdp_ppl import explorers, learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> run = learn(models.load("tiger", horizon=3), explorers.greedy(), history_tree(), episodes=50, seed=0, compiled=False)
    >>> len(run.values), bool(run.gaps.min() >= -1e-9)
    (50, True)
    """
    given: Any = seed
    seeds: list[Any] = list(given) if np.ndim(given) else [given]
    _check(world, explorer, planner, episodes, seeds, model)
    model = world.homdp if model is None else model
    _check_model(world, explorer, episodes, model)
    Planning(explorer, planner, model)  # refuses a pairing of rule and planner that cannot be
    reason = why_not(world, explorer, planner, model, foresight)
    if compiled and reason:
        raise ParameterError("learn", [Problem("compiled", "True", "a run that can be compiled", f"This one cannot: {reason}.")])
    optimum = planner(world.pomdp).upper
    tasks = [Task(world, explorer, planner, episodes, int(s), model, foresight, optimum) for s in seeds]
    rounds = stop_after_rounds(tasks[0], stop_after)
    if compiled is None and reason is None and tasks[0].rounds * len(tasks) < FEW:
        reason = "few episodes: compiling would take longer"
    if reason is None and compiled is not False:
        twin = Twin.of(world, explorer, planner, model, episodes)
        runs = [_begin(task, "compiled loop", twin.advance) for task in tasks]
        with _progress(progress, len(runs) * rounds) as done:
            runs = twin.run(runs, rounds, done)
    else:
        told = f"readable loop ({reason or 'as asked'})"
        with _progress(progress, len(tasks) * rounds) as done:
            runs = [_advance(_begin(task, told, in_x64(_advance)), rounds, done) for task in tasks]
    return runs if np.ndim(given) else runs[0]


def _advance(run: Run, rounds: int, done: Callable[[int], None] = lambda n: None) -> Run:
    """The readable loop: Algorithm 1, and Algorithm 2 for rules that deploy a policy once for every step."""
    task, explorer, state, decision = run.task, run.task.explorer, run.state, run.decision
    planning = Planning(explorer, task.planner, task.model)
    written, policies, clock = Writer(), dict(run.policies), Clock(run.seconds)
    fortunes = _fortunes(task, len(run.played))
    for k in range(len(run.values), rounds):
        fortune = next(fortunes)
        planned = decision is None or bool(out_of_date(explorer, state.counts.state_action, decision.visits))
        if decision is None or planned:
            with clock("inference"):
                proposal = explorer.propose(fortune.proposal, state)  # bonuses and estimates; version spaces
            with clock("planning"):
                decision, plans = planning.decide(proposal, state)  # pi-hat_k = POP(T-hat_k, O-hat_k, r-hat_k)
            with clock("evaluation"):
                decision = decision._replace(value=np.float64(evaluate(decision.policy, task.world.pomdp)))
            if state.memory is not None:
                policies[k] = decision.policy
        for h in range(task.episodes_per_round):  # once; or for every step, uniform at that step
            fortune = fortune if h == 0 else next(fortunes)
            with clock("acting"):
                episode, value = _deploy(task, decision, h, fortune)  # run the policy, then the states are revealed
            with clock("inference"):
                state = explorer.update(state, episode)  # counts and posterior; version spaces after the last step
            written.episode(episode, value, impossible_steps(decision.model, episode.trajectory))
        written.round(decision, planned, plans if planned else 0)
        done(1)
    record = run.record + written.record(task.world.spaces.horizon)
    return replace(run, record=record, state=state, decision=decision, seconds=clock.seconds, policies=policies)


def _deploy(task: Task, decision: Decision, step: int, fortune: Luck) -> tuple[Episode, float]:
    """One episode of what the round decided, and the exact value of what was deployed."""
    world, spaces = task.world.pomdp, task.world.spaces
    if task.foresight:
        actions = seeing_actions(decision.model)
        return play_seeing(world, actions, fortune.noise), seeing_value(world, actions)
    if not task.explorer.each_step:
        return play_by_asking(world, decision.policy, fortune.noise, spaces), float(decision.value)
    policy = uniform_at(decision.policy, step + 1, spaces.horizon)  # pi o_h Unif(A)
    return play_by_asking(world, policy, fortune.noise, spaces), evaluate(policy, world)


def _fortunes(task: Task, first: int) -> Iterator[Luck]:
    """The luck of one episode after another."""
    draw = jax.jit(lucks, static_argnums=(3, 4))
    seed, rule = jax.random.key(task.seed), rule_number(task.explorer)
    while True:
        block = draw(seed, rule, first, BLOCK, task.world.spaces.horizon)
        noise = to_numpy(block.noise)
        for k in range(BLOCK):
            yield Luck(block.proposal[k], jax.tree.map(lambda leaf, k=k: leaf[k], noise))
        first += BLOCK


def _plan_again(run: Run, index: int) -> GraphPolicy:
    """The policy of a round, planned again from the counts before it."""
    task, state = run.task, run.state_before(index)
    luck = lucks(jax.random.key(task.seed), rule_number(task.explorer), state.played, 1, task.world.spaces.horizon)
    proposal = task.explorer.propose(luck.proposal[0], state)
    return Planning(task.explorer, task.planner, task.model).decide(proposal, state)[0].policy


def _begin(task: Task, loop: str, advance: Callable[[Run, int], Run]) -> Run:
    key = explorer_key(jax.random.key(task.seed), 2, rule_number(task.explorer))
    state = replace(task.explorer.init(task.model, task.episodes), luck=np.asarray(jax.random.key_data(key)))
    empty = Record.empty(task.world.spaces.horizon)
    return Run(task, empty, state, None, {}, loop, {}, advance, in_x64(_plan_again))


class Clock:
    """Seconds by what they were spent on."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self.seconds = dict(seconds)

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        """Time a block."""
        start = time.perf_counter()
        yield
        self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - start


def _check(world: Any, explorer: Any, planner: Any, episodes: Any, seeds: list[Any], model: Any) -> None:
    problems = []
    if not isinstance(world, World):
        remedy = "Fix the parameters of a declaration: homdp.at(...)."
        problems.append(Problem("world", f"a {type(world).__name__}", "a World", remedy))
    if not isinstance(explorer, Explorer):
        remedy = "Call its factory: explorers.greedy()."
        problems.append(Problem("explorer", f"a {type(explorer).__name__}", "an Explorer", remedy))
    if not _takes_a_model(planner):
        got = getattr(planner, "__name__", f"a {type(planner).__name__}")
        problems.append(Problem("planner", got, "a function from a POMDP to a Plan", "Call its factory: history_tree()."))
    if not (isinstance(episodes, int | np.integer) and episodes >= 1):
        problems.append(Problem("episodes", repr(episodes), "a whole number of at least 1"))
    if not seeds or not all(isinstance(s, int | np.integer) and 0 <= s < 2**63 for s in seeds):
        problems.append(Problem("seed", repr(seeds), "whole numbers of at least 0 and below 2^63"))
    if not (model is None or isinstance(model, HOMDP)):
        remedy = "Of a world, take the declaration: world.homdp."
        problems.append(Problem("model", f"a {type(model).__name__}", "a HOMDP", remedy))
    if problems:
        raise ParameterError("learn", problems)


def _takes_a_model(planner: Any) -> bool:
    """Whether it looks like a planner; a factory can be called without arguments."""
    if not callable(planner):
        return False
    first = next(iter(inspect.signature(planner).parameters.values()), None)
    return first is not None and first.default is first.empty


def _check_model(world: World, explorer: Explorer, episodes: int, model: HOMDP) -> None:
    if model.spaces != world.spaces:
        remedy = "The learner's declaration has the names and the horizon of the world it acts in."
        raise ParameterError("learn", [Problem("model", str(model.spaces), str(world.spaces), remedy)])
    if not np.array_equal(model.reward, world.homdp.reward):
        raise ParameterError("learn", [Problem("model", "other rewards", "the world's rewards: they are known")])
    if explorer.each_step and episodes < world.spaces.horizon:
        expected = f"at least one epoch of {world.spaces.horizon} episodes"
        raise ParameterError("learn", [Problem("episodes", str(episodes), expected)])
    refuse_unknown_start(model)


@contextmanager
def _progress(wanted: bool | None, rounds: int) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal for runs that take longer than a moment."""
    console = Console(stderr=True)
    if wanted is False or (wanted is None and not console.is_terminal):
        yield lambda n: None
        return
    start = time.perf_counter()
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("learning", total=rounds, visible=bool(wanted))

        def done(n: int) -> None:
            bar.update(task, advance=n, visible=bool(wanted) or time.perf_counter() - start > PATIENCE)

        yield done

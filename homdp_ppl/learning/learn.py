"""Learning in a HOMDP: Algorithm 1 and Algorithm 2 as one readable loop.

Its compiled twin stands beside it, in twin.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar, overload

import jax
import numpy as np

from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers._rules import Rule
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.learning.checks import check_model, check_plan, check_request
from homdp_ppl.learning.compiled import Twin, why_not
from homdp_ppl.learning.continuous_stage import ContinuousStage, continuous_rule, plan_world, value
from homdp_ppl.learning.outcome import COMPILED, Task, stop_after_rounds
from homdp_ppl.learning.record import Record, Writer
from homdp_ppl.learning.rounds import (
    Planner,
    Planning,
    explorer_key,
    lucks,
    out_of_date,
    rule_number,
)
from homdp_ppl.learning.run import ContinuousRun, Run
from homdp_ppl.learning.stages import Stage, TableStage
from homdp_ppl.precision import Array, in_x64

FEW = 1000  # rounds of all seeds together that are not worth compiling
PATIENCE = 2.0  # seconds before progress is shown
SIMULATIONS = 100  # episodes by which a value is estimated that cannot be computed

R = TypeVar("R", Run, ContinuousRun)


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


@overload
def learn(
    world: World,
    explorer: Explorer,
    planner: Callable[..., Any],
    episodes: int,
    seed: int = 0,
    model: HOMDP | None = None,
    stop_after: int | None = None,
    *,
    progress: bool | None = None,
    simulations: int = SIMULATIONS,
) -> ContinuousRun: ...


@overload
def learn(
    world: World,
    explorer: Explorer,
    planner: Callable[..., Any],
    episodes: int,
    seed: Sequence[int],
    model: HOMDP | None = None,
    stop_after: int | None = None,
    *,
    progress: bool | None = None,
    simulations: int = SIMULATIONS,
) -> list[ContinuousRun]: ...


@in_x64
def learn(
    world: World,
    explorer: Explorer,
    planner: Callable[..., Any],
    episodes: int,
    seed: int | Sequence[int] = 0,
    model: HOMDP | None = None,
    stop_after: int | None = None,
    *,
    foresight: bool = False,
    compiled: bool | None = None,
    progress: bool | None = None,
    simulations: int = SIMULATIONS,
) -> Run | ContinuousRun | list[Run] | list[ContinuousRun]:
    """Let a rule learn in a world for K episodes, and evaluate every policy that it deploys.

    Exactly, wherever that can be.

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
        A number, or several for as many runs. The world's luck depends on (seed, episode, step)
        alone: rules can be paired.
    model
        The learner's own declaration (prior, structure); by default the world's.
    stop_after
        Stop after so many episodes; :meth:`Run.resume` goes on.
    foresight
        Let a collector that sees the state, optimal in the proposed model, gather the data; scored
        is the history policy all the same.
    compiled
        Run the compiled twin (True) or the readable loop (False); by default the twin wherever it
        can be and is worth compiling.
    progress
        Show progress; by default on a terminal when it takes longer than two seconds.
    simulations
        In a continuous world whose policies plan as they go: by how many simulated episodes a value
        is estimated. The run says so, and its optimum is then what the same planner reaches when it
        knows the truth.

    Returns
    -------
    Run or ContinuousRun
        Or a list of them, one a seed.

    Examples
    --------
    >>> from homdp_ppl import explorers, learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> run = learn(
    ...     models.load("tiger", horizon=3),
    ...     explorers.greedy(),
    ...     history_tree(),
    ...     episodes=50,
    ...     seed=0,
    ...     compiled=False,
    ... )
    >>> len(run.values), bool(run.gaps.min() >= -1e-9)
    (50, True)
    """
    given: Any = seed
    seeds: list[Any] = list(given) if np.ndim(given) else [given]
    check_request(world, explorer, planner, episodes, seeds, model, stop_after, simulations)
    episodes, simulations = (
        int(episodes),
        int(simulations),
    )  # NumPy's whole numbers have no place in files
    runs: list[Run] | list[ContinuousRun]
    if not world.spaces.finite:
        asked = [
            name for name, wanted in (("foresight", foresight), ("compiled", compiled)) if wanted
        ]
        if asked:
            raise ParameterError(
                "learn", [Problem(name, "True", "False in a continuous world") for name in asked]
            )
        own = model if isinstance(model, HOMDP) else world.homdp
        runs = _learn_continuous(
            world, explorer, planner, episodes, seeds, own, stop_after, progress, simulations
        )
    else:
        mine = model if isinstance(model, HOMDP) else world.homdp
        runs = _learn_finite(
            world,
            explorer,
            planner,
            episodes,
            seeds,
            mine,
            stop_after,
            foresight,
            compiled,
            progress,
        )
    return runs if np.ndim(given) else runs[0]


def _learn_finite(
    world: World,
    explorer: Explorer,
    planner: Planner,
    episodes: int,
    seeds: Sequence[int],
    model: HOMDP,
    stop_after: int | None,
    foresight: bool,
    compiled: bool | None,
    progress: bool | None,
) -> list[Run]:
    check_model(world, explorer, episodes, model)
    Planning(explorer, planner, model)  # refuses a pairing of rule and planner that cannot be
    reason = why_not(world, explorer, planner, model, foresight)
    if compiled and reason:
        raise ParameterError(
            "learn",
            [
                Problem(
                    "compiled", "True", "a run that can be compiled", f"This one cannot: {reason}."
                )
            ],
        )
    best = check_plan(planner(world.pomdp))
    slack = best.upper - best.value
    tasks = [
        Task(world, explorer, planner, episodes, int(s), model, foresight, best.upper, slack=slack)
        for s in seeds
    ]
    rounds = stop_after_rounds(tasks[0], stop_after)
    if compiled is None and reason is None and tasks[0].rounds * len(tasks) < FEW:
        reason = "few episodes: compiling would take longer"
    if reason is None and compiled is not False:
        twin = Twin.of(world, explorer, planner, model)
        runs = [_begin(task, COMPILED, twin.advance) for task in tasks]
        with _progress(progress, len(runs) * rounds) as done:
            return twin.run(runs, rounds, done)
    told = f"readable loop ({reason or 'as asked'})"
    with _progress(progress, len(tasks) * rounds) as done:
        return [_advance(_begin(task, told, in_x64(_advance)), rounds, done) for task in tasks]


def _learn_continuous(
    world: World,
    explorer: Explorer,
    planner: Planner,
    episodes: int,
    seeds: Sequence[int],
    model: HOMDP,
    stop_after: int | None,
    progress: bool | None,
    simulations: int,
) -> list[ContinuousRun]:
    check_model(world, explorer, episodes, model)
    rule = continuous_rule(explorer)
    plan = plan_world(planner, world)
    estimated = not plan.certified
    tasks = [
        Task(
            world,
            explorer,
            planner,
            episodes,
            int(s),
            model,
            False,
            np.nan,
            estimated,
            simulations * estimated,
        )
        for s in seeds
    ]
    optima = [value(plan.policy, world, task) if estimated else plan.upper for task in tasks]
    slack = 0.0 if estimated else float(plan.upper - plan.value)
    tasks = [
        replace(task, optimum=float(optimum), slack=slack)
        for task, optimum in zip(tasks, optima, strict=True)
    ]
    rounds = stop_after_rounds(tasks[0], stop_after)
    with _progress(progress, len(tasks) * rounds) as done:
        return [_advance(_begin_continuous(task, rule), rounds, done) for task in tasks]


def _advance(run: R, rounds: int, done: Callable[[int], None] = lambda n: None) -> R:
    """The readable loop, to be laid beside the paper.

    Comments say what a line is in Algorithm 1 and in Algorithm 2.

    A round is an episode, or an epoch of H episodes. Other rules differ in what they propose and in
    what they keep.
    """
    task: Task = run.task
    state: Any = run.state
    decision: Any = run.decision
    stage = stage_of(task)
    rule, fortunes = stage.rule, stage.fortunes(len(run.played))
    written, policies, clock = Writer(), dict(run.policies), Clock(run.seconds)
    for k in range(len(run.values), rounds):
        luck = list(islice(fortunes, task.episodes_per_round))
        planned, plans = (
            decision is None
            or bool(out_of_date(task.explorer, stage.visits(state), decision.visits)),
            0,
        )
        if planned:  # in the paper always
            with clock("inference"):
                proposal = rule.propose(
                    luck[0].proposal, state
                )  # 1: T-hat_k, O-hat_k, r-hat_k. 2: the spaces T_k, Theta_k
            with clock("planning"):
                decision, plans = stage.decide(
                    proposal, state
                )  # 1: pi-hat_k = POP(T-hat_k, O-hat_k, r-hat_k). 2: argmax
            with clock("evaluation"):
                decision = decision._replace(
                    value=stage.value(decision.policy)
                )  # the learner never sees it
            if state.memory is not None:
                policies[k] = decision.policy
        for h, fortune in enumerate(luck, start=1):  # 1: a single episode. 2: one for every step h
            with clock("acting"):
                episode, worth = stage.deploy(
                    decision, h, fortune
                )  # 1: run pi-hat_k. 2: pi-hat_k o_h Unif(A). Then x_{1:H+1}
            with clock("inference"):
                state = rule.update(
                    state, episode
                )  # 1: n_{k+1}, T-hat_{k+1}, O-hat_{k+1}. 2: step h's tuple; spaces if h = H
            written.episode(episode, worth, stage.impossible(decision, episode))
        written.round(float(decision.value), float(decision.optimistic), planned, plans)
        done(1)
    record = run.record + written.record(task.world)
    return replace(
        run, record=record, state=state, decision=decision, seconds=clock.seconds, policies=policies
    )


def stage_of(task: Task) -> Stage:
    """How the task's world is planned for, valued and played."""
    return TableStage(task) if task.world.spaces.finite else ContinuousStage(task)


def _plan_again(run: Run, index: int) -> GraphPolicy:
    """The policy of a round, planned again from the counts before it."""
    task, state = run.task, run.state_before(index)
    luck = lucks(
        jax.random.key(task.seed),
        rule_number(task.explorer),
        state.played,
        1,
        task.world.spaces.horizon,
    )
    proposal = task.explorer.propose(luck.proposal[0], state)
    return Planning(task.explorer, task.planner, task.model).decide(proposal, state)[0].policy


def _luck(task: Task) -> Array:
    """Data of the key of inference by sampling."""
    return np.asarray(
        jax.random.key_data(explorer_key(jax.random.key(task.seed), 2, rule_number(task.explorer)))
    )


def _begin(task: Task, loop: str, advance: Callable[[Run, int], Run]) -> Run:
    state = replace(task.explorer.init(task.model, task.episodes), luck=_luck(task))
    return Run(
        task, Record.empty(task.world), state, None, {}, loop, {}, advance, in_x64(_plan_again)
    )


def _begin_continuous(task: Task, rule: Rule) -> ContinuousRun:
    state = replace(rule.init(task.model, task.episodes), luck=_luck(task))
    told = "readable loop (continuous spaces)"
    return ContinuousRun(
        task, Record.empty(task.world), state, None, {}, told, {}, in_x64(_advance)
    )


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


@contextmanager
def _progress(wanted: bool | None, rounds: int) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal for runs that take longer than a moment."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if wanted is False or (wanted is None and not console.is_terminal):
        yield lambda n: None
        return
    start = time.perf_counter()
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("learning", total=rounds, visible=bool(wanted))

        def done(n: int) -> None:
            bar.update(
                task, advance=n, visible=bool(wanted) or time.perf_counter() - start > PATIENCE
            )

        yield done

"""``learn``: a rule learns in a world, by the readable or by the compiled loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from homdp_ppl.core.plan import TreePlanner
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.explorers.state import State
from homdp_ppl.learning.checks import check_model, check_plan, check_request
from homdp_ppl.learning.compilable import plain_reason, traced_reason
from homdp_ppl.learning.compiled import compiled_loop
from homdp_ppl.learning.density_stage import density_optimum
from homdp_ppl.learning.learner import SIMULATIONS, Learner
from homdp_ppl.learning.loop import advance
from homdp_ppl.learning.planning import Planner
from homdp_ppl.learning.progress import progress_bar
from homdp_ppl.learning.record import Record
from homdp_ppl.learning.run import COMPILED, Run
from homdp_ppl.learning.stages import Optimum
from homdp_ppl.learning.task import Request, Task
from homdp_ppl.precision import in_x64

FEW = 1000  # rounds of all seeds together that are not worth compiling


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
    simulations: int = SIMULATIONS,
) -> Any:
    """Let a rule learn in a world for K episodes, and evaluate every policy that it deploys.

    Exactly, wherever that is possible.

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
        A number, or several for as many runs. The world's random numbers depend on (seed, episode,
        step) alone: rules can be paired.
    model
        The learner's own declaration (prior, structure); by default the world's.
    stop_after
        Stop after so many episodes; :meth:`Run.resume` continues.
    foresight
        Let a collector that sees the state, optimal in the proposed model, gather the data; the
        history policy is evaluated all the same.
    compiled
        Use the compiled loop (True) or the readable loop (False); by default the compiled loop
        wherever it is possible and worth compiling.
    progress
        Show progress; by default on a terminal when it takes longer than two seconds.
    simulations
        In real-valued spaces, with policies that plan as they go: the number of simulated episodes
        by which a value is estimated. The optimum is then what the same planner reaches when it
        knows the truth.

    Returns
    -------
    Run
        Or a list of them, one per seed, if several were given.

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
    several = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    several = several or (isinstance(given, np.ndarray | jax.Array) and given.ndim > 0)
    request = check_request(
        Request(
            world,
            explorer,
            planner,
            episodes,
            list(given) if several else [given],
            model,
            stop_after,
            foresight,
            compiled,
            progress,
            simulations,
        )
    )
    runs = begin(request)
    rounds = runs[0].task.rounds_of(request.stop_after)
    with progress_bar(request.progress, len(runs) * rounds) as done:
        if runs[0].compiled:
            runs = compiled_loop(runs[0].task).run(runs, rounds, done)
        else:
            runs = [advance(run, rounds, done) for run in runs]
    return runs if several else runs[0]


@in_x64
def begin(request: Request, worth: bool | None = None) -> list[Run]:
    """The runs of a valid request before their first round, one per seed.

    Parameters
    ----------
    request
        What was asked for.
    worth
        Whether there are enough rounds to compile for; by default judged from this request alone.
    """
    check_model(request)
    world, model = request.world, request.declaration
    common = world, request.explorer, request.planner, request.episodes
    tasks = [Task(*common, seed, model, request.foresight, np.nan) for seed in request.seeds]
    learners = [task.learner() for task in tasks]
    states = [learner.init() for learner in learners]  # raises an error if the parts do not fit
    if worth is None:
        worth = tasks[0].rounds * len(tasks) >= FEW
    loop = _loop(request, learners[0], states[0], worth)
    runs = []
    for task, state, best in zip(tasks, states, _optima(request), strict=True):
        task = replace(
            task,
            optimum=best.value,
            slack=best.slack,
            estimated=best.estimated,
            simulations=request.simulations * best.estimated,
        )
        runs.append(Run(task, Record.empty(world), state, None, {}, loop, {}))
    return runs


def _loop(request: Request, learner: Learner, state: State, worth: bool) -> str:
    """Which loop runs, and why; raises an error where the compiled loop was asked for in vain."""
    found = plain_reason(request.world, learner, state, request.foresight)
    if request.compiled or (request.compiled is None and worth):
        found = found or traced_reason(learner, state)
    if request.compiled and found:
        remedy = f"This one cannot: {found.reason}. {found.remedy}".strip()
        problem = Problem("compiled", "True", "a run that can be compiled", remedy)
        raise ParameterError("learn", [problem])
    if found:
        return f"readable loop ({found.reason})"
    if request.compiled is False:
        return "readable loop (as asked)"
    if request.compiled is None and not worth:
        return "readable loop (few episodes: compiling would take longer)"
    return COMPILED


def _optima(request: Request) -> list[Optimum]:
    """The optimum in the true world, for every seed; estimates differ."""
    if not request.world.spaces.finite:
        return density_optimum(request.world, request.planner, request.seeds, request.simulations)
    world, planner = request.world, request.planner

    def plan() -> Optimum:
        best = check_plan(planner(world.pomdp))
        return Optimum(best.upper, best.upper - best.value)

    # Planners on trees are equal by value, so the optimum is computed once per world.
    kept = isinstance(planner, TreePlanner)
    best = world.cache.get(("optimum", planner), plan) if kept else plan()
    return [best] * len(request.seeds)

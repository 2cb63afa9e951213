"""``learn``: run an exploration rule in a world, with the readable or the compiled loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from homdp_ppl.core.plan import TreePlanner
from homdp_ppl.core.reveal import Reveal
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.declare.returns import Played
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.explorers.state import State
from homdp_ppl.learning.certificate import run_until_certified
from homdp_ppl.learning.checks import check_model, check_plan, check_request, uncertified
from homdp_ppl.learning.compilable import plain_reason, traced_reason
from homdp_ppl.learning.compiled import compiled_loop
from homdp_ppl.learning.density_stage import density_optimum
from homdp_ppl.learning.learner import SIMULATIONS, Learner
from homdp_ppl.learning.loop import advance
from homdp_ppl.learning.planning import MANY, Planner, plan_allowed
from homdp_ppl.learning.progress import progress_bar
from homdp_ppl.learning.record import Record
from homdp_ppl.learning.run import COMPILED, Run
from homdp_ppl.learning.stages import Optimum
from homdp_ppl.learning.task import Request, Task
from homdp_ppl.learning.warm_start import as_log
from homdp_ppl.precision import in_x64

FEW = 1000  # with fewer rounds, summed over all seeds, compiling takes longer than it saves


@in_x64
def learn(
    world: World,
    explorer: Explorer,
    planner: Planner,
    episodes: int,
    seed: int | Sequence[int] = 0,
    model: HOMDP | None = None,
    log: Played | None = None,
    stop_after: int | None = None,
    stop_when: float | None = None,
    *,
    foresight: bool = False,
    compiled: bool | None = None,
    progress: bool | None = None,
    simulations: int = SIMULATIONS,
    reveal: Reveal | None = None,
) -> Any:
    """Run an exploration rule in a world for K episodes and evaluate every deployed policy.

    Values are exact where possible.

    Parameters
    ----------
    world
        The true world, which is hidden from the learner.
    explorer
        The rule, from :mod:`homdp_ppl.explorers`.
    planner
        The planner, from :mod:`homdp_ppl.planners`.
    episodes
        K, the number of episodes of the whole run. The bonuses depend on it.
    seed
        One seed, or a sequence of seeds for one run each. The random numbers of the world depend
        only on (seed, episode, step), so runs of different rules can be compared in pairs.
    model
        The learner's declaration (prior and structure). Default: the declaration of the world.
    log
        Recorded episodes that the learner starts with, for example from
        :meth:`Episodes.from_frame`. If they lack states, rules with a posterior start from that of
        the log, which sums over them, and rules that count refuse them. Rules whose bonuses depend
        on K count them as episodes. HOP-V, which uses single steps of its own episodes, refuses
        them.
    stop_after
        Stop after this many episodes. Continue with :meth:`Run.resume`.
    stop_when
        Stop when the last policy is certified to be at most this much worse than the optimum, in
        the units of the reward; see :attr:`Run.certificate`. With probability 1 - delta, it is.
        The certificate is computed after about 10 % more rounds each time; 0 computes it without
        stopping.
    foresight
        Let a collector that sees the state and acts optimally in the proposed model gather the
        data. The history policy is still evaluated. Not possible with HOP-V, which needs its own
        uniform actions.
    compiled
        Use the compiled loop (True) or the readable loop (False). Default: the compiled loop if it
        is possible and there are enough rounds.
    progress
        Show progress. Default: on a terminal, for runs that take longer than two seconds. In a
        notebook, a bar is shown only for True.
    simulations
        The number of simulated episodes per estimated value, for policies that plan online in
        real-valued spaces. The optimum is then the value that the same planner reaches in the true
        world.
    reveal
        Which states are revealed after each episode, for finite spaces. Must be None if the
        declaration of the world says what is revealed, by ``label=`` or ``revealed=``; by default
        all states. Rules with a posterior and HOP-V sum over the missing states. Rules that count
        use the revealed steps and pairs, which needs a coin per step or per episode. Declared
        labels, and mechanisms other than a coin, need a rule with a posterior, or one that plans
        once. At a share of 0 nothing is revealed; see
        :func:`homdp_ppl.posteriors.label_symmetries`.

    Returns
    -------
    Run
        One run, or a list with one run per seed if ``seed`` is a sequence.

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
            stop_when,
            foresight,
            compiled,
            progress,
            simulations,
            log,
            reveal,
        )
    )
    runs = begin(request)
    rounds = runs[0].task.rounds_of(request.stop_after)
    with progress_bar(request.progress, len(runs) * rounds) as done:
        if request.stop_when is None:
            runs = _advance(runs, rounds, done)
        else:
            steps = partial(_advance, done=done)
            found = run_until_certified(runs, rounds, steps, request.stop_when)
            runs = [replace(run, certified=certificate) for run, certificate in found]
    return runs if several else runs[0]


def _advance(runs: list[Run], rounds: int, done: Callable[[int], None]) -> list[Run]:
    """Continue runs of the same task to a number of rounds."""
    if runs[0].compiled:
        return compiled_loop(runs[0].task).run(runs, rounds, done)
    return [advance(run, rounds, done) for run in runs]


@in_x64
def begin(request: Request, worth_compiling: bool | None = None) -> list[Run]:
    """Set up the runs of a valid request, one per seed, before their first round.

    Parameters
    ----------
    request
        The arguments of :func:`learn`.
    worth_compiling
        Whether there are enough rounds to compile. Default: decided from this request alone.
    """
    check_model(request)
    world, model = request.world, request.declaration
    common = world, request.explorer, request.planner, request.episodes
    log = as_log(request.explorer, model, request.log)
    if request.stop_when is not None and log is not None and log.evidence is not None:
        raise ParameterError("learn", [uncertified(request.stop_when)])
    further: dict[str, Any] = {"log": log, "reveal": request.reveal}
    tasks = [
        Task(*common, seed, model, request.foresight, np.nan, **further) for seed in request.seeds
    ]
    learners = [task.learner() for task in tasks]
    if request.explorer.objective.candidates > MANY:
        learners[0].planning  # noqa: B018  # raises an error for too many, before JAX compiles
    states = [learner.init() for learner in learners]  # raises an error if the parts do not fit
    if learners[0].hindsight != "complete":  # raises an error for options that need every state
        learners[0].decide(0, states[0])
    if worth_compiling is None:
        worth_compiling = tasks[0].rounds * len(tasks) >= FEW
    loop = _loop(request, learners[0], states[0], worth_compiling)
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


def _loop(request: Request, learner: Learner, state: State, worth_compiling: bool) -> str:
    """Choose the loop and say why.

    Raises an error if the compiled loop was requested but is impossible.
    """
    found = plain_reason(request.world, learner, state, request.foresight)
    if request.compiled or (request.compiled is None and worth_compiling):
        found = found or traced_reason(learner, state)
    if request.compiled and found:
        remedy = f"Reason: {found.reason}. {found.remedy}".strip()
        problem = Problem("compiled", "True", "a run that can be compiled", remedy)
        raise ParameterError("learn", [problem])
    if found:
        return f"readable loop ({found.reason})"
    if request.compiled is False:
        return "readable loop (as requested)"
    if request.compiled is None and not worth_compiling:
        return "readable loop (few episodes: compiling would take longer)"
    return COMPILED


def _optima(request: Request) -> list[Optimum]:
    """The optimum in the true world for each seed; estimates differ between seeds."""
    if not request.world.spaces.finite:
        return density_optimum(request.world, request.planner, request.seeds, request.simulations)
    world, planner = request.world, request.planner

    def plan() -> Optimum:
        best = check_plan(plan_allowed(planner, world.pomdp, world.homdp.allowed))
        return Optimum(best.upper, best.upper - best.value)

    # Tree planners compare by value, so the optimum is computed once per world.
    kept = isinstance(planner, TreePlanner)
    best = world.cache.get(("optimum", planner), plan) if kept else plan()
    return [best] * len(request.seeds)

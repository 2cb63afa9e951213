"""What :func:`homdp_ppl.learn` refuses, and how it says so."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.plan import Plan, planner_name
from homdp_ppl.declare.known import refuse_unknown_start as refuse_start
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.evaluation.exact import evaluate
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.learning.outcome import stop_problems
from homdp_ppl.posteriors.data import refuse_unknown_start


def check_plan(found: Any, subject: str = "learn") -> Plan:
    """What a planner made of the true world.

    Refuses what is no plan, and numbers that are not those of its policy.
    """
    if not isinstance(found, Plan):
        problem = Problem(
            "planner",
            f"a {type(found).__name__}",
            "a Plan",
            "Return make_plan(policy, value, upper, pomdp, name).",
        )
        raise ParameterError(subject, [problem])
    if isinstance(found.policy, GraphPolicy):
        worth = evaluate(*found.finite)
        if not found.value - found.rounding <= worth <= found.upper + found.rounding:
            got = (
                f"value {found.value:.6g} and upper {found.upper:.6g} for a policy that "
                f"is worth {worth:.6g}"
            )
            remedy = "value is evaluate(policy, pomdp), upper a proved bound of the optimum."
            raise ParameterError(
                subject, [Problem("planner", got, "value <= worth <= upper", remedy)]
            )
    return found


def check_request(
    world: Any,
    explorer: Any,
    planner: Any,
    episodes: Any,
    seeds: list[Any],
    model: Any,
    stop_after: Any,
    simulations: Any,
) -> None:
    """Refuse what is no world, rule, planner, number of episodes, seed or model, all at once."""
    problems = []
    if not isinstance(world, World):
        remedy = "Fix the parameters of a declaration: homdp.at(...)."
        problems.append(Problem("world", f"a {type(world).__name__}", "a World", remedy))
    if not isinstance(explorer, Explorer):
        remedy = f"Call its factory: explorers.{_named(explorer, 'greedy')}()."
        problems.append(Problem("explorer", f"a {type(explorer).__name__}", "an Explorer", remedy))
    if not takes_a_model(planner):
        got = planner_name(planner) if callable(planner) else f"a {type(planner).__name__}"
        remedy = f"Call its factory: {_named(planner, 'history_tree')}()."
        problems.append(Problem("planner", got, "a function from a POMDP to a Plan", remedy))
    if not (isinstance(episodes, int | np.integer) and episodes >= 1):
        problems.append(Problem("episodes", repr(episodes), "a whole number of at least 1"))
    if not seeds or not all(isinstance(s, int | np.integer) and 0 <= s < 2**63 for s in seeds):
        problems.append(Problem("seed", repr(seeds), "whole numbers of at least 0 and below 2^63"))
    if not (model is None or isinstance(model, HOMDP)):
        remedy = "Of a world, take the declaration: world.homdp."
        problems.append(Problem("model", f"a {type(model).__name__}", "a HOMDP", remedy))
    problems += stop_problems(stop_after)
    if not (isinstance(simulations, int | np.integer) and simulations >= 2):
        problems.append(Problem("simulations", repr(simulations), "a whole number of at least 2"))
    if problems:
        raise ParameterError("learn", problems)


def _named(given: Any, otherwise: str) -> str:
    """The name of what somebody meant, by its text or as a function that was not called."""
    name = given if isinstance(given, str) else getattr(given, "__name__", otherwise)
    return name if name.isidentifier() else otherwise


def takes_a_model(planner: Any) -> bool:
    """Whether it looks like a planner; a factory can be called without arguments."""
    if not callable(planner):
        return False
    try:
        first = next(iter(inspect.signature(planner).parameters.values()), None)
    except ValueError:  # a built-in that does not tell its parameters
        return False
    return first is not None and first.default is first.empty


def _same_rewards(mine: Any, real: Any) -> bool:
    """Whether tables agree; functions of continuous states cannot be compared, and are taken at
    their word.
    """
    return callable(mine) or bool(np.array_equal(mine, real))


def check_model(
    world: World,
    explorer: Explorer,
    episodes: int,
    model: HOMDP,
) -> None:
    """Refuse a learner's declaration of something else than the world, and fewer episodes than an
    epoch has.
    """
    if model.spaces != world.spaces:
        remedy = "The learner's declaration has the names and the horizon of the world it acts in."
        raise ParameterError(
            "learn", [Problem("model", str(model.spaces), str(world.spaces), remedy)]
        )
    if not _same_rewards(model.reward, world.homdp.reward):
        raise ParameterError(
            "learn", [Problem("model", "other rewards", "the world's rewards: they are known")]
        )
    if explorer.each_step and episodes < world.spaces.horizon:
        expected = f"at least one epoch of {world.spaces.horizon} episodes"
        raise ParameterError("learn", [Problem("episodes", str(episodes), expected)])
    if not model.spaces.finite:
        refuse_start(model)
    else:
        refuse_unknown_start(model)

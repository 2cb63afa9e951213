"""Validation of the arguments of :func:`homdp_ppl.learn`."""

from __future__ import annotations

import inspect
from typing import Any, cast

import jax
import numpy as np

from homdp_ppl.core.arguments import (
    count_problems,
    flag_problems,
    is_count,
    number_problems,
    refuse,
    scalar_problems,
)
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.plan import Plan, planner_name
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.reveal import Reveal
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.declare.rewards import Rewards
from homdp_ppl.errors import ParameterError, Problem, shown, with_article
from homdp_ppl.evaluation.exact import evaluate
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.learning.declared import Declared
from homdp_ppl.learning.hindsight import declared_reveal, hindsight_of, hindsight_problems
from homdp_ppl.learning.task import Request, stop_problems


def check_plan(found: Any, subject: str = "learn") -> Plan:
    """Validate the plan for the true world and return it.

    Raises an error if it is not a Plan or if its bounds do not contain its policy's value.
    """
    if not isinstance(found, Plan):
        problem = Problem(
            "planner",
            with_article(type(found).__name__),
            "a Plan",
            "Return make_plan(policy, value, upper, pomdp, name).",
        )
        raise ParameterError(subject, [problem])
    if isinstance(found.policy, GraphPolicy):
        value = evaluate(*found.finite)
        if not found.value - found.rounding <= value <= found.upper + found.rounding:
            got = (
                f"value {found.value:.6g} and upper {found.upper:.6g} for a policy with "
                f"value {value:.6g}"
            )
            remedy = (
                "Set value to evaluate(policy, pomdp), and upper to a proved bound on the optimum."
            )
            raise ParameterError(
                subject, [Problem("planner", got, "bounds on the policy's value", remedy)]
            )
    return found


def check_request(request: Request) -> Request:
    """Return the request with plain numbers; report all invalid arguments in one error."""
    world, explorer, planner, episodes, seeds, model, stop_after, *_ = request
    problems = []
    if not isinstance(world, World):
        remedy = _world_remedy(world)
        problems.append(Problem("world", with_article(type(world).__name__), "a World", remedy))
    if not isinstance(explorer, Explorer):
        remedy = f"Call its factory: explorers.{_named(explorer, 'greedy')}()."
        problems.append(
            Problem("explorer", with_article(type(explorer).__name__), "an Explorer", remedy)
        )
    if not takes_a_model(planner):
        got = planner_name(planner) if callable(planner) else with_article(type(planner).__name__)
        remedy = f"Call its factory: {_named(planner, 'history_tree')}()."
        problems.append(Problem("planner", got, "a function from a POMDP to a Plan", remedy))
    problems += count_problems(episodes=episodes)
    if not seeds or not all(is_count(s, 0) and s < 2**63 for s in seeds):
        problems.append(Problem("seed", shown(seeds), "integers of at least 0 and below 2^63"))
    if not (model is None or isinstance(model, HOMDP)):
        remedy = "Pass the declaration of the world: world.homdp."
        problems.append(Problem("model", with_article(type(model).__name__), "a HOMDP", remedy))
    problems += stop_problems(stop_after, episodes)
    problems += _certificate_problems(request)
    problems += _reveal_problems(request)
    problems += count_problems(2, simulations=request.simulations)
    problems += flag_problems(foresight=request.foresight)
    chosen = {"compiled": request.compiled, "progress": request.progress}
    problems += flag_problems(**{name: v for name, v in chosen.items() if v is not None})
    if isinstance(world, World) and not world.spaces.finite:
        asked = {"foresight": request.foresight, "compiled": request.compiled}
        expected = "False in real-valued spaces"
        problems += [Problem(name, "True", expected) for name, v in asked.items() if v is True]
    refuse(ParameterError, "learn", problems)
    plain = [int(seed) for seed in seeds]  # NumPy's numbers cannot be saved
    reveal = declared_reveal(world) if request.reveal is None else request.reveal
    reveal = None if reveal is None or reveal.complete else reveal
    request = request._replace(seeds=plain, reveal=reveal)
    return request._replace(episodes=int(episodes), simulations=int(request.simulations))


def _reveal_problems(request: Request) -> list[Problem]:
    """Problems with ``reveal``."""
    reveal = request.reveal
    declared_so = isinstance(request.world, World) and declared_reveal(request.world)
    if reveal is not None and declared_so:
        expected = "None: the declaration says what is revealed"
        return [Problem("reveal", shown(reveal), expected)]
    reveal = declared_so or reveal
    if reveal is not None and not isinstance(reveal, Reveal | Declared):
        remedy = "For a share of the states: Reveal(0.2)."
        return [Problem("reveal", shown(reveal), "a Reveal, or None", remedy)]
    if reveal is None or reveal.complete:
        return []
    problems = []
    if request.foresight is True:
        remedy = "The collector's actions would be evidence of the hidden states."
        problems.append(Problem("foresight", "True", "False if states are missing", remedy))
    if request.stop_when is not None:
        problems.append(uncertified(request.stop_when))
    world, explorer = request.world, request.explorer
    if isinstance(world, World) and isinstance(explorer, Explorer):
        declared = request.model if isinstance(request.model, HOMDP) else world.homdp
        problems += hindsight_problems(explorer, declared, hindsight_of(reveal))
    return problems


def uncertified(stop_when: Any) -> Problem:
    """The problem of a certificate for a run or a log with missing states."""
    remedy = "Certificates are based on counts of revealed transitions and observations."
    return Problem("stop_when", shown(stop_when), "None if states are missing", remedy)


def _certificate_problems(request: Request) -> list[Problem]:
    """Problems with ``stop_when``."""
    if request.stop_when is None:
        return []
    if isinstance(request.stop_when, jax.core.Tracer):
        remedy = "Call learn outside of jit, vmap and grad."
        return [Problem("stop_when", "a traced JAX value", "a number", remedy)]
    problems = scalar_problems(stop_when=request.stop_when)
    problems = problems or number_problems(stop_when=request.stop_when)
    if not problems and isinstance(request.world, World) and not request.world.spaces.finite:
        expected = "None in real-valued spaces"
        remedy = "Certificates are based on counts of transitions and observations."
        problems = [Problem("stop_when", shown(request.stop_when), expected, remedy)]
    return problems


def _world_remedy(given: Any) -> str:
    """The remedy for a value given as the world: ``learn`` simulates a World itself."""
    if isinstance(given, HOMDP):
        return "Fix the parameters of a declaration: homdp.at(...)."
    if isinstance(given, str):
        return f"Load a model by its name: models.load({given!r})."
    if isinstance(given, POMDP):
        return "Declare it with tabular(...) and fix its parameters with .at(...)."
    return (
        "learn simulates a World: a declaration with fixed parameters, homdp.at(...). To learn in "
        "an external system, use Agent(homdp, explorer, planner)."
    )


def _named(given: Any, otherwise: str) -> str:
    """The name of a factory that was passed as text or without being called."""
    name = given if isinstance(given, str) else getattr(given, "__name__", otherwise)
    return name if name.isidentifier() else otherwise


def takes_a_model(planner: Any) -> bool:
    """Whether the object takes a model as its argument; factories of planners do not."""
    if not callable(planner):
        return False
    try:
        first = next(iter(inspect.signature(planner).parameters.values()), None)
    except ValueError:  # a built-in without a signature
        return False
    return first is not None and first.default is first.empty


def check_model(request: Request) -> None:
    """Raise an error if the declaration does not fit the world or there are too few episodes."""
    world, model, horizon = request.world, request.declaration, request.world.spaces.horizon
    if model.spaces != world.spaces:
        remedy = "Use the same names and horizon as the world."
        problem = Problem("model", str(model.spaces), str(world.spaces), remedy)
        raise ParameterError("learn", [problem])
    forms = model.hindsight_form, world.homdp.hindsight_form
    mine, real = (0 if form is None else form.labels for form in forms)
    if mine != real:
        got, expected = (f"{number} labels" if number else "no labels" for number in (mine, real))
        raise ParameterError("learn", [Problem("model", got, f"{expected}, as in the world")])
    if not _same_rewards(model.rewards, world.homdp.rewards):
        expected = "the rewards of the world, or random rewards with the same outcomes"
        problem = Problem("model", "different rewards", expected)
        raise ParameterError("learn", [problem])
    if request.foresight and world.homdp.rewards.by_observation:
        expected = "False: the collector's rewards would depend on observations"
        raise ParameterError("learn", [Problem("foresight", "True", expected)])
    if request.foresight and request.explorer.deployment.uniform_at_each_step:
        got = f"True with {request.explorer.name}"
        expected = (
            "False: the rule plays a uniform action at each step, which a collector would not"
        )
        remedy = "Use another rule; HOP-V learns from its own episodes only."
        raise ParameterError("learn", [Problem("foresight", got, expected, remedy)])
    epoch = request.explorer.deployment.episodes_per_round(horizon)
    if request.episodes < epoch:
        expected = f"at least one epoch of {epoch} episodes"
        raise ParameterError("learn", [Problem("episodes", str(request.episodes), expected)])


def _same_rewards(mine: Rewards, real: Rewards) -> bool:
    """Whether two rewards are equal; of functions only the units can be compared."""
    if (mine.scale, mine.shift) != (real.scale, real.shift):
        return False
    if mine.law is not None or real.law is not None:  # the laws have to be learned
        return mine.law is not None and real.law is not None and mine.law.form == real.law.form
    return mine.table is None or bool(np.array_equal(mine.table, cast(Any, real.table)))

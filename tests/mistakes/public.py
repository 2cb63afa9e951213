"""The public API: functions, classes, methods and properties that need recipes."""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import Any

import homdp_ppl
from homdp_ppl.core.pomdp import Stationary
from homdp_ppl.learning.learner import Learner
from homdp_ppl.planners import PLANNERS

# Classes that users call without being listed: public functions take or return them.
ALSO = {"Learner": Learner, "Stationary": Stationary}
WRAPPER = (  # properties that every Gymnasium wrapper inherits
    "action_space",
    "metadata",
    "np_random",
    "np_random_seed",
    "observation_space",
    "render_mode",
    "spec",
    "unwrapped",
)
# Names that users do not call with data: implemented by users, called by JAX, or inherited.
NOT_CALLED = {
    "Policy",
    "Policy.act",
    "BatchPolicy",
    "BatchPolicy.act",
    "BatchPolicy.act_batch",
    "GraphPolicy.tree_flatten",
    "Sparse.tree_flatten",
    "Sparse.tree_unflatten",
    "GraphPolicy.tree_unflatten",
    "x64",
    "Learner.traced",
    "Run",  # results, created only by the library
    "LiveEpisode",
    "Posterior",
    "offline.Evaluation",
    "offline.Choice",
    "offline.Behaviour",
    "posteriors.PredictiveCheck",
    "study.Finished",
    "study.StudyDirectory",
    "study.HindsightStudy",
    "study.Row",
    "study.ShareRow",
    "study.Difference",
    "planners.OnlinePolicy",  # created only by particle_tree, from private parts
    "explorers.State",  # a pytree that JAX flattens and unflattens
    "gym.HistoryPolicy",  # created only by HistoryObservation.policy
    "gym.HOMDPEnv.np_random",
    "gym.HOMDPEnv.np_random_seed",
    "gym.HOMDPEnv.unwrapped",
    *(f"gym.HistoryObservation.{name}" for name in WRAPPER),
}


def namespaces() -> dict[str, Any]:
    """The public modules; the root has the empty name."""
    parts = {name: getattr(homdp_ppl, name) for name in homdp_ppl.__all__}
    return {"": homdp_ppl} | {n: part for n, part in parts.items() if inspect.ismodule(part)}


def public() -> dict[str, Any]:
    """Functions and classes by name, for example ``theory.packing``, without duplicates."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for space, module in namespaces().items():
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing) and not inspect.ismodule(thing) and id(thing) not in seen:
                seen.add(id(thing))
                found[f"{space}.{name}".removeprefix(".")] = thing
    return found | ALSO


def members(name: str, thing: type) -> tuple[list[str], list[str]]:
    """The methods and the properties of a public class, by name."""
    methods, properties = [], []
    for part in dir(thing):
        if part.startswith("_"):
            continue
        static, value = inspect.getattr_static(thing, part), getattr(thing, part)
        if isinstance(static, property | cached_property):
            properties.append(f"{name}.{part}")
        elif callable(value) and "homdp" in str(getattr(value, "__module__", "")):
            methods.append(f"{name}.{part}")
    return methods, properties


def required() -> set[str]:
    """The names that need a recipe."""
    names = set()
    for name, thing in public().items():
        if inspect.isclass(thing) and issubclass(thing, BaseException):
            continue
        names.add(name)
        if inspect.isclass(thing):
            methods, properties = members(name, thing)
            names |= {*methods, *properties}
    names |= {f"{name}()" for name in PLANNERS}  # the planners that the factories return
    return names - NOT_CALLED

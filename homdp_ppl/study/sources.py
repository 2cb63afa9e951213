"""Worlds, rules and planners from a line of text: what a person types, and what a file of a study holds."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import lru_cache
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import jax

from homdp_ppl import models, planners
from homdp_ppl.continuous import ContinuousHOMDP, ContinuousWorld
from homdp_ppl.declare import HOMDP, World
from homdp_ppl.domain import Real
from homdp_ppl.errors import HOMDPError, ParameterError, Problem
from homdp_ppl.explorers import EXPLORERS, Explorer
from homdp_ppl.formats import read_pomdp
from homdp_ppl.planners import history_tree, particle_tree, quantised
from homdp_ppl.planners.auto import SMALL_TREE
from homdp_ppl.planners.histories import Support, count_histories
from homdp_ppl.rounds import Planner

FILE_HORIZON = 10  # of a .POMDP file, which has none
CLASSES = ("hop_b_class", "hop_v")  # rules that need tables or worlds, which no line of text can hold


class Call(NamedTuple):
    """A name with options, as in ``hop_b:scale=0.1,delta=0.05``."""

    name: str
    options: dict[str, Any]


def parse_call(text: str, subject: str) -> Call:
    """A name and its options.

    Examples
    --------
    >>> parse_call("hop_b:scale=0.1,known=False", "explorer")
    Call(name='hop_b', options={'scale': 0.1, 'known': False})
    """
    name, _, rest = text.partition(":")
    options: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        option, equals, value = part.partition("=")
        if not equals or not option.strip():
            raise ParameterError(subject, [Problem(name, repr(part), "an option as in scale=0.1")])
        options[option.strip()] = _value(value.strip())
    return Call(name.strip(), options)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A remedy for a misspelt name; empty if nothing comes near.

    Examples
    --------
    >>> did_you_mean("tigre", ["lock", "tiger"])
    'Did you mean tiger?'
    """
    near = get_close_matches(name, list(known), n=1)
    return f"Did you mean {near[0]}?" if near else ""


def find_world(text: str, horizon: int | None = None, seed: int = 0) -> World | ContinuousWorld:
    """A world from a zoo name with options, from a ``.POMDP`` file or from ``path/to/file.py:name``.

    A ``.POMDP`` file has no horizon, so this gives it ``FILE_HORIZON`` unless another is asked for. The file's numbers are the
    truth, unknown to a learner under flat Dirichlet priors on their support.

    Parameters
    ----------
    text
        What the person typed: ``tiger``, ``screening:hierarchy=False``, ``hall.POMDP``, ``mine.py:world``.
    horizon
        Another horizon than the model's own.
    seed
        A file may hold a HOMDP without a truth; its parameters are then drawn from the prior with this seed.

    Examples
    --------
    >>> find_world("tiger:horizon=3")
    World 'tiger' at accuracy=0.85
    """
    world = _find(text, seed)
    return world if horizon is None else world.with_horizon(horizon)


def find_again(text: str, horizon: int | None = None) -> World | ContinuousWorld:
    """The same object for a zoo name that is asked for again and again; a file is read anew, for it may have changed."""
    return _of_zoo(text, horizon) if file_of(text) is None else find_world(text, horizon)


_of_zoo = lru_cache(maxsize=16)(find_world)


def _find(text: str, seed: int) -> World | ContinuousWorld:
    if text.lower().endswith(".pomdp"):
        return read_pomdp(text, FILE_HORIZON, prior=1.0)
    path = file_of(text)
    if path is None:
        call = parse_call(text, "model")
        known = [*models.MODELS, *models.CONTINUOUS]
        if call.name not in known:
            remedy = did_you_mean(call.name, known)
            raise HOMDPError("model", [Problem("name", repr(call.name), "a name of the zoo, see `homdp models`", remedy)])
        loaded: World | ContinuousWorld = _called(models.load, call.name, call)
        return loaded
    name = text.rpartition(":")[2] if not text.endswith(".py") else ""
    module = _import(path)
    found = getattr(module, name, None)
    kinds = HOMDP | World | ContinuousHOMDP | ContinuousWorld
    if callable(found) and not isinstance(found, kinds | type):
        found = found()  # as the zoo's own: a function that returns a world
    if not isinstance(found, kinds):
        there = [k for k, v in vars(module).items() if isinstance(v, kinds)]
        got = f"{name} is a {type(found).__name__}" if hasattr(module, name) else f"nothing called {name!r}"
        remedy = f"The file has: {', '.join(there) or 'none'}. Write path/to/file.py:name."
        raise HOMDPError(text, [Problem("name", got, "a HOMDP, a World, or a function that returns one", remedy)])
    return found.draw(jax.random.key(seed)) if isinstance(found, HOMDP | ContinuousHOMDP) else found


def file_of(text: str) -> Path | None:
    """The file that a model's text names, if it names one."""
    if text.lower().endswith(".pomdp") or text.endswith(".py"):
        return Path(text)
    path, colon, _ = text.rpartition(":")
    return Path(path) if colon and ("." in path or "/" in path) else None


def find_rule(text: str, world: World | ContinuousWorld) -> Explorer:
    """A rule from a line of text: its name, and options as in ``hop_b:scale=0.1,delta=0.05``.

    Examples
    --------
    >>> find_rule("hop_b:scale=0.1", models.load("tiger")).name
    'hop_b(scale=0.1)'
    """
    call = parse_call(text, "explorer")
    if call.name not in EXPLORERS or call.name in CLASSES:
        known = [rule for rule in EXPLORERS if rule not in CLASSES]
        needs = "This rule needs a class of tables or worlds: use it from Python."
        remedy = needs if call.name in CLASSES else did_you_mean(call.name, known)
        raise ParameterError("explorer", [Problem("name", repr(call.name), f"one of {', '.join(known)}", remedy)])
    if call.name == "oracle":
        return EXPLORERS["oracle"](world)
    rule: Explorer = _called(EXPLORERS[call.name], call.name, call)
    return rule


def find_planner(text: str, world: World | ContinuousWorld, model: HOMDP | None = None) -> Planner:
    """A planner from a line of text; ``auto`` chooses one that fits the world, and the learner's declaration.

    For finite worlds that is the history tree while it is small, since every rule can use it.

    Parameters
    ----------
    text
        A name of ``planners.PLANNERS`` or ``planners.CONTINUOUS_PLANNERS``, and options as in ``quantised:gap=0.05``.
    world
        What is planned for.
    model
        The learner's own declaration, which may allow more histories than the world's.

    Examples
    --------
    >>> world = models.load("tiger", horizon=2)
    >>> [find_planner(text, world)(world.pomdp).planner for text in ("auto", "alpha_vectors:tolerance=0.01")]
    ['history_tree', 'alpha_vectors']
    """
    call = parse_call(text, "planner")
    known = planners.PLANNERS | planners.CONTINUOUS_PLANNERS
    if call.name not in known:
        problem = Problem("name", repr(call.name), f"one of {', '.join(known)}", did_you_mean(call.name, known))
        raise ParameterError("planner", [problem])
    factory = known[call.name]
    if call.name == "auto" and isinstance(world, ContinuousWorld):
        on_line = not isinstance(world.spaces.states, Real) and world.spaces.observations == Real(1)
        factory = quantised if on_line else particle_tree
    elif call.name == "auto" and isinstance(world, World):
        support = (world.homdp if model is None else model).structure.support
        if sum(count_histories(Support.of(support), world.spaces.horizon)) <= SMALL_TREE:
            return history_tree()
    planner: Planner = _called(factory, call.name, call)
    return planner


def _called(factory: Callable[..., Any], name: str, call: Call) -> Any:
    """What a factory makes of the options; refuses those that it does not have."""
    if factory is not models.load:
        has = list(signature(factory).parameters)
        wrong = [option for option in call.options if option not in has]
        if wrong:
            known = f"one of {', '.join(has)}" if has else "none"
            raise ParameterError(name, [Problem("option", repr(option), known, did_you_mean(option, has)) for option in wrong])
    try:
        return factory(name, **call.options) if factory is models.load else factory(**call.options)
    except TypeError as error:
        raise ParameterError(name, [Problem("options", str(error), "values that it takes")]) from None


def _value(text: str) -> Any:
    if text in ("True", "False", "true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _import(path: Path) -> ModuleType:
    if not path.is_file():
        raise HOMDPError(str(path), [Problem("file", f"no file {path}", "path/to/file.py:name")])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise HOMDPError(str(path), [Problem("file", path.name, "a Python file, ending in .py")])
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except HOMDPError:
        raise
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == path.name]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else "?"
        got = f"{type(error).__name__}: {error}"
        raise HOMDPError(str(path), [Problem(f"line {line}", got, "a file that can be imported")]) from error
    return module

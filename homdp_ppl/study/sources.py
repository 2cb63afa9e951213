"""Worlds, rules and planners from text, as on the command line or in a study file."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple, get_args

import jax

from homdp_ppl import models, planners
from homdp_ppl.core.checked import checked
from homdp_ppl.core.spaces import Real
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import HOMDPError, ParameterError, Problem, unknown
from homdp_ppl.explorers import EXPLORERS, Explorer
from homdp_ppl.explorers.explorer import Replan
from homdp_ppl.explorers.transforms import replanning
from homdp_ppl.formats import read_pomdp
from homdp_ppl.learning.checks import takes_a_model
from homdp_ppl.learning.planning import Planner
from homdp_ppl.planners import history_tree, particle_tree, quantised
from homdp_ppl.planners._histories import Support, few_histories
from homdp_ppl.planners.auto import SMALL_TREE
from homdp_ppl.study.defaults import FILE_HORIZON
from homdp_ppl.study.files import file_of, find_in_file, source_of

DIGITS = 64  # longest text that is read as a number


def required(factory: Callable[..., Any]) -> set[str]:
    """The parameters of a factory that have no default."""
    parameters = signature(factory).parameters.values()
    return {parameter.name for parameter in parameters if parameter.default is parameter.empty}


def unwritable() -> list[str]:
    """Rules that need tables or worlds as arguments, which text cannot express."""
    return [name for name, factory in EXPLORERS.items() if required(factory) - {"world"}]


class Call(NamedTuple):
    """A name with options, as in ``hop_b:scale=0.1,delta=0.05``."""

    name: str
    options: dict[str, Any]


def parse_call(text: str, subject: str) -> Call:
    """Parse a name with options; for user files, the name includes the file.

    Examples
    --------
    >>> parse_call("hop_b:scale=0.1,known=False", "explorer")
    Call(name='hop_b', options={'scale': 0.1, 'known': False})
    >>> parse_call("mine.py:curious:weight=0.3", "explorer")
    Call(name='mine.py:curious', options={'weight': 0.3})
    """
    file, found, inside = text.partition(".py:")
    name, _, rest = (inside if found else text).partition(":")
    name = f"{file}.py:{name}" if found else name
    options: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        option, equals, value = part.partition("=")
        if not equals or not option.strip() or "=" in value:
            raise ParameterError(
                subject,
                [
                    Problem(
                        name,
                        repr(part),
                        f"an option with a value, as in {option.strip() or 'name'}=1",
                        "Separate options with commas." if "=" in value else "",
                    )
                ],
            )
        options[option.strip()] = _value(value.strip())
    return Call(name.strip(), options)


@checked
def find_world(text: str, horizon: int | None = None, seed: int = 0) -> World:
    """Find a world by a name of the model zoo, a ``.POMDP`` file, or ``path/to/file.py:name``.

    ``.POMDP`` files define no horizon; the default is ``FILE_HORIZON``. Their numbers define the
    true world. A learner starts from flat Dirichlet priors on their support.

    Parameters
    ----------
    text
        The model, as in ``tiger``, ``screening:hierarchy=False``, ``hall.POMDP`` or
        ``mine.py:world``.
    horizon
        The horizon, instead of the model's own.
    seed
        If a user file has a HOMDP instead of a World, its parameters are drawn from the prior with
        this seed.

    Examples
    --------
    >>> find_world("tiger:horizon=3")
    World 'tiger' at accuracy=0.85
    """
    world = _find(text, seed)
    return world if horizon is None else world.with_horizon(horizon)


def find_again(text: str, horizon: int | None = None) -> World:
    """Like :func:`find_world`, with a cache for names of the model zoo.

    Files are read again, because they may have changed.
    """
    return _of_zoo(text, horizon) if file_of(text) is None else find_world(text, horizon)


_of_zoo = lru_cache(maxsize=16)(find_world)


def _find(text: str, seed: int) -> World:
    if text.lower().endswith(".pomdp"):
        return read_pomdp(text, FILE_HORIZON, prior=1.0)
    path = file_of(text)
    if path is not None and path.suffix.lower() == ".pomdp":
        raise HOMDPError(
            "model",
            [
                Problem(
                    "options",
                    text[len(str(path)) + 1 :],
                    "no options for a .POMDP file",
                    "To set the horizon, use --horizon.",
                )
            ],
        )
    if path is None:
        known = models.MODELS
        name, _, rest = text.partition(":")
        if name.strip() not in known:
            here = len(name) <= 200 and Path(f"{name}.py").is_file()
            problem = unknown("name", "model", name, known, "the model zoo")
            problem = problem._replace(
                expected="use a name of the model zoo (see `homdp models`), a .POMDP file, or "
                "path/to/file.py:name"
            )
            if here:
                problem = problem._replace(remedy=f"Did you mean '{name}.py:{rest}'?")
            raise HOMDPError("model", [problem])
        call = parse_call(text, "model")
        loaded: World = _called(models.MODELS[call.name], call)
        return loaded
    kinds = HOMDP | World
    expected = "a HOMDP, a World, or a function that returns one"
    call = parse_call(text, "model") if path.suffix == ".py" else Call("", {})
    found = find_in_file(path, _after(call.name), kinds, expected)
    if not isinstance(found, kinds):
        found = _called(found, call)  # a function that returns a world, as in the model zoo
    elif call.options:
        raise ParameterError(
            call.name,
            [Problem("options", ", ".join(call.options), "no options, which only functions take")],
        )
    if not isinstance(found, kinds):
        raise HOMDPError(text, [Problem("name", _returned(found), expected)])
    return found.draw(jax.random.key(seed)) if isinstance(found, HOMDP) else found


def _after(name: str) -> str:
    """The name without the file."""
    return "" if name.endswith(".py") else name.rpartition(":")[2]


@checked
def find_rule(text: str, world: World) -> Explorer:
    """Find a rule by its name, with options as in ``hop_b:scale=0.1,delta=0.05``.

    A custom rule is given as ``path/to/file.py:name``: an :class:`Explorer`, or a function that
    returns one. Every rule accepts ``replan=doubled``, ``replan=once`` or ``replan=every episode``.

    Examples
    --------
    >>> find_rule("hop_b:scale=0.1", models.load("tiger")).name
    'hop_b(scale=0.1)'
    """
    call, file = parse_call(text, "explorer"), file_of(text)
    if file is not None:
        return _user_rule(file, call)
    classes = unwritable()
    if call.name not in EXPLORERS or call.name in classes:
        known = [rule for rule in EXPLORERS if rule not in classes]
        problem = unknown("name", "exploration rule", call.name, known, "the command line")
        if call.name in classes:
            needs = "This rule needs a class of tables or worlds. Use it in Python."
            expected = "a rule that can be used on the command line"
            problem = Problem("name", repr(call.name), expected, needs)
        raise ParameterError("explorer", [problem])
    if takes_world(text):
        call.options.setdefault("world", world)
    rule: Explorer = _replanning(EXPLORERS[call.name], call)
    return rule


def takes_world(text: str) -> bool:
    """Whether a rule takes the true world as an argument."""
    factory = EXPLORERS.get(parse_call(text, "explorer").name)
    return factory is not None and "world" in required(factory)


def uses_prior(text: str) -> bool:
    """Whether a rule depends on the prior.

    Rules that take a world or model classes as arguments do not.
    """
    file = file_of(text)
    return _uses_prior(text, source_of(text) if file else "")


@lru_cache(maxsize=256)
def _uses_prior(text: str, source: str) -> bool:
    call, file = parse_call(text, "explorer"), file_of(text)
    if file is not None:
        return _user_rule(file, call).about.uses_prior
    factory = EXPLORERS.get(call.name)
    if factory is None or required(factory):
        return False
    rule: Explorer = _replanning(factory, call)
    return rule.about.uses_prior


def _returned(value: object) -> str:
    return f"a function that returns an object of type {type(value).__name__}"


def _replanning(factory: Callable[..., Any], call: Call) -> Any:
    """Call a factory with the options; ``replan`` is an option of every rule."""
    options = dict(call.options)
    when = options.pop("replan", None)
    made = _called(factory, Call(call.name, options))
    if when is None or not isinstance(made, Explorer):
        return made
    if when not in get_args(Replan):
        expected = " or ".join(f'"{choice}"' for choice in get_args(Replan))
        raise ParameterError(call.name, [Problem("replan", repr(when), expected)])
    return replanning(made, when)


def _user_rule(file: Path, call: Call) -> Explorer:
    expected = "an Explorer, or a function that returns one"
    found = find_in_file(file, _after(call.name), Explorer, expected)
    rule = found if isinstance(found, Explorer) else _replanning(found, call)
    if not isinstance(rule, Explorer):
        raise ParameterError(
            call.name,
            [Problem("explorer", _returned(rule), expected)],
        )
    return rule


@checked
def find_planner(text: str, world: World, model: HOMDP | None = None) -> Planner:
    """Find a planner by its name, with options.

    ``auto`` chooses a planner for the world and the learner's declaration. In finite worlds it
    chooses the history tree if it is small, because every rule can use it.

    Parameters
    ----------
    text
        A name in ``planners.PLANNERS``, with options as in ``quantised:gap=0.05``; or
        ``path/to/file.py:name`` for a custom planner or a function that returns one.
    world
        The world to plan for.
    model
        The learner's declaration, if it is not that of the world. It may allow more histories.

    Examples
    --------
    >>> world = models.load("tiger", horizon=2)
    >>> [
    ...     find_planner(text, world)(world.pomdp).planner
    ...     for text in ("auto", "alpha_vectors:tolerance=0.01")
    ... ]
    ['history_tree', 'alpha_vectors']
    """
    call, file = parse_call(text, "planner"), file_of(text)
    if file is not None:
        found = find_in_file(
            file,
            _after(call.name),
            (),
            "a function from a POMDP to a Plan, or a function that returns one",
        )
        return found if takes_a_model(found) and not call.options else _user_planner(found, call)
    known = planners.PLANNERS
    if call.name not in known:
        problem = unknown("name", "planner", call.name, known, "homdp_ppl.planners")
        raise ParameterError("planner", [problem])
    factory = known[call.name]
    if call.name == "auto" and not world.spaces.finite:
        on_line = not isinstance(world.spaces.states, Real) and world.spaces.observations == Real(1)
        factory = quantised if on_line else particle_tree
    elif call.name == "auto":
        support = (world.homdp if model is None else model).structure.support
        if few_histories(Support.of(support), world.spaces.horizon, SMALL_TREE) is not None:
            return history_tree()
    planner: Planner = _called(factory, call)
    return planner


def _user_planner(factory: Callable[..., Any], call: Call) -> Planner:
    planner: Planner = _called(factory, call)
    if not takes_a_model(planner):
        got = _returned(planner)
        raise ParameterError(
            call.name,
            [Problem("planner", got, "a function that returns a function from a POMDP to a Plan")],
        )
    return planner


def _called(factory: Callable[..., Any], call: Call) -> Any:
    """Call a factory with the options; unknown options raise ParameterError."""
    has = list(signature(factory).parameters)
    wrong = [option for option in call.options if option not in has]
    if wrong:
        raise ParameterError(
            call.name, [unknown("option", "option", option, has, call.name) for option in wrong]
        )
    try:
        return factory(**call.options)
    except TypeError as error:
        remedy = f"Write options as in {call.name}:{has[0]}=1." if has else ""
        raise ParameterError(
            call.name, [Problem("options", str(error), "valid options", remedy)]
        ) from None


def _value(text: str) -> Any:
    if text in ("True", "False", "true", "false"):
        return text.lower() == "true"
    for kind in (int, float) if len(text) <= DIGITS else ():
        try:
            return kind(text)
        except ValueError:
            continue
    return text

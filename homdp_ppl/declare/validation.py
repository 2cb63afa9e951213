"""Validation of declarations; all problems are reported together, before a model is used."""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions import biject_to

from homdp_ppl.core.arguments import is_count
from homdp_ppl.core.pattern import Pattern
from homdp_ppl.core.probabilities import row_problems
from homdp_ppl.core.sensors import ENDED, Sensors
from homdp_ppl.core.spaces import Real, Space, Spaces
from homdp_ppl.core.sparse import Sparse
from homdp_ppl.declare.distributions import TRACER_ERRORS, tracer_problem
from homdp_ppl.declare.kernels import Kernels, pattern_of
from homdp_ppl.declare.probing import Probe, Site
from homdp_ppl.declare.purity import abstract_run, changes
from homdp_ppl.declare.reward_law import RewardLaw
from homdp_ppl.declare.signatures import KernelError
from homdp_ppl.declare.sizes import number_of_names_problems
from homdp_ppl.errors import Problem, did_you_mean, shown
from homdp_ppl.precision import Array

RESERVED = ("x", "y", "a", "r", "x_last", "episodes")
WHERE_DECLARED = {"label": ("z", "z_last"), "revealed": ("m", "m_last")}  # reserved with the part
UNROLLED = re.compile(r"[xyarzm]\[\d+\]")  # sites of the unrolled program


def check_spaces(
    states: Any, observations: Any, actions: Any, horizon: Any, terminal: Any = ()
) -> tuple[Spaces | None, list[Problem]]:
    """The declared spaces (None if they are unusable) and their problems.

    With terminal states, there is an additional observation, "ended".
    """
    problems: list[Problem] = []
    X = as_space("states", states, "x", problems)
    Y = (
        as_sensors(observations, problems)
        if isinstance(observations, Mapping)
        else as_space("observations", observations, "y", problems)
    )
    A = as_names("actions", actions, "a", problems)
    steps = as_horizon(horizon, problems)
    if not (X and Y and A):
        return None, problems
    ends = _terminal_states(terminal, X, Y, problems)
    if ends and not isinstance(Y, Real):
        Y = Y.with_end() if isinstance(Y, Sensors) else (*Y, ENDED)
    return Spaces(X, Y, A, steps, ends), problems


def _terminal_states(
    given: Any, states: Space, observations: Space, problems: list[Problem]
) -> tuple[str, ...]:
    """The names of the terminal states; their problems are added to ``problems``."""
    if isinstance(given, Sequence) and not isinstance(given, str) and not given:
        return ()
    if isinstance(states, Real) or isinstance(observations, Real):
        remedy = "Reward the end instead: let all later rewards be 0 in such a state."
        expected = "finitely many states and observations"
        problems.append(Problem("terminal", "real-valued spaces", expected, remedy))
        return ()
    listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else None
    if listed is None or not all(isinstance(x, str) or is_count(x, 0) for x in listed):
        remedy = f'Write terminal=("{states[-1]}",).'
        problems.append(Problem("terminal", shown(given), "names of states in a tuple", remedy))
        return ()
    unknown = [x for x in listed if x not in states and (isinstance(x, str) or x >= len(states))]
    problems += [
        Problem(
            "terminal",
            shown(x),
            f"one of the states: {', '.join(states[:20])}",
            did_you_mean(x, states),
        )
        for x in unknown
    ]
    named = {x if isinstance(x, str) else states[int(x)] for x in listed if x not in unknown}
    if len(named) == len(states):
        problems.append(Problem("terminal", "all states", "at least one other state"))
    if ENDED in observations:
        remedy = (
            "Rename this observation: terminal states show it automatically. For the spaces of "
            "another model, write **model.spaces.declared."
        )
        problems.append(Problem("observations", repr(ENDED), "other names", remedy))
    return tuple(x for x in states if x in named)


def as_space(where: str, given: Any, letter: str, problems: list[Problem]) -> Space:
    """A declared space, () if it is unusable; its problems are added to ``problems``."""
    return given if isinstance(given, Real) else as_names(where, given, letter, problems)


def as_sensors(given: Mapping[Any, Any], problems: list[Problem]) -> Sensors | tuple[()]:
    """Joint observations of sensors, () if they are unusable; adds to ``problems``."""
    wrong: list[Problem] = []
    named = [sensor for sensor in given if isinstance(sensor, str) and sensor]
    if len(named) < len(given) or not given:
        expected = "at least one sensor, {name: names of its outcomes, or their number}"
        wrong.append(Problem("observations", shown(dict(given)), expected))
    outcomes: dict[str, tuple[str, ...]] = {}
    for sensor in named:
        where, names = f"observations[{sensor}]", given[sensor]
        if isinstance(names, Real):
            remedy = "Divide the readings into cells with names, or declare observations=Real(n)."
            wrong.append(Problem(where, shown(names), "finitely many outcomes", remedy))
        else:
            outcomes[sensor] = as_names(where, names, sensor, wrong)
    if not wrong:
        wrong += number_of_names_problems(
            "observations", math.prod(len(names) for names in outcomes.values())
        )
    problems += wrong
    if wrong:
        return ()
    joint = Sensors(outcomes)
    twice = [name for name, times in Counter(joint).items() if times > 1]
    if twice:
        remedy = 'Rename outcomes that contain ", ".'
        got = f"the joint name {twice[0]!r} twice"
        problems.append(Problem("observations", got, "distinct joint names", remedy))
    return joint


def as_horizon(horizon: Any, problems: list[Problem]) -> int:
    """The number of steps, 1 if it is unusable; its problems are added to ``problems``."""
    steps = (
        horizon if isinstance(horizon, int | np.integer) and not isinstance(horizon, bool) else 0
    )
    if steps < 1:
        remedy = "The horizon counts the actions of an episode."
        problems.append(Problem("horizon", shown(horizon), "an integer of at least 1", remedy))
    return max(1, int(steps))


def check_program(function: Any) -> list[Problem]:
    """Problems of a program that is not a function without required arguments."""
    if not callable(function):
        return [Problem("program", shown(function), "a function that returns Kernels")]
    parameters = inspect.signature(function).parameters.values()
    required = [
        p.name
        for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if not required:
        return []
    return [
        Problem(
            "program",
            f"the arguments {', '.join(required)}",
            "a function without arguments",
            "Define it inside another function to pass values to it (a closure).",
        )
    ]


def as_names(where: str, given: Any, letter: str, problems: list[Problem]) -> tuple[str, ...]:
    """The declared names, () if they are unusable; their problems are added to ``problems``."""
    too_many = number_of_names_problems(where, given)
    if too_many:
        problems += too_many
        return ()
    if is_count(given):
        given = tuple(f"{letter}{k}" for k in range(int(given)))
    if (
        isinstance(given, str)
        or not isinstance(given, Sequence)
        or not all(isinstance(name, str) for name in given)
    ):
        problems.append(
            Problem(
                where,
                shown(given),
                "a tuple of names, or their number",
                f'Write {where}=("first", "second").',
            )
        )
        return ()
    if not given or "" in given:
        problems.append(Problem(where, shown(given), "at least one name, and no empty names"))
        return ()
    for name, times in Counter(given).items():
        if times > 1:
            problems.append(
                Problem(
                    where,
                    f"the name {name!r} {times} times",
                    "distinct names",
                    "Rename the duplicates.",
                )
            )
    return tuple(given)


def inspect_program(
    function: Callable[[], Any], trials: Callable[[Kernels, Array], dict[str, Callable[[], Any]]]
) -> tuple[tuple[Site, ...], tuple[str, ...], list[Problem]]:
    """Trace the program twice without computing anything.

    Returns its random sites, its well-formed kernels, and its problems: of its form, or of results
    that differ between the two runs.

    ``trials`` gives for each kernel a function that tries it; it may use a random key.
    """
    problems: list[Problem] = []
    sites: dict[str, Site] = {}
    sound: list[str] = []

    def run(key: Array) -> dict[str, Any]:
        problems.clear()
        sites.clear()
        sound.clear()
        with handlers.trace() as trace, handlers.seed(rng_seed=key):
            kernels = function()
        shown: dict[str, Any] = {}
        for name, site in trace.items():
            problems.extend(_site_problems(name, site))
            if site["type"] == "sample" and not site["is_observed"]:
                sites[name] = _site(name, site)
            if site["type"] == "sample":
                shown[f"site {name!r}"] = site["fn"].log_prob(site["value"]), site["value"]
        if not isinstance(kernels, Kernels):
            got = f"a return value of type {type(kernels).__name__}"
            problems.append(
                Problem("program", got, "Kernels(initial=..., transition=..., emission=...)")
            )
            return shown
        for name, attempt in trials(kernels, key).items():
            try:
                shown[name] = attempt()
                sound.append(name)
            except KernelError as error:
                if error.problem not in problems:  # joint tables have the problems of their parts
                    problems.append(error.problem)
        return shown

    try:
        first, second = abstract_run(run), abstract_run(run)
        impure = [] if problems else changes(first, second)
        if impure:
            sound.clear()  # the results of a third run could not be trusted
        problems += impure
    except tuple(TRACER_ERRORS) as error:
        problems.append(tracer_problem("program", error))
    except (ValueError, AssertionError, NotImplementedError) as error:
        known = {ValueError: "distribution got invalid", AssertionError: "unique names"}.get(
            type(error), ""
        )
        if known not in str(error):
            raise
        got = f"NumPyro's {type(error).__name__} {str(error)!r}"
        problems.append(
            Problem("program", got, "distinct sites with priors that are valid and can be sampled")
        )
    return tuple(sites.values()), tuple(sound), problems


def declared_pattern(function: Callable[[], Any], spaces: Spaces) -> Pattern | None:
    """The pattern of a program's sparse transitions, without computing anything.

    None if its transitions are not sparse or the program is invalid.
    """
    found: list[Pattern | None] = []

    def run(key: Array) -> dict[str, Any]:
        with handlers.block(), handlers.seed(rng_seed=key):
            kernels = function()
        if isinstance(kernels, Kernels) and isinstance(kernels.transition, Sparse):
            found.append(pattern_of(kernels, spaces))
        return {}

    try:
        abstract_run(run)
    except tuple(TRACER_ERRORS):
        return None  # inspect_program reports it
    except (ValueError, AssertionError, NotImplementedError):
        return None
    return found[0] if found else None


def further_reserved(sites: Iterable[Site], parts: Collection[str]) -> list[Problem]:
    """Problems of sites whose names are reserved because of declared parts of hindsight."""
    names = [name for part in sorted(parts) for name in WHERE_DECLARED[part]]
    remedy = f"With {' and '.join(sorted(parts))}, these names are reserved: {', '.join(names)}."
    return [
        Problem(f"site {site.name!r}", f"a site called {site.name!r}", "another name", remedy)
        for site in sites
        if site.name in names
    ]


def _site_problems(name: str, site: dict[str, Any]) -> Iterator[Problem]:
    if name in RESERVED or UNROLLED.fullmatch(name):
        kind = "plate" if site["type"] == "plate" else "site"
        remedy = "These names are reserved: " + ", ".join(RESERVED) + ", x[1], y[1], a[1], ..."
        yield Problem(f"site {name!r}", f"a {kind} called {name!r}", "another name", remedy)
    if site["type"] == "plate" and site["args"][1] not in (None, site["args"][0]):
        remedy = "Remove subsample_size: the program must describe the whole model."
        yield Problem(
            f"plate {name!r}",
            f"{site['args'][1]} of {site['args'][0]}",
            "a plate without subsampling",
            remedy,
        )
    if site["type"] == "param":
        remedy = "Give it a prior with numpyro.sample, or replace it with a number."
        yield Problem(f"site {name!r}", "numpyro.param", "a random site or a constant", remedy)


def _site(name: str, site: dict[str, Any]) -> Site:
    shape = tuple(jnp.shape(site["value"]))
    fn = site["fn"]
    if not fn.support.is_discrete:
        return Site(name, shape, tuple(biject_to(fn.support).inverse_shape(shape)), 0)
    finite = fn.has_enumerate_support and not fn.event_shape
    return Site(name, shape, shape, int(fn.enumerate_support(expand=False).size) if finite else -1)


def check_tables(
    probe: Probe, spaces: Spaces, law: RewardLaw | None = None, pattern: Pattern | None = None
) -> list[Problem]:
    """Problems of the rows of a program's tables, each table at the first parameter point that has
    any.

    The rows of a reward table are probabilities if its law has finitely many outcomes.
    """
    finite = law is not None and law.finite
    apart = {"emission"} if spaces.sensors else set()  # the tables of its sensors are checked
    apart |= set() if finite else {"reward"}
    problems = [
        p
        for name in probe.tables
        if name not in apart
        for p in _first_problems(name, probe, spaces, pattern if name == "transition" else None)
    ]
    if np.isnan(probe.log_prior).any():
        point = _point(probe, int(np.isnan(probe.log_prior).argmax()))
        remedy = (
            f"Check factors, and priors whose parameters can leave their domain. Found at {point}."
            if point
            else ""
        )
        problems.append(
            Problem("program", "a log density of the sites that is nan", "a number", remedy)
        )
    return problems


def _first_problems(
    name: str, probe: Probe, spaces: Spaces, pattern: Pattern | None
) -> list[Problem]:
    table = probe.tables[name]
    moves = not np.array_equal(table, np.broadcast_to(table[0], table.shape), equal_nan=True)
    for k, rows in enumerate(table):
        given = rows if pattern is None else Sparse(pattern.entries(rows), pattern)
        problems = row_problems(name, given, spaces)
        if problems:
            point = _point(probe, k)
            hint = (
                f" Found at {point}: rows must be valid on the whole support of the sites."
                if moves and point
                else ""
            )
            return [p._replace(remedy=p.remedy + hint) for p in problems]
    return []


def _point(probe: Probe, k: int) -> str:
    """The scalar parameters of one point."""
    return ", ".join(
        f"{site}={value[k]:.4g}" for site, value in probe.parameters.items() if value[k].ndim == 0
    )

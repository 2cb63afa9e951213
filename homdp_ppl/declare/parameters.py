"""Validation of the parameters that a user passes to a declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from numpyro import handlers
from numpyro.distributions import constraints

from homdp_ppl.core.form import Form
from homdp_ppl.core.numbers import masked_problems
from homdp_ppl.core.probabilities import (
    FLOAT32,
    ROW_TOLERANCE,
    entry_name,
    pomdp_problems,
    row_problems,
)
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.distributions import unwrap
from homdp_ppl.declare.kernels import Planned
from homdp_ppl.declare.probing import Site
from homdp_ppl.declare.reward_law import mean_problems
from homdp_ppl.declare.rewards import Rewards
from homdp_ppl.errors import ParameterError, Problem, shown, unknown
from homdp_ppl.precision import Array

FEW = 4  # vectors of at most this length are shown in full
LEAK = 1e-12  # largest probability that tables may give to entries found impossible


def check_names(model: str, sites: Iterable[Site], parameters: Mapping[str, Any]) -> None:
    """Raise :class:`ParameterError` for unknown sites, and for sites without a value."""
    wanted = [site.name for site in sites]
    problems = []
    for name in parameters:
        if name not in wanted:
            problems.append(unknown(f"site {name!r}", "site", name, wanted, "this model"))
    call = (
        f"Write {', '.join(f'{name}=...' for name in wanted)}, or use .draw(key) to draw all "
        f"values from the prior."
    )
    problems += [
        Problem(f"site {n!r}", "no value", "a value for every site", call)
        for n in wanted
        if n not in parameters
    ]
    if problems:
        raise ParameterError(f"parameters of {model}", problems)


def check_parameters(
    model: str, sites: Iterable[Site], parameters: Mapping[str, ArrayLike]
) -> dict[str, Array]:
    """Parameters as arrays. Wrong names and shapes raise :class:`ParameterError`.

    Supports are not checked here.
    """
    sites = tuple(sites)
    if not isinstance(parameters, Mapping):
        problem = Problem("parameters", shown(parameters), "a mapping from sites to values")
        raise ParameterError(f"parameters of {model}", [problem])
    check_names(model, sites, parameters)
    values, problems = {}, []
    for site in sites:
        given = parameters[site.name]
        missing = masked_problems(f"site {site.name!r}", given)
        if missing:
            problems += missing
            continue
        kinds = ("one integer", "integers") if site.discrete else ("one number", "an array")
        expected = f"{kinds[1]} of shape {site.shape}" if site.shape else kinds[0]
        try:
            value = as_value(site, given)
        except (TypeError, ValueError, OverflowError):
            problems.append(Problem(f"site {site.name!r}", shown(given), expected))
            continue
        if value.shape != site.shape:
            problems.append(Problem(f"site {site.name!r}", f"shape {value.shape}", expected))
        values[site.name] = value
    if problems:
        raise ParameterError(f"parameters of {model}", problems)
    return values


def refuse_traced(model: str, values: Mapping[str, Array], remedy: str) -> None:
    """Raise :class:`ParameterError` for traced values where numbers are needed."""
    if any(isinstance(value, jax.core.Tracer) for value in values.values()):
        raise ParameterError(
            f"{model}.at", [Problem("parameters", "traced values", "numbers", remedy)]
        )


def as_value(site: Site, given: ArrayLike) -> Array:
    """A parameter as an array of JAX's float type, or of integers if its site is discrete.

    Raises ValueError for complex numbers and random keys, and for fractions at a discrete site.
    """
    value = jnp.asarray(given)
    real = jnp.issubdtype(value.dtype, jnp.integer) or jnp.issubdtype(value.dtype, jnp.floating)
    if not real and value.dtype != bool:
        raise ValueError("not real numbers")
    if not site.discrete:
        return value.astype(jnp.result_type(float))
    integers = value.astype(jnp.result_type(int))
    if not isinstance(value, jax.core.Tracer) and (value != integers).any():
        raise ValueError("fractions")
    return integers


def outside_support(function: Callable[[], Any], values: Mapping[str, Array]) -> list[Problem]:
    """The problems of values that are outside the support of their sites."""
    if not values:
        return []
    with handlers.seed(rng_seed=0), handlers.trace() as trace:
        function()
    problems = []
    for name, value in values.items():
        prior = unwrap(trace[name]["fn"])
        remedy = f"Its prior is {type(prior).__name__} on {prior.support}."
        got, at = short(value), ""
        if isinstance(prior.support, type(constraints.simplex)):
            rows = np.asarray(value)
            wrong = np.argwhere((np.abs(rows.sum(-1) - 1) > ROW_TOLERANCE) | (rows < 0).any(-1))
            if len(wrong):
                row = rows[tuple(wrong[0])]
                got = (
                    f"a row that sums to {row.sum():.10g}"
                    if (row >= 0).all()
                    else "a row with negative entries"
                )
                at = ", ".join(map(str, wrong[0]))
        problems.append(
            Problem(f"site {name!r}", got, "a value in the support of its prior", remedy, at)
        )
    return problems


def table_problems(
    tables: Planned, support: Mapping[str, Array], spaces: Spaces, rewards: Rewards, form: Form
) -> list[Problem]:
    """Problems of the tables at given parameters.

    These are invalid rows, entries with probability although they were found impossible, and mean
    rewards outside the declared range.
    """
    full = tables if form.pattern is None else tables._replace(transition=form.table(tables))
    problems, named = pomdp_problems(full, spaces), tables._asdict()
    if rewards.law is not None and rewards.law.finite:
        problems += row_problems("reward", named["reward"], spaces)
    elif rewards.law is not None:
        problems += mean_problems(rewards.law.mean(named.pop("reward")), rewards.bounds, spaces)
    for where, table in named.items():
        possible = support[where]
        for index in np.argwhere((table > LEAK) & ~possible)[:1]:
            got = (
                f"probability {table[tuple(index)]:.3g}, although it was zero at all points "
                f"where the declaration was checked"
            )
            remedy = (
                "The check misses a condition that holds only in a far tail of a prior: rewrite "
                "the program so that the entry is positive at typical parameters too."
            )
            at = entry_name(where, form.entry(where, index), table.shape, spaces)
            problems.append(Problem(where, got, "zero", remedy, at))
    return problems


def bad_draw(
    tables: Mapping[str, Array],
    values: Mapping[str, Array],
    spaces: Spaces,
    rewards: Rewards | None = None,
) -> list[Problem]:
    """Problems of the rows of tables at the first draw of the sites with invalid rows.

    Parameters
    ----------
    tables
        By name, each with a leading axis of draws.
    values
        The draws of the sites, with the same leading axis.
    spaces
        The model's names.
    rewards
        The model's rewards, if there is a table of rewards.
    """
    for where, table in tables.items():
        if where == "reward" and rewards and rewards.law and not rewards.law.finite:
            for draw, means in enumerate(rewards.law.mean(table)):
                problems = mean_problems(means, rewards.bounds, spaces)
                if problems:
                    remedy = f"{found_at(values, draw)} Use another prior, or a law on the range."
                    return [problem._replace(remedy=remedy) for problem in problems]
            continue
        sound = (table >= 0).all(-1) & (np.abs(table.sum(-1) - 1) <= FLOAT32)
        wrong = np.flatnonzero(~sound.reshape(len(table), -1).all(-1))
        if len(wrong):
            remedy = (
                f"{found_at(values, wrong[0])} The prior allows values at which the program does "
                "not return probabilities: use another prior, or transform the site."
            )
            problems = row_problems(where, table[wrong[0]], spaces)
            return [problem._replace(remedy=remedy) for problem in problems]
    return []


def found_at(values: Mapping[str, Array], draw: int) -> str:
    """A sentence with the parameters at one of several draws."""
    at = ", ".join(f"{name}={short(value[draw])}" for name, value in values.items())
    return f"Found at {at}."


def short(value: Array) -> str:
    """A parameter as a short text."""
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array.item():.6g}"
    if array.ndim == 1 and array.size <= FEW:
        return f"[{', '.join(f'{number:.4g}' for number in array)}]"
    return f"array of shape {array.shape}"

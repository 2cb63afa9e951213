"""A test whether a program is pure: two runs with the same parameters must give the same results.

JAX runs the Python code of a program once and records its operations. NumPy random numbers, a
counter or the clock would be frozen at their values in that run, which the program does not intend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, jaxpr_as_fun

from homdp_ppl.declare.probing import QUICK
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array, x64

SEED = 0
KEYS = 16  # number of keys at which numbers are compared
PLAIN = (int, float, bool, str, tuple, type(None))  # parameters of operations that are compared
SAMPLED = (
    "Draw random values with numpyro.sample. Do not use NumPy's or Python's random numbers, "
    "counters or the time inside the program."
)


class Run(NamedTuple):
    """One traced run: the operations, and the shape of each named result."""

    operations: ClosedJaxpr
    results: Mapping[str, Any]


def abstract_run(function: Callable[[Array], Mapping[str, Any]]) -> Run:
    """Trace a function of a random key without computing anything."""

    def once(key: Array) -> Mapping[str, Any]:  # a new function, which JAX has not traced before
        return function(key)

    with x64():
        operations, results = jax.make_jaxpr(once, return_shape=True)(jax.random.key(SEED))
    return Run(operations, results)


def changes(first: Run, second: Run) -> list[Problem]:
    """Problems for the named results that differ between two runs of the same program.

    Operations are compared first, which is cheap. Numbers are compared only if operations differ.
    """
    alike = [str(jax.tree.structure(run.results)) for run in (first, second)]
    if alike[0] == alike[1] and _signature(first.operations) == _signature(second.operations):
        return []
    before, after = _numbers(first), _numbers(second)
    names = [*before, *(name for name in after if name not in before)]
    return [
        Problem(name, "a different result in a second run", "the same in every run", SAMPLED)
        for name in names
        if name not in before or name not in after or not _same(before[name], after[name])
    ]


def _numbers(run: Run) -> Mapping[str, Any]:
    """The numerical results of a run, for several keys."""
    with x64(), jax.core.eval_context():
        keys = jax.random.split(jax.random.key(SEED), KEYS)
        every = jax.vmap(jaxpr_as_fun(run.operations))
        flat = jax.jit(every, compiler_options=QUICK)(keys)
        found: Mapping[str, Any] = jax.tree.unflatten(jax.tree.structure(run.results), flat)
    return found


def _same(one: Any, other: Any) -> bool:
    pairs = jax.tree.leaves(one), jax.tree.leaves(other)
    return len(pairs[0]) == len(pairs[1]) and all(
        np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True)
        for a, b in zip(*pairs, strict=True)
    )


def _signature(operations: ClosedJaxpr) -> list[Any]:
    return [*map(_value, operations.consts), *_facts(operations.jaxpr)]


def _facts(jaxpr: Jaxpr) -> Iterator[Any]:
    """Operations with their arguments, in order; variables by their order of appearance."""
    numbers: dict[Any, int] = {}

    def place(variable: Any) -> Any:
        if isinstance(variable, Literal):
            return _value(variable.val)
        return numbers.setdefault(variable, len(numbers))

    for variable in (*jaxpr.constvars, *jaxpr.invars):
        place(variable)
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        yield [place(variable) for variable in equation.invars]
        yield [(place(variable), str(variable.aval)) for variable in equation.outvars]
        for name, parameter in sorted(equation.params.items()):
            yield from _parameter(name, parameter)
    yield [place(variable) for variable in jaxpr.outvars]


def _parameter(name: str, parameter: Any) -> Iterator[Any]:
    if isinstance(parameter, ClosedJaxpr):
        yield from _signature(parameter)
    elif isinstance(parameter, Jaxpr):
        yield from _facts(parameter)
    elif isinstance(parameter, tuple) and any(isinstance(p, ClosedJaxpr) for p in parameter):
        for part in parameter:
            yield from _parameter(name, part)
    elif isinstance(parameter, PLAIN):
        yield name, str(parameter) if isinstance(parameter, tuple) else parameter


def _value(constant: Any) -> Any:
    """A constant as its type and bytes; a value that is traced outside as its type."""
    if isinstance(constant, jax.core.Tracer):
        return str(jax.typeof(constant))
    if isinstance(constant, jax.Array) and jnp.issubdtype(constant.dtype, jax.dtypes.prng_key):
        constant = jax.random.key_data(constant)
    array = np.asarray(constant)
    return array.dtype.str, array.shape, array.tobytes()

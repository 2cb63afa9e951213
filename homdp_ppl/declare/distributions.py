"""One distribution of a kernel: how the function is called, and its probabilities.

Probabilities come from ``enumerate_support`` and ``log_prob``. This works for every finite
distribution that a kernel returns, also under ``jit`` and ``vmap``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.errors import (
    ConcretizationTypeError,
    NonConcreteBooleanIndexError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
)
from jax.scipy.special import gammaln
from numpyro import handlers
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.distribution import validation_enabled

from homdp_ppl.declare.signatures import KernelError, call
from homdp_ppl.declare.switch import Switch
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array

LEFT_OUT = (
    type(constraints.simplex),
    type(constraints.dependent),
)  # row sums are checked separately; dependent constraints cannot be checked
TRACER_ERRORS: dict[
    type[Exception], tuple[str, str]
] = {  # what the code did, and what to do instead; the most specific errors first
    TracerArrayConversionError: (
        "a NumPy operation on a traced value",
        "Index a JAX array, jnp.asarray(table)[x], instead of a NumPy array.",
    ),
    TracerBoolConversionError: (
        "a Python `if` on a traced value",
        "Replace it with jnp.where(...), or index a table.",
    ),
    TracerIntegerConversionError: (
        "a traced value as a Python index",
        "Index a JAX array, jnp.asarray(table)[x], instead of a Python list or range.",
    ),
    NonConcreteBooleanIndexError: (
        "boolean indexing by a traced value",
        "Replace it with jnp.where(...).",
    ),
    ConcretizationTypeError: (
        "int(), float(), range() or bool() of a traced value",
        "Use jnp functions, not int(), float(), range() or bool().",
    ),
}


def is_function(kernel: Any) -> bool:
    """Whether a kernel is a function of states and actions.

    A distribution is callable too, but is not such a function.
    """
    return callable(kernel) and not isinstance(kernel, Distribution)


def call_kernel(where: str, kernel: Callable[..., Any], point: Mapping[str, Array]) -> Any:
    """Call a kernel function at a point, which has a value for every name of an argument.

    Raises :class:`KernelError` if it takes other arguments, contains random sites, or cannot be
    traced by JAX.
    """
    try:  # without NumPyro's validation: an invalid row is then reported by its state and action
        with (
            validation_enabled(False),
            handlers.block(),
            handlers.trace() as inside,
            handlers.seed(rng_seed=0),
        ):
            result = call(where, kernel, point)
    except tuple(TRACER_ERRORS) as error:
        raise KernelError(tracer_problem(where, error)) from error
    hidden = [name for name, site in inside.items() if site["type"] in ("sample", "param")]
    if hidden:
        got = (
            f"the site{'s' * (len(hidden) > 1)} {', '.join(map(repr, hidden))} inside the "
            f"kernel function"
        )
        remedy = (
            "Sample parameters in the body of the program, and return the kernel's "
            "distribution without sampling it."
        )
        raise KernelError(Problem(where, got, "a kernel without random sites", remedy))
    return result


def tracer_problem(where: str, error: Exception) -> Problem:
    """The problem of code that JAX cannot trace."""
    got, remedy = next(words for kind, words in TRACER_ERRORS.items() if isinstance(error, kind))
    expected = "code that JAX can trace (states, actions and parameters arrive as traced values)"
    return Problem(where, f"{got} ({type(error).__name__})", expected, remedy)


def row(where: str, distribution: Any, outcomes: int) -> Array:
    """The probabilities of ``0 .. outcomes - 1`` under a NumPyro distribution."""
    if isinstance(distribution, Switch):
        first, second = (
            row(where, part, outcomes) for part in (distribution.first, distribution.second)
        )
        return jnp.where(distribution.condition, first, second)
    if not isinstance(distribution, Distribution):
        got = (
            "an array"
            if isinstance(distribution, jax.Array | np.ndarray)
            else type(distribution).__name__
        )
        remedy = "Wrap probabilities as dist.Categorical(probs=...)."
        raise KernelError(Problem(where, got, "a NumPyro distribution", remedy))
    name = type(distribution).__name__
    if distribution.batch_shape or distribution.event_shape:
        got = (
            f"{name} with batch shape {distribution.batch_shape} and event shape "
            f"{distribution.event_shape}"
        )
        remedy = "A kernel describes one draw: index its parameters by the state (and the action)."
        raise KernelError(Problem(where, got, "a scalar distribution", remedy))
    if isinstance(distribution, dist.Delta):
        return jnp.where(
            jnp.arange(outcomes) == distribution.v, jnp.exp(distribution.log_density), 0.0
        )
    values = support_of(where, distribution)
    if values.shape != (outcomes,) or not np.array_equal(values, np.arange(outcomes)):
        got = f"{name} on {len(values)} values" + (
            f" {values.min()}..{values.max()}" if len(values) else ""
        )
        remedy = (
            f"Use a distribution over {outcomes} outcomes numbered from 0, or declare another "
            "number of names."
        )
        raise KernelError(Problem(where, got, f"the support 0..{outcomes - 1}", remedy))
    return jnp.where(
        in_domain(distribution), jnp.exp(log_probability(distribution, values)), jnp.nan
    )


def in_domain(distribution: Distribution) -> Array:
    """Whether a distribution's parameters lie in their domain.

    NumPyro would silently clip a Bernoulli(1.5). Probability vectors are not checked here: the
    check of row sums gives a better message.
    """
    distribution = unwrap(distribution)
    checks = [
        jnp.all(constraint(getattr(distribution, name)))
        for name, constraint in distribution.arg_constraints.items()
        if not isinstance(constraint, LEFT_OUT) and name in vars(distribution)
    ]
    return jnp.all(jnp.array(checks)) if checks else jnp.array(True)


def unwrap(distribution: Distribution) -> Distribution:
    """The distribution under ``expand`` and ``to_event``."""
    while isinstance(distribution, dist.Independent | dist.ExpandedDistribution):
        distribution = distribution.base_dist
    return distribution


def log_probability(distribution: Distribution, values: Array) -> Array:
    """The log probabilities of the values of a finite distribution."""
    if isinstance(distribution, dist.BetaBinomial):
        # NumPyro uses jax.scipy.special.betaln, which is accurate to 1e-6 only (jax 0.10): rows
        # would not sum to one.
        a, b, n = distribution.concentration1, distribution.concentration0, distribution.total_count
        choose = gammaln(n + 1.0) - gammaln(values + 1.0) - gammaln(n - values + 1.0)
        return choose + _log_beta(values + a, n - values + b) - _log_beta(a, b)
    return distribution.log_prob(values)


def _log_beta(a: Array, b: Array) -> Array:
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def support_of(where: str, distribution: Distribution) -> np.ndarray[Any, Any]:
    """The values of a finite distribution as concrete numbers."""
    name = type(distribution).__name__
    remedy = (
        "Use Categorical, Bernoulli, Binomial, DiscreteUniform, BetaBinomial or Delta, "
        "or truncate it to a Categorical."
    )
    if not distribution.has_enumerate_support:
        raise KernelError(
            Problem(where, name, "a distribution with finite support (enumerate_support)", remedy)
        )
    try:
        with jax.ensure_compile_time_eval():
            return np.asarray(distribution.enumerate_support())
    except (NotImplementedError, ConcretizationTypeError, TracerArrayConversionError):
        got = f"{name} with a support that depends on the state, the action or a parameter"
        raise KernelError(
            Problem(where, got, "a support that is the same everywhere", remedy)
        ) from None

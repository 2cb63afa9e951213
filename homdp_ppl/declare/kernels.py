"""The three kernels that a declaration returns, and their conversion to tables.

Tables come from ``enumerate_support`` and ``log_prob``, mapped over every (state, action). This
works for every finite distribution that a kernel returns, also under ``jit`` and ``vmap``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

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
from numpy.typing import ArrayLike
from numpyro import handlers
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.distribution import validation_enabled

from homdp_ppl.core.numbers import masked_problems
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array, namespace

StateKernel: TypeAlias = Callable[[Array], Distribution]
StateActionKernel: TypeAlias = Callable[[Array, Array], Distribution]

LEFT_OUT = (
    type(constraints.simplex),
    type(constraints.dependent),
)  # row sums are checked separately; dependent constraints cannot be checked
ARGUMENTS = {"transition": "x, a", "emission": "x"}
ACTION_IN_STATE = (
    "An observation depends on the state only. If yours depends on the last action, include that "
    "action in the state, as the model tiger_listen does."
)
SNAP = 1e-15  # smaller probabilities are rounding errors and count as zero
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


class Kernels(NamedTuple):
    """The return value of a declared program: its initial, transition and emission distributions.

    Functions receive a state (and an action) as scalar integers that JAX may trace. Use them to
    index ``jnp`` arrays, and use ``jnp.where`` instead of ``if``. Functions return a NumPyro
    distribution over ``0 .. n-1``: Categorical, Bernoulli, Binomial, DiscreteUniform, BetaBinomial,
    Delta, or any other with ``enumerate_support``. Note that JAX clamps indices out of range.

    Parameters
    ----------
    initial
        rho(x): an array (X,), or a distribution.
    transition
        T(x' | x, a): an array (X, A, X), or a function of (x, a) that returns a distribution of x'.
    emission
        O(y | x): an array (X, Y), or a function of x that returns a distribution of y.

    Examples
    --------
    >>> import numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, homdp
    >>> @homdp(
    ...     states=("dry", "wet"),
    ...     observations=2,
    ...     actions=("wait",),
    ...     horizon=2,
    ...     reward=[[1.0], [0.0]],
    ... )
    ... def weather():
    ...     return Kernels(
    ...         initial=[0.5, 0.5],
    ...         transition=lambda x, a: dist.Bernoulli(0.2 + 0.6 * x),
    ...         emission=[[1, 0], [0, 1]],
    ...     )
    >>> weather.at().pomdp.moves(0)[:, 0].round(3).tolist()  # from dry and from wet
    [[0.8, 0.2], [0.2, 0.8]]
    """

    initial: ArrayLike | Distribution  # (X,)       rho(x)
    transition: (
        ArrayLike | StateActionKernel
    )  # (X, A, X)  T(x' | x, a), or (x, a) -> distribution of x'
    emission: ArrayLike | StateKernel  # (X, Y)     O(y | x), or x -> distribution of y


class Tables(NamedTuple):
    """The kernels as probabilities."""

    initial: Array  # (X,)
    transition: Array  # (X, A, X)
    emission: Array  # (X, Y)


def snap(tables: Tables) -> Tables:
    """Replace rounding errors by exact zeros: Bernoulli(1.) tabulates to (2e-16, 1 - 2e-16)."""
    return Tables(*map(_snap, tables))


def _snap(table: Array) -> Array:
    xp = namespace(table)
    specks = (table > 0) & (table <= SNAP)
    kept = xp.where(specks, 0.0, table)
    return kept / xp.where(specks.any(-1, keepdims=True), kept.sum(-1, keepdims=True), 1.0)


class KernelError(Exception):
    """A kernel cannot be tabulated; its problem becomes part of a DeclarationError."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


def tabulate(kernels: Kernels, spaces: Spaces) -> Tables:
    """The tables of a program's kernels.

    Raises :class:`KernelError` at the first kernel that has no table.
    """
    tables = [table() for table in tabulators(kernels, spaces).values()]
    return Tables(*tables)


def tabulators(kernels: Kernels, spaces: Spaces) -> dict[str, Callable[[], Array]]:
    """For each kernel a function that makes its table, so that the problems of all kernels can be
    reported together.
    """
    X, Y, A, _ = spaces.sizes
    return {
        "initial": lambda: _initial(kernels.initial, X),
        "transition": lambda: _table("transition", kernels.transition, (X, A), X),
        "emission": lambda: _table("emission", kernels.emission, (X,), Y),
    }


def _initial(initial: Any, states: int) -> Array:
    if isinstance(initial, Distribution):
        return row("initial", initial, states)
    return _array("initial", initial, (states,), "an array or a NumPyro distribution")


def _table(where: str, kernel: Any, given: tuple[int, ...], outcomes: int) -> Array:
    """A table of shape ``given + (outcomes,)`` from an array or from a function of ``given``."""
    if not is_function(kernel):
        expected = (
            f"an array, or a function such as lambda {ARGUMENTS[where]}: dist.Categorical(...)"
        )
        return _array(where, kernel, (*given, outcomes), expected)

    def rows(*point: Array) -> Array:
        return row(where, call_kernel(where, kernel, point), outcomes)

    for axis in reversed(range(len(given))):  # the outermost vmap is the first axis
        rows = jax.vmap(rows, in_axes=tuple(0 if k == axis else None for k in range(len(given))))
    return rows(*(jnp.arange(n) for n in given))


def is_function(kernel: Any) -> bool:
    """Whether a kernel is a function of states and actions.

    A distribution is callable too, but is not such a function.
    """
    return callable(kernel) and not isinstance(kernel, Distribution)


def call_kernel(where: str, kernel: Callable[..., Any], point: tuple[Array, ...]) -> Any:
    """Call a kernel function.

    Raises :class:`KernelError` if it takes other arguments, contains random sites, or cannot be
    traced by JAX.
    """
    signature = inspect.signature(kernel)
    if not _accepts(signature, *point):
        got = f"a function with the signature {signature}"
        with_action = where == "emission" and _accepts(signature, *point, None)
        remedy = ACTION_IN_STATE if with_action else f"Write lambda {ARGUMENTS[where]}: ..."
        raise KernelError(Problem(where, got, f"a function of ({ARGUMENTS[where]})", remedy))
    try:  # without NumPyro's validation: an invalid row is then reported by its state and action
        with (
            validation_enabled(False),
            handlers.block(),
            handlers.trace() as inside,
            handlers.seed(rng_seed=0),
        ):
            result = kernel(*point)
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


def _accepts(signature: inspect.Signature, *arguments: Any) -> bool:
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


def tracer_problem(where: str, error: Exception) -> Problem:
    """The problem of code that JAX cannot trace."""
    got, remedy = next(words for kind, words in TRACER_ERRORS.items() if isinstance(error, kind))
    expected = "code that JAX can trace (states, actions and parameters arrive as traced values)"
    return Problem(where, f"{got} ({type(error).__name__})", expected, remedy)


def row(where: str, distribution: Any, outcomes: int) -> Array:
    """The probabilities of ``0 .. outcomes - 1`` under a NumPyro distribution."""
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
    values = _support(where, distribution)
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
        in_domain(distribution), jnp.exp(_log_probability(distribution, values)), jnp.nan
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


def _log_probability(distribution: Distribution, values: Array) -> Array:
    if isinstance(distribution, dist.BetaBinomial):
        # NumPyro uses jax.scipy.special.betaln, which is accurate to 1e-6 only (jax 0.10): rows
        # would not sum to one.
        a, b, n = distribution.concentration1, distribution.concentration0, distribution.total_count
        choose = gammaln(n + 1.0) - gammaln(values + 1.0) - gammaln(n - values + 1.0)
        return choose + _log_beta(values + a, n - values + b) - _log_beta(a, b)
    return distribution.log_prob(values)


def _log_beta(a: Array, b: Array) -> Array:
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def _support(where: str, distribution: Distribution) -> np.ndarray[Any, Any]:
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


def _array(where: str, value: Any, shape: tuple[int, ...], expected: str) -> Array:
    missing = masked_problems(where, value)
    if missing:
        raise KernelError(missing[0])
    try:
        array = jnp.asarray(value, dtype=jnp.result_type(float))
    except (TypeError, ValueError):
        raise KernelError(Problem(where, f"{type(value).__name__}", expected)) from None
    if array.shape != shape:
        got, wanted = f"an array of shape {array.shape}", f"shape {shape}"
        axes = {"transition": "state, action, next state", "emission": "state, observation"}
        remedy = f"Its axes are ({axes[where]})." if where in axes else ""
        if where == "emission" and array.ndim == 3:  # (state, action, observation)
            remedy = ACTION_IN_STATE
        raise KernelError(Problem(where, got, wanted, remedy))
    return array

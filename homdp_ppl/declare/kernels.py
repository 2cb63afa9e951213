"""The kernels that a declaration returns, and their conversion to tables.

Tables come from ``enumerate_support`` and ``log_prob``, mapped over all states, actions
and steps on which a kernel depends. This works for every finite distribution that a kernel returns,
also under ``jit`` and ``vmap``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

from homdp_ppl.core.form import Form
from homdp_ppl.core.numbers import masked_problems
from homdp_ppl.core.spaces import Spaces, names_of
from homdp_ppl.declare.signatures import KernelError, arguments, call
from homdp_ppl.declare.switch import Switch
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array, namespace

Kernel: TypeAlias = Callable[..., Distribution]

LEFT_OUT = (
    type(constraints.simplex),
    type(constraints.dependent),
)  # row sums are checked separately; dependent constraints cannot be checked
EXAMPLES = {"transition": "lambda x, a", "emission": "lambda x", "first_emission": "lambda x"}
AXES = {
    "transition": "(state, action, next state), or (step, state, action, next state)",
    "emission": (
        "(state, observation), (previous action, state, observation) with the first observation "
        "last, or (step, previous action or 1, state, observation)"
    ),
    "first_emission": "(state, observation)",
}
NO_FIRST = (
    "Add first_emission=lambda x: ... to Kernels. It gives the first observation, which follows "
    "no action."
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

    The arguments of functions are recognised by name: ``x`` is the state, ``a`` the action and
    ``h`` the step, which counts from 1. They are scalar integers that JAX may trace. Use them to
    index ``jnp`` arrays, and use ``jnp.where`` instead of ``if``. Functions return a NumPyro
    distribution over ``0 .. n-1``: Categorical, Bernoulli, Binomial, DiscreteUniform, BetaBinomial,
    Delta, or any other with ``enumerate_support``. Note that JAX clamps indices out of range.

    Parameters
    ----------
    initial
        rho(x): an array (X,), or a distribution.
    transition
        T(x' | x, a): an array (X, A, X), or a function of ``x`` and ``a``. If transitions depend on
        the step: an array (H, X, A, X), or a function of ``x``, ``a`` and ``h``.
    emission
        O(y | x): an array (X, Y), or a function of ``x``. If observations depend on the previous
        action: an array (A + 1, X, Y), whose last table is for the first observation, or a function
        of ``x`` and ``a`` together with ``first_emission``. If they depend on the step: an array
        (H, A + 1 or 1, X, Y), or a function that also takes ``h``.
    first_emission
        The distribution of the first observation, which follows no action: an array (X, Y), or a
        function of ``x``. By default, it is the same as for later observations.

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

    initial: ArrayLike | Distribution  # rho(x)
    transition: ArrayLike | Kernel  # T(x' | x, a)
    emission: ArrayLike | Kernel  # O(y | x), or O(y | x, a) after the action a
    first_emission: ArrayLike | Kernel | None = None  # O(y | x) of the first observation


class Tables(NamedTuple):
    """The kernels as probabilities, in the form of :class:`homdp_ppl.core.form.Form`."""

    initial: Array  # (X,)
    transition: Array  # (X, A, X) or (H, X, A, X)
    emission: Array  # (X, Y), (A + 1, X, Y) or (H, A + 1 or 1, X, Y)

    @property
    def form(self) -> Form:
        """The form of the tables; only without candidate axes."""
        return Form(*map(jnp.shape, self))


class Context(NamedTuple):
    """On what kernels depend apart from the state and the action taken in it."""

    moves: bool = False  # transitions depend on the step
    shows: bool = False  # emissions depend on the step or the previous action


def context_of(kernels: Kernels) -> Context:
    """The context of a program's kernels; raises :class:`KernelError` for invalid functions."""
    transition: Any = kernels.transition
    emission: Any = kernels.emission
    named = arguments("emission", emission) if is_function(emission) else ()
    return Context(
        "h" in arguments("transition", transition)
        if is_function(transition)
        else np.ndim(transition) == 4,
        kernels.first_emission is not None or "a" in named or "h" in named,
    )


def snap(tables: Tables) -> Tables:
    """Replace rounding errors by exact zeros: Bernoulli(1.) tabulates to (2e-16, 1 - 2e-16)."""
    return Tables(*map(_snap, tables))


def _snap(table: Array) -> Array:
    xp = namespace(table)
    specks = (table > 0) & (table <= SNAP)
    kept = xp.where(specks, 0.0, table)
    return kept / xp.where(specks.any(-1, keepdims=True), kept.sum(-1, keepdims=True), 1.0)


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
    return {
        "initial": lambda: _initial(kernels.initial, len(spaces.states)),
        "transition": lambda: _absorbed(_transition(kernels.transition, spaces), spaces),
        "emission": lambda: _ended(_emission(kernels, declared_observations(spaces)), spaces),
    }


def declared_observations(spaces: Spaces) -> Spaces:
    """The spaces without the observation of terminal states, which programs do not declare."""
    if not spaces.terminal:
        return spaces
    return spaces._replace(observations=names_of(spaces.observations)[:-1])


def _absorbed(table: Array, spaces: Spaces) -> Array:
    """Transitions that stay in terminal states; their declared rows are not used."""
    if not spaces.terminal:
        return table
    stay = jnp.eye(len(spaces.ends))[:, None]
    return jnp.where(spaces.ends[:, None, None], stay, table)


def _ended(table: Array, spaces: Spaces) -> Array:
    """Emissions with the additional observation, which terminal states show with certainty."""
    if not spaces.terminal:
        return table
    padded = jnp.concatenate([table, jnp.zeros((*table.shape[:-1], 1))], axis=-1)
    return jnp.where(spaces.ends[:, None], jnp.eye(padded.shape[-1])[-1], padded)


def _initial(initial: Any, states: int) -> Array:
    if isinstance(initial, Distribution):
        return row("initial", initial, states)
    return _array("initial", initial, [(states,)], "an array or a NumPyro distribution")


def _transition(kernel: Any, spaces: Spaces) -> Array:
    X, A, H = len(spaces.states), len(spaces.actions), spaces.horizon
    if not is_function(kernel):
        return _array("transition", kernel, [(X, A, X), (H, X, A, X)])
    steps = {"h": H} if "h" in arguments("transition", kernel) else {}
    return _rows("transition", kernel, {**steps, "x": X, "a": A}, X)


def _emission(kernels: Kernels, spaces: Spaces) -> Array:
    """The emission table; ``first_emission`` is its last entry along the action axis."""
    X, Y, A, H = spaces.sizes
    kernel: Any = kernels.emission
    first = kernels.first_emission
    if not is_function(kernel):
        by_action = [(A + 1, X, Y), (H, A + 1, X, Y), (H, 1, X, Y)] if first is None else []
        table = _array("emission", kernel, [(X, Y), *by_action])
        return table if first is None else _after_first(table[None], _first(first, X, Y), A)
    named = arguments("emission", kernel)
    steps = {"h": H} if "h" in named else {}
    if needs_first(kernels) and first is None:
        raise no_first_emission()
    after = {"a": A} if "a" in named else {}
    table = _rows("emission", kernel, {**steps, **after, "x": X}, Y)
    if first is None and not steps:
        return table
    table = table if after else jnp.expand_dims(table, -3)
    return table if first is None else _after_first(table, _first(first, X, Y), A)


def needs_first(kernels: Kernels) -> bool:
    """Whether the emission is a function of the previous action, which the first one lacks."""
    kernel: Any = kernels.emission
    return is_function(kernel) and "a" in arguments("emission", kernel)


def no_first_emission() -> KernelError:
    """The error for an emission that depends on the previous action, without a first one."""
    expected = "the distribution of the first observation"
    return KernelError(Problem("first_emission", "nothing", expected, NO_FIRST))


def _first(kernel: Any, states: int, observations: int) -> Array:
    if not is_function(kernel):
        return _array("first_emission", kernel, [(states, observations)])
    return _rows("first_emission", kernel, {"x": states}, observations)


def _after_first(table: Array, first: Array, actions: int) -> Array:
    """Add the table of the first observation along the action axis.

    With a step axis, some entries are never used: those of an action before the first step, and
    those without an action at later steps. They are uniform, and so depend on no site.
    """
    table = jnp.broadcast_to(table, (*table.shape[:-3], actions, *table.shape[-2:]))
    if table.ndim == 3:
        return jnp.concatenate([table, first[None]])
    unused = jnp.full_like(first, 1 / first.shape[-1])
    last = jnp.stack([first, *[unused] * (len(table) - 1)])[:, None]
    return jnp.concatenate([table.at[0].set(unused), last], axis=1)


def _rows(where: str, kernel: Any, given: Mapping[str, int], outcomes: int) -> Array:
    """A table with an axis for each given name, in this order, and a last axis of outcomes."""
    names = tuple(given)

    def rows(*place: Array) -> Array:
        point = dict(zip(names, place, strict=True))
        return row(where, call_kernel(where, kernel, point), outcomes)

    for axis in reversed(range(len(names))):  # the outermost vmap is the first axis
        rows = jax.vmap(rows, in_axes=tuple(0 if k == axis else None for k in range(len(names))))
    return rows(*(jnp.arange(n) + (name == "h") for name, n in given.items()))


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


def _array(
    where: str, value: Any, shapes: list[tuple[int, ...]], expected: str | None = None
) -> Array:
    """A table that is given as an array; its shape is one of ``shapes``."""
    missing = masked_problems(where, value)
    if missing:
        raise KernelError(missing[0])
    example = f"a function such as {EXAMPLES.get(where, '')}: dist.Categorical(...)"
    try:
        array = jnp.asarray(value, dtype=jnp.result_type(float))
    except (TypeError, ValueError):
        wanted = expected or f"an array, or {example}"
        raise KernelError(Problem(where, f"{type(value).__name__}", wanted)) from None
    if array.shape not in shapes:
        got, wanted = f"an array of shape {array.shape}", f"shape {shapes[0]}"
        same_rank = [shape for shape in shapes[1:] if len(shape) == array.ndim]
        wanted += "".join(f" or {shape}" for shape in same_rank)
        remedy = f"Its axes are {AXES[where]}." if where in AXES else ""
        raise KernelError(Problem(where, got, wanted, remedy))
    return array

"""The kernels that a declaration returns, and their conversion to tables.

The rows of a table are the probabilities of one distribution each, mapped over all states, actions
and steps on which the kernel depends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from numpyro.distributions import Distribution

from homdp_ppl.core.form import Form
from homdp_ppl.core.numbers import masked_problems
from homdp_ppl.core.pattern import Pattern
from homdp_ppl.core.sensors import joint_table
from homdp_ppl.core.spaces import Spaces, kernel_of, sensor_table
from homdp_ppl.core.sparse import Sparse, absorbing
from homdp_ppl.declare.distributions import call_kernel, is_function, row
from homdp_ppl.declare.hindsight_kernels import hindsight_tabulators
from homdp_ppl.declare.reward_law import reward_table
from homdp_ppl.declare.sensor_kernels import check_sensors, of_sensor, refuse_dict
from homdp_ppl.declare.signatures import KernelError, arguments
from homdp_ppl.declare.spaces import declared_observations
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array, namespace

Kernel: TypeAlias = Callable[..., Distribution]

EXAMPLES = {"transition": "lambda x, a", "emission": "lambda x", "first_emission": "lambda x"}
AXES = {
    "transition": "(state, action, next state), or (step, state, action, next state)",
    "emission": (
        "(state, observation), (previous action or none, state, observation), or "
        "(step, previous action or none, state, observation)"
    ),
    "first_emission": "(state, observation)",
}
NO_FIRST = (
    "Add first_emission=lambda x: ... to Kernels. It gives the first observation, which follows "
    "no action."
)
FIRST_LAST = "The table of the first observation, which follows no action, is the last one."
ONE_FIRST = "Leave out first_emission if the table has an axis for the previous action or the step."
SNAP = 1e-15  # smaller probabilities are rounding errors and count as zero


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
        the step: an array (H, X, A, X), or a function of ``x``, ``a`` and ``h``. If there are many
        states with few possible next states each: a :class:`Sparse` table.
    emission
        O(y | x): an array (X, Y), or a function of ``x``. If observations depend on the previous
        action: an array (A + 1, X, Y), whose last table is for the first observation, or a function
        of ``x`` and ``a`` together with ``first_emission``. If they depend on the step: an array
        (H, A + 1 or 1, X, Y), or a function that also takes ``h``. If there are several sensors: a
        function that returns a dict {sensor: distribution}, or a dict {sensor: array or function}
        with Y outcomes of each. Sensors are independent given the state.
    first_emission
        The distribution of the first observation, which follows no action: an array (X, Y), or a
        function of ``x``; dicts as for the emission. By default, it is the same as for later
        observations.
    reward
        The law of unknown or random rewards: a function of ``x`` and ``a`` that may also take ``h``
        and ``y``, the observation before the action. It returns a distribution of one number: with
        finitely many outcomes, such as Bernoulli, Delta, or
        ``dist.MixtureSameFamily(dist.Categorical(p), dist.Delta(values))``, or with a density, such
        as Beta. It requires ``reward_range`` in the decorator, and finite spaces.
    label
        What hindsight reveals instead of the state: a function of ``x`` that returns a distribution
        of labels 0 .. Z-1, or an array (X, Z) of probabilities. If hindsight is only coarse: the
        label of each state, an array (X,) of integers, or a function of ``x`` that returns it. By
        default, hindsight reveals the state itself.
    revealed
        The probability that the state, or its label, is revealed: a number, if a coin decides, or a
        function of ``x``, ``y`` and ``a`` that may also take ``h`` and may leave out some of them.
        For the state after the last action, it is called with ``y = None`` and ``a = None``. By
        default, nothing is said about why hindsight is missing. It requires finite spaces.

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
    transition: ArrayLike | Sparse | Kernel  # T(x' | x, a)
    emission: ArrayLike | Kernel | Mapping[str, Any]  # O(y | x), or O(y | x, a) after a
    first_emission: ArrayLike | Kernel | Mapping[str, Any] | None = None  # of y_1
    reward: Kernel | None = None  # the law of r given x and a
    label: ArrayLike | Callable[..., Any] | None = None  # z given x
    revealed: ArrayLike | Callable[..., Any] | None = None  # P(revealed | x, y, a)


class Tables(NamedTuple):
    """The kernels as probabilities, in the form of :class:`homdp_ppl.core.form.Form`."""

    initial: Array  # (X,)
    transition: Array  # (X, A, X) or (H, X, A, X)
    emission: Array  # (X, Y), (A + 1, X, Y) or (H, A + 1 or 1, X, Y)

    @property
    def form(self) -> Form:
        """The form of the tables; only without candidate axes."""
        initial, transition, emission = map(jnp.shape, self)
        return Form(initial, transition, emission)


class RewardTables(NamedTuple):
    """The same with the table of random rewards, see :mod:`homdp_ppl.declare.reward_law`."""

    initial: Array  # (X,)
    transition: Array  # (X, A, X) or (H, X, A, X)
    emission: Array  # (X, Y), (A + 1, X, Y) or (H, A + 1 or 1, X, Y)
    reward: Array  # (H|1, X, Y|1, A, R)

    @property
    def form(self) -> Form:
        """The form of the tables without the rewards; only without candidate axes."""
        initial, transition, emission, _ = map(jnp.shape, self)
        return Form(initial, transition, emission)


# the tables from which planners' models are made
Planned: TypeAlias = Tables | RewardTables


def planned(parts: Mapping[str, Array]) -> Planned:
    """The tables of planners from tables by name; other tables are left out."""
    kind = RewardTables if "reward" in parts else Tables
    return kind(**{name: parts[name] for name in kind._fields})


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
        else np.ndim(transition) == 4
        if not isinstance(transition, Sparse)
        else len(transition) > 1,
        kernels.first_emission is not None or "a" in named or "h" in named,
    )


def snap(tables: Planned) -> Planned:
    """Replace rounding errors by exact zeros: Bernoulli(1.) tabulates to (2e-16, 1 - 2e-16)."""
    return tables._replace(
        initial=snap_table(tables.initial),
        transition=snap_table(tables.transition),
        emission=snap_table(tables.emission),
    )


def snap_table(table: Array) -> Array:
    """Replace the rounding errors of one table by exact zeros."""
    xp = namespace(table)
    specks = (table > 0) & (table <= SNAP)
    kept = xp.where(specks, 0.0, table)
    return kept / xp.where(specks.any(-1, keepdims=True), kept.sum(-1, keepdims=True), 1.0)


def tabulate(kernels: Kernels, spaces: Spaces) -> Planned:
    """The tables of a program's kernels.

    Raises :class:`KernelError` at the first kernel that has no table.
    """
    make = tabulators(kernels, spaces)
    names = [name for name in make if name in RewardTables._fields]  # not those of single sensors
    return planned({name: make[name]() for name in names})


def tabulators(kernels: Kernels, spaces: Spaces) -> dict[str, Callable[[], Array]]:
    """For each kernel a function that makes its table, so that the problems of all kernels can be
    reported together.

    If there are several sensors, there is a table for each, and "emission" is their product.
    """
    sensors = {
        sensor_table(sensor): cache(partial(_sensor, kernels, spaces, sensor))
        for sensor in spaces.sensors
    }

    def emission() -> Array:
        if not sensors:
            return _ended(_emission(kernels, declared_observations(spaces)), spaces)
        for where in ("emission", "first_emission"):
            check_sensors(where, getattr(kernels, where), spaces.sensors)
        return joint_emission([table() for table in sensors.values()], spaces)

    def transition() -> Array:
        given = sparse_transition(kernels, spaces)
        if given is not None:
            return given.pattern.pad(jnp.asarray(given.values, jnp.result_type(float)))
        return _absorbed(_transition(kernels.transition, spaces), spaces)

    tables: dict[str, Callable[[], Array]] = {
        "initial": lambda: _initial(kernels.initial, len(spaces.states)),
        "transition": transition,
        **sensors,
        "emission": emission,
    }
    if kernels.reward is not None:
        tables["reward"] = lambda: reward_table(kernels.reward, spaces)
    return {**tables, **hindsight_tabulators(kernels, spaces)}


def sparse_transition(kernels: Kernels, spaces: Spaces) -> Sparse | None:
    """The sparse transitions of a program, absorbing in terminal states; None if they are dense."""
    table = kernels.transition
    if not isinstance(table, Sparse):
        return None
    X, A, H = len(spaces.states), len(spaces.actions), spaces.horizon
    if table.shape not in ((1, X, A, X), (H, X, A, X)):
        got, expected = f"a sparse table of shape {table.shape}", f"shape {(1, X, A, X)}"
        raise KernelError(Problem("transition", got, f"{expected} or {(H, X, A, X)}"))
    return absorbing(table, spaces.ends) if spaces.terminal else table


def pattern_of(kernels: Kernels, spaces: Spaces) -> Pattern | None:
    """The places of the entries of sparse transitions; None if they are dense, or invalid."""
    try:
        table = sparse_transition(kernels, spaces)
    except KernelError:  # its tabulator reports it
        return None
    return None if table is None else table.pattern


def form_of_kernels(kernels: Kernels, tables: Planned, spaces: Spaces) -> Form:
    """The form of the tables of a program's kernels."""
    given = sparse_transition(kernels, spaces)
    return tables.form._replace(pattern=None if given is None else given.pattern)


def joint_emission(tables: Sequence[Array], spaces: Spaces) -> Array:
    """The emission table of independent sensors, from the table of each."""
    return _ended(joint_table(tables), spaces)


def _sensor(kernels: Kernels, spaces: Spaces, sensor: str) -> Array:
    """The emission table of one sensor. Rows of terminal states are not used; they are uniform."""
    own = kernels._replace(
        emission=of_sensor("emission", kernels.emission, sensor),
        first_emission=of_sensor("first_emission", kernels.first_emission, sensor, optional=True),
    )
    table = _emission(own, spaces._replace(observations=spaces.sensors[sensor]), f"[{sensor}]")
    if not spaces.terminal:
        return table
    return jnp.where(spaces.ends[:, None], 1 / table.shape[-1], table)


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
    xp = namespace(table)
    padded = xp.concatenate([table, xp.zeros((*table.shape[:-1], 1))], axis=-1)
    return xp.where(spaces.ends[:, None], np.eye(padded.shape[-1])[-1], padded)


def _initial(initial: Any, states: int) -> Array:
    if isinstance(initial, Distribution):
        return row("initial", initial, states)
    if is_function(initial):
        remedy = "Write initial=dist.Categorical(...), without lambda: nothing comes before it."
        expected = "an array or a NumPyro distribution"
        raise KernelError(Problem("initial", "a function", expected, remedy))
    return _array("initial", initial, [(states,)], "an array or a NumPyro distribution")


def _transition(kernel: Any, spaces: Spaces) -> Array:
    X, A, H = len(spaces.states), len(spaces.actions), spaces.horizon
    if not is_function(kernel):
        return _array("transition", kernel, [(X, A, X), (H, X, A, X)])
    steps = {"h": H} if "h" in arguments("transition", kernel) else {}
    return _rows("transition", kernel, {**steps, "x": X, "a": A}, X)


def _emission(kernels: Kernels, spaces: Spaces, sensor: str = "") -> Array:
    """The emission table; ``first_emission`` is its last entry along the action axis.

    ``sensor`` is "[name]" for the kernels of a sensor.
    """
    X, Y, A, H = spaces.sizes
    where, where_first = f"emission{sensor}", f"first_emission{sensor}"
    kernel: Any = kernels.emission
    first = kernels.first_emission
    if not is_function(kernel):
        by_action = [(A + 1, X, Y), (H, A + 1, X, Y), (H, 1, X, Y)] if first is None else []
        hint = FIRST_LAST if first is None else ONE_FIRST
        table = _array(where, kernel, [(X, Y), *by_action], hint=hint)
        if first is None:
            return table
        return _after_first(table[None], _first(where_first, first, X, Y), A)
    named = arguments(where, kernel)
    steps = {"h": H} if "h" in named else {}
    if needs_first(kernels) and first is None:
        raise no_first_emission(where_first)
    after = {"a": A} if "a" in named else {}
    table = _rows(where, kernel, {**steps, **after, "x": X}, Y)
    if first is None and not steps:
        return table
    table = table if after else jnp.expand_dims(table, -3)
    return table if first is None else _after_first(table, _first(where_first, first, X, Y), A)


def needs_first(kernels: Kernels) -> bool:
    """Whether the emission is a function of the previous action, which the first one lacks."""
    kernel: Any = kernels.emission
    return is_function(kernel) and "a" in arguments("emission", kernel)


def no_first_emission(where: str = "first_emission") -> KernelError:
    """The error for an emission that depends on the previous action, without a first one."""
    expected = "the distribution of the first observation"
    return KernelError(Problem(where, "nothing", expected, NO_FIRST))


def _first(where: str, kernel: Any, states: int, observations: int) -> Array:
    if not is_function(kernel):
        return _array(where, kernel, [(states, observations)])
    return _rows(where, kernel, {"x": states}, observations)


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
        result = call_kernel(where, kernel, point)
        refuse_dict(where, result)
        return row(where, result, outcomes)

    for axis in reversed(range(len(names))):  # the outermost vmap is the first axis
        rows = jax.vmap(rows, in_axes=tuple(0 if k == axis else None for k in range(len(names))))
    return rows(*(jnp.arange(n) + (name == "h") for name, n in given.items()))


def _array(
    where: str,
    value: Any,
    shapes: list[tuple[int, ...]],
    expected: str | None = None,
    hint: str = "",
) -> Array:
    """A table that is given as an array; its shape is one of ``shapes``."""
    refuse_dict(where, value)
    missing = masked_problems(where, value)
    if missing:
        raise KernelError(missing[0])
    kernel = kernel_of(where)
    example = f"a function such as {EXAMPLES.get(kernel, '')}: dist.Categorical(...)"
    try:
        array = jnp.asarray(value, dtype=jnp.result_type(float))
    except (TypeError, ValueError):
        wanted = expected or f"an array, or {example}"
        raise KernelError(Problem(where, f"{type(value).__name__}", wanted)) from None
    if array.shape not in shapes:
        got, wanted = f"an array of shape {array.shape}", f"shape {shapes[0]}"
        same_rank = [shape for shape in shapes[1:] if len(shape) == array.ndim]
        wanted += "".join(f" or {shape}" for shape in same_rank)
        remedy = f"Its axes are {AXES[kernel]}. {hint}".rstrip() if kernel in AXES else ""
        raise KernelError(Problem(where, got, wanted, remedy))
    return array

"""Kernels of a declared program as distributions, at one point or at many points together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpyro.distributions as dist
from numpyro.distributions import Distribution

from homdp_ppl.core.spaces import Real, Space, Spaces, shape_of
from homdp_ppl.declare.distributions import call_kernel, is_function
from homdp_ppl.declare.kernels import Kernels, needs_first, no_first_emission
from homdp_ppl.declare.signatures import KernelError
from homdp_ppl.declare.switch import Switch
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array


class Laws(NamedTuple):
    """The kernels of a program, each a function that returns a distribution of one value.

    Steps h count from 0. The previous action of the first step is the number of actions.
    """

    initial: Callable[[], Distribution]
    transition: Callable[[Array, Array, Array | int], Distribution]  # of x, a, h
    emission: Callable[[Array, Array | int, Array | int], Distribution]  # of x, previous a, h


def laws(kernels: Kernels, domain: Spaces) -> Laws:
    """The kernels as functions; rows of tables become Categorical distributions.

    Invalid kernels raise :class:`KernelError` when the functions are called.
    """
    initial = kernels.initial

    def first() -> Distribution:
        given = (
            initial
            if isinstance(initial, Distribution)
            else _categorical("initial", initial, (), domain)
        )
        return _checked("initial", given, domain.states)

    def law(where: str, kernel: Any, space: Space, **point: Any) -> Distribution:
        if is_function(kernel):
            given = call_kernel(where, kernel, {**point, "h": point["h"] + 1})
        else:
            given = _categorical(where, kernel, tuple(point.values()), domain)
        return _checked(where, given, space)

    def transition(x: Array, a: Array, h: Array | int) -> Distribution:
        return law("transition", kernels.transition, domain.states, h=h, x=x, a=a)

    def emission(x: Array, a: Array | int, h: Array | int) -> Distribution:
        before = kernels.first_emission
        if before is None and needs_first(kernels):
            raise no_first_emission()
        last = len(domain.actions) - 1
        after = law(
            "emission", kernels.emission, domain.observations, h=h, x=x, a=jnp.minimum(a, last)
        )
        if before is None:
            return after
        first = law("first_emission", before, domain.observations, h=0, x=x)
        return Switch(jnp.asarray(a) > last, first, after)

    return Laws(first, transition, emission)


def _categorical(where: str, table: Any, point: tuple[Array, ...], domain: Spaces) -> Distribution:
    """A row of a table; tables are possible for finitely many states only."""
    expected = (
        "a NumPyro distribution"
        if where == "initial"
        else "a function that returns a NumPyro distribution"
    )
    if is_function(table):
        remedy = "Write initial=dist.Normal(...), without lambda: nothing comes before it."
        raise KernelError(Problem(where, "a function", expected, remedy))
    if isinstance(domain.states, Real):
        remedy = f"Tables need finitely many states, but these are in {domain.states}."
        raise KernelError(Problem(where, type(table).__name__, expected, remedy))
    try:
        array = jnp.asarray(table, dtype=jnp.result_type(float))
    except (TypeError, ValueError):
        raise KernelError(Problem(where, type(table).__name__, f"{expected}, or a table")) from None
    index = point[max(0, len(point) + 1 - array.ndim) :]  # without a step axis, h is left out
    return dist.Categorical(probs=array[index])


def _checked(where: str, given: Any, space: Space) -> Distribution:
    """Validate a distribution of one value of a space."""
    if not isinstance(given, Distribution):
        remedy = "Return a distribution, not a value drawn from it."
        raise KernelError(Problem(where, type(given).__name__, "a NumPyro distribution", remedy))
    if given.batch_shape or given.event_shape != shape_of(space):
        got = (
            f"{type(given).__name__} with batch shape {given.batch_shape} and event shape "
            f"{given.event_shape}"
        )
        expected = f"a distribution of one value of shape {shape_of(space)}"
        remedy = (
            "For vectors use .to_event(1), as in dist.Normal(vector, 1.0).to_event(1); values in "
            "Real(1) are scalars."
        )
        raise KernelError(Problem(where, got, expected, remedy))
    continuous = isinstance(space, Real)
    if bool(given.is_discrete) == continuous:
        got = (
            f"{type(given).__name__}, which is {'discrete' if given.is_discrete else 'continuous'}"
        )
        raise KernelError(
            Problem(
                where,
                got,
                "a continuous distribution" if continuous else "a distribution of indices",
            )
        )
    return given


class Conditional(Distribution):  # type: ignore[misc]
    """A kernel at many points: one independent value per point.

    NumPyro batches distributions by their parameters, which differ between families. This class
    batches the points instead and calls the kernel at each of them. It works for every kernel,
    inside and outside of ``scan``.

    Parameters
    ----------
    kernel
        From one point to a distribution.
    point
        Arrays whose first axes are the batch.
    lengths
        How many axes each array has at one point.
    space
        Where the values lie.
    """

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012
    pytree_data_fields = ("point",)
    pytree_aux_fields = ("kernel", "lengths", "space")

    def __init__(
        self,
        kernel: Callable[..., Distribution],
        point: tuple[Array, ...],
        lengths: tuple[int, ...],
        space: Space,
    ) -> None:
        self.kernel, self.point, self.lengths, self.space = kernel, point, lengths, space
        super().__init__(batch_shape=self.batch_shape, event_shape=shape_of(space))

    @property
    def support(self) -> Any:
        """All of the space."""
        if isinstance(self.space, Real):
            return dist.constraints.real_vector if self.space.shape else dist.constraints.real
        return dist.constraints.integer_interval(0, len(self.space) - 1)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The leading axes of the points, which a scan stacks."""
        axes = jnp.ndim(self.point[-1]) - self.lengths[-1]
        return tuple(jnp.shape(self.point[-1])[:axes])

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """One value per point."""
        keys = (
            jax.random.split(key, (*sample_shape, *self.batch_shape))
            if (*sample_shape, *self.batch_shape)
            else key
        )
        drawn: Callable[..., Array] = self._mapped(
            lambda key, point: self.kernel(*point).sample(key)
        )
        for _ in sample_shape:
            drawn = jax.vmap(drawn, in_axes=(0, None))
        return drawn(keys, self.point)

    def log_prob(self, value: Array) -> Array:
        """The log density of each value."""
        mapped: Array = self._mapped(lambda value, point: self.kernel(*point).log_prob(value))(
            value, self.point
        )
        return mapped

    def _mapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        for _ in self.batch_shape:
            function = jax.vmap(function)
        return function

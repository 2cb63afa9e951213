"""The law of unknown or random rewards: its table, its outcomes and its mean.

A row of the table belongs to a step, a state, an observation and an action; axes on which the law
does not depend have size 1. If the law has finitely many outcomes, a row has their probabilities.
Otherwise it has the mean and a few draws with fixed keys, which show whether the law depends on a
site. Terminal states earn 0 with certainty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.distributions import Distribution
from numpyro.distributions.transforms import AffineTransform

from homdp_ppl.core.probabilities import reward_entry
from homdp_ppl.core.reward_form import RewardForm
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.distributions import (
    call_kernel,
    in_domain,
    is_function,
    log_probability,
    support_of,
)
from homdp_ppl.declare.signatures import KernelError, arguments
from homdp_ppl.declare.spaces import after_end, declared_observations
from homdp_ppl.declare.switch import Switch
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array

DRAWS = 2  # with fixed keys, in the rows of laws without finitely many outcomes
TRIED = 16  # draws of the sites at which outcomes and bounds of a law are compared
SLACK = 1e-9  # relative to the range: rounding of outcomes, bounds and means
REPORTED = 4  # rows that are reported
EXAMPLE = "Write reward=lambda x, a: dist.Bernoulli(p[x, a]), or another law of one number."


class RewardLaw(NamedTuple):
    """The law of random rewards, apart from the values of its sites."""

    takes: tuple[str, ...]  # the arguments of the kernel, among x, a, h and y
    form: RewardForm
    bounded: bool  # whether all values are in the declared range

    @property
    def finite(self) -> bool:
        """Whether the law has finitely many outcomes."""
        return self.form.outcomes is not None

    def mean(self, table: Array) -> Array:
        """The mean rewards in the user's units, from a table (..., H|1, X, Y|1, A, R)."""
        if self.form.outcomes is None:
            return table[..., 0]
        return (table * self.form.outcomes).sum(-1)


def reward_table(kernel: Any, spaces: Spaces) -> Array:
    """The table of a reward kernel, (H|1, X, Y|1, A, R); can be traced.

    Raises :class:`KernelError` for a kernel that is no function to laws of one number.
    """
    return _finished(over_rows(kernel, spaces, _row), spaces, first=_is_finite(kernel, spaces))


def reward_distribution(kernel: Any, spaces: Spaces) -> Callable[..., Distribution]:
    """The law of one reward as a function of h, from 0, and of x, y and a."""

    def law(h: Array | int, x: Array, y: Array, a: Array) -> Distribution:
        point = {"h": jnp.asarray(h) + 1, "x": x, "y": y, "a": a}
        given = _Number(_one_number(call_kernel("reward", kernel, point)))
        if not spaces.terminal:
            return given
        return Switch(jnp.asarray(spaces.ends)[x], _Number(dist.Delta(0.0)), given)

    return law


class _Number(Distribution):  # type: ignore[misc]
    """A law whose values are real numbers, also if it is a law of integers.

    A value counts as an outcome of a finite law if it is equal up to rounding.
    """

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, given: Distribution) -> None:
        self.given = given
        super().__init__()

    @property
    def support(self) -> Any:
        return dist.constraints.real

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        return jnp.asarray(self.given.sample(key, sample_shape), dtype=jnp.result_type(float))

    def log_prob(self, value: Array) -> Array:
        if not _finite(self.given):
            return self.given.log_prob(value)
        values, chances = _values(self.given), _row(self.given)
        slack = SLACK * jnp.maximum(1.0, jnp.abs(values))
        same = jnp.abs(values - value) <= slack
        chance = jnp.sum(jnp.where(same, chances, 0.0))
        return jnp.where(chance > 0, jnp.log(jnp.where(chance > 0, chance, 1.0)), -jnp.inf)


def over_rows(kernel: Any, spaces: Spaces, of: Callable[[Distribution], Array]) -> Array:
    """A function of the law of every row, (H|1, X, Y|1, A, ...)."""
    if not is_function(kernel):
        raise KernelError(
            Problem("reward", type(kernel).__name__, "a function of x and a", EXAMPLE)
        )
    takes = arguments("reward", kernel)
    X, Y, A, H = declared_observations(spaces).sizes
    sizes = (H if "h" in takes else 1, X, Y if "y" in takes else 1, A)

    def at(h: Array, x: Array, y: Array, a: Array) -> Array:
        point = {"h": h + 1, "x": x, "y": y, "a": a}
        return of(_one_number(call_kernel("reward", kernel, point)))

    for axis in reversed(range(4)):  # the outermost vmap is the first axis
        at = jax.vmap(at, in_axes=tuple(0 if k == axis else None for k in range(4)))
    return at(*map(jnp.arange, sizes))


def law_of(
    function: Callable[[], Any], spaces: Spaces, bounds: tuple[float, float]
) -> tuple[RewardLaw | None, list[Problem]]:
    """The law of a program's reward kernel, and its problems; call it inside ``x64()``.

    The outcomes of a finite law must be the same at all values of the sites, and inside the range.

    Parameters
    ----------
    function
        The user's program, whose reward kernel has a table.
    spaces
        The declared names.
    bounds
        The smallest and the largest possible reward in the user's units.
    """

    def run(key: Array) -> tuple[Array, Array]:
        with handlers.block(), handlers.seed(rng_seed=key):
            kernel = function().reward
        found.append((arguments("reward", kernel), _is_finite(kernel, spaces)))
        values = over_rows(kernel, spaces, _values)
        return _finished(values, spaces, first=False), over_rows(kernel, spaces, _ends)

    found: list[tuple[tuple[str, ...], bool]] = []
    keys = jax.random.split(jax.random.key(0), TRIED)
    with jax.core.eval_context():
        values, ends = jax.device_get(jax.jit(jax.vmap(run))(keys))
    takes, finite = found[0]
    slack = SLACK * (bounds[1] - bounds[0])
    shape = values.shape[1:5]
    if not finite:
        inside = ends.min() >= bounds[0] - slack and ends.max() <= bounds[1] + slack
        return RewardLaw(takes, RewardForm(shape), bool(inside)), []
    if np.ptp(values, axis=0).max() > slack:
        got, expected = (
            "outcomes that depend on a site",
            "known outcomes with unknown probabilities",
        )
        remedy = (
            "Let a site be the probability of an outcome, or use a law with a density, such as "
            "dist.Beta."
        )
        return None, [Problem("reward", got, expected, remedy)]
    outcomes = values[0]
    apart = np.diff(np.sort(outcomes, axis=-1), axis=-1)
    if (apart[~after_end(shape, spaces)] <= slack).any():
        got, expected = "outcomes with the same value", "different values"
        remedy = "Add up the probabilities of outcomes with the same value."
        return None, [Problem("reward", got, expected, remedy)]
    law = RewardLaw(takes, RewardForm(shape, outcomes), bounded=True)
    return law, _outside(outcomes, bounds, slack, spaces)


def mean_problems(means: Array, bounds: tuple[float, float], spaces: Spaces) -> list[Problem]:
    """Problems for mean rewards (H|1, X, Y|1, A), in the user's units, outside the range."""
    slack = SLACK * (bounds[1] - bounds[0])
    return _outside(means[..., None], bounds, slack, spaces, what="a mean of ")


def _outside(
    values: Array, bounds: tuple[float, float], slack: float, spaces: Spaces, what: str = ""
) -> list[Problem]:
    low, high = bounds
    wrong = ~((values >= low - slack) & (values <= high + slack))
    remedy = (
        "Declare reward_range=(low, high), the smallest and the largest possible reward, or use a "
        "law on this range."
    )
    return [
        Problem(
            "reward",
            f"{what}{values[tuple(index)]:.6g}",
            f"a number in [{low:g}, {high:g}], the declared reward_range",
            remedy,
            reward_entry(tuple(index[:4]), values.shape[:4], spaces),
        )
        for index in np.argwhere(wrong)[:REPORTED]
    ]


def _one_number(given: Any) -> Distribution:
    """Validate the law of one reward."""
    if not isinstance(given, Distribution):
        got = "an array" if isinstance(given, jax.Array | np.ndarray) else type(given).__name__
        expected = "a NumPyro distribution"
        remedy = "For a known reward, use reward= in the decorator, or return dist.Delta(reward)."
        raise KernelError(Problem("reward", got, expected, remedy))
    if given.batch_shape or given.event_shape:
        got = (
            f"{type(given).__name__} with batch shape {given.batch_shape} and event shape "
            f"{given.event_shape}"
        )
        remedy = "A kernel describes one draw: index its parameters by the state and the action."
        raise KernelError(Problem("reward", got, "a scalar distribution", remedy))
    return given


def _of_points(given: Distribution) -> bool:
    """Whether a law is a mixture of points: Categorical probabilities and Delta components."""
    return isinstance(given, dist.MixtureSameFamily) and isinstance(
        given.component_distribution, dist.Delta
    )


def _finite(given: Distribution) -> bool:
    return isinstance(given, dist.Delta) or _of_points(given) or bool(given.has_enumerate_support)


def _is_finite(kernel: Any, spaces: Spaces) -> bool:
    """Whether the law of a kernel has finitely many outcomes; found without computing."""
    found: list[bool] = []

    def of(given: Distribution) -> Array:
        found.append(_finite(given))
        return jnp.zeros(())

    jax.eval_shape(lambda: over_rows(kernel, spaces, of))
    return found[0]


def _row(given: Distribution) -> Array:
    """A row of the table: probabilities of the outcomes, or the mean and some draws."""
    if isinstance(given, dist.Delta):
        return jnp.exp(given.log_density)[None] * jnp.ones(1)
    if _of_points(given):
        return given.mixing_distribution.probs
    if given.has_enumerate_support:
        chances = jnp.exp(log_probability(given, support_of("reward", given)))
        return jnp.where(in_domain(given), chances, jnp.nan)
    mean = jnp.asarray(_mean(given), dtype=jnp.result_type(float))
    draws = [given.sample(jax.random.key(k)) for k in range(DRAWS)]
    return jnp.where(in_domain(given), jnp.stack([mean, *draws]), jnp.nan)


def _mean(given: Distribution) -> Array:
    """The mean of a law with a density, also of one that is shifted and scaled."""
    if isinstance(given, dist.TransformedDistribution) and all(
        isinstance(part, AffineTransform) for part in given.transforms
    ):
        if given.base_dist.is_discrete:
            got, expected = "a transformed discrete distribution", "the probabilities of its values"
            remedy = "Write dist.MixtureSameFamily(dist.Categorical(p), dist.Delta(values))."
            raise KernelError(Problem("reward", got, expected, remedy))
        mean = _mean(given.base_dist)
        for part in given.transforms:
            mean = part(mean)
        return mean
    try:
        return given.mean
    except NotImplementedError:
        got, expected = f"{type(given).__name__}, whose mean is not known", "a law with a mean"
        remedy = "Planning uses mean rewards. Use for example dist.Beta or dist.TruncatedNormal."
        raise KernelError(Problem("reward", got, expected, remedy)) from None


def _values(given: Distribution) -> Array:
    """The outcomes of a row of a finite law; nothing for other laws."""
    if isinstance(given, dist.Delta):
        values = jnp.asarray(given.v)[None]
    elif _of_points(given):
        values = given.component_distribution.v
    elif given.has_enumerate_support:
        values = jnp.asarray(support_of("reward", given))
    else:
        values = jnp.zeros(0)
    return values.astype(jnp.result_type(float))


def _ends(given: Distribution) -> Array:
    """The smallest and the largest possible value of a law, as far as they are known."""
    allowed: Any = given.support  # constraints of NumPyro have bounds if they are intervals
    ends = getattr(allowed, "lower_bound", -jnp.inf), getattr(allowed, "upper_bound", jnp.inf)
    return jnp.stack([jnp.asarray(end, dtype=float).reshape(()) for end in ends])


def _finished(table: Array, spaces: Spaces, first: bool) -> Array:
    """A table of declared rows with those of terminal states, which earn 0 with certainty.

    ``first`` says whether the first entry of such a row is 1, for probabilities, or 0.
    """
    if not spaces.terminal:
        return table
    if table.shape[2] > 1:  # a place for the observation of terminal states
        table = jnp.pad(table, ((0, 0), (0, 0), (0, 1), (0, 0), (0, 0)))
    over = jnp.asarray(after_end(table.shape[:4], spaces))
    certain = (jnp.arange(table.shape[-1]) == 0) * (1.0 if first else 0.0)
    return jnp.where(over[..., None], certain, table)

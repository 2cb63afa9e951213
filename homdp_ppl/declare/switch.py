"""A distribution that is one of two, by a condition that JAX may trace."""

from __future__ import annotations

import jax.numpy as jnp
from numpyro.distributions import Distribution

from homdp_ppl.precision import Array


class Switch(Distribution):  # type: ignore[misc]
    """The first distribution if a condition holds, else the second."""

    def __init__(self, condition: Array, first: Distribution, second: Distribution) -> None:
        self.condition, self.first, self.second = condition, first, second
        super().__init__(event_shape=first.event_shape)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """A value of the chosen distribution."""
        return jnp.where(
            self.condition,
            self.first.sample(key, sample_shape),
            self.second.sample(key, sample_shape),
        )

    def log_prob(self, value: Array) -> Array:
        """The log density of the chosen distribution."""
        return jnp.where(self.condition, self.first.log_prob(value), self.second.log_prob(value))

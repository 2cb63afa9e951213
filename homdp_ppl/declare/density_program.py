"""The episode of a model without tables as a NumPyro program.

It has the same sites as for finite models: ``x``, ``y``, ``a`` of shape (H, episodes, ...), and
``x_last`` of shape (episodes, ...).
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.contrib.control_flow import scan
from numpyro.distributions import Distribution

from homdp_ppl.core.policy import Policy
from homdp_ppl.core.spaces import Real, Spaces, shape_of
from homdp_ppl.declare.conditional import Conditional, Laws, laws
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.switch import Switch
from homdp_ppl.errors import HOMDPError, Problem, SpacesError, with_article
from homdp_ppl.precision import Array


def density_program(function: Callable[[], Kernels], domain: Spaces) -> Callable[..., None]:
    """The NumPyro model of ``episodes`` episodes with uniform actions."""

    def program(policy: Policy | None = None, episodes: int = 1) -> None:
        if policy is not None:
            remedy = "Play the policy with homdp_ppl.rollout(key, world, policy)."
            got, expected = with_article(type(policy).__name__), "None: uniform actions"
            raise SpacesError("program", [Problem("policy", got, expected, remedy)])
        at_least_one("episodes", episodes)
        rules = laws(function(), domain)
        A, event = len(domain.actions), len(shape_of(domain.states))

        def state_law(h: Array, x: Array, a: Array) -> Distribution:
            return Switch(h == 0, rules.initial(), rules.transition(x, a, h - 1))

        def step(carry: tuple[Array, Array], h: Array) -> tuple[tuple[Array, Array], None]:
            x, a = carry
            with numpyro.plate("episodes", episodes, dim=-1):
                at = jnp.broadcast_to(h, (episodes,))
                previous = jnp.where(h == 0, A, a)
                x = numpyro.sample(
                    "x", Conditional(state_law, (at, x, a), (0, event, 0), domain.states)
                )
                seen = Conditional(
                    rules.emission, (x, previous, at), (event, 0, 0), domain.observations
                )
                numpyro.sample("y", seen)
                a = numpyro.sample("a", dist.Categorical(probs=jnp.full((episodes, A), 1 / A)))
            return (x.astype(kind), a.astype(index)), None

        index = jnp.result_type(int)
        kind = jnp.result_type(float) if isinstance(domain.states, Real) else index
        start = _placeholder(rules, domain, episodes, kind)
        (x, a), _ = scan(
            step, (start, jnp.zeros(episodes, dtype=index)), jnp.arange(domain.horizon)
        )
        with numpyro.plate("episodes", episodes, dim=-1):
            at = jnp.full(episodes, domain.horizon - 1)
            last = Conditional(rules.transition, (x, a, at), (event, 0, 0), domain.states)
            numpyro.sample("x_last", last)

    return program


def at_least_one(what: str, number: int) -> None:
    """Raise an error for a program without episodes or without steps."""
    if number < 1:
        raise HOMDPError("program", [Problem(what, str(number), "at least 1")])


def _placeholder(rules: Laws, domain: Spaces, episodes: int, kind: jnp.dtype) -> Array:
    """A state for the step before the first, whose value is not used.

    It must be a possible state: a transition from another one might have no density.
    """
    return jnp.broadcast_to(
        rules.initial().sample(jax.random.key(0)), (episodes, *shape_of(domain.states))
    ).astype(kind)

"""Validation of kernels without tables at draws of the program's sites.

A declaration is tried at a few draws of the prior. Other draws can still make a scale negative or a
matrix singular. Such draws are found by an episode with uniform actions at each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import Distribution, constraints

from homdp_ppl.core.probabilities import FLOAT32
from homdp_ppl.core.spaces import Real, Spaces
from homdp_ppl.declare.distributions import row
from homdp_ppl.declare.dynamics import Dynamics, Parameters
from homdp_ppl.declare.parameters import bad_draw, found_at
from homdp_ppl.declare.playing import simulate
from homdp_ppl.declare.probing import QUICK
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array, to_numpy

Sound = dict[tuple[str, str], Array]  # by kernel and what is checked: whether it holds
ORDER = ("initial", "transition", "emission", "states", "observations", "program")  # in errors
PARTS = (
    "first",
    "second",
    "base_dist",
    "mixing_distribution",
    "component_distribution",
    "_component_distributions",
)


def invalid_draws(dynamics: Dynamics, values: Mapping[str, Array]) -> list[Problem]:
    """Problems of the kernels at the first of several draws at which there are any.

    Rows of finitely many states are checked for all states and actions. Densities are checked for
    the states of one simulated episode per draw, with all actions.

    Parameters
    ----------
    dynamics
        The dynamics of a declaration without tables.
    values
        The draws of the sites, with a leading axis of draws.
    """
    infinite = [name for name, value in values.items() if not np.isfinite(value).all()]
    if infinite:
        return [Problem(f"site {name!r}", "nan or inf", "finite draws") for name in infinite]
    n = len(next(iter(values.values())))
    check = dynamics.cache.get("draws", lambda: _compiled(dynamics))
    rows, sound = to_numpy(check(dict(values), jax.random.split(jax.random.key(0), n)))
    states, _, actions, horizon, _ = dynamics.spaces
    if not isinstance(states, Real):
        problems = bad_draw(rows, values, Spaces(states, (), actions, horizon))
        if problems:
            return problems
    for (where, what), valid in sorted(sound.items(), key=lambda each: ORDER.index(each[0][0])):
        for k in np.flatnonzero(~valid)[:1]:
            remedy = (
                f"{found_at(values, k)} The prior allows values at which the program does not "
                "return a distribution: use another prior, or transform the site."
            )
            return [Problem(where, f"an invalid {what}", "a proper distribution", remedy)]
    return []


def _compiled(dynamics: Dynamics) -> Callable[..., tuple[dict[str, Array], Sound]]:
    states, observations, actions, horizon, _ = dynamics.spaces
    moves = jnp.arange(len(actions))

    def check(values: Parameters, key: Array) -> tuple[dict[str, Array], Sound]:
        rules, episode = dynamics.laws(values), simulate(dynamics, values, key)
        visited, steps = episode.states[:-1], jnp.arange(horizon)
        none = jnp.full(1, len(actions))
        previous = jnp.concatenate([none, episode.actions[:-1]])
        sound = _sound("initial", rules.initial())
        rows: dict[str, Array] = {}
        if isinstance(states, Real):

            def moved(x: Array, h: Array) -> Sound:
                return jax.vmap(lambda a: _sound("transition", rules.transition(x, a, h)))(moves)

            sound |= jax.vmap(moved)(visited, steps)
        else:
            latent = dynamics.latent_rows(values, Spaces(states, (), actions, horizon))
            rows = dict(zip(("initial", "transition"), latent, strict=True))
            visited = jnp.arange(len(states)).repeat(horizon)
            previous, steps = (jnp.tile(part, len(states)) for part in (previous, steps))
        points = visited, previous, steps
        sound |= jax.vmap(lambda *at: _sound("emission", rules.emission(*at)))(*points)
        if not isinstance(observations, Real):
            names = len(observations)
            shown = jax.vmap(lambda *at: row("emission", rules.emission(*at), names))(*points)
            valid = (shown >= 0).all() & (jnp.abs(shown.sum(-1) - 1) <= FLOAT32).all()
            sound["emission", "row of probabilities"] = valid
        density = dynamics.log_likelihood(
            values, episode.states, episode.observations, episode.actions
        )
        sound |= {
            ("states", "draw: nan or inf"): jnp.isfinite(episode.states),
            ("observations", "draw: nan or inf"): jnp.isfinite(episode.observations),
            ("program", "density of its own draws: zero, nan or inf"): jnp.isfinite(density),
        }
        return rows, {name: jnp.all(flags) for name, flags in sound.items()}

    compiled: Callable[..., tuple[dict[str, Array], Sound]] = jax.jit(
        jax.vmap(check), compiler_options=QUICK
    )
    return compiled


def _sound(where: str, law: Distribution) -> Sound:
    """Whether the parameters of a distribution, and of those it consists of, are in their domain.

    NumPyro does not validate parameters while JAX is tracing.
    """
    found: Sound = {}
    for part in _parts(law):
        for name, value in part.get_args().items():
            constraint = part.arg_constraints[name]
            if not constraints.is_dependent(constraint):
                place = where, f"{name} of {type(part).__name__}"
                found[place] = jnp.all(constraint(value)) & found.get(place, True)
    return found


def _parts(law: Distribution) -> Iterator[Distribution]:
    yield law
    for name in PARTS:
        inner = getattr(law, name, None)
        for part in inner if isinstance(inner, list | tuple) else [inner]:
            if isinstance(part, Distribution):
                yield from _parts(part)

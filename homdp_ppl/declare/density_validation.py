"""Validation of declarations without tables: of their form, and of trial episodes.

Their finite parts are checked as in finite declarations: rows are tabulated and must be
probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions import Distribution

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.probabilities import row_problems
from homdp_ppl.core.spaces import Real, Space, Spaces, label_of, shape_of
from homdp_ppl.declare.conditional import laws
from homdp_ppl.declare.distributions import row
from homdp_ppl.declare.dynamics import Dynamics, Parameters
from homdp_ppl.declare.kernels import Kernels, tabulators
from homdp_ppl.declare.playing import simulate
from homdp_ppl.declare.probing import QUICK, Site, log_prior
from homdp_ppl.declare.returns import range_problems
from homdp_ppl.declare.rewards import Rewards
from homdp_ppl.declare.signatures import KernelError
from homdp_ppl.declare.sizes import TRIALS
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array, to_numpy, x64

FACTORS = (1.0, -1.0, 4.0, -4.0, 16.0, -16.0)  # densities are probed at these multiples of a draw
REACH = 4.0  # scale of the real-valued states at which functions are tried


def _point(domain: Spaces, key: Array) -> tuple[Array, Array]:
    """A state and an action at which to try functions; they depend on the key."""
    states, actions = domain.states, len(domain.actions)
    a = jax.random.randint(jax.random.fold_in(key, 1), (), 0, actions)
    if isinstance(states, Real):
        return REACH * jax.random.normal(key, shape_of(states), jnp.result_type(float)), a
    return jax.random.randint(key, (), 0, len(states)), a


def trials(kernels: Kernels, domain: Spaces, key: Array) -> dict[str, Callable[[], Any]]:
    """For each kernel a function that tries it, under tracing, at a point that depends on the key.

    It returns the rows of a finite kernel, else a draw and its log density.
    """
    rules = laws(kernels, domain)

    def attempt(where: str, make: Callable[[], Distribution]) -> Callable[[], Any]:
        def run() -> Any:
            given = make()
            try:
                drawn = given.sample(key)
                return drawn, given.log_prob(drawn)
            except (NotImplementedError, AttributeError) as error:
                got = f"{type(given).__name__}, which cannot be sampled or has no density"
                raise KernelError(
                    Problem(where, got, "a proper distribution with a density")
                ) from error

        return run

    def seen() -> Distribution:
        return rules.emission(*_point(domain, key), 1 % domain.horizon)

    if not isinstance(domain.states, Real):
        rows = tabulators(kernels, _latent(domain.states, domain))
        return {
            "initial": rows["initial"],
            "transition": rows["transition"],
            "emission": attempt("emission", seen),
        }
    observations = domain.observations
    return {
        "initial": attempt("initial", rules.initial),
        "transition": attempt("transition", lambda: rules.transition(*_point(domain, key), 0)),
        "emission": attempt("emission", seen)
        if isinstance(observations, Real)
        else lambda: row("emission", seen(), len(observations)),
    }


def _latent(states: tuple[str, ...], domain: Spaces) -> Spaces:
    return Spaces(states, (), domain.actions, domain.horizon)


class Trial(NamedTuple):
    """Results of trial episodes; the leading axis of every array is the episode."""

    episodes: Episode
    rewards: Array  # (H,)
    density: Array  # ()  of states and observations
    rows: dict[str, Array]  # of the finite kernels
    probe: dict[str, Any]  # numbers that distinguish this program from others


def play_trials(
    dynamics: Dynamics, function: Callable[[], Kernels], sites: Sequence[Site]
) -> Trial:
    """Play episodes at parameters drawn from the prior."""

    def trial(key: Array) -> Trial:
        with handlers.trace() as trace, handlers.seed(rng_seed=jax.random.fold_in(key, 0)):
            function()
        parameters = {site.name: trace[site.name]["value"] for site in sites}
        episode = simulate(dynamics, parameters, jax.random.fold_in(key, 1))
        steps = jnp.arange(dynamics.spaces.horizon)
        rewards = jax.vmap(lambda h, x, y, a: dynamics.reward(parameters, h, x, y, a))(
            steps, episode.states[:-1], episode.observations, episode.actions
        )
        density = dynamics.log_likelihood(
            parameters, episode.states, episode.observations, episode.actions
        )
        probe = {
            "parameters": parameters,
            "log prior": log_prior(trace),
            **_probe(dynamics, parameters, episode),
        }
        return Trial(episode, rewards, density, _rows(dynamics, parameters, episode), probe)

    with x64(), jax.core.eval_context():  # works also if the declaration is inside a user's jit
        keys = jax.random.split(jax.random.key(0), TRIALS)
        tried: Trial = to_numpy(jax.jit(jax.vmap(trial), compiler_options=QUICK)(keys))
    return tried


def _probe(dynamics: Dynamics, parameters: Parameters, episode: Episode) -> dict[str, Any]:
    """The first step, with densities and rewards at and around it, or at all finite states."""
    X, Y, A, *_ = dynamics.spaces
    x, z, y = episode.states[0], episode.states[1], episode.observations[0]
    rules, seen, actions = dynamics.laws(parameters), _around(y, Y), jnp.arange(len(A))

    def at(x: Array) -> tuple[Array, Array, Array]:
        moves = jax.vmap(lambda a: rules.transition(x, a, 0).log_prob(z))(actions)
        rewards = jax.vmap(lambda a: dynamics.reward(parameters, 0, x, y, a))(actions)
        return moves, rewards, jax.vmap(rules.emission(x, len(A), 0).log_prob)(seen)

    moves, rewards, sights = jax.vmap(at)(_around(x, X))
    return {
        "first step": {"x": x, "y": y, "z": z},
        "initial": rules.initial().log_prob(x),
        "transition": moves,
        "emission": sights,
        "reward": rewards,
    }


def _around(value: Array, space: Space) -> Array:
    """Values to probe: all values of a finite space, else multiples of a drawn value."""
    if isinstance(space, Real):
        return jnp.stack([value * factor for factor in FACTORS])
    return jnp.arange(len(space))


def trial_problems(trial: Trial, declared: Rewards, domain: Spaces) -> list[Problem]:
    """The problems of trial episodes."""
    episodes, rewards, density, rows, _ = trial
    problems = [
        problem for name in rows for problem in _first_bad(name, rows[name], episodes, domain)
    ]
    if problems:
        return problems
    problems = range_problems(rewards, episodes, declared, domain)
    for where, values in (("states", episodes.states), ("observations", episodes.observations)):
        if not np.isfinite(values).all():
            remedy = (
                "Check for a distribution parameter outside its domain (such as a scale of "
                "zero), and for dynamics that diverge."
            )
            problems.append(Problem(where, "a draw that is not finite", "finite numbers", remedy))
    if not problems and not np.isfinite(density).all():
        remedy = (
            "Check for draws outside the kernel's support, and for a distribution parameter "
            "outside its domain."
        )
        problems.append(
            Problem(
                "program",
                "a draw whose density is zero or not finite",
                "draws with a positive, finite density",
                remedy,
            )
        )
    return problems


def _rows(dynamics: Dynamics, parameters: Parameters, episode: Episode) -> dict[str, Array]:
    """The rows of the finite kernels.

    These are the latent kernels, or the emission at the visited states.
    """
    states, observations, *_ = dynamics.spaces
    if not isinstance(states, Real):
        return dict(
            zip(
                ("initial", "transition"),
                dynamics.latent_rows(parameters, _latent(states, dynamics.spaces)),
                strict=True,
            )
        )
    if isinstance(observations, Real):
        return {}
    emission = dynamics.laws(parameters).emission
    previous = jnp.concatenate([jnp.full(1, len(dynamics.spaces.actions)), episode.actions[:-1]])
    steps = jnp.arange(len(previous))

    def seen(x: Array, a: Array, h: Array) -> Array:
        return row("emission", emission(x, a, h), len(observations))

    return {"emission": jax.vmap(seen)(episode.states[:-1], previous, steps)}


def _first_bad(name: str, tables: Array, episodes: Episode, domain: Spaces) -> list[Problem]:
    """The problems of the rows of the first trial that has any."""
    for k, table in enumerate(tables):
        X = domain.states
        names = tuple(label_of(x, X) for x in episodes.states[k]) if isinstance(X, Real) else X
        observations = () if isinstance(domain.observations, Real) else domain.observations
        problems = row_problems(
            name, table, Spaces(names, observations, domain.actions, domain.horizon)
        )
        if problems:
            return problems
    return []

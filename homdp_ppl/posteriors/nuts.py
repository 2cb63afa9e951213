"""NUTS, compiled once per declaration: new data change numbers, not shapes.

A fit consists of a few rounds of one compiled program. Each round runs warm-up and draws for all
chains in parallel. The first round after a cold start only finds the region of high density. A
later fit starts from the positions, step sizes and mass matrices of the previous one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from numpyro.infer.hmc import hmc

from homdp_ppl.core.arguments import refuse
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.sizes import draw_problems
from homdp_ppl.errors import InferenceError
from homdp_ppl.memory import NUMBER, count, memory_problems
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.data import impossible
from homdp_ppl.posteriors.density import Density, Position, SiteDensity
from homdp_ppl.posteriors.diagnostics import Diagnostics, Gate, diagnose
from homdp_ppl.precision import Array, to_numpy

MATRICES = 3  # per chain: the mass matrix, its inverse and its square root
TARGETS = (0.8, 0.95, 0.99)  # target acceptance of successive rounds, until one passes the gate


class Sampling(NamedTuple):
    """The number of chains, and the number of warm-up steps and draws per chain.

    Examples
    --------
    >>> import numpyro, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, Kernels, homdp, posterior
    >>> from homdp_ppl.posteriors import Sampling
    >>> @homdp(states=1, observations=2, actions=1, horizon=1, reward=[[1]])
    ... def coin():
    ...     heads = numpyro.sample("heads", dist.Uniform(0.5, 1.0))
    ...     return Kernels([1.0], [[[1.0]]], lambda x: dist.Bernoulli(heads))
    >>> dict(
    ...     posterior(
    ...         coin, Counts.zero(coin), sampling=Sampling(chains=2, draws=1000)
    ...     ).dataset.sizes
    ... )
    {'chain': 2, 'draw': 1000}
    """

    chains: int = 4
    warmup: int = 300
    draws: int = 500  # per chain


class Warm(NamedTuple):
    """The positions and adaptation of the chains, from which the next fit starts."""

    position: Position  # (chains, ...)
    step_size: Array  # (chains,)
    inverse_mass: Array  # (chains, D, D)


class Fit(NamedTuple):
    """Draws of the sampled sites, with diagnostics."""

    samples: dict[str, Array]  # (chains, draws, ...)
    statistics: dict[str, Array]  # (chains, draws)  of the sampler, by their names in ArviZ
    diagnostics: Diagnostics
    warm: Warm
    forced: bool  # kept although it did not pass the gate

    @property
    def atoms(self) -> Atoms:
        """The draws of all chains, one after the other."""
        samples, statistics = (
            {name: v.reshape(-1, *v.shape[2:]) for name, v in part.items()}
            for part in (self.samples, self.statistics)
        )
        return Atoms(samples, self.diagnostics.chains, statistics=statistics)


class Sampler:
    """The compiled sampler of a declaration; created by :func:`sampler`."""

    def __init__(self, density: SiteDensity, sampling: Sampling) -> None:
        self.density = density
        self.sampling = sampling
        self._round: Callable[..., Any] = jax.jit(self._run)
        self._start: Callable[..., Any] = jax.jit(jax.vmap(density.start, in_axes=(0, None)))

    def fit(self, key: Array, data: Any, warm: Warm | None, gate: Gate, force: bool) -> Fit:
        """Sample given data.

        Raises :class:`InferenceError` if no round passes the gate, unless ``force`` is True.
        """
        cold = warm is None
        if warm is None:
            warm = self._cold(jax.random.fold_in(key, 0), data)
            warm = self._round(jax.random.fold_in(key, 1), data, warm, TARGETS[0])[2]
        for turn, target in enumerate(TARGETS):
            samples, statistics, warm = to_numpy(
                self._round(jax.random.fold_in(key, turn + 2), data, warm, target)
            )
            diagnostics = diagnose(samples, statistics["diverging"])
            problems = diagnostics.problems(gate)
            if not problems:
                return Fit(samples, statistics, diagnostics, warm, forced=False)
        if not cold:  # new data can move the posterior away from the old positions
            return self.fit(jax.random.fold_in(key, 0), data, None, gate, force)
        if not force:
            subject = f"NUTS for {self.density.name} (to keep the fit anyway, use force=True)"
            raise InferenceError(subject, problems)
        return Fit(samples, statistics, diagnostics, warm, forced=True)

    def _cold(self, key: Array, data: Any) -> Warm:
        position, potential = self._start(jax.random.split(key, self.sampling.chains), data)
        possible = np.isfinite(potential)
        if not possible.any():
            raise impossible(self.density.name)
        # chains without a possible start begin where other chains do
        shared = np.resize(np.flatnonzero(possible), len(possible))
        position = jax.tree.map(
            lambda leaf: leaf[np.where(possible, np.arange(len(possible)), shared)], position
        )
        C, D = self.sampling.chains, sum(leaf[0].size for leaf in jax.tree.leaves(position))
        return Warm(position, np.ones(C), np.tile(np.eye(D), (C, 1, 1)))

    def _run(
        self, key: Array, data: Any, warm: Warm, target: Array
    ) -> tuple[dict[str, Array], dict[str, Array], Warm]:
        keys = jax.random.split(key, self.sampling.chains)
        return jax.vmap(lambda k, w: self._chain(k, data, w, target))(keys, warm)

    def _chain(
        self, key: Array, data: Any, warm: Warm, target: Array
    ) -> tuple[dict[str, Array], dict[str, Array], Warm]:
        init, step = hmc(potential_fn=lambda position: self.density.potential(data, position))
        state = init(
            warm.position,
            self.sampling.warmup,
            step_size=warm.step_size,
            inverse_mass_matrix=warm.inverse_mass,
            dense_mass=True,
            target_accept_prob=target,
            rng_key=jax.random.fold_in(key, 0),
        )

        def advance(state: Any, _: None) -> tuple[Any, tuple[Position, dict[str, Array]]]:
            state = step(state)
            return state, (state.z, _statistics(state))

        steps = self.sampling.warmup + self.sampling.draws
        state, (positions, statistics) = jax.lax.scan(advance, state, length=steps)
        positions, statistics = jax.tree.map(
            lambda leaf: leaf[self.sampling.warmup :], (positions, statistics)
        )
        keys = jax.random.split(jax.random.fold_in(key, 1), self.sampling.draws)
        samples = jax.vmap(lambda k, position: self.density.constrain(k, data, position))(
            keys, positions
        )
        return (
            samples,
            statistics,
            Warm(state.z, state.adapt_state.step_size, state.adapt_state.inverse_mass_matrix),
        )


def _statistics(state: Any) -> dict[str, Array]:
    """The statistics of one NUTS step, by their names in ArviZ."""
    return {
        "acceptance_rate": state.accept_prob,
        "diverging": state.diverging,
        "energy": state.energy,
        "n_steps": state.num_steps,
        "step_size": state.adapt_state.step_size,
    }


def require_room(homdp: HOMDP, held: tuple[str, ...], sampling: Sampling) -> None:
    """Raise an error if the draws or the mass matrices of all chains do not fit in memory."""
    sites = [site for site in homdp.sites if site.name not in held]
    draws = sampling.chains * (sampling.warmup + sampling.draws)
    problems = draw_problems(
        "sampling.draws", draws, sites, remedy="Use fewer chains, or shorter ones."
    )
    unknown = sum(math.prod(site.moves) for site in sites)
    got = f"{count(sampling.chains)} chains for {count(unknown)} unknown numbers"
    needed = MATRICES * NUMBER * sampling.chains * unknown**2
    problems += memory_problems("sampling.chains", got, needed, "Use fewer chains.")
    refuse(InferenceError, "posterior", problems)


def sampler(homdp: HOMDP, held: tuple[str, ...], sampling: Sampling) -> Sampler:
    """The sampler of a declaration, compiled once per choice of settings."""
    require_room(homdp, held, sampling)
    name = ("nuts", held, sampling)
    return homdp.cache.get(name, lambda: Sampler(Density(homdp, held), sampling))

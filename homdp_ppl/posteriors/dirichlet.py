"""Closed forms: the Dirichlet rows of a declaration, their updates and their exact moments.

All functions are pure functions of arrays, in NumPy or traced by JAX. :class:`ClosedForm` contains
the static structure; the concentrations (M,) are the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.counts import Counts
from homdp_ppl.declare.conjugacy import TABLES, Conjugate
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.precision import Array, namespace

PROPOSALS = 8  # per Gamma draw


class Spread(NamedTuple):
    """The moments of the unknown part of every row.

    A row is ``reference + mass * p``, where p is Dirichlet with Cov(p) = shrink * (diag(mean) -
    mean mean^T). Rows without an unknown part have mass 0.
    """

    mean: Array  # (..., d)  of p, zero outside the unknown entries
    mass: Array  # (...)
    shrink: Array  # (...)   1 / (alpha_0 + 1)


class ClosedForm:
    """The rows of a declaration that have a closed-form posterior.

    Parameters
    ----------
    homdp
        The declaration.
    """

    def __init__(self, homdp: HOMDP) -> None:
        self.conjugate: Conjugate = homdp.structure.conjugate
        self.reference = homdp.structure.reference
        self.sizes = {site.name: site.shape for site in homdp.sites}
        flat = np.concatenate([getattr(self.conjugate, name).ravel() for name in TABLES])
        self._places = _groups(
            flat, len(self.conjugate.concentration)
        )  # of each entry in the flat tables
        self._members = _groups(
            self.conjugate.row, int(self.conjugate.row.max(initial=-1)) + 1
        )  # entries of each row
        ends = np.cumsum([0, *self.conjugate.lengths])
        self.rows = Tables(  # which rows have a closed form
            *(
                np.any(getattr(self.conjugate, name) >= 0, axis=-1, keepdims=True)
                for name in Tables._fields
            )
        )
        self._slices = {
            site: slice(*ends[k : k + 2]) for k, site in enumerate(self.conjugate.sites)
        }

    def concentration(self, counts: Counts) -> Array:
        """Posterior concentrations: prior concentrations plus counts of the table entries."""
        xp = namespace(counts.transition, counts.emission)
        started = (
            xp.zeros(len(self.reference.initial)) if counts.initial is None else counts.initial
        )
        parts = (counts.transition.reshape(-1), counts.emission.reshape(-1), started)
        flat = xp.concatenate([*parts, xp.zeros(1)])
        return self.conjugate.concentration + flat[self._places].sum(-1)

    def totals(self, concentration: Array) -> Array:
        """alpha_0 of the row that each entry belongs to, (M,)."""
        xp = namespace(concentration)
        padded = xp.concatenate([concentration, xp.zeros((*concentration.shape[:-1], 1))], axis=-1)
        return padded[..., self._members].sum(-1)[..., self.conjugate.row]

    def mean(self, concentration: Array) -> Tables:
        """Posterior mean tables; rows without a closed form are taken from the reference."""
        return (
            self.tables(concentration / self.totals(concentration))
            if len(concentration)
            else self.reference
        )

    def middle(self) -> Mapping[str, Array]:
        """The prior means of the sites in closed form."""
        return self.site_means(self.conjugate.concentration)

    def tables(self, entries: Array) -> Tables:
        """Tables from the entries of all Dirichlet rows, (M,)."""
        return Tables(
            *(
                self._fill(getattr(self.reference, name), getattr(self.conjugate, name), entries)
                for name in Tables._fields
            )
        )

    def spread(self, concentration: Array) -> Mapping[str, Spread]:
        """Moments of the unknown part of the rows of each table, by its name."""
        totals = self.totals(concentration)
        return {
            name: self._spread(
                getattr(self.reference, name), getattr(self.conjugate, name), concentration, totals
            )
            for name in TABLES
        }

    def variance(self, concentration: Array) -> Tables:
        """Posterior variance of every table entry."""
        if not len(concentration):
            return Tables(*map(np.zeros_like, self.reference))
        return Tables(
            **{
                name: s.mass[..., None] ** 2 * s.shrink[..., None] * s.mean * (1 - s.mean)
                for name, s in self.spread(concentration).items()
            }
        )

    def draw(self, key: Array, concentration: Array) -> Array:
        """One draw of all entries, (M,).

        It is normalised on the log scale, so that small concentrations do not underflow.
        """
        log_gamma = draw_log_gamma(key, concentration)
        peaks = jnp.append(log_gamma, -jnp.inf)[self._members].max(-1)
        weights = jnp.exp(log_gamma - peaks[self.conjugate.row])
        return weights / self.totals(weights)

    def draws(self, key: Array, concentration: Array, n: int) -> Mapping[str, Array]:
        """Joint draws of the sites in closed form, each (n, ...)."""
        return self.parameters(np.asarray(self._draw_many(jax.random.split(key, n), concentration)))

    def site_means(self, concentration: Array) -> Mapping[str, Array]:
        """Posterior means of the sites in closed form."""
        return self.parameters(concentration / self.totals(concentration))

    @cached_property
    def _draw_many(self) -> Callable[[Array, Array], Array]:
        return jax.jit(jax.vmap(self.draw, in_axes=(0, None)))

    def parameters(self, entries: Array) -> Mapping[str, Array]:
        """The values of the sites, from entries (..., M)."""
        values = {}
        for site, part in self._slices.items():
            shape, chosen = self.sizes[site], entries[..., part]
            if chosen.shape[-1] != int(
                np.prod(shape, dtype=int)
            ):  # a Beta site: the entries are b, 1 - b
                chosen = chosen[..., ::2]
            values[site] = chosen.reshape((*entries.shape[:-1], *shape))
        return values

    def _fill(self, reference: Array, source: Array, entries: Array) -> Array:
        unknown = source >= 0
        mass = np.where(unknown, reference, 0.0).sum(-1, keepdims=True)
        return namespace(entries).where(unknown, mass * entries[..., source], reference)

    def _spread(
        self, reference: Array, source: Array, concentration: Array, totals: Array
    ) -> Spread:
        xp = namespace(concentration)
        unknown = source >= 0
        mass = np.where(unknown, reference, 0.0).sum(-1)
        mean = xp.append(concentration / totals, 0.0)[
            source
        ]  # a source of -1 is the zero at the end
        total = xp.append(totals, 0.0)[source].max(-1)
        return Spread(mean, mass, 1 / (total + 1))


def draw_log_gamma(key: Array, shape: Array) -> Array:
    """Logarithms of Gamma(shape) draws, by Marsaglia and Tsang (2000).

    Each draw is the first accepted of a fixed number of proposals. In a compiled loop, repeating
    until all proposals are accepted would take several times longer than planning. A proposal is
    accepted with probability at least 0.95, so all eight are rejected in fewer than one draw in
    10^10. The last proposal is used then.
    """
    normal, uniform, boost = (jax.random.fold_in(key, k) for k in range(3))
    d = shape + 2 / 3  # for Gamma(shape + 1), which the boost turns into Gamma(shape)
    x = jax.random.normal(normal, (PROPOSALS, *shape.shape))
    v = (1 + x / jnp.sqrt(9 * d)) ** 3
    log_v = jnp.log(jnp.where(v > 0, v, 1.0))
    log_u = jnp.log1p(-jax.random.uniform(uniform, x.shape))
    accepted = (v > 0) & (log_u < x**2 / 2 + d * (1 - v + log_v))
    chosen = jnp.where(accepted.any(0), jnp.argmax(accepted, axis=0), PROPOSALS - 1)
    taken = jnp.take_along_axis(log_v, chosen[None], axis=0)[0]
    return jnp.log(d) + taken + jnp.log1p(-jax.random.uniform(boost, shape.shape)) / shape


def _groups(label: Array, groups: int) -> Array:
    """The indices of each label as one padded array (groups, widest).

    The padding is one past the last index.
    """
    places = [np.flatnonzero(label == group) for group in range(groups)]
    padded = np.full((groups, max(map(len, places), default=0)), len(label))
    for group, found in enumerate(places):
        padded[group, : len(found)] = found
    return padded


def closed_form(homdp: HOMDP) -> ClosedForm:
    """The closed form of a declaration, cached."""
    return homdp.cache.get("closed form", lambda: ClosedForm(homdp))

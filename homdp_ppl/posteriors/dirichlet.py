"""Closed forms: the Dirichlet rows of a declaration, their updates and their exact moments.

Rows may be nested (see :mod:`homdp_ppl.declare.nesting`). Then a node has a share, its probability
given its parent. Shares of one branching are Dirichlet, and the probability of a node is the
product of the shares on its path. Without nesting, shares are the probabilities themselves.

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
from homdp_ppl.declare.kernels import Planned, planned
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.nesting import Conjugate
from homdp_ppl.posteriors.counted import counted
from homdp_ppl.posteriors.products import SensorProduct
from homdp_ppl.precision import Array, namespace

PROPOSALS = 8  # per Gamma draw
PADDED = 1_000_000  # places in a padded array of groups; larger ones are summed one by one


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
        self.homdp = homdp
        self.conjugate: Conjugate = homdp.structure.conjugate
        self.reference = homdp.structure.reference
        self.sizes = {site.name: site.shape for site in homdp.sites}
        self.paths = self.conjugate.paths
        flat = np.concatenate([source.ravel() for source in self.conjugate.sources.values()])
        nowhere = np.full((1, self.paths.shape[1]), -1)
        above = np.concatenate([self.paths, nowhere])[flat]  # a source of -1 is the last row
        # places in the flat tables that count for each node
        self._counting = _Sums(above, len(self.conjugate.concentration))
        # nodes of each branching
        self._members = _groups(
            self.conjugate.row[:, None], int(self.conjugate.row.max(initial=-1)) + 1
        )
        ends = np.cumsum([0, *self.conjugate.lengths])
        self.rows = {  # which rows of each table have a closed form
            name: np.any(source >= 0, axis=-1) for name, source in self.conjugate.sources.items()
        }
        self.product = SensorProduct(homdp) if homdp.spaces.sensors else None
        if self.product is not None:
            self.rows["emission"] = self.product.rows
        self._slices = {
            site: slice(*ends[k : k + 2]) for k, site in enumerate(self.conjugate.sites)
        }

    def concentration(self, counts: Counts) -> Array:
        """Posterior concentrations: prior concentrations plus counts of the table entries."""
        tables = list(counted(self.homdp, counts).values())
        xp = namespace(tables)
        flat = xp.concatenate([*(table.reshape(-1) for table in tables), xp.zeros(1)])
        return self.conjugate.concentration + self._counting(flat)

    def concentrations(self, counts: Mapping[str, Array], known: Counts) -> Array:
        """Posterior concentrations for each of several completions of the data, (C, M).

        Parameters
        ----------
        counts
            The counts of hidden steps by table, with a leading axis.
        known
            The counts of revealed steps.
        """
        number = len(counts["initial"])
        if self.homdp.spaces.sensors:
            each = ({name: table[k] for name, table in counts.items()} for k in range(number))
            return np.stack([self.concentration(known + _as_counts(one)) for one in each])
        given = counted(self.homdp, known)
        flat = [
            np.reshape(counts[name] + given[name], (number, -1))
            if name in counts
            else np.tile(np.ravel(given[name]), (number, 1))
            for name in self.conjugate.sources
        ]
        joined = np.concatenate([*flat, np.zeros((number, 1))], axis=1)
        summed: Array = self.conjugate.concentration + self._counting(joined)
        return summed

    def totals(self, concentration: Array) -> Array:
        """alpha_0 of the branching that each node belongs to, (M,)."""
        xp = namespace(concentration)
        padded = xp.concatenate([concentration, xp.zeros((*concentration.shape[:-1], 1))], axis=-1)
        return padded[..., self._members].sum(-1)[..., self.conjugate.row]

    def mean(self, concentration: Array) -> Planned:
        """Posterior mean tables; rows without a closed form are taken from the reference."""
        if not len(concentration):
            return self.reference
        mean = self.tables(self.means(concentration))
        if self.product is None:
            return mean
        totals = self.totals(concentration)
        return mean._replace(emission=self.product.moment(concentration, totals, 1))

    def means(self, concentration: Array) -> Array:
        """Posterior mean probabilities of all nodes."""
        return self.probabilities(concentration / self.totals(concentration))

    def probabilities(self, shares: Array) -> Array:
        """The probabilities of all nodes from their shares, both (..., M)."""
        if not self.conjugate.nested:
            return shares
        xp = namespace(shares)
        padded = xp.concatenate([shares, xp.ones((*shares.shape[:-1], 1))], axis=-1)
        return padded[..., self.paths].prod(-1)

    def middle(self) -> Mapping[str, Array]:
        """The prior means of the sites in closed form."""
        return self.site_means(self.conjugate.concentration)

    def tables(self, entries: Array) -> Planned:
        """Tables from the probabilities of all nodes, (M,)."""
        kind = type(self.reference)
        return kind(
            *(
                self.product.fill(entries)
                if self.product is not None and name == "emission"
                else self._fill(name, entries)
                for name in kind._fields
            )
        )

    def further(self, entries: Array) -> dict[str, Array]:
        """The tables of labels, of the mechanism and of random rewards, from (chains, M)."""
        form = self.homdp.form
        shapes = {} if form.hindsight is None else dict(form.hindsight.tables)
        if form.reward is not None and form.reward.outcomes is not None:
            shapes["reward"] = form.reward.outcomes.shape
        chains = len(entries)  # known tables are the same in all of them
        return {
            name: np.broadcast_to(self._fill(name, entries), (chains, *shape))
            for name, shape in shapes.items()
        }

    def spread(self, concentration: Array) -> Mapping[str, Spread]:
        """Moments of the unknown part of the rows of each table, by its name, without nesting."""
        totals = self.totals(concentration)
        return {name: self._spread(name, concentration, totals) for name in self.conjugate.sources}

    def variance(self, concentration: Array) -> Planned:
        """Posterior variance of every table entry."""
        nothing = {name: np.zeros_like(part) for name, part in self.reference._asdict().items()}
        if not len(concentration):
            return planned(nothing)
        names = self.conjugate.sources
        if self.conjugate.nested:
            found = {name: self._nested_variance(name, concentration) for name in names}
        else:
            found = {
                name: s.mass[..., None] ** 2 * s.shrink[..., None] * s.mean * (1 - s.mean)
                for name, s in self.spread(concentration).items()
            }
        if self.product is not None:
            totals = self.totals(concentration)
            mean, square = (self.product.moment(concentration, totals, k) for k in (1, 2))
            found["emission"] = namespace(mean).maximum(square - mean**2, 0.0)
        return planned(nothing | {name: found[name] for name in nothing if name in found})

    def _nested_variance(self, name: str, concentration: Array) -> Array:
        """The variance of a product of independent shares: mean^2 (prod E[s^2] / E[s]^2 - 1)."""
        totals = self.totals(concentration)
        relative = (totals - concentration) / (concentration * (totals + 1))  # variance / mean^2
        excess = np.expm1(np.append(np.log1p(relative), 0.0)[self.paths].sum(-1))
        variance = np.append(self.means(concentration) ** 2 * excess, 0.0)
        return self.mass(name)[..., None] ** 2 * variance[self.conjugate.sources[name]]

    def draw(self, key: Array, concentration: Array) -> Array:
        """One draw of the probabilities of all nodes, (M,).

        It is normalised on the log scale, so that small concentrations do not underflow.
        """
        log_gamma = draw_log_gamma(key, concentration)
        peaks = jnp.append(log_gamma, -jnp.inf)[self._members].max(-1)
        weights = jnp.exp(log_gamma - peaks[self.conjugate.row])
        return self.probabilities(weights / self.totals(weights))

    def rows_given(self, generator: np.random.Generator, concentrations: Array) -> Array:
        """One draw for each of several concentrations, both (C, M), without JAX."""
        noise = generator.random(concentrations.shape)  # a boost for small concentrations
        log_gamma = np.log(generator.standard_gamma(concentrations + 1))
        log_gamma = log_gamma + np.log1p(-noise) / concentrations
        padded = np.concatenate([log_gamma, np.full((len(log_gamma), 1), -np.inf)], axis=1)
        peaks = padded[:, self._members].max(-1)
        weights = np.exp(log_gamma - peaks[:, self.conjugate.row])
        return self.probabilities(weights / self.totals(weights))

    def draws(self, key: Array, concentration: Array, n: int) -> Mapping[str, Array]:
        """Joint draws of the sites in closed form, each (n, ...)."""
        return self.parameters(np.asarray(self._draw_many(jax.random.split(key, n), concentration)))

    def site_means(self, concentration: Array) -> Mapping[str, Array]:
        """Posterior means of the sites in closed form."""
        return self.parameters(self.means(concentration))

    @cached_property
    def _draw_many(self) -> Callable[[Array, Array], Array]:
        return jax.jit(jax.vmap(self.draw, in_axes=(0, None)))

    def parameters(self, entries: Array) -> Mapping[str, Array]:
        """The values of the sites, from the probabilities of all nodes (..., M)."""
        values = {}
        for site, part in self._slices.items():
            shape, chosen = self.sizes[site], entries[..., part]
            if chosen.shape[-1] != int(
                np.prod(shape, dtype=int)
            ):  # a Beta site: the entries are b, 1 - b
                chosen = chosen[..., ::2]
            values[site] = chosen.reshape((*entries.shape[:-1], *shape))
        return values

    def mass(self, name: str) -> Array:
        """The constant probability of the unknown part of each row of a table."""
        reference = self.homdp.structure.tables[name].reference
        return np.where(self.conjugate.sources[name] >= 0, reference, 0.0).sum(-1)

    def _fill(self, name: str, entries: Array) -> Array:
        """A table from the probabilities of all nodes."""
        reference = self.homdp.structure.tables[name].reference
        if name not in self.conjugate.sources:  # a table whose counts are not sufficient
            return reference
        source = self.conjugate.sources[name]
        filled = self.mass(name)[..., None] * entries[..., source]
        return namespace(entries).where(source >= 0, filled, reference)

    def _spread(self, name: str, concentration: Array, totals: Array) -> Spread:
        xp, source = namespace(concentration), self.conjugate.sources[name]
        mean = xp.append(concentration / totals, 0.0)[
            source
        ]  # a source of -1 is the zero at the end
        total = xp.append(totals, 0.0)[source].max(-1)
        return Spread(mean, self.mass(name), 1 / (total + 1))


def _as_counts(tables: Mapping[str, Array]) -> Counts:
    return Counts(tables["transition"], tables["emission"], initial=tables["initial"])


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


class _Sums:
    """The sums of numbers over the groups that each belongs to.

    Parameters
    ----------
    labels
        The groups of each number, (N, k). Labels outside of the groups are ignored.
    groups
        The number of groups.
    """

    def __init__(self, labels: Array, groups: int) -> None:
        self.index, place = np.nonzero((labels >= 0) & (labels < groups))
        self.label, self.groups = labels[self.index, place], groups
        widest = np.bincount(self.label, minlength=1).max()
        few = groups * int(widest) <= max(PADDED, 4 * len(self.label))
        self.places = _groups(labels, groups) if few else None

    def __call__(self, flat: Array) -> Array:
        """The sums (..., groups) of numbers (..., N + 1), of which the last one is zero."""
        if self.places is not None:
            sums: Array = flat[..., self.places].sum(-1)
            return sums
        terms = flat[..., self.index]
        zeros = namespace(flat).zeros((*flat.shape[:-1], self.groups))
        if isinstance(zeros, jax.Array):
            return zeros.at[..., self.label].add(terms)
        np.add.at(zeros.T, self.label, terms.T)
        return zeros


def _groups(labels: Array, groups: int) -> Array:
    """The indices of the rows with each label as one padded array (groups, widest).

    The padding is one past the last index. Labels outside of the groups are ignored.
    """
    index, place = np.nonzero((labels >= 0) & (labels < groups))
    label = labels[index, place]
    order = np.argsort(label, kind="stable")
    sizes = np.bincount(label, minlength=groups)
    within = np.arange(len(label)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    padded = np.full((groups, sizes.max(initial=0)), len(labels))
    padded[label[order], within] = index[order]
    return padded


def closed_form(homdp: HOMDP) -> ClosedForm:
    """The closed form of a declaration, cached."""
    return homdp.cache.get("closed form", lambda: ClosedForm(homdp))

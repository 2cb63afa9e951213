"""Posteriors that follow a stream of episodes with gaps: weighted draws, updated one by one.

An update multiplies the weight of each draw by the likelihood of the new episode. Declarations in
closed form then move all draws by a few Gibbs sweeps, after resampling if the weights are uneven.
Other declarations sample again with NUTS when too few draws are effective.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import jax
import numpy as np
from scipy.special import softmax

from homdp_ppl.core.clues import likelihoods
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.forward import log_likelihood_of_evidence
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.belief import DEFAULT, Posterior
from homdp_ppl.posteriors.data import impossible
from homdp_ppl.posteriors.dirichlet import closed_form
from homdp_ppl.posteriors.from_evidence import from_evidence
from homdp_ppl.posteriors.gibbs import hidden_tables
from homdp_ppl.posteriors.tables import hindsight_tables_at, tables_at
from homdp_ppl.posteriors.tracking import WORN
from homdp_ppl.precision import Array, to_numpy

PARTICLES = 16
SWEEPS = 2  # after every episode
DRAWS = 512  # that represent the posterior for rules that need one


@dataclass(frozen=True, eq=False)
class Particles:
    """The posterior of a declaration whose rows all have closed forms, as weighted particles.

    A particle is a completion of the hidden states, as concentrations, with rows drawn given it.
    """

    homdp: HOMDP
    evidence: Evidence
    entries: Array  # (C, M)  rows
    concentrations: Array  # (C, M)  of the rows given the hidden states
    weights: Array  # (C,)
    key: Array  # of the draws that :attr:`belief` stores

    @classmethod
    def start(
        cls, homdp: HOMDP, key: Array, evidence: Evidence, particles: int = PARTICLES
    ) -> Particles:
        """Particles drawn from the posterior given evidence.

        Parameters
        ----------
        homdp
            The declaration.
        key
            A JAX random key.
        evidence
            The evidence so far; may be empty.
        particles
            The number of particles.
        """
        form, generator = closed_form(homdp), _generator(key)
        if len(evidence.gaps.number):
            atoms = from_evidence(homdp, evidence, DEFAULT, None, key).atoms
            assert atoms is not None
            values = atoms.pick(generator, particles)
            tables = tables_at(homdp, values, particles)
            further = hindsight_tables_at(homdp, values, particles)
            clues = likelihoods(evidence.gaps.clues, homdp.form, further)
            hidden = hidden_tables(generator, tables, homdp, evidence.tree, clues)
            concentrations = form.concentrations(hidden, evidence.counts)
        else:
            concentrations = np.tile(form.concentration(evidence.counts), (particles, 1))
        weights = np.full(particles, 1 / particles)
        entries = form.rows_given(generator, concentrations)
        return cls(homdp, evidence, entries, concentrations, weights, key)

    def update(self, new: Evidence, key: Array) -> Particles:
        """The posterior given further episodes."""
        form, homdp = closed_form(self.homdp), self.homdp
        at = form.tables(self.entries), form.further(self.entries)
        found = _reweighted(homdp, self.weights, *at, new)
        weights = self.weights if found is None else found  # if none explains it, sweeps correct it
        generator = _generator(key)
        entries, concentrations = self.entries, self.concentrations
        if 1 / np.sum(weights**2) < WORN * len(weights):
            entries = entries[_resampled(generator, weights)]
            weights = np.full(len(weights), 1 / len(weights))
        evidence = self.evidence + new
        for _ in range(SWEEPS):
            clues = likelihoods(evidence.gaps.clues, homdp.form, form.further(entries))
            tables = form.tables(entries)
            hidden = hidden_tables(generator, tables, homdp, evidence.tree, clues)
            concentrations = form.concentrations(hidden, evidence.counts)
            entries = form.rows_given(generator, concentrations)
        return Particles(homdp, evidence, entries, concentrations, weights, key)

    def draws(self, key: Array, n: int) -> POMDP:
        """Draw n models: a completion of the hidden states, then rows given it."""
        return self.homdp.model_of(closed_form(self.homdp).tables(self._drawn(key, n)))

    def mean(self) -> POMDP:
        """The posterior mean model, the average of the means given each completion."""
        form = closed_form(self.homdp)
        if self.homdp.spaces.sensors:  # the mean of a product is no product of means
            each = [form.mean(concentration) for concentration in self.concentrations]
            tables = [np.tensordot(self.weights, np.stack(t), 1) for t in zip(*each, strict=True)]
            return self.homdp.model_of(tables)
        return self.homdp.model_of(form.tables(self.weights @ form.means(self.concentrations)))

    @cached_property
    def belief(self) -> Posterior:
        """The posterior, represented by draws."""
        flat = dict(closed_form(self.homdp).parameters(self._drawn(self.key, DRAWS)))
        text = f"by Gibbs sampling of {len(self.weights)} particles, updated after each episode"
        nothing = np.zeros(0)
        return Posterior(self.homdp, self.evidence, "gibbs", text, nothing, atoms=Atoms(flat))

    def _drawn(self, key: Array, n: int) -> Array:
        """The rows of n draws, (n, M)."""
        generator, number = _generator(key), len(self.weights)
        if n <= number and np.ptp(self.weights) == 0:  # different particles, as far as possible
            chosen = generator.permutation(number)[:n]
        else:
            chosen = generator.choice(number, n, p=self.weights)
        return closed_form(self.homdp).rows_given(generator, self.concentrations[chosen])


@dataclass(frozen=True, eq=False)
class Reweighted:
    """The posterior of a declaration with sites without a closed form, as weighted draws."""

    belief: Posterior  # with all sites as atoms
    evidence: Evidence
    tables: Any  # of the atoms
    hindsight: Mapping[str, Array]  # tables of labels and of the mechanism, of the atoms

    @classmethod
    def start(cls, homdp: HOMDP, key: Array, evidence: Evidence) -> Reweighted:
        """All values of discrete sites, or draws from the posterior given evidence."""
        if evidence.episodes or all(site.discrete for site in homdp.sites):
            return cls._of(from_evidence(homdp, evidence, DEFAULT, None, key), evidence)
        number = DEFAULT.sampling.chains * DEFAULT.sampling.draws
        draw = homdp.cache.get("priors", lambda: jax.jit(jax.vmap(homdp.sample_prior)))
        atoms = Atoms(to_numpy(draw(jax.random.split(key, number))), DEFAULT.sampling.chains)
        belief = Posterior(homdp, evidence, "prior", "from the prior", np.zeros(0), atoms=atoms)
        return cls._of(belief, evidence)

    @classmethod
    def _of(cls, belief: Posterior, evidence: Evidence) -> Reweighted:
        assert belief.atoms is not None
        values, number = dict(belief.atoms.values), len(belief.atoms)
        homdp = belief.homdp
        tables = tables_at(homdp, values, number), hindsight_tables_at(homdp, values, number)
        return cls(belief, evidence, *tables)

    def update(self, new: Evidence, key: Array) -> Reweighted:
        """The posterior given further episodes."""
        homdp, evidence, belief = self.belief.homdp, self.evidence + new, self.belief
        assert belief.atoms is not None
        now = belief.atoms.probabilities
        weights = _reweighted(homdp, now, self.tables, self.hindsight, new)
        if belief.atoms.complete and weights is None:
            raise impossible(homdp.name)
        worn = weights is None or 1 / np.sum(weights**2) < WORN * len(weights)
        if worn and not belief.atoms.complete:
            fit = from_evidence(homdp, evidence, belief.settings, belief.warm, key)
            return self._of(fit, evidence)
        atoms = replace(belief.atoms, weights=weights)
        return replace(self, belief=replace(belief, data=evidence, atoms=atoms), evidence=evidence)

    def draws(self, key: Array, n: int) -> POMDP:
        """Draw n models."""
        drawn: POMDP = self.belief.draws(key, n)
        return drawn

    def mean(self) -> POMDP:
        """The posterior mean model."""
        atoms = self.belief.atoms
        assert atoms is not None
        averages = [np.tensordot(atoms.probabilities, table, 1) for table in self.tables]
        return self.belief.homdp.model_of(averages)


Following: TypeAlias = Particles | Reweighted


def follow(homdp: HOMDP, key: Array, evidence: Evidence | None = None) -> Following:
    """The posterior of a declaration, to be updated with episodes that may have gaps.

    Parameters
    ----------
    homdp
        A declaration with finite spaces and at least one site.
    key
        A JAX random key.
    evidence
        What is known already; by default nothing.
    """
    evidence = Evidence.empty(homdp) if evidence is None else evidence
    closed = len(closed_form(homdp).conjugate.sites) == len(homdp.sites)
    kind = Particles if closed else Reweighted
    return kind.start(homdp, key, evidence)


def _reweighted(
    homdp: HOMDP, weights: Array, tables: Any, hindsight: Mapping[str, Array], new: Evidence
) -> Array | None:
    """The weights after new evidence; None if no draw explains it."""
    with np.errstate(divide="ignore"):
        log = np.log(weights)
    log = log + log_likelihood_of_evidence(tables, homdp.form, new, hindsight)
    return softmax(log) if np.isfinite(log).any() else None


def _resampled(generator: np.random.Generator, weights: Array) -> Array:
    """The indices of a systematic sample."""
    n = len(weights)
    points = (generator.random() + np.arange(n)) / n
    return np.minimum(np.searchsorted(np.cumsum(weights), points), n - 1)


def _generator(key: Array) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))

"""Update a sampled posterior many times: reweight the draws, and sample again when necessary.

Between two fits, the weights of the draws are proportional to the likelihood of the data since the
last fit. When the effective number of draws falls below half, NUTS runs again from the current
positions of its chains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import InferenceError, Problem
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.belief import Posterior
from homdp_ppl.posteriors.density import moving_entries
from homdp_ppl.posteriors.dirichlet import closed_form
from homdp_ppl.posteriors.inference import posterior, refit
from homdp_ppl.posteriors.tables import tables_at
from homdp_ppl.precision import Array

WORN = 0.5  # sample again if the share of effective draws is smaller


class Moving(NamedTuple):
    """The table entries that depend on the sampled sites, at every draw."""

    places: tuple[Array, ...]  # E indices into the table
    log: Array  # (N, E)  log probability


@dataclass(frozen=True, eq=False)
class Tracked:
    """The current posterior, the last one that was sampled, and the tables of its draws."""

    belief: Posterior
    base: Posterior
    atoms: Atoms  # draws of the base
    moving: dict[str, Moving]  # "transition", "emission"

    @classmethod
    def start(cls, homdp: HOMDP) -> Tracked:
        """The prior of a declaration that has sites without a closed form."""
        return cls.of(posterior(homdp, Counts.zero(homdp)))

    @classmethod
    def of(cls, belief: Posterior) -> Tracked:
        """Start from a sampled posterior."""
        if belief.atoms is None:
            raise InferenceError(
                "Tracked",
                [Problem("posterior", belief.method, "a sampled posterior", "Update it directly.")],
            )
        N = len(belief.atoms)
        held = (
            closed_form(belief.homdp).middle() if len(belief.closed) else {}
        )  # their rows are not used
        values = {name: np.repeat(value[None], N, axis=0) for name, value in held.items()} | dict(
            belief.atoms.values
        )
        tables = tables_at(belief.homdp, values, N)
        moving = {}
        for name, places in moving_entries(belief.homdp, closed=len(belief.closed) > 0).items():
            with np.errstate(divide="ignore"):
                moving[name] = Moving(places, np.log(getattr(tables, name)[(slice(None), *places)]))
        return cls(belief, belief, belief.atoms, moving)

    def update(self, counts: Counts, key: Array) -> Tracked:
        """The posterior given all data so far.

        The draws are reweighted if enough of them are effective; otherwise NUTS runs again.

        Parameters
        ----------
        counts
            The counts of all data, not only of the new data.
        key
            A JAX random key.
        """
        log_weights = self._log_weights(counts)
        if not np.isfinite(log_weights).any():  # no stored draw explains the data
            return self.of(refit(self.base, counts, key))
        weights = softmax(log_weights)
        if 1 / np.sum(weights**2) < WORN * len(weights) and not self.atoms.complete:
            return self.of(refit(self.base, counts, key))
        concentration = (
            closed_form(self.base.homdp).concentration(counts)
            if len(self.base.closed)
            else np.zeros(0)
        )
        atoms = replace(self.atoms, weights=weights)
        return replace(
            self, belief=replace(self.base, data=counts, closed=concentration, atoms=atoms)
        )

    def mean(self) -> POMDP:
        """The posterior mean model, from the stored tables of the draws."""
        weights = self.belief.atoms.probabilities if self.belief.atoms else np.zeros(0)
        tables = closed_form(self.base.homdp).mean(self.belief.closed)
        filled = {name: np.array(getattr(tables, name)) for name in self.moving}
        for name, (places, log) in self.moving.items():
            filled[name][places] = weights @ np.exp(log)
        latent = tables.initial, filled["transition"], filled["emission"]
        return self.base.homdp.pomdp_of(latent)

    def _log_weights(self, counts: Counts) -> Array:
        with np.errstate(divide="ignore"):
            total = np.log(self.atoms.probabilities)
        for name, (places, log) in self.moving.items():
            since = (getattr(counts, name) - getattr(self.base.counts, name))[places]
            total = total + log[:, since > 0] @ since[since > 0]
        return total

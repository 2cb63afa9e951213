"""Update a sampled posterior many times: reweight the draws, and sample again when necessary.

Between two fits, the weights of the draws are proportional to the likelihood of the data since the
last fit. When the effective number of draws falls below half, NUTS runs again from the current
positions of its chains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.special import softmax

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.reward_density import has_single, log_rewards_at
from homdp_ppl.errors import InferenceError, Problem
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.belief import Posterior
from homdp_ppl.posteriors.counted import counted
from homdp_ppl.posteriors.density import moving_entries
from homdp_ppl.posteriors.dirichlet import closed_form
from homdp_ppl.posteriors.inference import posterior, refit
from homdp_ppl.posteriors.tables import counted_tables_at
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
    moving: dict[str, Moving]  # by table
    densities: Array | None = None  # (N, ...)  reward tables whose law has a density

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
        values = values_of(belief)
        tables = counted_tables_at(belief.homdp, values, len(belief.atoms))
        moving = {}
        for name, places in moving_entries(belief.homdp, closed=len(belief.closed) > 0).items():
            with np.errstate(divide="ignore"):
                moving[name] = Moving(places, np.log(tables[name][(slice(None), *places)]))
        law = belief.homdp.rewards.law
        rows = None if law is None or law.finite else tables["reward"]
        return cls(belief, belief, belief.atoms, moving, rows)

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
        belief = replace(self.base, data=counts, closed=concentration, atoms=atoms, parts=None)
        return replace(self, belief=belief)

    def draws(self, key: Array, n: int) -> POMDP:
        """Draw n models."""
        drawn: POMDP = self.belief.draws(key, n)
        return drawn

    def mean(self) -> POMDP:
        """The posterior mean model, from the stored tables of the draws."""
        if self.base.homdp.spaces.sensors:  # the mean of a product is no product of means
            return self.belief.mean
        weights = self.belief.atoms.probabilities if self.belief.atoms else np.zeros(0)
        tables = closed_form(self.base.homdp).mean(self.belief.closed)
        filled = {name: np.array(getattr(tables, name)) for name in self.moving}
        for name, (places, log) in self.moving.items():
            filled[name][places] = weights @ np.exp(log)
        if self.densities is not None:
            filled["reward"] = np.tensordot(weights, self.densities, 1)
        return self.base.homdp.model_of(tables._replace(**filled))

    def _log_weights(self, counts: Counts) -> Array:
        with np.errstate(divide="ignore"):
            total = np.log(self.atoms.probabilities)
        homdp = self.base.homdp
        now, then = counted(homdp, counts), counted(homdp, self.base.counts)
        for name, (places, log) in self.moving.items():
            if not len(places[0]):
                continue
            since = (now[name] - then[name])[places]
            total = total + log[:, since > 0] @ since[since > 0]
        if has_single(counts.rewards):
            before: Any = self.base.counts.rewards
            new = cast(Any, counts.rewards).single[len(before.single) :]
            total = total + log_rewards_at(homdp, values_of(self.base), new)
        return total


def values_of(belief: Posterior) -> dict[str, Array]:
    """The values of all sites at the atoms; those in closed form, whose rows are not used, at their
    prior means.
    """
    assert belief.atoms is not None
    held = closed_form(belief.homdp).middle() if len(belief.closed) else {}
    repeated = {name: np.repeat(v[None], len(belief.atoms), axis=0) for name, v in held.items()}
    return repeated | dict(belief.atoms.values)

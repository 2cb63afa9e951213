"""Statistics of recorded rewards: numbers, sums, counted outcomes, and single values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.reward_form import RewardForm
from homdp_ppl.precision import Array


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["number", "total", "outcomes", "single"],
    meta_fields=["form"],
)
@dataclass(frozen=True, eq=False)
class RewardCounts:
    """Recorded rewards by row: (step,) state, (observation,) action.

    Finite laws need only the counted outcomes. Other laws also need the single values; code that
    JAX traces cannot store them, and then ``complete`` is False.
    """

    number: Array  # (H|1, X, Y|1, A)  recorded rewards
    total: Array  # (H|1, X, Y|1, A)  their sums, in the user's units
    outcomes: Array | None  # (H|1, X, Y|1, A, R)  numbers of the outcomes of a finite law
    single: Array | None  # (n, 2)  row, as a flat index, and reward; None for a finite law
    form: RewardForm

    @classmethod
    def zero(cls, form: RewardForm) -> RewardCounts:
        """No recorded rewards."""
        number = np.zeros(form.shape, dtype=np.int64)
        if form.outcomes is None:
            return cls(number, np.zeros(form.shape), None, np.zeros((0, 2)), form)
        counted = np.zeros(form.outcomes.shape, dtype=np.int64)
        return cls(number, np.zeros(form.shape), counted, None, form)

    @property
    def complete(self) -> bool:
        """Whether all statistics that the law needs are stored."""
        return self.single is None or len(self.single) == int(np.sum(self.number))

    def add(
        self, states: Array, observations: Array, actions: Array, rewards: Array, known: Array
    ) -> RewardCounts:
        """These statistics and the known rewards of further episodes; can be traced.

        Parameters
        ----------
        states, observations, actions
            Of shapes (..., H + 1), (..., H) and (..., H).
        rewards, known
            The recorded rewards, and which of them are known, (..., H).
        """
        places = self.form.places(states, observations, actions)
        if any(isinstance(part, jax.Array) for part in (self.number, *places, rewards)):
            return self._traced(places, jnp.asarray(rewards), jnp.asarray(known))
        kept = tuple(np.asarray(part)[known] for part in places)
        return self.record(kept, np.asarray(rewards, dtype=np.float64)[known])

    def record(self, places: tuple[Array, ...], rewards: Array) -> RewardCounts:
        """These statistics and further rewards (n,) of the rows at ``places``."""
        number, total = np.array(self.number), np.array(self.total)
        np.add.at(number, places, 1)
        np.add.at(total, places, rewards)
        if self.outcomes is not None:
            outcomes = np.array(self.outcomes)
            np.add.at(outcomes, (*places, self.form.outcome(places, rewards)), 1)
            return replace(self, number=number, total=total, outcomes=outcomes)
        rows = np.ravel_multi_index(places, self.form.shape)
        single = np.concatenate([np.asarray(self.single), np.stack([rows, rewards], -1)])
        return replace(self, number=number, total=total, single=single)

    def _traced(self, places: tuple[Array, ...], rewards: Array, known: Array) -> RewardCounts:
        """The same without single values."""
        values = jnp.where(known, rewards, 0.0)
        number = (
            jnp.asarray(self.number).at[places].add(known.astype(jnp.asarray(self.number).dtype))
        )
        total = jnp.asarray(self.total).at[places].add(values)
        outcomes = self.outcomes
        if outcomes is not None:
            counted = jnp.asarray(outcomes)
            index = (*places, self.form.outcome(places, values))
            outcomes = counted.at[index].add(known.astype(counted.dtype))
        return replace(self, number=number, total=total, outcomes=outcomes)

    def __add__(self, other: RewardCounts) -> RewardCounts:
        """Add the statistics of other episodes of the same model."""
        if not isinstance(other, RewardCounts):
            return NotImplemented
        both = self.outcomes is not None and other.outcomes is not None
        kept = self.single is not None and other.single is not None
        return RewardCounts(
            self.number + other.number,
            self.total + other.total,
            self.outcomes + other.outcomes if both else None,  # type: ignore[operator]
            np.concatenate([self.single, other.single]) if kept else None,
            self.form,
        )

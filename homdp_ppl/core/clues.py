"""Clues: what is known of a hidden state apart from its observation, and the likelihood of it.

A clue consists of up to four parts: the episode ended there, its label, whether it was revealed,
and the reward of its step. The likelihoods of all distinct clues given the state are one matrix,
which is computed once for given parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.core.form import Form
from homdp_ppl.core.hindsight_form import LABEL, LAST, REVEALED, HindsightForm
from homdp_ppl.core.reward_form import RewardForm
from homdp_ppl.precision import Array, namespace

SAME = 1e-9  # relative to the largest outcome: a recorded reward this close is this outcome


class Clues(NamedTuple):
    """E distinct clues."""

    known: Array  # (E, X)  the part of the likelihood that depends on no parameter
    label: Array  # (E,)  the label, Z if there is none
    mark: Array  # (E,)  the row of the mechanism, see HindsightForm.mark
    paid: Array  # (E,)  whether there is a recorded, random reward
    place: Array  # (E, 3)  step from 0, observation and action of the reward
    reward: Array  # (E,)  the reward in the user's units; 0 if there is none

    @classmethod
    def none(cls, number: int, form: Form) -> Clues:
        """Clues without information."""
        hindsight = form.hindsight or HindsightForm()
        whole = np.zeros(number, dtype=np.int64)
        return cls(
            np.ones((number, form.sizes[0])),
            whole + hindsight.labels,
            whole + hindsight.no_mark,
            whole,
            np.zeros((number, 3), dtype=np.int64),
            np.zeros(number),
        )

    @property
    def rows(self) -> Array:
        """All parts as one matrix, one row per clue."""
        return np.concatenate([np.reshape(part, (len(self.label), -1)) for part in self], axis=1)

    def take(self, index: Any) -> Clues:
        """Some of the clues."""
        return Clues(*(part[index] for part in self))

    def padded(self, number: int) -> Clues:
        """These clues and copies of the first one."""
        return self.take(np.where(np.arange(number) < len(self.label), np.arange(number), 0))


def distinct(clues: Clues) -> tuple[Clues, Array]:
    """Distinct clues in a fixed order, and the place of each clue among them."""
    _, index, inverse = np.unique(clues.rows, axis=0, return_index=True, return_inverse=True)
    return clues.take(index), inverse.ravel()


def joined(one: Clues, other: Clues) -> tuple[Clues, Array, Array]:
    """The clues of both, and the places of the clues of each among them."""
    both = Clues(*(np.concatenate(pair) for pair in zip(one, other, strict=True)))
    clues, places = distinct(both)
    return clues, places[: len(one.label)], places[len(one.label) :]


def likelihoods(
    clues: Clues, form: Form, tables: Mapping[str, Array], densities: Array | None = None
) -> Array:
    """The likelihood of each clue given the state, (E, ..., X); can be traced.

    Parameters
    ----------
    clues
        The clues.
    form
        The form of the model's tables.
    tables
        The tables of labels, of the mechanism and of random rewards that the form has, by name;
        extra leading axes are candidates.
    densities
        The densities of recorded rewards given the state, (E, ..., X), if their law has densities.
    """
    hindsight = form.hindsight or HindsightForm()
    xp = namespace(*tables.values(), clues.known)
    factors = []
    if hindsight.label is not None:
        factors.append(_with_ones(xp.moveaxis(tables[LABEL], -1, 0))[clues.label])
    if hindsight.by_state:
        factors.append(_marks(hindsight, tables)[clues.mark])
    if densities is not None:
        factors.append(densities)
    elif form.reward is not None and form.reward.outcomes is not None:
        factors.append(_chances(clues, form.reward, tables["reward"]))
    factors = [xp.asarray(clues.known), *factors]
    axes = max(factor.ndim for factor in factors)
    found: Array = xp.ones(())
    for factor in factors:  # those that are the same for all candidates get further axes
        wide = (1,) * (axes - factor.ndim)
        found = found * factor.reshape(len(factor), *wide, *factor.shape[1:])
    return found


def _with_ones(table: Array) -> Array:
    """A table (n, ..., X) with an additional last entry that is 1 everywhere."""
    xp = namespace(table)
    return xp.concatenate([table, xp.ones_like(table[:1])])


def _marks(form: HindsightForm, tables: Mapping[str, Array]) -> Array:
    """The probability of each mark given the state, (rows + 1, ..., X)."""
    steps, last = tables[REVEALED], tables[LAST]
    xp = namespace(steps, last)
    by_step = xp.moveaxis(steps, -4, -1)  # (..., H|1, Y|1, A|1, 2, X)
    by_step = xp.moveaxis(by_step.reshape(*steps.shape[:-5], -1, steps.shape[-4]), -2, 0)
    at_end = xp.moveaxis(last, -2, -1)  # (..., H + 1|1, 2, X)
    at_end = xp.moveaxis(at_end.reshape(*last.shape[:-3], -1, last.shape[-2]), -2, 0)
    size = max(by_step.shape[-1], at_end.shape[-1])
    both = [xp.broadcast_to(part, (*part.shape[:-1], size)) for part in (by_step, at_end)]
    return _with_ones(xp.concatenate(both))


def _chances(clues: Clues, form: RewardForm, table: Array) -> Array:
    """The probabilities of recorded rewards given the state, (E, ..., X)."""
    xp = namespace(table, clues.reward)
    outcome, possible = outcomes_of(clues, form)
    h, y, a = (clues.place[:, k] for k in range(3))
    states = np.arange(form.shape[1])
    place = form.index(h[:, None], states, y[:, None], a[:, None])
    last_first = xp.moveaxis(table, tuple(range(-5, 0)), tuple(range(5)))  # (H, X, Y, A, R, ...)
    found = last_first[(*place, outcome)]  # (E, X, ...)
    extra = (1,) * (found.ndim - 2)
    valid, paid = possible.reshape(*possible.shape, *extra), clues.paid.reshape(-1, 1, *extra)
    return xp.moveaxis(xp.where(paid > 0, xp.where(valid, found, 0.0), 1.0), 1, -1)


def outcomes_of(clues: Clues, form: RewardForm) -> tuple[Array, Array]:
    """The outcome of each recorded reward in each state, and whether it is that outcome, (E, X)."""
    xp = namespace(clues.reward)
    values = np.asarray(form.outcomes)
    slack = SAME * max(1.0, float(np.abs(values).max()))
    h, y, a = (clues.place[:, k, None] for k in range(3))
    there = xp.asarray(values)[form.index(h, np.arange(form.shape[1]), y, a)]  # (E, X, R)
    distance = xp.abs(there - clues.reward[:, None, None])
    return xp.argmin(distance, axis=-1), xp.min(distance, axis=-1) <= slack

"""Simulation of hindsight: labels of states, and which of them are revealed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.hindsight_form import LABEL, LAST, REVEALED, HindsightForm
from homdp_ppl.precision import Array, in_x64

if TYPE_CHECKING:
    from homdp_ppl.declare.model import HOMDP


@in_x64
def with_hindsight(
    homdp: HOMDP, parameters: Mapping[str, Array], keys: Array, played: Episodes
) -> Episodes:
    """Simulated episodes as hindsight shows them, if the declaration has labels or a mechanism.

    With labels, no states are revealed. What is drawn depends on the episode only, so it can be
    drawn after its end.

    Parameters
    ----------
    homdp
        The declaration.
    parameters
        The values of its sites in the simulated world.
    keys
        One random key per episode.
    played
        The episodes, with all states.
    """
    form = homdp.hindsight_form
    if form is None:
        return played
    tables = {
        name: np.asarray(table)
        for name, table in homdp.counted_tables(parameters).items()
        if name in form.tables
    }
    noise = np.asarray(_noise(keys, homdp.horizon))  # (N, 2, H + 1)
    items = np.arange(homdp.horizon + 1) <= played.length[:, None]
    if form.revealed is not None:
        coins = noise[:, 1, :1] if form.by_episode else noise[:, 1]
        items = items & (coins < _chances(form, tables, played))
    labels = known = None
    revealed = items
    if form.label is not None:
        rows = np.cumsum(tables[LABEL], axis=-1)[played.states, :-1]
        labels, known = (noise[:, 0, :, None] >= rows).sum(-1), items
        revealed = np.zeros_like(items)
    return Episodes(
        played.observations,
        played.actions,
        played.states,
        revealed=revealed,
        rewards=played.rewards,
        rewards_known=played.rewards_known,
        labels=labels,
        labels_known=known,
        length=played.length,
        ended=played.ended,
        ids=played.ids,
        behaviour=played.behaviour,
    )


@jax.jit
def _draw(keys: Array, steps: Array) -> Array:
    def one(key: Array) -> Array:
        own = jax.vmap(lambda h: jax.random.fold_in(key, h))(steps)
        return jax.vmap(lambda k: jax.random.uniform(k, (2,)))(own).T

    return jax.vmap(one)(keys)


def _noise(keys: Array, horizon: int) -> Array:
    """Uniform numbers for the labels and for the mechanism, (N, 2, H + 1)."""
    return _draw(keys, jnp.arange(horizon + 1))


def _chances(form: HindsightForm, tables: Mapping[str, Array], played: Episodes) -> Array:
    """The probability that each item is revealed, (N, H + 1)."""
    N, steps = len(played), np.arange(played.horizon)
    h = np.broadcast_to(steps, played.actions.shape)
    place = form.place(h, played.states[:, :-1], played.observations, played.actions)
    chances = np.zeros((N, played.horizon + 1))
    chances[:, :-1] = tables[REVEALED][(*place, 1)]
    rows = np.arange(N), played.length
    last = form.last_place(played.length, played.states[rows])
    chances[rows] = tables[LAST][(*last, 1)]
    return chances

"""The sites ``z`` and ``m`` of the episode program: labels, and whether they are revealed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.core.hindsight_form import LABEL, LAST, REVEALED
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.hindsight_kernels import RevealUnit, hindsight_tabulators
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.precision import Array


class HindsightSites:
    """Draws what hindsight shows of the states of episodes, inside a plate of episodes.

    Parameters
    ----------
    kernels
        The kernels of the program.
    spaces
        The declared names.
    unit
        Whether items are revealed per step or per episode.
    """

    def __init__(self, kernels: Kernels, spaces: Spaces, unit: RevealUnit) -> None:
        make = hindsight_tabulators(kernels, spaces)
        self._tables: Mapping[str, Array] = {name: table() for name, table in make.items()}
        self._ends, self._by_episode = spaces.ends, unit == "episode"

    def at(self, h: Array | int, x: Array, y: Array, a: Array, suffix: str = "") -> None:
        """The sites of a step, from 0."""
        self._label(x, f"z{suffix}")
        if REVEALED in self._tables and not self._by_episode:
            table = self._tables[REVEALED]
            chance = table[(*_place((h, x, y, a), table.shape), 1)]
            if self._ends.any():
                chance = jnp.where(jnp.asarray(self._ends)[x], self._last(h, x), chance)
            numpyro.sample(f"m{suffix}", dist.Bernoulli(probs=chance + jnp.zeros(x.shape)))

    def last(self, h: Array | int, x: Array, episodes: int) -> None:
        """The sites of the state after the last action, after ``h`` steps."""
        self._label(x, "z_last")
        if REVEALED not in self._tables:
            return
        chance = self._last(h, x) + jnp.zeros(episodes)
        numpyro.sample("m" if self._by_episode else "m_last", dist.Bernoulli(probs=chance))

    def _label(self, x: Array, name: str) -> None:
        if LABEL in self._tables:
            numpyro.sample(name, dist.Categorical(probs=self._tables[LABEL][x]))

    def _last(self, h: Array | int, x: Array) -> Array:
        table = self._tables[LAST]
        return table[(*_place((h, x), table.shape), 1)]


def _place(parts: tuple[Array | int, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The index of a row; axes of size 1 broadcast."""
    return tuple(
        part if size > 1 else np.int64(0) for part, size in zip(parts, shape, strict=False)
    )

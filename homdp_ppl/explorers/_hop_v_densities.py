"""HOP-V on classes of densities.

States and observations may be infinitely many, the classes are finite.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.core.episode import Episode
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.explorers._densities import DensityClass
from homdp_ppl.explorers._rules import Knowledge, Rule, WorldPairs
from homdp_ppl.explorers._versions import Versions, survivors
from homdp_ppl.precision import Array


class Weighed(NamedTuple):
    """Version spaces, and the log-likelihoods they come from.

    Tuples of an epoch wait until it is over.
    """

    alive: Versions
    transitions: Array  # (N,)  log-likelihoods of all finished epochs
    emissions: Array  # (M,)
    waiting: tuple[tuple[Any, ...], ...] = ()  # (x, a, x', y) of the steps that were uniform


def density_rule(
    transitions: DensityClass, emissions: DensityClass, delta: float, mass: float | None
) -> Rule:
    """Algorithm 2 where members are programs.

    An epoch costs one evaluation of H densities for every member.

    Parameters
    ----------
    transitions, emissions
        The classes.
    delta, mass
        As in :func:`homdp_ppl.explorers.hop_v`.
    """

    def init(homdp: HOMDP, episodes: int) -> Knowledge:
        transitions.refuse_other("hop_v", homdp.spaces)
        emissions.refuse_other("hop_v", homdp.spaces)
        everybody = Versions(
            np.ones(len(transitions), dtype=bool), np.ones(len(emissions), dtype=bool)
        )
        return Knowledge(
            homdp,
            episodes,
            Weighed(everybody, np.zeros(len(transitions)), np.zeros(len(emissions))),
        )

    def propose(key: Array, state: Knowledge) -> WorldPairs:
        return WorldPairs(transitions, emissions, *state.memory.alive)

    def update(state: Knowledge, episode: Episode) -> Knowledge:
        memory: Weighed = state.memory
        H = state.homdp.horizon
        h = state.played % H  # the episode's place in its epoch: only this step's tuple is kept
        kept = episode.states[h], episode.actions[h], episode.states[h + 1], episode.observations[h]
        memory = memory._replace(waiting=(*memory.waiting, kept))
        memory = memory if h + 1 < H else weighed(memory, max(state.episodes // H, 1))
        return replace(state, played=state.played + 1, memory=memory)

    def weighed(memory: Weighed, epochs: int) -> Weighed:
        x, a, following, y = (np.stack(part) for part in zip(*memory.waiting, strict=True))
        T = memory.transitions + transitions.log_likelihoods(x, a, following).sum(1)
        O = memory.emissions + emissions.log_likelihoods(x, y).sum(1)  # noqa: E741
        alive = Versions(
            survivors(T, memory.alive.transitions, epochs, delta, mass),
            survivors(O, memory.alive.emissions, epochs, delta, mass),
        )
        return Weighed(alive, T, O)

    return Rule(propose, init, update)

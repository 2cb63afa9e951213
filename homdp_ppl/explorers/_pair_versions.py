"""Version spaces of pairs (T, O) from episodes with missing states, by the marginal likelihood.

Given hidden states, the likelihood of an episode is no product of a factor of T and a factor of O:
pairs are compared as wholes. The likelihood ratio of a pair to the true one is a non-negative
martingale with mean 1, whatever the policy and for every mechanism of reveals that depends on
observations, actions and revealed states only. By Ville's inequality and a union bound, with
probability 1 - delta no ratio ever exceeds size / delta, where size is the number of pairs.
"""

from __future__ import annotations

from dataclasses import replace
from math import log
from typing import NamedTuple

import numpy as np

from homdp_ppl.confidence.finite_classes import highest_density_set, likelihood_set
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.forward import log_likelihood_of_evidence
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.explorers.state import State
from homdp_ppl.precision import Array


class PairVersions(NamedTuple):
    """The version space of pairs, and its projections."""

    transitions: Array  # (N,)  whether each T is in a pair that is alive
    emissions: Array  # (M,)
    alive: Array  # (N, M)
    log_likelihood: Array  # (N, M)  of all episodes


def with_pairs(state: State) -> State:
    """The initial state of HOP-V for episodes with missing states."""
    N, M = len(state.memory.transitions), len(state.memory.emissions)
    everything = np.ones((N, M), dtype=bool)
    return replace(state, memory=PairVersions(*_sides(everything), everything, np.zeros((N, M))))


def update_pairs(
    state: State,
    episode: Episode,
    transitions: Array,
    emissions: Array,
    delta: float,
    mass: float | None,
) -> State:
    """The state after one more episode, all of whose steps are used.

    Parameters
    ----------
    state
        The state, with a :class:`PairVersions`.
    episode
        The episode, with or without missing states.
    transitions, emissions
        The tables of the classes, (N, ...) and (M, ...).
    delta
        Allowed probability of error; a pair survives while its log-likelihood is within
        beta = log(N M / delta) of the best survivor's.
    mass
        If given, the posterior mass of a highest-density set of pairs.
    """
    before, homdp = state.memory, state.homdp
    evidence = Evidence.of(Episodes.of(episode, homdp), homdp)
    initial, size = np.asarray(homdp.structure.reference.initial), len(emissions)
    starts = np.broadcast_to(initial, (size, *initial.shape))
    new = []
    for table in transitions:
        moves = np.broadcast_to(table, (size, *np.shape(table)))
        tables = Tables(starts, moves, emissions)
        new.append(log_likelihood_of_evidence(tables, homdp.form, evidence))
    found = before.log_likelihood + np.array(new)
    weighed = np.where(before.alive, found, -np.inf) if mass is None else found
    alive = weighed > -np.inf
    if alive.any():
        beta = log(alive.size / delta)
        flat = weighed.ravel()
        kept = likelihood_set(flat, beta) if mass is None else highest_density_set(flat, mass)
        alive = alive & kept.reshape(alive.shape)
    memory = PairVersions(*_sides(alive), alive, found)
    return replace(state, played=state.played + 1, memory=memory)


def _sides(alive: Array) -> tuple[Array, Array]:
    return np.any(alive, axis=1), np.any(alive, axis=0)

"""HOP-B with a class of emission densities.

Finitely many states, infinitely many observations (appendix C.6).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from homdp_ppl.confidence.bonuses import hop_b_class_bonus
from homdp_ppl.confidence.counts import Radii, class_radii, frequencies
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.spaces import Real
from homdp_ppl.declare.known import known_rows
from homdp_ppl.declare.latent import latent_tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError, PlanningError, Problem
from homdp_ppl.explorers._densities import DensityClass
from homdp_ppl.explorers._rules import Knowledge, Rule, Tabled
from homdp_ppl.precision import Array


class Counted(NamedTuple):
    """States are counted, observations weigh the members of the class."""

    transition: Array  # (X, A, X)  n(x, a, x')
    visits: Array  # (X,)  n(x)
    emissions: Array  # (M,)  log-likelihoods


def density_rule(emissions: DensityClass, delta: float, scale: float, known: bool) -> Rule:
    """T-hat from counts, the most likely O of the class, bonuses of the paper.

    None of them depends on how large Y is.

    Parameters
    ----------
    emissions
        The class.
    delta, scale, known
        As in :func:`homdp_ppl.explorers.hop_b_class`.
    """

    def init(homdp: HOMDP, episodes: int) -> Knowledge:
        emissions.refuse_other("hop_b_class", homdp.spaces)
        states, _, actions, _ = homdp.spaces
        if isinstance(states, Real):
            remedy = "It counts states; hop_v learns classes of transitions as well."
            raise ParameterError(
                "hop_b_class",
                [Problem("states", f"states in {states}", "finitely many states", remedy)],
            )
        X, A = len(states), len(actions)
        return Knowledge(
            homdp, episodes, Counted(np.zeros((X, A, X)), np.zeros(X), np.zeros(len(emissions)))
        )

    def propose(key: Array, state: Knowledge) -> Tabled:
        counted: Counted = state.memory
        if not (counted.emissions > -np.inf).any():
            problem = Problem(
                "emissions",
                "no member with a positive density of the data",
                "a class that explains the data",
            )
            raise PlanningError("hop_b_class", [problem])
        world = emissions.members[int(counted.emissions.argmax())]
        exact = known_rows(state.homdp)
        rho, reference, reward = latent_tables(world)
        T = frequencies(counted.transition, exact.support if known else np.ones_like(exact.support))
        visits = counted.transition.sum(-1)
        radii = class_radii(
            visits,
            counted.visits,
            state.homdp.horizon,
            state.episodes,
            len(emissions),
            delta,
            scale,
        )
        if known:
            T = np.where(exact.transition[..., None], reference, T)
            radii = Radii(
                np.where(exact.transition, 0.0, radii.transition),
                np.where(exact.emission, 0.0, radii.emission),
            )
        return Tabled(rho, T, reward + hop_b_class_bonus(radii, state.homdp.horizon), world)

    def update(state: Knowledge, episode: Episode) -> Knowledge:
        counted: Counted = state.memory
        x, following = episode.states[:-1], episode.states[1:]
        transition, visits = counted.transition.copy(), counted.visits.copy()
        np.add.at(transition, (x, episode.actions, following), 1)
        np.add.at(visits, x, 1)
        weights = counted.emissions + emissions.log_likelihoods(x, episode.observations).sum(1)
        return replace(state, played=state.played + 1, memory=Counted(transition, visits, weights))

    def visits(state: Knowledge) -> Array:
        return state.memory.transition.sum(-1)

    return Rule(propose, init, update, visits)

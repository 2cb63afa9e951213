"""HOP-V: optimism over version spaces of model classes (Algorithm 2), and its Bayesian variant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from homdp_ppl.confidence.arguments import check_arguments
from homdp_ppl.core.episode import Episode
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.explorers._classes import Members, check_fit, check_tables, log_likelihoods
from homdp_ppl.explorers._densities import DensityClass, of_densities
from homdp_ppl.explorers._hop_v_densities import density_rule
from homdp_ppl.explorers._rules import tables_only
from homdp_ppl.explorers._versions import Versions, survivors
from homdp_ppl.explorers.explorer import Explorer, Optimism, Pairs, State, changed, declared, start
from homdp_ppl.precision import Array


def hop_v(
    transitions: Members,
    emissions: Members,
    delta: float = 0.1,
    mass: float | None = None,
) -> Explorer:
    """Plan for the best pair of surviving T and O, deploy pi o_h Unif(A) for h = 1..H, keep step
    h's tuple, update the spaces.

    Lee, Agarwal, Dann and Zhang (2023), Algorithm 2: K' = floor(K / H) epochs; a member survives
    while its log-likelihood is within beta = 2 log(K' size / delta) of the best survivor's.
    Optimistic in all epochs with probability 1 - 2 delta if the truth is in both classes. With
    ``mass`` the version spaces are the highest-density sets of that mass under uniform priors
    instead, T and O apart: tighter, and guaranteed by the posterior only, with probability 2 mass -
    1 in each epoch. They are taken anew and not nested: a truth that is missed once comes back.

    Parameters
    ----------
    transitions
        The class of T: tables (N, X, A, X), or worlds; of continuous worlds only the transitions
        count.
    emissions
        The class of O: tables (M, X, Y), or worlds; of continuous worlds only the emissions count.
    delta
        Allowed probability of error.
    mass
        Posterior mass of each version space; by default the paper's likelihood sets.

    Examples
    --------
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> wrong, world = (
    ...     models.load("tiger", horizon=2, accuracy=accuracy) for accuracy in (0.15, 0.85)
    ... )
    >>> run = learn(world, hop_v([world], [wrong, world]), history_tree(), episodes=40)
    >>> run.state.memory.emissions  # who is alive after 20 epochs, of two episodes each
    array([False,  True])
    """
    check_arguments("hop_v", delta=delta, **({} if mass is None else {"mass": mass}))
    told = changed(hop_v, delta=delta, mass=mass)
    optimism: Optimism = "frequentist" if mass is None else "Bayesian"
    if of_densities(transitions) or of_densities(emissions):
        moves, shows = (
            DensityClass("hop_v", "transitions", transitions),
            DensityClass("hop_v", "emissions", emissions),
        )
        options = {"transitions": len(moves), "emissions": len(shows)} | told
        refuse, rule = (
            tables_only("hop_v", "transitions, emissions"),
            density_rule(moves, shows, delta, mass),
        )
        return Explorer(
            "hop_v", refuse, optimism, options, init=refuse, each_step=True, continuous=rule
        )
    T = check_tables("hop_v", "transitions", transitions, 4)
    O = check_tables("hop_v", "emissions", emissions, 3)  # noqa: E741

    def init(homdp: HOMDP, episodes: int) -> State:
        check_fit("hop_v", homdp, transitions=T, emissions=O)
        return start(
            homdp, episodes, Versions(np.ones(len(T), dtype=bool), np.ones(len(O), dtype=bool))
        )

    def support(homdp: HOMDP) -> Tables:
        return declared(homdp)._replace(transition=(T > 0).any(0), emission=(O > 0).any(0))

    def propose(key: Array, state: State) -> Pairs:
        reference = state.homdp.structure.reference
        return Pairs(
            T,
            O,
            state.memory.transitions,
            state.memory.emissions,
            reference.initial,
            state.homdp.reward,
        )

    def update(state: State, episode: Episode) -> State:
        H = state.homdp.horizon
        h = (
            int(state.played) % H
        )  # the episode's place in its epoch: only this step's tuple is kept
        x, y, a, following = (
            episode.states[h],
            episode.observations[h],
            episode.actions[h],
            episode.states[h + 1],
        )
        transition, emission = state.counts.transition.copy(), state.counts.emission.copy()
        transition[x, a, following] += 1
        emission[x, y] += 1
        counts = replace(state.counts, transition=transition, emission=emission)
        spaces = state.memory if h + 1 < H else shrink(state, counts.transition, counts.emission)
        return replace(state, counts=counts, played=state.played + 1, memory=spaces)

    def shrink(state: State, transition: Array, emission: Array) -> Versions:
        epochs, alive = max(state.episodes // state.homdp.horizon, 1), state.memory
        return Versions(
            survivors(log_likelihoods(T, transition), alive.transitions, epochs, delta, mass),
            survivors(log_likelihoods(O, emission), alive.emissions, epochs, delta, mass),
        )

    options = {"transitions": len(T), "emissions": len(O)} | told
    return Explorer(
        "hop_v",
        propose,
        optimism,
        options,
        init=init,
        update=update,
        support=support,
        each_step=True,
        compilable=lambda homdp: False,
    )

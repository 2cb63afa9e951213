"""HOP-B with a finite class of emissions (appendix C.6).

States are counted. Observations may be real-valued: the class then contains densities. Estimates
and bonuses do not depend on the size of Y.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.confidence.bonuses import hop_b_class_bonus
from homdp_ppl.confidence.estimates import empirical, frequencies
from homdp_ppl.confidence.radii import Radii, class_radii, hop_b_class_radii
from homdp_ppl.confidence.rewards import require_bounded, with_optimistic_rewards
from homdp_ppl.confidence.rows import unknown_rows
from homdp_ppl.core.arguments import check_arguments
from homdp_ppl.core.bound import bind
from homdp_ppl.core.checked import checked
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.spaces import is_real
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.known import known_rows, refuse_unknown_start
from homdp_ppl.declare.latent import latent_tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError, PlanningError, Problem
from homdp_ppl.explorers._classes import (
    Members,
    ModelClass,
    check_fit,
    log_likelihoods,
    model_class,
)
from homdp_ppl.explorers._densities import previous_actions
from homdp_ppl.explorers._rooted import planned_moves
from homdp_ppl.explorers._supports import support_if
from homdp_ppl.explorers.explorer import Deployment, Explorer, Objective, changed, with_bonus_scale
from homdp_ppl.explorers.state import Proposal, State, Tabled, count, init_state, one
from homdp_ppl.precision import Array, namespace


class Counted(NamedTuple):
    """For real-valued observations: counts of states, and log-likelihoods of the members."""

    transition: Array  # (X, A, X)  n(x, a, x')
    visits: Array  # (X,)  n(x)
    emissions: Array  # (N,)  log-likelihoods


@checked
def hop_b_class(
    emissions: Members, delta: float = 0.1, scale: float = 1.0, known: bool = True
) -> Explorer:
    """Plan in T-hat and the most likely O of a class, with r-hat = r + 3 H eps(x, a) + H eps(x).

    Lee, Agarwal, Dann and Zhang (2023), appendix C.6. Optimistic for every policy with probability
    1 - 2 delta if the true O is in the class. The printed eps(x, a) has no delta; its event fails
    with probability at most X A K H (2^X - 2) (X^2 A K H)^(-4X), so delta must not be smaller than
    this number, for example 1.7e-33 at X = 2, A = 3, K = 1000, H = 4.

    The emission radius grows with the logarithm of the size of the class, not with Y. Tables that
    depend on the step or the previous action, unknown initial distributions and random rewards are
    treated as in :func:`hop_b`; real-valued observations require stationary kernels and a known
    initial distribution.

    Parameters
    ----------
    emissions
        The class Theta: tables (N, X, Y), or worlds. Only the emissions of the worlds are used.
        Tables have the form of the declared emission table, with further axes if it has them.
    delta, scale, known
        As in :func:`hop_b`.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> deaf, world = (
    ...     models.load("tiger", horizon=2, accuracy=accuracy) for accuracy in (0.5, 0.85)
    ... )
    >>> rule = hop_b_class([deaf, world])
    >>> run = learn(world, rule, history_tree(), episodes=20)
    >>> rule.propose(jax.random.key(0), run.state).models.shows(0)[
    ...     0, 0
    ... ]  # the second member explains the observations better
    array([0.85, 0.15])
    """
    check_arguments("hop_b_class", delta=delta, scale=scale)
    members = model_class("hop_b_class", "emissions", emissions)
    options = changed(hop_b_class, delta=delta, scale=scale, known=known)
    return Explorer(
        with_bonus_scale("hop_b_class", {"emissions": len(members)} | options, scale),
        init=bind(_init, emissions=members),
        propose=bind(_propose, emissions=members, delta=delta, scale=scale, known=known),
        update=bind(_update, emissions=members),
        objective=Objective(support=bind(_support, emissions=members, known=known)),
        deployment=Deployment(replan="doubled"),
    )


def _init(homdp: HOMDP, episodes: int | None, emissions: ModelClass) -> State:
    check_fit("hop_b_class", homdp, emissions=emissions)
    if homdp.spaces.finite:
        require_bounded(homdp)
        return init_state(homdp, episodes)
    refuse_unknown_start(homdp)
    states, actions = homdp.spaces.states, homdp.spaces.actions
    if is_real(states):
        remedy = "This rule counts states. Use hop_v, which also takes a class of transitions."
        problem = Problem("states", f"states in {states}", "finitely many states", remedy)
        raise ParameterError("hop_b_class", [problem])
    if any(homdp.context):
        got = "kernels that depend on the step or the previous action"
        remedy = "Use hop_v, which also takes a class of transitions, or posterior_sampling."
        problem = Problem("kernels", got, "the same kernels at all steps", remedy)
        raise ParameterError("hop_b_class", [problem])
    X, A = len(states), len(actions)
    counted = Counted(np.zeros((X, A, X)), np.zeros(X), np.zeros(len(emissions)))
    return init_state(homdp, episodes, counted)


def _update(state: State, episode: Episode, emissions: ModelClass) -> State:
    after = count(state, episode)
    if after.counts is not None:
        return after
    counted: Counted = state.memory
    x, following = episode.states[:-1], episode.states[1:]
    transition, visits = counted.transition.copy(), counted.visits.copy()
    np.add.at(transition, (x, episode.actions, following), 1)
    np.add.at(visits, x, 1)
    previous, h = previous_actions(episode, len(state.homdp.actions)), np.arange(len(x))
    seen = emissions.log_likelihoods(x, previous, h, episode.observations)
    weights = counted.emissions + seen.sum(1)
    return replace(after, memory=Counted(transition, visits, weights))


def _propose(
    key: Array, state: State, emissions: ModelClass, delta: float, scale: float, known: bool
) -> Proposal:
    if state.counts is None:
        return Proposal(_tabled(state, emissions, delta, scale, known))
    homdp, size = state.homdp, len(emissions)
    radii = hop_b_class_radii(homdp, state.counts, state.episodes, size, delta, scale, known)
    likeliest = log_likelihoods(emissions, state.counts.emission).argmax()
    xp, model = namespace(state.counts), empirical(homdp, state.counts, known)
    moves, shows = homdp.form.short(model.transition, model.emission)
    emission = xp.where(_exact(homdp, known), shows, xp.asarray(emissions)[likeliest])
    bonus = hop_b_class_bonus(radii, homdp.horizon, planned_moves(model))
    model = model._replace(emission=homdp.form.full(moves, emission)[1])
    return one(with_optimistic_rewards(model, radii.reward).with_bonus(bonus))


def _tabled(state: State, emissions: ModelClass, delta: float, scale: float, known: bool) -> Tabled:
    """T-hat from counts, the most likely density of the class, and the paper's bonuses."""
    counted: Counted = state.memory
    if not (counted.emissions > -np.inf).any():
        got = "no member under which the data have a positive density"
        problem = Problem("emissions", got, "a class that explains the data")
        raise PlanningError("hop_b_class", [problem])
    world = emissions.members[int(counted.emissions.argmax())]
    exact, H = known_rows(state.homdp), state.homdp.horizon
    rho, reference, reward = latent_tables(world)
    T = frequencies(counted.transition, exact.support if known else np.ones_like(exact.support))
    size, visits = len(emissions), counted.transition.sum(-1)
    radii = class_radii(visits, counted.visits, H, state.episodes, size, delta, scale)
    if known:
        T = np.where(exact.transition[..., None], reference, T)
        radii = Radii(
            np.where(exact.transition, 0.0, radii.transition),
            np.where(exact.emission, 0.0, radii.emission),
        )
    return Tabled(rho, T, reward + hop_b_class_bonus(radii, H), world)


def _exact(homdp: HOMDP, known: bool) -> Array:
    """Rows of O that do not come from the class: known rows, and rows that are never used."""
    return ~unknown_rows(homdp, known).emission[..., None]


def _support(homdp: HOMDP, emissions: Any, known: bool) -> Tables:
    check_fit("hop_b_class", homdp, emissions=emissions)
    allowed, possible = support_if(known)(homdp), (emissions > 0).any(0)
    emission = np.where(_exact(homdp, known), allowed.emission, possible)
    return allowed._replace(emission=emission)

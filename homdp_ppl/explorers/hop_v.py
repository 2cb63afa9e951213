"""HOP-V: optimism over version spaces of model classes (Algorithm 2), and its Bayesian variant.

Classes consist of tables, or of densities for real-valued states and observations. In each epoch,
every member is evaluated on H tuples.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from homdp_ppl.confidence.estimates import estimated_start
from homdp_ppl.confidence.radii import start_radius
from homdp_ppl.confidence.rows import first_states
from homdp_ppl.core.arguments import check_arguments
from homdp_ppl.core.bound import bind
from homdp_ppl.core.checked import checked
from homdp_ppl.core.episode import Episode
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.known import refuse_unknown_start
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.explorers._classes import (
    Members,
    ModelClass,
    check_fit,
    log_likelihoods,
    model_class,
)
from homdp_ppl.explorers._densities import previous_actions
from homdp_ppl.explorers._pair_versions import PairVersions, update_pairs
from homdp_ppl.explorers._rewards import RewardClass, check_rewards, reward_class
from homdp_ppl.explorers._supports import declared
from homdp_ppl.explorers._versions import Evidence, Versions, survivors
from homdp_ppl.explorers.explorer import About, Deployment, Explorer, Objective, changed
from homdp_ppl.explorers.state import Pairs, State, init_state
from homdp_ppl.precision import Array


@checked
def hop_v(
    transitions: Members,
    emissions: Members,
    delta: float = 0.1,
    mass: float | None = None,
) -> Explorer:
    """Plan for the best pair of surviving T and O, and update the version spaces every H episodes.

    Lee, Agarwal, Dann and Zhang (2023), Algorithm 2. There are K' = floor(K / H) epochs. An epoch
    deploys pi o_h Unif(A) for h = 1..H and keeps the tuple of step h from the h-th episode. A
    member survives while its log-likelihood is within beta = 2 log(K' size / delta) of the best
    survivor's. Optimistic in all epochs with probability 1 - 2 delta if the true T and O are in the
    classes.

    With ``mass``, the version spaces are highest-density sets of this posterior mass under uniform
    priors, separately for T and O. They are tighter, and the guarantee is Bayesian: each epoch is
    optimistic with posterior probability at least 2 mass - 1. The sets are computed from all
    members in every epoch and are not nested, so the true model can return after it was excluded.

    The paper assumes a known initial distribution. If it depends on a site, the rule plans with the
    frequencies of first states, and adds (H/2) eps to the optimistic value, where eps is Weissman's
    radius at level delta / K (see :func:`homdp_ppl.confidence.start_bonus`). It holds in all epochs
    with one more probability of error delta. Real-valued spaces require a known one.

    If rewards are random, the members of ``transitions`` must be worlds: the reward law of a world
    belongs to its transitions, its likelihood includes the recorded rewards, and plans use its mean
    rewards. The guarantee requires that one world has the true transitions and the true law.

    If states are missing, the version space consists of pairs, which are compared by their marginal
    likelihood of whole episodes: a pair survives while its log-likelihood is within
    beta = log(size / delta) of the best survivor's, where size is the number of pairs. All rounds
    are optimistic with probability 1 - delta, for reveals that depend on observations, actions and
    revealed states only. With ``mass``, each round is with posterior probability at least ``mass``.
    The regret bound does not hold, and the initial distribution must be known.

    Parameters
    ----------
    transitions
        The class of T: tables (N, X, A, X), or worlds. Only the transitions of the worlds are used.
        Tables have the form of the declared tables, with further axes if these have them.
    emissions
        The class of O: tables (M, X, Y), or worlds. Only the emissions of the worlds are used.
    delta
        Allowed probability of error.
    mass
        Posterior mass of each version space. Default: the likelihood sets of the paper.

    Examples
    --------
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> wrong, world = (
    ...     models.load("tiger", horizon=2, accuracy=accuracy) for accuracy in (0.15, 0.85)
    ... )
    >>> run = learn(world, hop_v([world], [wrong, world]), history_tree(), episodes=40)
    >>> run.state.memory.emissions  # members alive after 20 epochs of two episodes each
    array([False,  True])
    """
    check_arguments("hop_v", delta=delta, **({} if mass is None else {"mass": mass}))
    classes = {
        "transitions": model_class("hop_v", "transitions", transitions),
        "emissions": model_class("hop_v", "emissions", emissions),
    }
    rewards = reward_class(transitions)
    sizes = {name: len(members) for name, members in classes.items()}
    options = sizes | changed(hop_v, delta=delta, mass=mass)
    guarantee = "frequentist" if mass is None else "Bayesian"
    return Explorer(
        About("hop_v", options, guarantee=guarantee, needs_episodes=True),  # type: ignore[arg-type]
        init=bind(_init, **classes, rewards=rewards),
        propose=bind(_propose, **classes, rewards=rewards, delta=delta),
        update=bind(update_versions, **classes, rewards=rewards, delta=delta, mass=mass),
        objective=Objective(support=bind(_support, **classes)),
        deployment=Deployment(uniform_at_each_step=True),
    )


def _init(
    homdp: HOMDP,
    episodes: int | None,
    transitions: ModelClass,
    emissions: ModelClass,
    rewards: RewardClass | None,
) -> State:
    check_fit("hop_v", homdp, transitions=transitions, emissions=emissions)
    check_rewards("hop_v", homdp, rewards)
    if not homdp.spaces.finite:
        refuse_unknown_start(homdp)
    N, M = len(transitions), len(emissions)
    evidence = None if homdp.spaces.finite else Evidence(np.zeros(N), np.zeros(M))
    everything = Versions(np.ones(N, dtype=bool), np.ones(M, dtype=bool), evidence)
    return init_state(homdp, episodes, everything)


def _support(homdp: HOMDP, transitions: Array, emissions: Array) -> Tables:
    check_fit("hop_v", homdp, transitions=transitions, emissions=emissions)
    possible = np.any(transitions > 0, axis=0), np.any(emissions > 0, axis=0)
    return declared(homdp)._replace(transition=possible[0], emission=possible[1])


def _propose(
    key: Array,
    state: State,
    transitions: ModelClass,
    emissions: ModelClass,
    rewards: RewardClass | None,
    delta: float,
) -> Pairs:
    memory, homdp = state.memory, state.homdp
    alive = memory.transitions, memory.emissions
    if isinstance(memory, PairVersions):
        reference = homdp.model_of(homdp.structure.reference)
        return Pairs(transitions, emissions, *alive, reference, alive_pairs=memory.alive)
    if state.counts is None:
        return Pairs(transitions, emissions, *alive)
    initial = estimated_start(homdp, state.counts)
    radius = start_radius(homdp, state.counts, delta / state.episodes)
    offset = float(homdp.horizon / 2 * radius)
    reference = homdp.model_of(homdp.structure.reference)._replace(initial=initial)
    means = None if rewards is None or homdp.rewards.law is None else rewards.means
    return Pairs(transitions, emissions, *alive, reference, offset, means)


def update_versions(
    state: State,
    episode: Episode,
    transitions: ModelClass,
    emissions: ModelClass,
    rewards: RewardClass | None,
    delta: float,
    mass: float | None,
) -> State:
    """The state after one more episode: ``hop_v``'s update."""
    if isinstance(state.memory, PairVersions):
        return update_pairs(state, episode, transitions, emissions, delta, mass)
    H = state.homdp.horizon
    h = (
        int(state.played) % H
    )  # the episode's index in its epoch: only the tuple of this step is kept
    state = _keep(state, episode, h)
    if h + 1 < H:
        return state
    state, T, O = _weigh(state, transitions, emissions)  # noqa: E741
    if rewards is not None and state.counts is not None and state.counts.rewards is not None:
        T = T + rewards.log_likelihoods(state.counts.rewards)
    epochs, alive = max(state.episodes // H, 1), state.memory
    spaces = Versions(
        survivors(T, alive.transitions, epochs, delta, mass),
        survivors(O, alive.emissions, epochs, delta, mass),
        alive.evidence,
    )
    return replace(state, memory=spaces)


def _keep(state: State, episode: Episode, h: int) -> State:
    """Count the tuple of step h, or store it until the end of the epoch."""
    x, a, following, y = (
        episode.states[h],
        episode.actions[h],
        episode.states[h + 1],
        episode.observations[h],
    )
    previous = previous_actions(episode, len(state.homdp.actions))[h]
    played = state.played + 1
    if state.counts is None:
        evidence = state.memory.evidence
        evidence = evidence._replace(waiting=(*evidence.waiting, (x, a, following, y, h, previous)))
        return replace(state, played=played, memory=state.memory._replace(evidence=evidence))
    form = state.homdp.form
    transition, emission = state.counts.transition.copy(), state.counts.emission.copy()
    transition[form.transition_index(h, x, a, following)] += 1
    emission[form.emission_index(h, previous, x, y)] += 1
    # every episode of the epoch draws the first state, whatever the policy
    started = first_states(state.counts).copy()
    started[episode.states[0]] += 1
    counts = replace(state.counts, transition=transition, emission=emission, initial=started)
    if counts.rewards is not None and episode.rewards is not None:
        reward = np.ma.filled(np.ma.asarray(episode.rewards).astype(np.float64), np.nan)[h : h + 1]
        place = tuple(np.array([i]) for i in counts.rewards.form.index(h, x, y, a))
        if not np.isnan(reward[0]):
            counts = replace(counts, rewards=counts.rewards.record(place, reward))
    return replace(state, counts=counts, played=played)


def _weigh(
    state: State, transitions: ModelClass, emissions: ModelClass
) -> tuple[State, Array, Array]:
    """Log-likelihoods of all members after an epoch, (N,) and (M,)."""
    if state.counts is not None:
        T = log_likelihoods(transitions, state.counts.transition)
        return state, T, log_likelihoods(emissions, state.counts.emission)
    evidence = state.memory.evidence
    x, a, following, y, h, previous = (
        np.stack(part) for part in zip(*evidence.waiting, strict=True)
    )
    T = evidence.transitions + transitions.log_likelihoods(x, a, h, following).sum(1)
    O = evidence.emissions + emissions.log_likelihoods(x, previous, h, y).sum(1)  # noqa: E741
    return replace(state, memory=state.memory._replace(evidence=Evidence(T, O))), T, O

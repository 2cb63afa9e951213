"""Optimism from confidence sequences on parameter rows, value ranges and caps."""

from __future__ import annotations

from typing import Any, NamedTuple

from homdp_ppl.confidence.ranges import Ranges, largest_mean, value_ranges
from homdp_ppl.confidence.sets import Box, MixtureName, Sets, check_mixture, confidence_sets
from homdp_ppl.confidence.transport import transport
from homdp_ppl.core.arguments import check_arguments
from homdp_ppl.core.bound import bind
from homdp_ppl.core.checked import checked
from homdp_ppl.core.optimism import Limits, Spread, kept_deficit
from homdp_ppl.core.plan import Solution
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.explorers._supports import support_if
from homdp_ppl.explorers.explorer import About, Explorer, Objective, Root, changed
from homdp_ppl.explorers.state import Proposal, State, init_bounded, one
from homdp_ppl.precision import Array, namespace


class RootTerms(NamedTuple):
    """What turns the value of the tree into the optimistic value, for rewards in [0, 1]."""

    limits: Limits  # values of an agent that sees the state
    offset: Array  # ()  bonus of the first observation and of an unknown start
    most: Array  # ()  the value of an agent that sees the first state
    joint: Array  # (Y, X)  the probability of a first state and observation
    least: Array  # (Y, X)  a lower bound on it


@checked
def anytime(delta: float = 0.1, mixture: MixtureName = "jeffreys", known: bool = True) -> Explorer:
    """Plan in T-hat and O-hat with bonuses for the range of values; values are capped by those of
    an agent that sees the state.

    Recommended if you need a guarantee. The optimistic value is at least the optimum in all rounds
    with probability 1 - delta. There is no number of episodes in the bound: the run may be of any
    length, and may stop at any time. Confidence sets are for the parameters of the declaration
    (:func:`homdp_ppl.confidence.confidence_sets`), so that declared structure helps. The bonus of a
    row is a transport bound with the range of values of its outcomes
    (:func:`homdp_ppl.confidence.value_ranges`), so that an uncertain row costs nothing if its
    outcomes have equal values. Planners other than the history tree do not cap values, which is
    sound but looser. The proof is on the page "The anytime rule".

    Parameters
    ----------
    delta
        Allowed probability of error.
    mixture
        The mixture of the confidence sequences: "jeffreys", or "declared" for the marginals of
        declared Dirichlet rows. The guarantee does not depend on it.
    known
        Whether to use the declared structure: known rows, supports and shared parameters.

    Examples
    --------
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=3)
    >>> run = learn(world, anytime(), history_tree(), episodes=100, compiled=False)
    >>> bool(run.was_optimistic.all())
    True
    """
    check_arguments("anytime", delta=delta)
    check_mixture("anytime", mixture)
    return Explorer(
        About(
            "anytime",
            changed(anytime, delta=delta, mixture=mixture, known=known),
            guarantee="frequentist",
            uses_prior=mixture == "declared",
        ),
        init=init_bounded,
        propose=bind(_propose, delta=delta, mixture=mixture, known=known),
        objective=Objective(root=_root, support=support_if(known), caps=_caps),
    )


def _propose(key: Array, state: State, delta: float, mixture: MixtureName, known: bool) -> Proposal:
    sets = confidence_sets(state.homdp, state.counts, delta, mixture, known)
    return optimistic_proposal(sets, value_ranges(sets))


def optimistic_proposal(sets: Sets, ranges: Ranges) -> Proposal:
    """The model to plan for, with its bonuses, and its :class:`RootTerms`."""
    model, xp, H = sets.centre, namespace(sets), sets.centre.horizon
    bonus = [
        _transition_bonus(sets, ranges, h) + _emission_bonus(sets, ranges, h) for h in range(H - 1)
    ]
    planned = model._replace(reward=sets.reward.high).with_bonus(
        xp.stack([*bonus, xp.zeros((model.sizes[0], model.sizes[2]))])
    )
    start, high, low = sets.start(), ranges.high[0], ranges.low[0]
    first = observation_bonus(sets.shows(0, None), ranges, 0)  # (X,)
    offset = start.centre @ first + transport(start.up, start.down, high, low)
    least = sets.least
    spread = Spread(ranges.high_seen, ranges.high_seen - ranges.low_seen, least)
    terms = RootTerms(
        Limits(ranges.high_action, spread),
        offset,
        largest_mean(start, high),
        (model.initial[:, None] * model.shows(0)).T,
        (least.initial[:, None] * least.shows(0)).T,
    )
    return one(planned, terms)


def _transition_bonus(sets: Sets, ranges: Ranges, h: int) -> Array:
    """The bonus of the next state, for the distance of T_h from its centre, (X, A)."""
    moves = sets.moves(h)
    return transport(moves.up, moves.down, ranges.high[h + 1], ranges.low[h + 1])


def _emission_bonus(sets: Sets, ranges: Ranges, h: int) -> Array:
    """The bonus of the next observation, before it is made, (X, A)."""
    xp, A = namespace(sets), sets.centre.sizes[2]
    if sets.centre.emission.shape[1] == 1:
        return sets.moves(h).centre @ observation_bonus(sets.shows(h + 1, 0), ranges, h + 1)
    later = xp.stack(
        [observation_bonus(sets.shows(h + 1, a), ranges, h + 1) for a in range(A)]
    )  # (A, X)
    return (sets.moves(h).centre * later).sum(-1)


def observation_bonus(shows: Box, ranges: Ranges, h: int) -> Array:
    """The bonus of the observation in each state, for the distance of O_h from its centre, (X,)."""
    return transport(shows.up, shows.down, ranges.high_seen[h], ranges.low_seen[h])


def _caps(terms: RootTerms, horizon: int) -> Limits:
    return terms.limits


def _root(homdp: HOMDP) -> Root:
    return _optimistic_value


def _optimistic_value(terms: Any, solution: Solution) -> Array:
    xp = namespace(terms, solution.upper)
    plain = xp.minimum(solution.upper + terms.offset, terms.most)
    if not solution.first.size:  # the planner has no values of histories
        return plain
    high, width = (part[0].T for part in terms.limits.spread[:2])  # (Y|1, X)
    below = (terms.joint * (high - solution.first)).sum(-1)  # (Y,)
    missing = kept_deficit(terms.joint, terms.least, width, below)
    return xp.minimum(plain, terms.most - missing.sum())

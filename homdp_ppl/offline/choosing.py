"""How `choose` bounds its candidates: by confidence sets, or by the posterior."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.confidence.policies import policy_interval, refuse_searching
from homdp_ppl.confidence.sequences import Interval
from homdp_ppl.confidence.sets import MixtureName, Sets, check_mixture, confidence_sets
from homdp_ppl.core.arguments import check_arguments, refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.graph_policy import GraphPolicy, graph_of
from homdp_ppl.core.policy import Policy
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError, Problem, shown
from homdp_ppl.learning.planning import Planner
from homdp_ppl.offline.behaviour import behaviour_of
from homdp_ppl.offline.belief import drawn_models, values_in
from homdp_ppl.offline.candidates import (
    DRAWS,
    Candidates,
    default_candidates,
    estimated,
    given_candidates,
)
from homdp_ppl.offline.choice import Candidate, Choice, decide
from homdp_ppl.offline.logs import (
    Log,
    Played,
    missing_states,
    read_log,
    reward_notes,
    rewards_in,
    seed_problems,
)
from homdp_ppl.offline.returns import returns_interval
from homdp_ppl.offline.search import improve
from homdp_ppl.offline.tree import Rule, allowed_in, as_graph, difference, fits, unroll
from homdp_ppl.planners import auto
from homdp_ppl.posteriors import Posterior, Sampling, posterior
from homdp_ppl.precision import in_x64

BEHAVIOUR = "behaviour"  # the baseline: what the log's policy did
STARTS = 3  # candidates from which the lower bound is improved
SAMPLE = 200  # models of the posterior, if states are missing


class Base(NamedTuple):
    """The baseline: its bounds, and its policy if it is known."""

    name: str
    interval: Interval
    policy: GraphPolicy | None


@checked
@in_x64
def choose(
    homdp: HOMDP,
    log: Played,
    candidates: Candidates | None = None,
    baseline: Policy | str | None = BEHAVIOUR,
    delta: float = 0.1,
    behaviour: Policy | None = None,
    *,
    planner: Planner | None = None,
    mixture: MixtureName = "jeffreys",
    search: bool = True,
    seed: int = 0,
    sampling: Sampling | None = None,
) -> Choice:
    """Choose the policy with the largest certified value, unless the baseline may be better.

    With probability 1 - delta, the bounds of all policies hold at once, so looking at many
    candidates costs nothing, and the chosen policy is not worse than the baseline. The actions in
    the log may have been chosen by anyone, also by someone who saw the states.

    If states are missing, bounds are posterior quantiles, and a candidate beats the baseline if it
    is better with posterior probability 1 - delta.

    Parameters
    ----------
    homdp
        The declaration, with finite spaces.
    log
        Recorded episodes.
    candidates
        Policies, or a dict of policies by name. Default: the plan for the frequencies, a plan with
        bonuses subtracted (:func:`bonus_plan`), plans of low posterior quantiles
        (:func:`value_quantile_plan`, :func:`quantile_backup_plan`), and the estimated behaviour.
    baseline
        What to beat: "behaviour", a policy, or None. The value of "behaviour" is bounded by the
        logged returns (:func:`returns_interval`), which takes a tenth of delta, and by the
        certified interval of ``behaviour`` if that is given. Logs without returns have no bound on
        the behaviour, so that it is kept.
    delta
        Allowed probability of error.
    behaviour
        The policy that acted, if it is known.
    planner
        The planner for default candidates. Default: :func:`homdp_ppl.planners.auto`.
    mixture
        As in :func:`homdp_ppl.confidence.confidence_sets`.
    search
        Whether to improve the best candidates by a local search on their lower bound: plan against
        the models that minimise it, and accept a mixture with the present policy if the bound
        grows. Needs a tree of histories of moderate size.
    seed
        The seed of draws from the posterior.
    sampling
        As in :func:`homdp_ppl.posterior`: longer chains, where the posterior has to be sampled.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import evaluate, models, offline, rollout, uniform_policy
    >>> world = models.load("tiger", horizon=3)
    >>> log = rollout(jax.random.split(jax.random.key(0), 500), world, uniform_policy(world))
    >>> choice = offline.choose(world.homdp, log)
    >>> bool(choice.chosen.low <= evaluate(choice.policy, world.pomdp) <= choice.chosen.high)
    True
    >>> choice.kept
    False
    """
    check_arguments("offline.choose", delta=delta)
    check_mixture("offline.choose", mixture)
    refuse(ParameterError, "offline.choose", seed_problems(seed))
    _check_baseline(baseline)
    read = read_log(homdp, log, "offline.choose")
    used = auto() if planner is None else planner
    acting = None if behaviour is None else _graph(behaviour, homdp)
    base = baseline if baseline is None or isinstance(baseline, str) else _graph(baseline, homdp)
    data = read.episodes if read.counts is None else read.counts
    belief = posterior(homdp, data, sampling=sampling)
    asked = _Asked(homdp, read, candidates, base, delta, acting, used, search, seed, belief)
    if read.counts is None:
        return _by_posterior(asked)
    return _by_sets(asked, read.counts, mixture)


class _Asked(NamedTuple):
    """The arguments of :func:`choose`, validated."""

    homdp: HOMDP
    read: Log
    candidates: Candidates | None
    baseline: GraphPolicy | str | None
    delta: float
    behaviour: GraphPolicy | None
    planner: Planner
    search: bool
    seed: int
    belief: Posterior

    def suggested(self, sets: Sets | None) -> tuple[dict[str, GraphPolicy], list[str]]:
        """Candidates by name, and notes."""
        if self.candidates is not None:
            return given_candidates(self.candidates, self.homdp)
        drawn = drawn_models(self.belief, DRAWS, self.seed)
        centre = self.belief.mean if sets is None else sets.centre
        policies, notes = default_candidates(
            self.homdp, centre, sets, self.belief, drawn, self.planner, self.seed
        )
        if self.behaviour is not None:
            policies = policies | {"behaviour policy": self.behaviour}
        elif sets is not None:
            policies = policies | estimated(
                behaviour_of(self.homdp, self.read.episodes), self.homdp
            )
        return policies, notes


def _by_sets(asked: _Asked, counts: Counts, mixture: MixtureName) -> Choice:
    """Certified bounds; all of them hold on one event."""
    homdp, notes = asked.homdp, list[str]()
    returns = asked.baseline == BEHAVIOUR
    share = 0.9 if returns else 1.0
    sets = confidence_sets(homdp, counts, share * asked.delta, mixture)
    policies, left_out = asked.suggested(sets)
    base = _certified_base(asked, sets, notes)
    rules: dict[str, Rule] = {}
    against = None
    if fits(sets):
        rules = {name: unroll(policy, sets) for name, policy in policies.items()}
        against = None if base is None or base.policy is None else unroll(base.policy, sets)
        if asked.search:
            rules |= _searched(asked, sets, policies, rules)
            Y = sets.centre.sizes[1]
            policies |= {n: as_graph(r, Y) for n, r in rules.items() if n not in policies}
    elif asked.search:
        notes.append("no local search: the tree of all histories is too large")
    found = []
    for name, policy in policies.items():
        low, high = (float(end) for end in policy_interval(sets, policy))
        gain = None if base is None else low - float(base.interval.high)
        if gain is not None and against is not None:
            closer = float(sets.centre.scale) * difference(sets, rules[name], against)
            gain = max(gain, closer)
        found.append(Candidate(name, policy.named(homdp), low, high, gain))
    return _choice(asked, "frequentist", found, base, left_out + notes)


def _certified_base(asked: _Asked, sets: Sets, notes: list[str]) -> Base | None:
    """The baseline with its certified bounds."""
    if asked.baseline is None:
        return None
    if not isinstance(asked.baseline, str):
        return Base("the baseline", policy_interval(sets, asked.baseline), asked.baseline)
    homdp = asked.homdp
    low, high = _range(homdp)
    rewards, why = rewards_in(homdp, asked.read.episodes)
    if rewards is None:
        notes.append(f"no bound on the behaviour from logged returns: {why}")
    else:
        found = returns_interval(rewards.sum(1), low, high, 0.1 * asked.delta)
        low, high = float(found.low), float(found.high)
    if asked.behaviour is not None:
        ends = policy_interval(sets, asked.behaviour)
        low, high = max(low, float(ends.low)), min(high, float(ends.high))
    return Base("the behaviour of the log", Interval(*np.array([low, high])), asked.behaviour)


def _searched(
    asked: _Asked, sets: Sets, policies: dict[str, GraphPolicy], rules: dict[str, Rule]
) -> dict[str, Rule]:
    """Rules with larger lower bounds, from the best candidates."""
    masks = allowed_in(asked.homdp.allowed, asked.homdp.spaces)
    lower = {name: float(policy_interval(sets, policy).low) for name, policy in policies.items()}
    best = sorted(lower, key=lambda name: -lower[name])[:STARTS]
    found = {name: improve(sets, rules[name], masks) for name in best}
    return {f"{name}, improved": one.rule for name, one in found.items() if one.rounds}


def _by_posterior(asked: _Asked) -> Choice:
    """Posterior quantiles, for logs with missing states."""
    notes = [f"no certified bounds: {missing_states(asked.read.episodes)}"]
    policies, left_out = asked.suggested(None)
    models = drawn_models(asked.belief, SAMPLE, asked.seed + 1)
    acting = asked.baseline
    if isinstance(acting, str):
        acting = asked.behaviour
        if acting is None:
            estimate = behaviour_of(asked.homdp, asked.read.episodes)
            acting = estimate.graph()
            notes.append(f"the behaviour is estimated from {estimate.uses}")
    level, tail = asked.delta, asked.delta / 2
    base, values = None, None
    if acting is not None:
        values = values_in(models, acting)
        ends = (np.quantile(values, q) for q in (tail, 1 - tail))
        name = "the behaviour" if isinstance(asked.baseline, str) else "the baseline"
        base = Base(name, Interval(*ends), acting)
    found = []
    for name, policy in policies.items():
        own = values_in(models, policy)
        low, high = (float(np.quantile(own, q)) for q in (tail, 1 - tail))
        gain = None if values is None else float(np.quantile(own - values, level))
        found.append(Candidate(name, policy.named(asked.homdp), low, high, gain))
    return _choice(asked, "Bayesian", found, base, left_out + notes)


def _choice(
    asked: _Asked, guarantee: Any, found: list[Candidate], base: Base | None, notes: list[str]
) -> Choice:
    baseline = None
    if base is not None:
        policy = None if base.policy is None else base.policy.named(asked.homdp)
        baseline = Candidate(base.name, policy, *(float(end) for end in base.interval))
    notes = reward_notes(asked.homdp, asked.read.episodes) + notes
    chosen, ordered = decide(found, baseline)
    return Choice(
        asked.homdp.name,
        len(asked.read.episodes),
        asked.delta,
        guarantee,
        chosen,
        baseline,
        ordered,
        tuple(notes),
    )


def _range(homdp: HOMDP) -> tuple[float, float]:
    """The smallest and the largest possible return, in the user's units."""
    H = homdp.horizon
    return float(homdp.rewards.to_user(0.0, H)), float(homdp.rewards.to_user(float(H), H))


def _graph(policy: Policy, homdp: HOMDP) -> GraphPolicy:
    refuse_searching(policy, "offline.choose")
    return graph_of(policy, homdp)


def _check_baseline(baseline: Policy | str | None) -> None:
    if isinstance(baseline, str) and baseline != BEHAVIOUR:
        expected = f'"{BEHAVIOUR}", a policy or None'
        problem = Problem("baseline", shown(baseline), expected)
        raise ParameterError("offline.choose", [problem])

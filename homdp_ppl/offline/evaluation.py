"""`evaluate`: what a log says about the value of a policy."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, final

import numpy as np

from homdp_ppl.confidence.policies import policy_interval, refuse_searching
from homdp_ppl.confidence.sequences import Interval
from homdp_ppl.confidence.sets import MixtureName, check_mixture, confidence_sets
from homdp_ppl.core.arguments import check_arguments, count_problems, refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.core.graph_policy import GraphPolicy, graph_of
from homdp_ppl.core.policy import Policy
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError
from homdp_ppl.offline.agreement import Agreement, compare
from homdp_ppl.offline.behaviour import Behaviour, behaviour_of
from homdp_ppl.offline.belief import ValueBelief, drawn_models, values_in
from homdp_ppl.offline.estimates import (
    Estimate,
    Weights,
    doubly_robust,
    importance_weighted,
    mean_of,
    per_decision,
    self_normalised,
)
from homdp_ppl.offline.logs import (
    Log,
    Played,
    action_chances,
    missing_states,
    read_log,
    refuse_impossible,
    reward_notes,
    rewards_in,
    seed_problems,
)
from homdp_ppl.offline.markov import MarkovTest, markov_test_of
from homdp_ppl.posteriors import Sampling, posterior
from homdp_ppl.precision import Array, in_x64

if TYPE_CHECKING:
    from rich.table import Table

CERTAIN = 4.0  # standard errors; a mean weight so far below 1 is no accident


@final
@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What a log says about the value of a policy, in the user's units.

    Create it with :func:`evaluate`. Parts that the log does not allow are None or empty, and
    ``notes`` says why.

    Attributes
    ----------
    model, episodes, delta
        The name of the declaration, the number of episodes, and the allowed probability of error.
    certified
        An interval that contains the value with probability 1 - delta, for all policies at once.
    belief
        The posterior of the value.
    logged
        The mean return of the log.
    weighted
        The weighted estimates.
    behaviour
        Where the action probabilities of the behaviour come from.
    effective
        The effective number of episodes: how many of the policy itself would be as informative.
    agreement
        Whether the posterior and a weighted estimate agree: a test of the declaration.
    markov
        Whether the revealed state is Markov.
    notes
        What was left out, and why.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, offline, rollout, uniform_policy
    >>> world = models.load("tiger", horizon=2)
    >>> log = rollout(jax.random.split(jax.random.key(0), 100), world, uniform_policy(world))
    >>> found = offline.evaluate(world.homdp, log, uniform_policy(world))
    >>> found.certified.low.round(4) <= 1.2667 <= found.certified.high.round(4)
    np.True_
    """

    model: str
    episodes: int
    delta: float
    certified: Interval | None
    belief: ValueBelief
    logged: Estimate | None
    weighted: tuple[Estimate, ...]
    behaviour: str
    effective: float
    agreement: Agreement | None
    markov: MarkovTest | None
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> list[tuple[str, float, float, float, str]]:
        """The numbers: name, value, low, high, and what the interval is."""
        share = f"{100 * (1 - self.delta):.3g} %"
        rows = []
        if self.certified is not None:
            low, high = (float(end) for end in self.certified)
            rows.append(("certified", np.nan, low, high, f"{share}, all policies at once"))
        belief = self.belief
        rows.append(("posterior", belief.mean, belief.low, belief.high, f"{share}, credible"))
        for part in (*self.weighted, *([] if self.logged is None else [self.logged])):
            kind = "95 %, normal approximation"
            rows.append((part.name, part.value, part.low, part.high, kind))
        return rows

    @property
    def tests(self) -> list[tuple[str, str]]:
        """The tests of the declaration, in words."""
        found = []
        if self.agreement is not None:
            found.append(("model and weights", self.agreement.words))
        if self.markov is not None:
            found.append(("state is Markov", self.markov.words))
        return found

    def to_table(self) -> Table:
        """The numbers as a table; print it with ``rich.print``."""
        from rich.markup import escape as plain
        from rich.table import Table

        table = Table("estimate", title=plain(self._title), title_justify="left")
        for head in ("value", "low", "high"):
            table.add_column(head, justify="right")
        table.add_column("interval")
        for name, *numbers, kind in self.rows:
            table.add_row(plain(name), *map(number, numbers), kind)
        return table

    @property
    def _title(self) -> str:
        plural = "s" * (self.episodes != 1)
        return f"Value of a policy in {self.model!r}, from {self.episodes:,} episode{plural}"

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th>{escape(name)}</th>"
            + "".join(f"<td>{number(part)}</td>" for part in numbers)
            + f"<td>{escape(kind)}</td></tr>"
            for name, *numbers, kind in self.rows
        )
        head = "".join(f"<th>{word}</th>" for word in ("", "value", "low", "high", "interval"))
        items = [f"{name}: {words}" for name, words in self.tests] + list(self.notes)
        listed = "".join(f"<li>{escape(item)}</li>" for item in items)
        return (
            f"<table><caption>{escape(self._title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{cells}</tbody></table><ul>{listed}</ul>"
        )

    def __repr__(self) -> str:
        width = max(len(name) for name, *_ in self.rows)
        lines = [self._title]
        for name, value, low, high, kind in self.rows:
            middle = f"{value:.4g}, " if np.isfinite(value) else ""
            lines.append(f"  {name:<{width}}  {middle}[{low:.4g}, {high:.4g}]  ({kind})")
        lines += [f"  {name}: {words}" for name, words in self.tests]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)


def number(value: float) -> str:
    """A number for a table; empty if there is none."""
    return f"{value:.4g}" if np.isfinite(value) else ""


@checked
@in_x64
def evaluate(
    homdp: HOMDP,
    log: Played,
    policy: Policy,
    delta: float = 0.1,
    behaviour: Policy | Behaviour | None = None,
    *,
    mixture: MixtureName = "jeffreys",
    known: bool = True,
    window: int = 1,
    draws: int = 200,
    seed: int = 0,
    sampling: Sampling | None = None,
) -> Evaluation:
    """Evaluate a policy with recorded episodes, without acting.

    The certified interval is :func:`homdp_ppl.confidence.interval`: with probability 1 - delta it
    contains the values of all policies at once, however the recorded actions were chosen. The
    posterior of the value needs the declared prior to be right. Weighted estimates use the
    declaration only to reduce their variance, and need the probabilities with which the recorded
    actions were chosen. If posterior and weighted estimates disagree, the declaration or the
    behaviour is wrong.

    If states are missing, the posterior sums over them. There is no certified interval then:
    counts of the revealed steps would be biased.

    Parameters
    ----------
    homdp
        The declaration, with finite spaces.
    log
        Recorded episodes. Known rewards are computed from the states; random rewards must be
        recorded.
    policy
        The policy to evaluate. Policies that plan online raise PolicyError.
    delta
        Allowed probability that the certified interval is wrong, and the posterior probability
        outside of the posterior interval.
    behaviour
        The policy that acted. Default: estimated from the log by :func:`estimate_behaviour`, as a
        function of the step and the last ``window`` observations, and of the state if the log has
        the behaviour "saw states".
    mixture, known
        As in :func:`homdp_ppl.confidence.confidence_sets`.
    window
        The number of last observations for an estimated behaviour.
    draws
        The number of models drawn from the posterior.
    seed
        The seed of these draws.
    sampling
        As in :func:`homdp_ppl.posterior`: longer chains, where the posterior has to be sampled.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, offline, rollout, uniform_policy
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger")
    >>> log = rollout(jax.random.split(jax.random.key(0), 300), world, uniform_policy(world))
    >>> plan = history_tree()(world.pomdp)
    >>> found = offline.evaluate(world.homdp, log, plan.policy)
    >>> bool(found.certified.low < plan.value < found.certified.high)
    True
    >>> [estimate.name for estimate in found.weighted]
    ['importance weighted', 'per decision', 'self-normalised', 'doubly robust']
    """
    check_arguments("offline.evaluate", delta=delta)
    check_mixture("offline.evaluate", mixture)
    problems = count_problems(window=window) + count_problems(2, draws=draws)
    problems += seed_problems(seed)
    refuse(ParameterError, "offline.evaluate", problems)
    refuse_searching(policy, "offline.evaluate")
    read = read_log(homdp, log, "offline.evaluate")
    graph, episodes = graph_of(policy, homdp), read.episodes
    notes = reward_notes(homdp, episodes)
    certified = None
    if read.counts is None:
        notes.append(f"no certified interval: {missing_states(episodes)}")
    else:
        sets = confidence_sets(homdp, read.counts, delta, mixture, known)
        certified = policy_interval(sets, graph)
    data = episodes if read.counts is None else read.counts
    belief = posterior(homdp, data, sampling=sampling)
    valued = ValueBelief(values_in(drawn_models(belief, draws, seed), graph), delta)
    used, chances = _behaviour(homdp, read, behaviour, window)
    weights = Weights.of(graph, chances, episodes, homdp)
    rewards, why = rewards_in(homdp, episodes)
    weighted: tuple[Estimate, ...] = ()
    logged = agreement = None
    if rewards is None:
        notes.append(f"no weighted estimates: {why}")
    else:
        logged = mean_of("mean return of the log", rewards.sum(1))
        weighted = _weighted(homdp, read, rewards, weights, graph)
        best = weighted[-1] if read.counts is not None else weighted[1]
        agreement = compare(valued.mean, valued.deviation, best, weights.effective)
        notes += _uncovered(weights)
    markov = None
    if read.counts is None:
        notes.append("no test whether the state is Markov: it needs all states")
    else:
        markov = markov_test_of(episodes, homdp)
    return Evaluation(
        homdp.name,
        len(episodes),
        delta,
        certified,
        valued,
        logged,
        weighted,
        used,
        weights.effective,
        agreement,
        markov,
        tuple(notes),
    )


def _behaviour(
    homdp: HOMDP, read: Log, behaviour: Policy | Behaviour | None, window: int
) -> tuple[str, Array]:
    """Where action probabilities come from, and those of the recorded actions, (N, H)."""
    if behaviour is None:
        behaviour = behaviour_of(homdp, read.episodes, window)
    if isinstance(behaviour, Behaviour):
        return f"estimated from {behaviour.uses}", behaviour.chances(read.episodes)
    refuse_searching(behaviour, "offline.evaluate")
    chances = action_chances(behaviour, read.episodes, homdp.spaces)
    refuse_impossible(chances, read.episodes)
    return "given", chances


def _weighted(
    homdp: HOMDP, read: Log, rewards: Array, weights: Weights, graph: GraphPolicy
) -> tuple[Estimate, ...]:
    found = [method(rewards, weights) for method in (importance_weighted, per_decision)]
    normalised = self_normalised(rewards, weights)
    found += [] if normalised is None else [normalised]
    if read.counts is not None:
        found.append(doubly_robust(homdp, read.episodes, rewards, weights, graph))
    return tuple(found)


def _uncovered(weights: Weights) -> list[str]:
    """A note if the behaviour never takes some actions of the policy: weights then miss them."""
    mean = mean_of("weights", weights.products[:, -1])
    if mean.value + CERTAIN * mean.error >= 1:
        return []
    return [
        f"the weights have mean {mean.value:.2g} instead of 1: the behaviour rarely or never takes "
        "some actions of the policy, and weighted estimates miss what happens after them"
    ]

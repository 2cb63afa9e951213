"""Certificates: bounds on the value of a deployed policy and on the optimum, from data alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from homdp_ppl.confidence.policies import policy_interval, refuse_searching
from homdp_ppl.confidence.ranges import value_ranges
from homdp_ppl.confidence.sets import confidence_sets
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.graph_policy import GraphPolicy, graph_of
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.spaces import require_finite
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import OptimismWarning
from homdp_ppl.explorers.anytime import anytime, optimistic_proposal
from homdp_ppl.learning.planning import TablePlanning
from homdp_ppl.precision import Array, in_x64

if TYPE_CHECKING:
    from homdp_ppl.learning.run import Run

GROWTH = 1.1  # of the number of rounds between two certificates
SHARED = ("delta", "mixture", "known")  # options of a rule that its certificates share


class Certificate(NamedTuple):
    """Bounds that use no knowledge of the world, in the user's units.

    With probability 1 - delta they all hold: ``lower`` is at most the value of the deployed policy,
    and ``upper`` is at least the optimum.

    Examples
    --------
    >>> from homdp_ppl import explorers, learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=3)
    >>> run = learn(world, explorers.greedy(), history_tree(), episodes=100, compiled=False)
    >>> certificate = run.certificate
    >>> bool((certificate.lower <= run.values[certificate.rounds - 1]).all())
    True
    >>> bool((certificate.upper >= run.optimum).all())
    True
    """

    rounds: Array  # (n,)  the number of rounds whose episodes were used
    lower: Array  # (n,)  on the value of the policy that was deployed in the last of these rounds
    upper: Array  # (n,)  on the optimum
    delta: float  # allowed probability that one of the bounds is wrong

    @property
    def gap(self) -> Array:
        """An upper bound on the optimum minus the value of the deployed policy, (n,)."""
        return self.upper - self.lower

    def exceeds(self, optimistic: Array, tie: float = 0.0) -> Array:
        """Whether the best lower bound so far is above the optimistic value of the round, (n,).

        Then the optimistic value is below the optimum, since a policy that was deployed is better.

        Parameters
        ----------
        optimistic
            The optimistic values of all rounds of the run, ``run.optimistic``.
        tie
            Values that differ by less are equal up to rounding.
        """
        achieved: Array = np.maximum.accumulate(self.lower)
        exceeded: Array = achieved > optimistic[self.rounds - 1] + tie
        return exceeded

    @classmethod
    def empty(cls, delta: float) -> Certificate:
        """No bounds yet."""
        return cls(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0), delta)

    def add(self, rounds: int, lower: float, upper: float) -> Certificate:
        """One more certificate; the upper bound never grows, since all bounds hold at once."""
        least = min([upper, *self.upper[-1:]])
        return Certificate(
            np.append(self.rounds, rounds),
            np.append(self.lower, lower),
            np.append(self.upper, least),
            self.delta,
        )

    def __repr__(self) -> str:
        if not len(self.rounds):
            return "Certificate: no rounds yet"
        last = f"value at least {self.lower[-1]:.4g}, optimum at most {self.upper[-1]:.4g}"
        chance = f"with probability {1 - self.delta:.6g}"
        return f"Certificate after {self.rounds[-1]:,} rounds: {last}, {chance}"


def checkpoints(done: int, rounds: int) -> Iterator[int]:
    """The numbers of rounds after which to certify: each 10 % more than the one before."""
    while done < rounds:
        done = min(max(done + 1, int(np.ceil(GROWTH * done))), rounds)
        yield done


class Certifier:
    """Computes certificates of a run: one plan by the anytime rule, and one policy evaluation.

    The options ``delta``, ``mixture`` and ``known`` are those of the rule, if it has them.

    Parameters
    ----------
    run
        The run.
    """

    def __init__(self, run: Run) -> None:
        task = run.task
        require_finite(task.world.spaces, "certificate", "counts of states and observations")
        options = task.explorer.about.options
        self._options: dict[str, Any] = {name: options[name] for name in SHARED if name in options}
        self.delta = float(self._options.get("delta", 0.1))
        self._model = task.model
        self._planning = TablePlanning(anytime(**self._options), task.planner, task.model)

    @in_x64
    def add(self, certificate: Certificate, run: Run, rounds: int, policy: Policy) -> Certificate:
        """Certify the policy of a round with the episodes of all rounds until then."""
        refuse_searching(policy, "certificate")
        graph = graph_of(policy, self._model)
        episodes = run.episodes[: rounds * run.task.episodes_per_round]
        counts = run.task.counts(episodes)
        lower, upper = certified_bounds(self._planning, self._model, counts, graph, self._options)
        return certificate.add(rounds, lower, upper)


def certified_bounds(
    planning: TablePlanning,
    homdp: HOMDP,
    counts: Counts,
    graph: GraphPolicy,
    options: Mapping[str, Any],
) -> tuple[float, float]:
    """A lower bound on the value of a policy and an upper bound on the optimum, in user units.

    Parameters
    ----------
    planning
        The planner with the anytime rule, which has the same options.
    homdp
        The declaration.
    counts
        The data.
    graph
        The policy.
    options
        Arguments of :func:`homdp_ppl.confidence.confidence_sets`.
    """
    sets = confidence_sets(homdp, counts, **options)
    upper = float(planning.plan(optimistic_proposal(sets, value_ranges(sets))).optimistic)
    return float(policy_interval(sets, graph).low), upper


def certify(run: Run) -> Certificate:
    """Certificates of a finished run at about 10 % more rounds each time, and at the end."""
    certifier = Certifier(run)
    certificate = Certificate.empty(certifier.delta)
    for rounds in checkpoints(0, len(run.values)):
        policy = run.policy if rounds == len(run.values) else run.policy_at(rounds - 1)
        certificate = certifier.add(certificate, run, rounds, policy)
    warn_if_exceeded(run, certificate)
    return certificate


def exceeded_by(run: Run, certificate: Certificate) -> bool:
    """Whether the last certified round has an optimistic value that its certificate refutes.

    Rules that only take random actions are never optimistic, so nothing is refuted.
    """
    acts = run.task.explorer.deployment.random_actions < 1
    found = certificate.exceeds(run.optimistic, run._tie)
    return bool(acts and found.size and found[-1])


def warn_if_exceeded(run: Run, certificate: Certificate) -> None:
    """Warn if :func:`exceeded_by` is true."""
    if exceeded_by(run, certificate):
        last = certificate.rounds[-1]
        warnings.warn(
            f"{run.task.explorer.name} in {run.model_name}, seed {run.task.seed}: the optimistic "
            f"value of round {last:,} is {run.optimistic[last - 1]:.4g}, but the certificate "
            f"proves that a policy achieves {certificate.lower.max():.4g}. The rule is not "
            "optimistic here and may be stuck. Check the prior, or use explorers.anytime().",
            OptimismWarning,
            stacklevel=3,
        )


def run_until_certified(
    runs: list[Run],
    rounds: int,
    advance: Callable[[list[Run], int], list[Run]],
    stop_when: float,
) -> list[tuple[Run, Certificate]]:
    """Continue runs until their certified gaps are at most ``stop_when``, or to the end.

    The sets hold at all times at once, so stopping at the first such time is valid.

    Parameters
    ----------
    runs
        The runs, before their first rounds.
    rounds
        The number of rounds at which to stop at the latest.
    advance
        Continues several runs to a number of rounds.
    stop_when
        The gap, in the user's units.
    """
    certifiers = [Certifier(run) for run in runs]
    found = [(run, Certificate.empty(c.delta)) for run, c in zip(runs, certifiers, strict=True)]
    active = list(range(len(runs)))
    for at in checkpoints(0, rounds):
        continued = advance([found[k][0] for k in active], at)
        for k, run in zip(active, continued, strict=True):
            certificate = certifiers[k].add(found[k][1], run, at, run.policy)
            found[k] = run, certificate
        active = [k for k in active if found[k][1].gap[-1] > stop_when]
        if not active:
            break
    for run, certificate in found:
        warn_if_exceeded(run, certificate)
    return found

"""The value of hindsight: regret against the share of states that are revealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from homdp_ppl.core.arguments import (
    count_problems,
    flag_problems,
    number_problems,
    refuse,
    share_problems,
)
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.reveal import Reveal
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import InferenceError, ParameterError, Problem, shown
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.learning.learn import learn
from homdp_ppl.learning.metrics import Measured
from homdp_ppl.learning.planning import Planner
from homdp_ppl.posteriors.symmetries import Symmetry, label_symmetries
from homdp_ppl.precision import Array
from homdp_ppl.study.observing import extra_problems, observing
from homdp_ppl.study.sources import find_planner
from homdp_ppl.study.summary import episodes_to

SHARES = (0.0, 0.02, 0.05, 0.2, 0.5, 1.0)
BAND = (0.05, 0.95)  # quantiles over the seeds


class ShareRow(NamedTuple):
    """The results of one rule with one share of revealed states, over all seeds.

    Examples
    --------
    >>> row = ShareRow("greedy", 0.2, 5.0, 0.4, 3.1, 7.2, 120.0, 1.5, 0.3)
    >>> row.regret, row.more  # 1.5 more than with the largest share
    (5.0, 1.5)
    """

    rule: str
    share: float  # nan with foresight, and with extra observations
    regret: float  # mean over the seeds
    error: float  # its standard error
    low: float  # the 5% quantile over the seeds
    high: float  # the 95% quantile
    needed: float  # episodes until the average regret stays below epsilon, median
    more: float  # regret minus that of the largest share, mean over paired seeds
    more_error: float  # its standard error
    hindsight: str = "states"  # what is revealed: states, all states with foresight, observations


@dataclass(frozen=True, eq=False)
class HindsightStudy:
    """Runs of several rules with several shares of revealed states.

    Attributes
    ----------
    protocol
        Which states are revealed; its share is replaced by each of ``shares``.
    shares
        The shares, in increasing order.
    runs
        For each rule and share, one run per seed.
    foresight
        For each rule, runs in which a collector that sees the state gathers the episodes, all of
        whose states are revealed.
    epsilon
        The threshold of :func:`episodes_to`.
    extra
        For each rule, runs in which no state is revealed, but further independent observations of
        each visited state.
    observations
        The number of these observations per state.
    symmetries
        Label symmetries of the learner's declaration, which matter if nothing is revealed.

    Examples
    --------
    >>> from homdp_ppl import explorers, models
    >>> world, rules = models.load("tiger_table", horizon=2), [explorers.posterior_sampling()]
    >>> found = hindsight(world, rules, episodes=5, seeds=[0, 1], shares=(0.5, 1))
    >>> found.regret("posterior_sampling").shape, len(found.steps("posterior_sampling"))
    ((2, 2), 1)
    """

    protocol: Reveal
    shares: tuple[float, ...]
    runs: Mapping[str, Mapping[float, Sequence[Measured]]]
    foresight: Mapping[str, Sequence[Measured]]
    epsilon: float
    symmetries: tuple[Symmetry, ...]
    extra: Mapping[str, Sequence[Measured]] = field(default_factory=dict)
    observations: int = 0

    @checked
    def regret(self, rule: str) -> Array:
        """The regret of a rule at the end of each run, (shares, seeds)."""
        if rule not in self.runs:
            expected = f"one of {', '.join(self.runs)}"
            raise ParameterError("HindsightStudy", [Problem("rule", shown(rule), expected)])
        return np.array([[run.lost[-1] for run in self.runs[rule][s]] for s in self.shares])

    @property
    def rows(self) -> list[ShareRow]:
        """One row per rule and share; those with foresight and extra observations are last."""
        found = []
        for rule, by_share in self.runs.items():
            fullest = by_share[self.shares[-1]]
            found += [self._row(rule, s, by_share[s], fullest) for s in self.shares]
            others = {"foresight": self.foresight, "observations": self.extra}
            found += [
                self._row(rule, np.nan, several[rule], fullest)._replace(hindsight=kind)
                for kind, several in others.items()
                if rule in several
            ]
        return found

    @checked
    def steps(self, rule: str) -> list[tuple[float, float]]:
        """For each two successive shares, the paired difference in regret and its standard error.

        A difference is negative if revealing more states lowers the regret.
        """
        return [_paired(difference) for difference in np.diff(self.regret(rule), axis=0)]

    def _row(
        self, rule: str, share: float, runs: Sequence[Measured], fullest: Sequence[Measured]
    ) -> ShareRow:
        regret = np.array([run.lost[-1] for run in runs])
        low, high = np.quantile(regret, BAND)
        needed = float(np.median([episodes_to(run, self.epsilon) for run in runs]))
        more = _paired(regret - np.array([run.lost[-1] for run in fullest]))
        return ShareRow(rule, share, *_paired(regret), float(low), float(high), needed, *more)

    def __repr__(self) -> str:
        seeds = len(next(iter(next(iter(self.runs.values())).values())))
        lines = [f"Hindsight study with {seeds} seeds: regret by share of {self._unit} revealed"]
        for row in self.rows:
            lines.append(f"{row.rule}, {kind_of(self, row)}: {row.regret:.4g} +- {row.error:.2g}")
        if self.symmetries and any(symmetry.matters for symmetry in self.symmetries):
            lines.append(f"label symmetries: {'; '.join(map(str, self.symmetries[:3]))}")
        return "\n  ".join(lines)

    @property
    def _unit(self) -> str:
        return "last states" if self.protocol.states == "last" else f"{self.protocol.unit}s"


@checked_but("shares")
def hindsight(
    world: World,
    rules: Sequence[Explorer],
    planner: Planner | None = None,
    episodes: int = 300,
    seeds: Sequence[int] = tuple(range(10)),
    *,
    shares: Sequence[float] = SHARES,
    protocol: Reveal = Reveal(),  # noqa: B008  frozen
    model: HOMDP | None = None,
    foresight: bool = True,
    observations: int = 0,
    epsilon: float = 0.1,
) -> HindsightStudy:
    """Measure the value of hindsight: run rules with different shares of revealed states.

    All runs with the same seed use the same random numbers of the world, and a smaller share
    reveals some of the states that a larger share reveals. Differences between shares are therefore
    compared in pairs.

    Parameters
    ----------
    world
        The true world.
    rules
        The exploration rules. See :func:`homdp_ppl.learn` for those that accept missing states.
    planner
        The planner. Default: one that is chosen for the world.
    episodes
        Episodes per run.
    seeds
        The seeds, one run each per rule and share.
    shares
        The shares, from 0 to 1.
    protocol
        Which states are revealed.
    model
        The learner's declaration. Default: that of the world.
    foresight
        Whether to add runs in which a collector that sees the state gathers the episodes.
    observations
        Add runs in which no state is revealed, but this many further independent observations of
        each visited state (Guo et al. 2023, arXiv 2307.02884). Default: no such runs. They need a
        rule that plans for draws of a posterior, and a model with one sensor.
    epsilon
        Threshold on the average regret for the number of episodes until it stays below.

    Returns
    -------
    HindsightStudy
        The runs, with one row per rule and share; :func:`homdp_ppl.report.draw_hindsight` draws it.

    Examples
    --------
    >>> from homdp_ppl import explorers, models
    >>> world = models.load("tiger_table", horizon=2)
    >>> found = hindsight(
    ...     world, [explorers.posterior_sampling()], episodes=5, seeds=[0, 1], shares=(0, 1)
    ... )
    >>> [(row.rule, row.share) for row in found.rows]
    [('posterior_sampling', 0.0), ('posterior_sampling', 1.0), ('posterior_sampling', nan)]
    >>> [str(symmetry) for symmetry in found.symmetries]
    ['left -> right, right -> left']
    """
    names = [rule.name for rule in rules]
    problems = number_problems(epsilon=epsilon) + flag_problems(foresight=foresight)
    problems += count_problems(0, observations=observations)
    if not names or len(set(names)) < len(names):
        problems.append(Problem("rules", ", ".join(names) or "none", "rules with different names"))
    if not len(seeds):
        problems.append(Problem("seeds", "none", "at least one seed"))
    chosen = list(shares) if isinstance(shares, list | tuple | np.ndarray) else []
    chosen = [] if any(np.ndim(share) for share in chosen) else chosen
    wrong = [problem for share in chosen for problem in share_problems(shares=share)]
    if wrong or not chosen or len(set(chosen)) < len(chosen):
        expected = "a list of different numbers from 0 to 1"
        problems.append(Problem("shares", shown(shares, 80), expected))
    refuse(ParameterError, "hindsight", problems)
    ordered = tuple(sorted(float(share) for share in chosen))
    declared = world.homdp if model is None else model
    if planner is None:
        planner = find_planner("auto", world, declared)
    if observations:
        wrong = [
            problem for rule in rules for problem in extra_problems(declared, rule, observations)
        ]
        refuse(ParameterError, "hindsight", wrong)
    common = planner, episodes, list(seeds), model
    runs = {
        rule.name: {
            share: learn(world, rule, *common, reveal=protocol.with_share(share))
            for share in ordered
        }
        for rule in rules
    }
    collected = rules if foresight else ()
    seeing = {rule.name: learn(world, rule, *common, foresight=True) for rule in collected}
    extra = {}
    for rule in rules if observations else ():
        parts = observing(world, rule, planner, declared, observations)
        again = parts[0], rule, parts[1], episodes, list(seeds), parts[2]
        extra[rule.name] = learn(*again, reveal=Reveal(0.0))
    measured = float(epsilon), symmetries_of(declared), extra, observations
    return HindsightStudy(protocol, ordered, runs, seeing, *measured)


def name_of(study: HindsightStudy, kind: str) -> str:
    """A kind of hindsight other than revealed states, in words."""
    if kind == "foresight":
        return kind
    return f"{study.observations:,} more observation{'s' * (study.observations > 1)}"


def kind_of(study: HindsightStudy, row: ShareRow) -> str:
    """What is revealed in the runs of a row: a share, or a kind of hindsight in words."""
    return f"{row.share:.6g}" if row.hindsight == "states" else name_of(study, row.hindsight)


def symmetries_of(homdp: HOMDP) -> tuple[Symmetry, ...]:
    """The label symmetries of a declaration; none if they cannot be determined."""
    try:
        return tuple(label_symmetries(homdp)) if homdp.spaces.finite else ()
    except InferenceError:
        return ()


def _paired(differences: Array) -> tuple[float, float]:
    """The mean and its standard error, nan for a single seed."""
    n = len(differences)
    error = float(np.std(differences, ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return float(np.mean(differences)), error

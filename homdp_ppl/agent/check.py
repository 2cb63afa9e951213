"""Checks of a declaration against what happened to an agent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import numpy as np

from homdp_ppl.agent.actor import Actor
from homdp_ppl.agent.delays import association, delayed
from homdp_ppl.agent.importance import UncertainRow, uncertain_rows
from homdp_ppl.agent.ledger import Ledger, Session, episodes_of
from homdp_ppl.agent.outcomes import drift, fit, outcomes_of
from homdp_ppl.agent.replaying import Groups, Replays, groups_of, observed, replay
from homdp_ppl.core import html
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.graph_policy import graph_of
from homdp_ppl.core.policy import Policy, Searching
from homdp_ppl.core.spaces import require_finite
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.sizes import draw_problems
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.posteriors.belief import Posterior
from homdp_ppl.posteriors.predictive import Finding, discrepancies, finding_of
from homdp_ppl.posteriors.tables import tables_at
from homdp_ppl.precision import Array, in_x64

LEVEL = 0.05  # probability of any unusual finding if the declaration is correct
MOST = 11  # findings of a check
FEWEST = 2 * round(MOST / LEVEL) - 1  # draws for which every finding can be unusual
DRAWS = 500
LAST = 1000  # episodes that are checked, from the last one backwards
WINDOWS = 8  # in which optimistic and delivered returns are compared
EXCLUDED = "reveals that the declaration excludes"
LISTED = 3  # uncertain rows in a summary


ROWS = ("row", "draws", "moves the value by")
PERIOD = ("episodes", "revealed", "optimistic", "expected", "delivered", "standard error")


class Window(NamedTuple):
    """Optimistic values and delivered returns in a part of the episodes, in the user's units."""

    first: int  # ordinals of episodes, from 1
    last: int
    episodes: int  # revealed ones
    optimistic: float  # mean of the optimistic values of the policies; NaN if unknown
    expected: float  # mean return of the replays, under the current posterior
    delivered: float  # mean return
    error: float  # standard error of the mean return


@dataclass(frozen=True, eq=False, repr=False)
class LiveCheck:
    """The episodes of an agent compared with replays under the policies that were in force.

    Created by :meth:`Agent.check`; its ``repr`` is a summary.

    Attributes
    ----------
    homdp
        The declaration.
    episodes
        The number of episodes that were replayed.
    revealed
        How many of them are revealed.
    draws
        The number of models drawn from the posterior, each with one set of replays.
    findings
        Comparisons, with p-values.
    windows
        Optimistic values and delivered returns over time.
    rows
        The rows of the tables whose uncertainty moves the value of the current policy most.
    notes
        What was left out, and why.
    """

    homdp: HOMDP
    episodes: int
    revealed: int
    draws: int
    findings: tuple[Finding, ...]
    windows: tuple[Window, ...]
    rows: tuple[UncertainRow, ...]
    notes: tuple[str, ...]

    @cached_property
    def unusual(self) -> tuple[str, ...]:
        """The names of the unusual findings.

        If the declaration is correct, a check has any of them with probability at most 5 %.
        """
        level = LEVEL / max(len(self.findings), 1)
        return tuple(finding.what for finding in self.findings if finding.p <= level)

    def summary(self) -> str:
        """The findings as text."""
        said = f"unusual: {', '.join(self.unusual)}" if self.unusual else "nothing unusual"
        noun = f"episode{'s' * (self.episodes != 1)}"
        lines = [
            f"{self.homdp.name}: {self.episodes:,} {noun} ({self.revealed:,} revealed) against "
            f"{self.draws:,} sets of replays, {said}"
        ]
        for what, seen, low, high, p in self.findings:
            mark = "!" if what in self.unusual else " "
            lines.append(
                f"{mark} {what}: {seen:.4g} observed, {low:.4g} to {high:.4g} predicted "
                f"(p = {p:.3g})"
            )
        lines += [
            f"  episodes {w.first:,} to {w.last:,}: optimistic value {w.optimistic:.4g}, expected "
            f"{w.expected:.4g}, delivered {w.delivered:.4g} ± {w.error:.2g}"
            for w in self.windows
        ]
        lines += [
            f"  {row.table} of {row.row}: {row.draws:,} draws, moves the value by {row.spread:.2g}"
            for row in self.rows[:LISTED]
        ]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        found = [
            (f.what, "unusual" if f.what in self.unusual else "", f.observed, f.low, f.high, f.p)
            for f in self.findings
        ]
        said = f"unusual: {', '.join(self.unusual)}" if self.unusual else "nothing unusual"
        head = ("finding", "", "observed", "predicted from", "to", "p")
        periods = [(f"{w.first:,} to {w.last:,}", *w[2:]) for w in self.windows]
        rows = [(f"{r.table} of {r.row}", r.draws, r.spread) for r in self.rows[:LISTED]]
        return html.block(
            html.paragraph(f"{self.homdp.name}, {self.episodes:,} episodes: {said}", strong=True),
            html.table("Findings", head, found),
            html.table("Returns over time", PERIOD, periods) if periods else "",
            html.table("Rows that matter most", ROWS, rows) if rows else "",
            html.listing(self.notes),
        )


@in_x64
def check_agent(
    ledger: Ledger, actor: Actor, belief: Posterior, policy: Policy, draws: int, last: int
) -> LiveCheck:
    """Compare the last episodes of a ledger with replays; see :meth:`Agent.check`."""
    homdp, seed = actor.learner.homdp, actor.learner.seed
    require_finite(homdp.spaces, homdp.name, "check")
    problems = draw_problems("draws", draws, homdp.sites, homdp.spaces)
    if draws < FEWEST:
        remedy = "With fewer draws no finding can be unusual."
        problems = [Problem("draws", str(draws), f"at least {FEWEST}", remedy)]
    if problems:
        raise DataError("check", problems)
    groups, skipped = groups_of(ledger, actor, last)
    shown = [session for session in ledger.complete[-last:] if session.actions]
    if not groups.sessions and not shown:
        expected = "an episode that was played to its end, or that is revealed"
        raise DataError("check", [Problem("episodes", "none", expected)])
    parameters = belief.parameters(jax.random.key(seed), draws)
    tables, generator = tables_at(homdp, parameters, draws), np.random.default_rng(seed)
    findings, windows = list[Finding](), list[Window]()
    if groups.sessions:
        returns = _returns(homdp, groups)
        ours = observed(homdp, groups, returns)
        theirs = replay(homdp, groups, homdp.model_of(tables), parameters, seed)
        findings += _of_replays(ours, theirs, len(groups.sessions))
        known = ~np.isnan(returns)
        if known.sum() > 1:
            findings += _of_returns(returns[known], theirs.returns[:, known])
        windows = _windows(ledger, groups, returns, theirs.returns)
    if shown:
        data = outcomes_of(homdp, episodes_of(shown, homdp.spaces))
        for what, parts in (("states", data[:2]), ("observations", data[2:])):
            mine, others = fit(generator, homdp, parts, tables)
            findings.append(_paired(f"{what} given their causes", mine, others))
            trend, permuted = drift(generator, homdp, parts, draws)
            findings.append(finding_of(f"drift of {what}", np.asarray(trend), permuted, False))
    refused = [session for session in ledger.sessions if session.refused is not None]
    if refused:
        findings.append(Finding(EXCLUDED, float(len(refused)), 0.0, 0.0, 0.0))
    late = association(delayed(ledger.sessions)[-last:], homdp.spaces, seed)
    if late is not None:
        what = f"delay of reveals by state ({late.state})"
        findings.append(Finding(what, late.delay, late.otherwise, late.otherwise, late.p_value))
    rows = _rows(homdp, belief, policy, tables)
    notes = _notes(skipped, rows is None, refused)
    revealed = sum(session.is_complete for session in groups.sessions)
    return LiveCheck(
        homdp,
        len(groups.sessions),
        revealed,
        draws,
        tuple(findings),
        tuple(windows),
        tuple(rows or ()),
        notes,
    )


def _returns(homdp: HOMDP, groups: Groups) -> Array:
    """The return of each session, NaN if it is not revealed or a reward is missing."""
    returns = np.full(len(groups.sessions), np.nan)
    places = [k for k, session in enumerate(groups.sessions) if session.is_complete]
    if places:
        batch = episodes_of([groups.sessions[k] for k in places], homdp.spaces)
        returns[places] = np.asarray(homdp.rewards_of(batch)).sum(-1)
    return returns


def _of_replays(ours: Replays, theirs: Replays, episodes: int) -> list[Finding]:
    """Observations of all episodes, whether they are revealed or not."""
    found = []
    for what, mine, others in (
        ("observations by step", ours.seen, theirs.seen),
        ("pairs of observations", ours.pairs, theirs.pairs),
    ):
        total = max(float(mine.sum()), 1.0)
        if mine.size and mine.sum():
            numbers = discrepancies(mine[0] / total, others / total, int(total))
            found.append(finding_of(what, *numbers, False))
    return found


def _of_returns(returns: Array, replayed: Array) -> list[Finding]:
    """Mean and spread of the returns, and their trend relative to the replays."""
    time = np.arange(len(returns)) - (len(returns) - 1) / 2
    expected = replayed.mean(0)
    numbers = {
        "mean return": (returns.mean(), replayed.mean(1)),
        "spread of returns": (returns.std(), replayed.std(1)),
        "trend of returns": (
            (returns - expected) @ time / (time @ time),
            (replayed - expected) @ time / (time @ time),
        ),
    }
    return [finding_of(what, *pair, True) for what, pair in numbers.items()]


def _paired(what: str, ours: Array, theirs: Array) -> Finding:
    """A discrepancy from each model, compared with that of counts simulated in the same model."""
    low, high = np.quantile(theirs, [0.05, 0.95])
    beyond = 1 + int((theirs >= ours - 1e-9).sum())
    return Finding(what, float(ours.mean()), float(low), float(high), beyond / (1 + len(ours)))


def _windows(ledger: Ledger, groups: Groups, returns: Array, replayed: Array) -> list[Window]:
    known = np.flatnonzero(~np.isnan(returns))
    found = []
    for part in np.array_split(known, min(WINDOWS, max(len(known) // 2, 1))):
        if not len(part):
            continue
        sessions = [groups.sessions[k] for k in part]
        made = [ledger.decisions[s.decision].optimistic for s in sessions if s.decision is not None]
        optimistic = [value for value in made if value is not None]
        n = len(part)
        error = float(returns[part].std(ddof=1) / n**0.5) if n > 1 else float("nan")
        found.append(
            Window(
                sessions[0].ordinal + 1,
                sessions[-1].ordinal + 1,
                n,
                float(np.mean(optimistic)) if optimistic else float("nan"),
                float(replayed[:, part].mean()),
                float(returns[part].mean()),
                error,
            )
        )
    return found


def _rows(
    homdp: HOMDP, belief: Posterior, policy: Policy, tables: object
) -> list[UncertainRow] | None:
    """The uncertain rows that matter, None if the policy searches online."""
    if isinstance(policy, Searching):
        return None
    graph = graph_of(policy, homdp)
    counts = belief.data.counts if isinstance(belief.data, Evidence) else belief.counts
    return uncertain_rows(homdp, graph, belief.mean, tables, counts)  # type: ignore[arg-type]


def _notes(skipped: int, searching: bool, refused: list[Session]) -> tuple[str, ...]:
    notes = []
    if refused:
        notes.append(f"refused reveal of {refused[0].id!r}: {refused[0].refused}")
    if skipped:
        what = f"{skipped:,} episodes were not replayed: their policies plan online"
        notes.append(what)
    if searching:
        notes.append("the current policy plans online: its uncertain rows are not known")
    return tuple(notes)

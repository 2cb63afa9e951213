"""The tables of the page: how rules did, what they guarantee, what the prior does, and what the
theory says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import networkx as nx

from homdp_ppl import theory
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.report.look import counted
from homdp_ppl.report.page.html import Html, exact, number, table, tag, text
from homdp_ppl.study import Row, summarise

SCALED = "none (scaled bonuses)"
GUARANTEES = {
    "optimistic, frequentist": (
        "Optimistic with high probability in every world that the declaration allows (frequentist)."
    ),
    "optimistic, Bayesian": (
        "Optimistic at its level, on average over worlds drawn from the prior (Bayesian)."
    ),
    SCALED: "None: its bonuses are scaled, which voids the guarantee.",
    "none": "None: nothing bounds how often it is optimistic in a given world.",
}
DELTA = 0.1  # of the bounds beside which measured regret is put


def results_table(runs: Mapping[str, Sequence[Saved]], epsilon: float, caption: str) -> Html:
    """How rules did in one model: one row each, differences to the first.

    Parameters
    ----------
    runs
        For each rule's name its runs, all at their end.
    epsilon
        How near the optimum for the episodes that are needed.
    caption
        Above the table.
    """
    rows = summarise(runs, epsilon)
    head = [
        "rule",
        "seeds",
        "regret ± standard error",
        f"minus {rows[0].rule} [95%]",
        "last gap",
        "optimistic",
        "width",
        f"episodes to {epsilon:g}",
        "seconds a run",
    ]
    return table(head, [_cells(row, first=row is rows[0]) for row in rows], caption)


def _cells(row: Row, first: bool) -> list[Html]:
    marks = [
        word
        for word, holds in (("scaled", row.soundness == SCALED), ("estimated", row.estimated))
        if holds
    ]
    name = Html(
        text(row.rule) + "".join(" " + tag("span", text(word), class_="mark") for word in marks)
    )
    return [
        name,
        text(row.seeds),
        with_error(row),
        text("-") if first else difference(row),
        exact(row.gap),
        share(row.optimistic),
        exact(row.width),
        exact(row.needed, "not reached" if math.isinf(row.needed) else f"{row.needed:,.0f}"),
        exact(row.seconds, f"{row.seconds:.2g}"),
    ]


def with_error(row: Row) -> Html:
    """Mean regret and its standard error, which one seed does not have."""
    return (
        exact(row.regret)
        if math.isnan(row.error)
        else Html(f"{exact(row.regret)} ± {exact(row.error, f'{row.error:.2g}')}")
    )


def difference(row: Row) -> Html:
    """The paired difference with its interval, which one seed does not have."""
    low, high = row.interval
    sign = "+" if row.less > 0 and number(row.less) != "0" else ""
    told = exact(row.less, sign + number(row.less))
    return told if math.isnan(low) else Html(f"{told} [{exact(low)}, {exact(high)}]")


def share(value: float) -> Html:
    """A share as a percentage."""
    return exact(value, "-" if math.isnan(value) else f"{value:.0%}")


def guarantee_table(runs: Mapping[str, Sequence[Saved]]) -> Html:
    """What each rule guarantees, in words."""
    found = {name: str(several[0].about["soundness"]) for name, several in runs.items()}
    rows = [
        [text(name), text(GUARANTEES.get(soundness, soundness))]
        for name, soundness in found.items()
    ]
    return wordy(table(["rule", "guarantee"], rows, "What is proved of each rule"))


def prior_table(runs: Mapping[str, Mapping[str, Sequence[Saved]]], epsilon: float) -> Html:
    """How Bayesian rules did under each prior.

    Differences are to the declared one of the same rule.

    Parameters
    ----------
    runs
        For each rule, for each prior its runs, the declared one first.
    epsilon
        As in :func:`results_table`.
    """
    rows = []
    for rule, several in runs.items():
        for k, row in enumerate(summarise(several, epsilon)):
            cells = (
                with_error(row),
                text("-") if k == 0 else difference(row),
                exact(row.gap),
                share(row.optimistic),
                exact(row.width),
            )
            rows.append([text(f"{rule}, {row.rule}"), text(row.seeds), *cells])
    head = [
        "rule, prior",
        "seeds",
        "regret ± standard error",
        "minus declared [95%]",
        "last gap",
        "optimistic",
        "width",
    ]
    return table(head, rows, "The same rules under other priors")


def theory_tables(spaces: Spaces, runs: Mapping[str, Sequence[Saved]], episodes: int) -> Html:
    """What was lost beside what can be lost at most, and the paper's statements for a model of
    these sizes.
    """
    statements = theory.report(spaces, episodes, DELTA)
    bound = next(row for row in statements if row.name == "regret of HOP-B")
    most = {name: several[0].optimum * len(several[0].values) for name, several in runs.items()}
    measured = [
        [
            text(row.rule),
            exact(row.regret),
            exact(most[row.rule]),
            exact(bound.value),
            ratio(row.regret / bound.value),
        ]
        for row in summarise(runs)
    ]
    head = [
        "rule",
        "measured regret",
        "regret of earning nothing",
        "HOP-B's bound",
        "measured / bound",
    ]
    beside = table(head, measured, f"Measured, and bounded with delta = {DELTA:g}")
    rows = [
        [text(row.name), exact(row.value), exact(row.trivial), text(_told(row)), text(row.source)]
        for row in statements
    ]
    head = ["statement", "value", "trivially", "says something", "appendix"]
    return Html(
        beside
        + table(
            head, rows, f"The paper's statements for {counted(episodes, 'episode')} and these sizes"
        )
    )


def ratio(value: float) -> Html:
    """A share that may be far below one."""
    return exact(value, f"{max(value, 0.0):.2g}")


def _told(row: theory.Statement) -> str:
    if row.informative:
        return "yes"
    return f"no: {row.note}" if math.isinf(row.since) else f"from {number(row.since)} episodes on"


def decisions_table(tree: nx.DiGraph, rows: int) -> Html:
    """The likeliest histories of a policy's tree, and what it does after each."""
    nodes = sorted(
        (data for node, data in tree.nodes(data=True) if node != 0),
        key=lambda data: -data["probability"],
    )
    cells = [
        [
            text(data["history"]),
            exact(data["probability"], f"{data['probability']:.3f}"),
            text(data["action"]),
            exact(data["value"]),
        ]
        for data in nodes[:rows]
    ]
    return table(
        ["after", "probability", "do", "value from here on"],
        cells,
        f"{len(cells)} of {len(nodes)} first decisions",
    )


def wordy(made: Html) -> Html:
    """A table whose cells are sentences."""
    return Html(made.replace("<td>", '<td class="words">'))

"""Tables of the page: results, guarantees, prior sensitivity, bounds and decisions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import networkx as nx

from homdp_ppl import theory
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.report.formatting import counted
from homdp_ppl.report.page.html import Html, exact, number, table, tag, text
from homdp_ppl.study import Row, summarise

SCALED = "none (scaled bonuses)"
GUARANTEES = {
    "optimistic, frequentist": (
        "Frequentist: optimistic with high probability in every world that the declaration allows."
    ),
    "optimistic, Bayesian": (
        "Bayesian: optimistic at its nominal level, on average over worlds drawn from the prior."
    ),
    SCALED: "None: the bonuses are scaled, which voids the guarantee.",
    "none": "None: the share of optimistic rounds has no proved bound.",
}
DELTA = 0.1  # failure probability of the bounds


def results_table(runs: Mapping[str, Sequence[Saved]], epsilon: float, caption: str) -> Html:
    """Results of the rules in one model, with differences from the first rule.

    Parameters
    ----------
    runs
        Complete runs, by rule.
    epsilon
        The average gap for the column of episodes needed.
    caption
        The caption of the table.
    """
    rows = summarise(runs, epsilon)
    head = [
        "rule",
        "seeds",
        "regret ± standard error",
        f"difference from {rows[0].rule} [95%]",
        "gap",
        "optimistic",
        "excess",
        f"episodes to average gap {epsilon:g}",
        "seconds per run",
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
    """Mean regret, with its standard error if there are several seeds."""
    return (
        exact(row.regret)
        if math.isnan(row.error)
        else Html(f"{exact(row.regret)} ± {exact(row.error, f'{row.error:.2g}')}")
    )


def difference(row: Row) -> Html:
    """The paired difference, with its interval if there are several seeds."""
    low, high = row.interval
    sign = "+" if row.less > 0 and number(row.less) != "0" else ""
    mean = exact(row.less, sign + number(row.less))
    return mean if math.isnan(low) else Html(f"{mean} [{exact(low)}, {exact(high)}]")


def share(value: float) -> Html:
    """A share as a percentage."""
    return exact(value, "-" if math.isnan(value) else f"{value:.0%}")


def guarantee_table(runs: Mapping[str, Sequence[Saved]]) -> Html:
    """The guarantee of each rule in words."""
    found = {name: str(several[0].about["soundness"]) for name, several in runs.items()}
    rows = [
        [text(name), text(GUARANTEES.get(soundness, soundness))]
        for name, soundness in found.items()
    ]
    return wordy(
        table(["rule", "guarantee"], rows, "What is proved about the optimism of each rule")
    )


def prior_table(runs: Mapping[str, Mapping[str, Sequence[Saved]]], epsilon: float) -> Html:
    """Results of Bayesian rules under each prior, with differences from the declared prior.

    Parameters
    ----------
    runs
        Complete runs by rule and prior, the declared prior first.
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
        "difference from declared [95%]",
        "gap",
        "optimistic",
        "excess",
    ]
    return table(head, rows, "The same rules under different priors")


def theory_tables(spaces: Spaces, runs: Mapping[str, Sequence[Saved]], episodes: int) -> Html:
    """Measured regret with its bounds, and all bounds of the paper for a model of these sizes."""
    first = next(iter(runs.values()))[0]
    low, high = first.return_range
    scale = (high - low) / first.horizon
    statements = theory.report(spaces, episodes, DELTA, scale=scale)
    bound = next(row for row in statements if row.name == "regret of HOP-B")
    most = {
        name: (several[0].optimum - low) * len(several[0].values) for name, several in runs.items()
    }
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
        "regret with the lowest rewards",
        "bound of HOP-B",
        "measured / bound",
    ]
    compared = table(head, measured, f"Measured regret, and bounds with delta = {DELTA:g}")
    rows = [
        [
            text(row.name),
            exact(row.value),
            exact(row.trivial),
            text(_informative(row)),
            text(row.source),
        ]
        for row in statements
    ]
    head = ["statement", "value", "trivial bound", "informative", "appendix"]
    caption = f"Bounds of the paper for {counted(episodes, 'episode')} and these sizes"
    return Html(compared + table(head, rows, caption))


def ratio(value: float) -> Html:
    """A ratio, which may be much smaller than 1."""
    return exact(value, f"{max(value, 0.0):.2g}")


def _informative(row: theory.Statement) -> str:
    if row.informative:
        return "yes"
    return f"no: {row.note}" if math.isinf(row.since) else f"from {number(row.since)} episodes"


def decisions_table(tree: nx.DiGraph, rows: int) -> Html:
    """The likeliest histories of the tree of a policy, and the action after each."""
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
        ["history", "probability", "action", "remaining value"],
        cells,
        f"The likeliest {len(cells)} of the first {len(nodes)} decisions",
    )


def wordy(made: Html) -> Html:
    """A table whose cells contain sentences."""
    return Html(made.replace("<td>", '<td class="words">'))

"""Tables of the page: results, guarantees, prior sensitivity, bounds and decisions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import networkx as nx

from homdp_ppl import theory
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.report.formatting import counted
from homdp_ppl.report.page.exhibits import Certified
from homdp_ppl.report.page.html import Html, exact, number, table, tag, text
from homdp_ppl.study import Row, pairwise_differences, summarise

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
        "loss per episode",
        "gap per policy",
        "last gap",
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
    return [
        named(row.rule, row.guaranteed, *marks),
        text(row.seeds),
        with_error(row),
        text("-") if first else difference(row.less, row.interval),
        exact(row.per_episode),
        exact(row.per_policy),
        exact(row.gap),
        share(row.optimistic),
        exact(row.width),
        exact(row.needed, "not reached" if math.isinf(row.needed) else f"{row.needed:,.0f}"),
        exact(row.seconds, f"{row.seconds:.2g}"),
    ]


def named(rule: str, guaranteed: bool, *marks: str) -> Html:
    """The name of a rule, with a mark if optimism is proved for it, and other marks."""
    words = (*(("guarantee",) if guaranteed else ()), *marks)
    return Html(text(rule) + "".join(" " + tag("span", text(w), class_="mark") for w in words))


def differences_table(runs: Mapping[str, Sequence[Saved]]) -> Html:
    """The paired differences of all pairs of rules in one model."""
    rows = [
        [
            Html(" - ".join(map(named, (one.rule, one.other), one.guaranteed))),
            text(one.seeds),
            difference(one.mean, one.interval),
            text(one.clusters),
            chance(one.p_value),
            chance(one.adjusted),
        ]
        for one in pairwise_differences(runs)
    ]
    head = ["pair", "seeds", "difference [95%]", "clusters", "p", "p (Holm)"]
    return table(head, rows, "Paired differences of all pairs of rules")


def chance(p: float) -> Html:
    """A p-value."""
    return exact(p, "-" if math.isnan(p) else f"{p:.2g}" if p >= 1e-4 else "< 0.0001")


def with_error(row: Row) -> Html:
    """Mean regret, with its standard error if there are several seeds."""
    return (
        exact(row.regret)
        if math.isnan(row.error)
        else Html(f"{exact(row.regret)} ± {exact(row.error, f'{row.error:.2g}')}")
    )


def difference(value: float, interval: tuple[float, float]) -> Html:
    """A paired difference, with its interval if there are several seeds."""
    low, high = interval
    sign = "+" if value > 0 and number(value) != "0" else ""
    mean = exact(value, sign + number(value))
    return mean if math.isnan(low) else Html(f"{mean} [{exact(low)}, {exact(high)}]")


def share(value: float) -> Html:
    """A share as a percentage."""
    return exact(value, "-" if math.isnan(value) else f"{value:.0%}")


def guarantee_table(runs: Mapping[str, Sequence[Saved]]) -> Html:
    """The guarantee of each rule in words."""
    found = {name: str(several[0].about["soundness"]) for name, several in runs.items()}
    rows = [
        [named(name, runs[name][0].guaranteed), text(GUARANTEES.get(soundness, soundness))]
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
                text("-") if k == 0 else difference(row.less, row.interval),
                exact(row.gap),
                share(row.optimistic),
                exact(row.width),
            )
            name = named(f"{rule}, {row.rule}", row.guaranteed)
            rows.append([name, text(row.seeds), *cells])
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
        name: (several[0].optimum - low) * len(several[0].lost) for name, several in runs.items()
    }
    measured = [
        [
            named(row.rule, row.guaranteed),
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


def certificates_table(certificates: Sequence[Certified]) -> Html:
    """The certificates of the last policies, with the true values."""
    rows = [
        [
            text(one.rule),
            text(f"{1 - one.delta:g}"),
            exact(one.lower),
            exact(one.value),
            exact(one.upper),
            exact(one.optimum),
            exact(one.upper - one.lower),
            exact(one.optimum - one.value),
        ]
        for one in certificates
    ]
    head = [
        "rule",
        "probability",
        "value at least",
        "true value",
        "optimum at most",
        "true optimum",
        "certified gap",
        "true gap",
    ]
    return table(head, rows, f"Certificates after the runs with seed {certificates[0].seed}")


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

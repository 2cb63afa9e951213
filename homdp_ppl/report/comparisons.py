"""Tables that compare rules: results and paired differences; print them with ``rich.print``."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from rich import box
from rich.markup import escape
from rich.table import Table

from homdp_ppl.core.checked import checked
from homdp_ppl.study import Difference, Row

LEGEND = {  # the columns of comparison_table
    "seeds": "number of completed runs",
    "regret": "loss summed over all episodes played, mean over the seeds ± standard error",
    "difference": "regret minus the regret of the first rule, paired by seed, with 95% interval",
    "per episode": "mean loss of an episode played, with its random actions",
    "per policy": "mean gap of the policies, as in the theorem about HOP-V",
    "gap": "loss per episode of the last policy",
    "optimistic": "share of rounds with an optimistic value of at least the optimum",
    "excess": "optimistic value minus optimum, mean over the rounds",
    "within {epsilon:g}": "episodes until the average gap stays below this value, median of the "
    "seeds (-: not reached)",
    "seconds": "run time, mean over the seeds",
    "guarantee": "the kind of guarantee that is proved for the optimism of the rule",
}
MARK = "*"  # of rules with a guarantee
MARKED = f"{MARK} Optimism is proved for this rule."
BELOW = "!"  # of rules with runs whose certificates refute their optimistic values
REFUTED = f"{BELOW} The last optimistic value of a run is below a value that is certified."
SIGNIFICANT = 0.05  # of p-values, in tables


@checked
def comparison_table(
    rows: Collection[Row],
    title: str = "",
    epsilon: float = 0.1,
    width: int | None = None,
    without: Collection[str] = (),
) -> Table:
    """Results of several rules in one world, as computed by ``study.summarise``.

    Rules with a proved guarantee are marked by an asterisk. An exclamation mark is for rules with
    a run whose own certificate proves that its last optimistic value is below the optimum. The
    columns are:

    - *seeds*: the number of runs, if it differs between rules;
    - *regret*: the loss summed over all episodes played, mean over the seeds ± standard error;
    - *difference*: the regret minus the regret of the first rule, paired by seed, with its 95%
      interval;
    - *per episode*, *per policy*: the mean loss of an episode played, and the mean gap of the
      rounds' policies, if they differ, as they do for HOP-V;
    - *gap*: the loss per episode of the last policy;
    - *optimistic*: the share of optimistic rounds;
    - *excess*: the optimistic value minus the optimum, mean over the rounds;
    - *within 0.1*: the number of episodes until the average gap stays below ``epsilon``, median of
      the seeds; a dash if it does not;
    - *seconds*: the run time;
    - *guarantee*: the kind of guarantee that is proved for the optimism of the rule.

    Parameters
    ----------
    rows
        The result of ``study.summarise``.
    title
        The title of the table.
    epsilon
        The value that was given to ``study.summarise``.
    width
        The width available, in characters. Columns that do not fit are left out. Default: all
        columns.
    without
        Names of columns to leave out, for example so that several tables have the same columns.

    Examples
    --------
    >>> from homdp_ppl import explorers, models, study
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> runs = study.side_by_side(
    ...     world,
    ...     [explorers.oracle(world), explorers.uniform()],
    ...     history_tree(),
    ...     episodes=3,
    ...     seeds=[0, 1],
    ... )
    >>> table = comparison_table(study.summarise(runs))
    >>> (
    ...     list(table.columns[0].cells),
    ...     list(table.columns[2].cells),
    ... )  # 3 * (1.852 - 1.2667), whatever the seed
    (['oracle', 'uniform'], ['', '+1.76 (+1.76 to +1.76)'])
    """
    epsilon = float(epsilon)  # rational numbers cannot be formatted
    heads = ("rule", *(head.format(epsilon=epsilon) for head in LEGEND))
    near = f"within {epsilon:g}"
    lines = [_compared(k, row) for k, row in enumerate(rows)]
    columns = {head: [cells[k] for cells in lines] for k, head in enumerate(heads)}
    if len(lines) < 2:
        del columns["difference"]
    if len({row.seeds for row in rows}) < 2:
        del columns["seeds"]
    if all(math.isclose(row.per_episode, row.per_policy, abs_tol=1e-9) for row in rows):
        del columns["per episode"], columns["per policy"]
    widths = {
        head: max(map(len, [head, *cells]))
        for head, cells in columns.items()
        if head not in without
    }
    # Leave out whole columns, in this order, instead of truncating numbers.
    order = ("seconds", "excess", near, "guarantee", "optimistic", "gap", "per episode")
    for head in (*order, "per policy", "difference"):
        if width is not None and sum(widths.values()) + 3 * len(widths) + 1 > width:
            widths.pop(head, None)
    table = Table(
        title=escape(title) or None,
        title_justify="left",
        caption=REFUTED if any(row.below for row in rows) else None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
    )
    for head, widest in widths.items():
        words = head in ("rule", "guarantee")
        table.add_column(head, justify="left" if words else "right", no_wrap=True, min_width=widest)
    for k in range(len(lines)):
        table.add_row(*(escape(columns[head][k]) for head in widths))
    return table


def _compared(k: int, row: Row) -> tuple[str, ...]:
    """The cells of the k-th rule, in the order of ``LEGEND``."""
    return (
        marked(row.rule, row.guaranteed) + f" {BELOW}" * bool(row.below),
        str(row.seeds),
        _with_error(row.regret, row.error),
        "" if k == 0 else _with_interval(row.less, row.interval),
        _short(row.per_episode),
        _short(row.per_policy),
        _short(max(row.gap, 0.0)),
        "-" if math.isnan(row.optimistic) else f"{row.optimistic:.0%}",
        "-" if math.isnan(row.width) else _short(row.width),
        "-" if math.isinf(row.needed) else f"{row.needed:,.0f}",
        f"{row.seconds:.2g}",
        row.soundness.removeprefix("optimistic, ") + (", estimated" if row.estimated else ""),
    )


def _with_error(value: float, error: float) -> str:
    return _short(value) if math.isnan(error) else f"{_short(value)} ± {_short(error, 2)}"


def _with_interval(value: float, interval: tuple[float, float]) -> str:
    if math.isnan(interval[0]):
        return "-" if math.isnan(value) else _short(value, sign="+")
    low, high = (_short(end, sign="+") for end in interval)
    return f"{_short(value, sign='+')} ({low} to {high})"


def _short(value: float, digits: int = 3, sign: str = "") -> str:
    """A number with few digits, and without an exponent if it is below 10 million.

    Examples
    --------
    >>> _short(482.1), _short(312.4, 2), _short(-1219.0, sign="+"), _short(-1e-15)
    ('482', '312', '-1,219', '0')
    """
    value = round(value, 9) + 0.0  # the regret of an oracle may be -1e-15
    text = f"{value:{sign}.{digits}g}"
    return f"{value:{sign},.0f}" if "e+" in text and abs(value) < 1e7 else text


def marked(rule: str, guaranteed: bool) -> str:
    """The name of a rule, with a mark if optimism is proved for it."""
    return f"{rule} {MARK}" if guaranteed else rule


@checked
def differences_table(differences: Sequence[Difference], title: str = "") -> Table:
    """All paired differences of rules in one world, as ``study.pairwise_differences`` returns them.

    The columns are the pair; the mean of what the first rule of the pair lost minus what the second
    one lost, with its 95% interval; and the p-value of the sign-flip test with Holm's correction
    for all pairs. Pairs below 0.05 are bold. A "2" marks differences that form two clusters.

    Parameters
    ----------
    differences
        The result of ``study.pairwise_differences``.
    title
        The title of the table.

    Examples
    --------
    >>> from homdp_ppl import explorers, models, study
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> rules = [explorers.oracle(world), explorers.uniform()]
    >>> runs = study.side_by_side(world, rules, history_tree(), episodes=3, seeds=range(6))
    >>> table = differences_table(study.pairwise_differences(runs))
    >>> [list(column.cells) for column in table.columns]
    [['[bold]uniform - oracle[/]'], ['+1.76 (+1.76 to +1.76)'], ['1'], ['0.031'], ['0.031']]
    """
    table = Table(
        title=escape(title) or None, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1)
    )
    table.add_column("pair", no_wrap=True)
    for head in ("difference", "clusters", "p", "p (Holm)"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in differences:
        names = map(marked, (one.rule, one.other), one.guaranteed)
        pair = escape(" - ".join(names))
        table.add_row(
            f"[bold]{pair}[/]" if one.adjusted <= SIGNIFICANT else pair,
            _with_interval(one.mean, one.interval),
            str(one.clusters),
            _chance(one.p_value),
            _chance(one.adjusted),
        )
    return table


def _chance(p: float) -> str:
    return "-" if math.isnan(p) else f"{p:.2g}" if p >= 1e-4 else "< 0.0001"

"""Tables of episodes, models, plans, comparisons and bounds; print them with ``rich.print``."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from rich import box
from rich.markup import escape
from rich.table import Table

from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.plan import Plan
from homdp_ppl.core.spaces import describe, label_of
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import DataError, Problem, shown
from homdp_ppl.study import Row
from homdp_ppl.theory import Statement

LEGEND = {  # the columns of comparison_table
    "seeds": "number of completed runs",
    "regret": "mean over the seeds, ± standard error",
    "difference": "regret minus the regret of the first rule, paired by seed, with 95% interval",
    "gap": "loss per episode of the last policy",
    "optimistic": "share of rounds with an optimistic value of at least the optimum",
    "excess": "optimistic value minus optimum, mean over the rounds",
    "within {epsilon:g}": "episodes until the average gap stays below this value, median of the "
    "seeds (-: not reached)",
    "seconds": "run time, mean over the seeds",
    "guarantee": "the kind of guarantee that is proved for the optimism of the rule",
}


@checked_but("episode")
def seen_table(model: HOMDP, episode: Episode, title: str = "") -> Table:
    """Observations and actions of an episode, by name: the view of the policy.

    Parameters
    ----------
    model
        The declaration, for its names.
    episode
        One episode.
    title
        The title of the table.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import Episode, Trajectory, models
    >>> tiger = models.load("tiger", horizon=2).homdp
    >>> episode = Episode(
    ...     Trajectory(observations=np.array([0, 0]), actions=np.array([0, 2])),
    ...     states=np.array([0, 0, 1]),
    ... )
    >>> [list(column.cells) for column in seen_table(tiger, episode).columns]
    [['1', '2'], ['growl left', 'growl left'], ['listen', 'open right']]
    """
    episode = _one(model, episode, revealed=False)
    table = Table(
        "step", "observation", "action", title=escape(title) or None, title_justify="left"
    )
    for h, (y, a) in enumerate(zip(episode.observations, episode.actions, strict=True)):
        table.add_row(
            str(h + 1),
            escape(label_of(y, model.spaces.observations)),
            escape(model.spaces.actions[a]),
        )
    return table


def _one(model: HOMDP, episode: Episode, revealed: bool) -> Episode:
    """Convert one episode to indices; raise DataError for anything else."""
    if not isinstance(episode, Episode):
        remedy = "Select one of a batch: episodes[0]."
        raise DataError("report", [Problem("episode", shown(episode), "one episode", remedy)])
    found = Episodes.of(episode, model)
    return (found.require_revealed("revealed_table") if revealed else found)[0]


@checked_but("episode")
def revealed_table(model: HOMDP, episode: Episode, title: str = "") -> Table:
    """An episode with its latent states and rewards, as revealed in hindsight.

    Parameters
    ----------
    model
        The declaration, for its names and rewards.
    episode
        One episode.
    title
        The title of the table.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import Episode, Trajectory, models
    >>> tiger = models.load("tiger", horizon=2).homdp
    >>> episode = Episode(
    ...     Trajectory(observations=np.array([0, 0]), actions=np.array([0, 2])),
    ...     states=np.array([0, 0, 1]),
    ... )
    >>> list(
    ...     revealed_table(tiger, episode).columns[-1].cells
    ... )  # for listening, for opening the right door, and the return
    ['0.90', '1.00', '1.90']
    """
    episode = _one(model, episode, revealed=True)
    table = Table(
        "step",
        "latent state",
        "observation",
        "action",
        "reward",
        title=escape(title) or None,
        title_justify="left",
    )
    latent = [f"[bold]{escape(label_of(x, model.spaces.states))}[/]" for x in episode.states]
    rewards = model.rewards_of(episode)
    for h, (y, a) in enumerate(zip(episode.observations, episode.actions, strict=True)):
        seen, done = escape(label_of(y, model.spaces.observations)), escape(model.spaces.actions[a])
        table.add_row(str(h + 1), latent[h], seen, done, f"{rewards[h]:.2f}")
    table.add_row("end", latent[-1], "", "return", f"{model.returns(episode):.2f}")
    return table


@checked
def models_table(worlds: Mapping[str, World]) -> Table:
    """Models with their sizes, horizons and unknown parameters.

    Parameters
    ----------
    worlds
        Worlds, by name.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> table = models_table({"tiger": models.load("tiger", horizon=2)})
    >>> list(table.columns[2].cells)
    ['O: 1 shared parameter (accuracy), conjugate']
    """
    table = Table("model", "sizes", "unknown", show_lines=True)
    for name, world in worlds.items():
        X, Y, A, H, _ = world.spaces
        if not world.spaces.finite:
            unknown = ", ".join(site.name for site in world.homdp.sites)
        else:
            summary = world.homdp.structure.summary()
            unknown = "\n".join(
                f"{part}: {phrase}" for part, phrase in summary.items() if phrase != "known"
            )
        sizes = (
            f"{describe(X, 'state')}, {describe(Y, 'obs.')},\n{describe(A, 'action')}, H = {H}"
        ).replace("obs.s", "obs.")
        table.add_row(escape(name), sizes, escape(unknown) or "nothing")
    return table


@checked
def decisions_table(plan: Plan, rows: int = 6) -> Table:
    """The first decisions of a plan: the action after each history, and its value.

    Parameters
    ----------
    plan
        A plan for a finite model. Use ``plan.named(world)`` for the names of the model.
    rows
        The largest number of histories. The table contains all steps that fit, and at least the
        first.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> table = decisions_table(history_tree()(world.pomdp).named(world))
    >>> list(zip(table.columns[0].cells, table.columns[2].cells))[1:3]
    [('growl right', 'listen'), ('growl left, listen, growl left', 'open right')]
    """
    table = Table("history", "probability", "action", "remaining value")
    for node, data in plan.first_steps(rows).nodes(data=True):
        if node != 0:
            table.add_row(
                escape(data["history"]),
                f"{data['probability']:.3f}",
                escape(data["action"]),
                f"{data['value']:.4f}",
            )
    return table


@checked
def comparison_table(
    rows: Collection[Row],
    title: str = "",
    epsilon: float = 0.1,
    width: int | None = None,
    without: Collection[str] = (),
) -> Table:
    """Results of several rules in one world, as computed by ``study.summarise``.

    The columns are:

    - *seeds*: the number of runs, if it differs between rules;
    - *regret*: the sum of the gaps of all episodes, mean over the seeds ± standard error;
    - *difference*: the regret minus the regret of the first rule, paired by seed, with its 95%
      interval;
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
    widths = {
        head: max(map(len, [head, *cells]))
        for head, cells in columns.items()
        if head not in without
    }
    # Leave out whole columns, in this order, instead of truncating numbers.
    for head in ("seconds", "excess", near, "guarantee", "optimistic", "gap", "difference"):
        if width is not None and sum(widths.values()) + 3 * len(widths) + 1 > width:
            widths.pop(head, None)
    table = Table(
        title=escape(title) or None, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1)
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
        row.rule,
        str(row.seeds),
        _with_error(row.regret, row.error),
        "" if k == 0 else _with_interval(row.less, row.interval),
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


@checked
def theory_table(statements: Iterable[Statement]) -> Table:
    """The bounds of the paper, the corresponding trivial bounds, and whether they are informative.

    A bound is informative if it is better than the trivial bound; otherwise the table says from
    which number of episodes K it is.

    Parameters
    ----------
    statements
        The result of ``theory.report``.

    Examples
    --------
    >>> from homdp_ppl import models, theory
    >>> table = theory_table(theory.report(models.load("tiger", horizon=2), episodes=1000)[:1])
    >>> (
    ...     list(table.columns[0].cells),
    ...     list(table.columns[2].cells),
    ... )  # H K, the largest possible regret
    (['regret of HOP-B'], ['2,000'])
    """
    table = Table("statement", "value", "trivial bound", "informative", "appendix", "note")
    for column in table.columns[1:3]:
        column.justify = "right"
    for row in statements:
        later = "no" if math.isinf(row.since) else f"from K = {_number(row.since)}"
        table.add_row(
            escape(row.name),
            _number(row.value),
            _number(row.trivial),
            "[bold]yes[/]" if row.informative else later,
            row.source,
            escape(row.note),
        )
    return table


def _number(value: float) -> str:
    if math.isinf(value):
        return "-"
    return (
        f"{value:,.0f}"
        if 100 <= value < 1e6 or (value < 100 and value == int(value))
        else f"{value:.3g}"
    )

"""Tables, to be printed with ``rich.print``."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

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
from homdp_ppl.precision import x64
from homdp_ppl.study import Row
from homdp_ppl.theory import Statement


@checked_but("episode")
def seen_table(model: HOMDP, episode: Episode, title: str = "") -> Table:
    """What the policy saw and did, in the model's names; to be printed with ``rich.print``.

    Parameters
    ----------
    model
        The declaration, for its names.
    episode
        One episode.
    title
        What to write above.

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
    """One episode of the model, in indices; raises an error for anything else."""
    if not isinstance(episode, Episode):
        remedy = "Pick one: episodes[0]."
        raise DataError("report", [Problem("episode", shown(episode), "one episode", remedy)])
    found = Episodes.of(episode, model)
    return (found.require_revealed("revealed_table") if revealed else found)[0]


@checked_but("episode")
def revealed_table(model: HOMDP, episode: Episode, title: str = "") -> Table:
    """The same episode with its latent states and rewards.

    Parameters
    ----------
    model
        The declaration, for its names and rewards.
    episode
        One episode.
    title
        What to write above.

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
    ... )  # for listening, for the treasure, and their sum
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
    for h, (y, a) in enumerate(zip(episode.observations, episode.actions, strict=True)):
        x = episode.states[h]
        with x64():
            reward = model.reward(x, a) if callable(model.reward) else model.reward[h, x, a]
        seen, done = escape(label_of(y, model.spaces.observations)), escape(model.spaces.actions[a])
        table.add_row(str(h + 1), latent[h], seen, done, f"{float(reward):.2f}")
    table.add_row("end", latent[-1], "", "return", f"{model.returns(episode):.2f}")
    return table


@checked
def models_table(worlds: Mapping[str, World]) -> Table:
    """Models with their sizes, horizon and what is unknown in each.

    Parameters
    ----------
    worlds
        By the names to write.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> table = models_table({"tiger": models.load("tiger", horizon=2)})
    >>> list(table.columns[2].cells)
    ['O: 1 shared parameter (accuracy), conjugate']
    """
    table = Table("model", "sizes", "what is unknown", show_lines=True)
    for name, world in worlds.items():
        X, Y, A, H = world.spaces
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
    """The first decisions of a plan in words.

    What was seen, what it does then, and what that is worth.

    Parameters
    ----------
    plan
        A finite planner's; in a world's names after ``plan.named(world)``.
    rows
        As many steps are told as have no more than so many histories, but at least one.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> table = decisions_table(history_tree()(world.pomdp).named(world))
    >>> list(zip(table.columns[0].cells, table.columns[2].cells))[1:3]
    [('growl right', 'listen'), ('growl left, listen, growl left', 'open right')]
    """
    table = Table("after", "probability", "do", "value from here on")
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
    rows: Sequence[Row],
    title: str = "",
    epsilon: float = 0.1,
    width: int | None = None,
    without: Collection[str] = (),
) -> Table:
    """How several rules did in one world; see ``study.summarise``.

    Differences are paired by seed, with 95% intervals.

    Regret is summed over all episodes, with its standard error; "gap" is that of the last round,
    "optim." the share of rounds whose optimistic value covered the optimum, "width" how far above
    it that was on average, "to 0.1" the episodes until the average regret was below 0.1 for good,
    "sec" the seconds of a run. How many seeds a rule has is told where they differ.

    Parameters
    ----------
    rows
        What ``study.summarise`` returned.
    title
        What to write above.
    epsilon
        As it was given to ``study.summarise``.
    width
        Of the page, in characters; where it is too narrow some columns are left out. By default
        there are all.
    without
        Columns to leave out, as they are called above the table, so that several tables have the
        same.

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
    near = f"to {epsilon:g}"  # episodes until within epsilon
    heads = (
        "rule",
        "seeds",
        "regret",
        "minus first",
        "gap",
        "optim.",
        "width",
        near,
        "sec",
        "guarantee",
    )
    lines = [_compared(k, row) for k, row in enumerate(rows)]
    columns = {head: [cells[k] for cells in lines] for k, head in enumerate(heads)}
    if len(lines) < 2:
        del columns["minus first"]
    if len({row.seeds for row in rows}) < 2:
        del columns["seeds"]
    widths = {
        head: max(map(len, [head, *cells]))
        for head, cells in columns.items()
        if head not in without
    }
    for head in (
        "sec",
        "width",
        near,
        "guarantee",
        "optim.",
        "gap",
        "minus first",
    ):  # no number is cut: columns give way
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
    """The cells of one rule, the k-th."""
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
    """A number in a few digits, without an exponent where it has none to spare.

    Examples
    --------
    >>> _short(482.1), _short(312.4, 2), _short(-1219.0, sign="+"), _short(-1e-15)
    ('482', '312', '-1,219', '0')
    """
    value = round(value, 9) + 0.0  # an oracle's regret is no -1e-15
    told = f"{value:{sign}.{digits}g}"
    return f"{value:{sign},.0f}" if "e+" in told and abs(value) < 1e7 else told


@checked
def theory_table(statements: Iterable[Statement]) -> Table:
    """The paper's statements beside what holds anyway, and whether they say more.

    See ``theory.report``.

    Examples
    --------
    >>> from homdp_ppl import models, theory
    >>> table = theory_table(theory.report(models.load("tiger", horizon=2), episodes=1000)[:1])
    >>> (
    ...     list(table.columns[0].cells),
    ...     list(table.columns[2].cells),
    ... )  # H K, what any rule can lose at most
    (['regret of HOP-B'], ['2,000'])
    """
    table = Table("statement", "value", "trivially", "says something", "appendix", "note")
    for column in table.columns[1:3]:
        column.justify = "right"
    for row in statements:
        later = "no" if math.isinf(row.since) else f"not before K = {_number(row.since)}"
        told = "[bold]yes[/]" if row.informative else later
        table.add_row(
            escape(row.name),
            _number(row.value),
            _number(row.trivial),
            told,
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

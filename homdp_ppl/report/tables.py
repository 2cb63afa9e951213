"""Tables of episodes, models, plans and bounds; print them with ``rich.print``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.plan import Plan
from homdp_ppl.core.sensors import Sensors
from homdp_ppl.core.spaces import describe, label_of
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import DataError, Problem, shown
from homdp_ppl.theory import Statement


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
        "step", *_senses(model), "action", title=escape(title) or None, title_justify="left"
    )
    for h, (y, a) in enumerate(zip(episode.observations, episode.actions, strict=True)):
        table.add_row(str(h + 1), *_sensed(y, model), escape(model.spaces.actions[a]))
    return table


def _senses(model: HOMDP) -> list[str]:
    """The columns of observations: one per sensor if there are several."""
    return [escape(sensor) for sensor in model.spaces.sensors] or ["observation"]


def _sensed(observation: Any, model: HOMDP) -> list[str]:
    """An observation in these columns."""
    space = model.spaces.observations
    if isinstance(space, Sensors):
        return [escape(name) for name in space.split(int(observation)).values()]
    return [escape(label_of(observation, space))]


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
        *_senses(model),
        "action",
        "reward",
        title=escape(title) or None,
        title_justify="left",
    )
    latent = [f"[bold]{escape(label_of(x, model.spaces.states))}[/]" for x in episode.states]
    rewards = model.rewards_of(episode)
    for h, (y, a) in enumerate(zip(episode.observations, episode.actions, strict=True)):
        done = escape(model.spaces.actions[a])
        earned = "not recorded" if np.isnan(rewards[h]) else f"{rewards[h]:.2f}"
        table.add_row(str(h + 1), latent[h], *_sensed(y, model), done, earned)
    total = "unknown" if np.isnan(rewards).any() else f"{model.returns(episode):.2f}"
    nothing = [""] * len(_senses(model))
    table.add_row("end", latent[-1], *nothing, "return", total)
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

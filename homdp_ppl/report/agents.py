"""Pictures of agents: checks of the declaration, and explanations of decisions."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from homdp_ppl.agent.check import LEVEL, LiveCheck
from homdp_ppl.agent.explanation import Explanation
from homdp_ppl.core.checked import checked
from homdp_ppl.report.formatting import COLOURS, GREY, plain

LISTED = 12  # states or actions in a picture
SMALLEST = 1e-4  # p-values below are drawn here


@checked
def draw_live_check(check: LiveCheck, axes: tuple[Axes, Axes] | None = None) -> tuple[Axes, Axes]:
    """Plot the p-values of an agent's check, and optimistic values and delivered returns over time.

    Parameters
    ----------
    check
        The result of ``agent.check()``.
    axes
        Axes for the p-values and for the returns. Default: a new figure.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from homdp_ppl import Agent, explorers, models
    >>> from homdp_ppl.gym import HOMDPEnv
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> agent = Agent(world.homdp, explorers.greedy(), history_tree())
    >>> agent.train(HOMDPEnv(world), 20, seed=0)
    >>> left, right = draw_live_check(agent.check())
    >>> left.get_xlabel(), right.get_xlabel()
    ('p', 'episode')
    >>> plt.close(left.figure)
    """
    if axes is None:
        _, (left, right) = plt.subplots(1, 2, figsize=(10.0, 4.2), layout="constrained")
        axes = left, right
    left, right = axes
    found = check.findings[::-1]
    places, p = np.arange(len(found)), np.array([max(f.p, SMALLEST) for f in found])
    unusual = np.array([f.what in check.unusual for f in found], dtype=bool)
    left.axvline(LEVEL / max(len(found), 1), color=GREY, lw=1, ls="--", label="unusual to the left")
    left.scatter(p[~unusual], places[~unusual], color=COLOURS[0], zorder=2)
    left.scatter(p[unusual], places[unusual], color=COLOURS[1], marker="X", s=60, zorder=2)
    left.set_xscale("log")
    left.set(xlabel="p", xlim=(SMALLEST / 2, 1.5), yticks=places)
    left.set_yticklabels([plain(f.what) for f in found], fontsize=8)
    said = f"unusual: {len(check.unusual)}" if check.unusual else "nothing unusual"
    left.set_title(f"{plain(check.homdp.name)}, {check.episodes:,} episodes: {said}", fontsize=9)
    middle = np.array([(w.first + w.last) / 2 for w in check.windows])
    for name, colour, marker in (
        ("optimistic", COLOURS[5], "v"),
        ("expected", COLOURS[0], "s"),
        ("delivered", COLOURS[1], "o"),
    ):
        values = np.array([getattr(w, name) for w in check.windows])
        if name == "delivered" and len(middle):
            errors = np.array([w.error for w in check.windows])
            right.errorbar(middle, values, 2 * errors, fmt="none", ecolor=colour, capsize=3)
        right.plot(middle, values, marker=marker, color=colour, label=name, lw=1)
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.set(xlabel="episode", ylabel="return")
    right.set_title("Returns over time, with 2 standard errors", fontsize=9)
    for panel in axes:
        panel.legend(frameon=False, fontsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    return axes


@checked
def draw_explanation(
    explanation: Explanation, axes: tuple[Axes, Axes] | None = None
) -> tuple[Axes, Axes]:
    """Plot the belief over states and the value of each action, with its spread.

    Parameters
    ----------
    explanation
        The result of ``explain``.
    axes
        Axes for the belief and for the values. Default: a new figure.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from homdp_ppl import explain, models
    >>> from homdp_ppl.planners import history_tree
    >>> tiger = models.load("tiger", horizon=2)
    >>> policy = history_tree()(tiger.pomdp).policy
    >>> left, right = draw_explanation(explain(policy, tiger, ["growl left"], []))
    >>> [label.get_text() for label in right.get_yticklabels()]
    ['open right', 'open left', 'listen']
    >>> plt.close(left.figure)
    """
    if axes is None:
        _, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained")
        axes = left, right
    left, right = axes
    likely = sorted(explanation.belief.items(), key=lambda item: -item[1])[:LISTED][::-1]
    left.barh([plain(name) for name, _ in likely], [p for _, p in likely], color=COLOURS[0])
    left.set(xlabel="probability", xlim=(0, 1))
    left.set_title(f"After {plain(', '.join(explanation.observations))}", fontsize=9)
    actions = list(explanation.values.items())[:LISTED][::-1]
    places = np.arange(len(actions))
    for k, (name, value) in enumerate(actions):
        taken = name == explanation.action
        right.errorbar(
            value.value,
            k,
            xerr=value.spread,
            fmt="X" if taken else "o",
            color=COLOURS[1] if taken else COLOURS[0],
            capsize=3,
            label="taken" if taken else None,
        )
    right.set(xlabel="value of the remaining steps", yticks=places, ylim=(-0.6, len(actions) - 0.4))
    right.set_yticklabels([plain(name) for name, _ in actions])
    right.set_title("Actions, with their spread over the posterior", fontsize=9)
    right.legend(frameon=False, fontsize=8)
    for panel in axes:
        panel.spines[["top", "right"]].set_visible(False)
    return axes

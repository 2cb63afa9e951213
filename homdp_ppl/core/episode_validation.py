"""Validation of episodes: shapes, values, missing states, and steps that a model excludes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from homdp_ppl.core.episode import length_problems, missing_value
from homdp_ppl.core.episode_values import Known, Values
from homdp_ppl.core.form import Form
from homdp_ppl.core.sensors import ENDED
from homdp_ppl.core.spaces import Spaces, entry_place, shape_of, value_problems
from homdp_ppl.errors import Problem

if TYPE_CHECKING:
    from homdp_ppl.core.episodes import Episodes

LISTED = 20  # excluded steps that are reported individually
IMPOSSIBLE = "Check that the data come from this model, and that its program allows such steps."
GAPS = (
    "Counts of the revealed steps alone are biased if what is revealed depends on what was seen. "
    "posterior(homdp, episodes) sums over missing states."
)


class Support(Protocol):
    """The outcomes that a declaration allows, as tables of booleans."""

    @property
    def initial(self) -> Any:
        """(X,)."""

    @property
    def transition(self) -> Any:
        """(X, A, X)."""

    @property
    def emission(self) -> Any:
        """(X, Y)."""


def structure_problems(arrays: dict[str, Values]) -> list[Problem]:
    """Report arrays whose shapes do not fit together; needs no model."""
    actions = arrays["actions"]
    if actions.ndim != 2:
        remedy = "For one episode, use Episode(Trajectory(observations, actions), states)."
        return [Problem("actions", f"shape {actions.shape}", "shape (episodes, H)", remedy)]
    N, H = actions.shape
    wanted = {
        "observations": (N, H),
        "actions": (N, H),
        "states": (N, H + 1),
        "rewards": (N, H),
        "labels": (N, H + 1),
        "known states": (N, H + 1),
        "known rewards": (N, H),
        "known labels": (N, H + 1),
        "length": (N,),
        "ended": (N,),
        "ids": (N,),
    }
    problems = []
    for name, array in arrays.items():
        free = name == "ended" and array.ndim == 0
        shape_of = array.shape if name in ("length", "ended", "ids") else array.shape[:2]
        if not free and shape_of != wanted[name]:
            remedy = "The state after the last action is missing." * (
                name == "states" and array.shape[:2] == (N, H)
            )
            shape = f"shape {wanted[name]} for {N} episodes of {H} actions"
            problems.append(Problem(name, f"shape {array.shape}", shape, remedy))
    length = arrays["length"]
    if not problems and (length.dtype.kind not in "iu" or ((length < 0) | (length > H)).any()):
        problems.append(Problem("length", str(length), f"integers in 0..{H}"))
    return problems


def unseen_problems(
    parts: dict[str, Known | None], present: Known | None, ids: Values | None
) -> list[Problem]:
    """Report observations and actions that are missing before the end of an episode."""
    problems = []
    for name, known in parts.items():
        if known is not None:
            missing = ~known if present is None else ~known & present[:, 1:]
            places = np.argwhere(missing)[:8]
            problems += [missing_value(name, entry_place(index, ids)) for index in places]
    return problems


def problems_of(episodes: Episodes, spaces: Spaces) -> list[Problem]:
    """Report all problems of episodes with respect to the spaces of a model."""
    H = spaces.horizon
    trailing = {
        "observations": (H, *shape_of(spaces.observations)),
        "actions": (H,),
        "states": (H + 1, *shape_of(spaces.states)),
    }
    got = {name: getattr(episodes, name).shape[1:] for name in trailing}
    if got != trailing:
        expected = (
            f"{H} observations, {H} actions and {H + 1} states per episode: "
            f"shapes {', '.join(map(str, trailing.values()))}"
        )
        given = ", ".join(f"{name} {shape}" for name, shape in got.items())
        return [Problem("episodes", given, expected)]
    taken = None if episodes.full_length else episodes.steps
    revealed = None if taken is None and episodes.complete else episodes.revealed
    problems: list[Problem] = []
    for name, known in (("observations", taken), ("actions", taken), ("states", revealed)):
        space = getattr(spaces, name)
        problems += value_problems(name, getattr(episodes, name), space, known, episodes.ids)
    for name, known in (("rewards", episodes.rewards_known), ("labels", episodes.labels_known)):
        values = getattr(episodes, name)
        if values is not None:
            problems += _number_problems(name, values, known, episodes.ids)
    if taken is not None or (episodes.ended != "horizon").any():
        for k, (length, ended) in enumerate(zip(episodes.length, episodes.ended, strict=True)):
            at = f"episode {k if episodes.ids is None else repr(episodes.ids[k])}"
            problems += length_problems(int(length), str(ended), H, at)
    if spaces.terminal and not problems:
        problems += _terminal_problems(episodes, spaces)
    if episodes.ids is not None:
        names, counts = np.unique(
            [str(i) for i in episodes.ids if i is not None], return_counts=True
        )
        problems += [
            Problem("ids", f"{name!r} {n} times", "a different id for each episode")
            for name, n in zip(names[counts > 1], counts[counts > 1], strict=True)
        ]
    return problems


def _terminal_problems(episodes: Episodes, spaces: Spaces) -> list[Problem]:
    """Report episodes that continue after a terminal state, or end without one."""
    revealed, length = episodes.revealed, episodes.length
    ended = revealed & spaces.ends[np.where(revealed, episodes.states, 0)]  # (N, H + 1)
    before = np.arange(episodes.horizon + 1) < length[:, None]
    problems = [
        Problem(
            "states",
            f"{spaces.states[episodes.states[tuple(index)]]!r}, which is terminal",
            "no step after a terminal state",
            "End the episode there.",
            entry_place(index, episodes.ids),
        )
        for index in np.argwhere(ended & before)[:8]
    ]
    last = len(spaces.observations) - 1
    problems += [
        Problem(
            "observations",
            f"{ENDED!r}",
            "the observation of a step",
            "Leave it out: the end of an episode is not an observation of a step.",
            entry_place(index, episodes.ids),
        )
        for index in np.argwhere(episodes.steps & (episodes.observations == last))[:8]
    ]
    rows = np.arange(len(episodes))
    at_end, known = ended[rows, length], revealed[rows, length]
    wrong = known & (at_end != (episodes.ended == "terminal"))
    wrong &= ~(at_end & (episodes.ended == "horizon"))
    for k in np.flatnonzero(wrong)[:8]:
        state = spaces.states[episodes.states[k, length[k]]]
        got = f"{str(episodes.ended[k])!r} in the state {state!r}"
        expected = '"terminal"' if at_end[k] else f"a terminal state: {', '.join(spaces.terminal)}"
        place = entry_place((k, int(length[k])), episodes.ids)
        problems.append(Problem("ended", got, expected, at=place))
    return problems


def _number_problems(
    where: str, values: Values, known: Known | None, ids: Values | None
) -> list[Problem]:
    if values.dtype.kind not in "biuf":
        return [Problem(where, f"values of type {values.dtype}", "numbers")]
    wrong = ~np.isfinite(values).reshape(*values.shape[:2], -1).all(-1) if values.size else None
    if wrong is None:
        return []
    wrong = wrong if known is None else wrong & known
    return [
        Problem(where, str(values[tuple(index)]), "finite numbers", at=entry_place(index, ids))
        for index in np.argwhere(wrong)[:8]
    ]


def incomplete_problems(episodes: Episodes) -> list[Problem]:
    """Report states that are missing before the end of an episode."""
    if episodes.complete:
        return []
    ahead = np.arange(episodes.horizon + 1) <= episodes.length[:, None]
    gaps = np.argwhere(ahead & ~episodes.revealed)
    if not len(gaps):
        return []
    number = len(np.unique(gaps[:, 0]))
    got = f"{len(gaps):,} missing in {number:,} of {len(episodes):,} episodes"
    at = f"first in {entry_place(gaps[0], episodes.ids)}"
    return [Problem("states", got, "all states revealed", GAPS, at)]


def excluded_problems(
    episodes: Episodes, support: Support, form: Form, spaces: Spaces
) -> list[Problem]:
    """Report steps that a declaration excludes; only revealed states are read.

    ``form`` is the form of the tables of the support.
    """
    states, actions, seen = episodes.states, episodes.actions, episodes.observations
    before, after = states[:, :-1], states[:, 1:]
    moves, shows = form.step_places(states, seen, actions)
    # sparse tables: an impossible entry at the end of each row, for states without an entry
    padded = np.pad(support.transition, [(0, 0)] * (support.transition.ndim - 1) + [(0, 1)])
    excluded = {
        "initial": ~support.initial[states[:, :1]],
        "emission": ~support.emission[shows],
        "transition": ~(support.transition if form.pattern is None else padded)[moves],
    }
    if not episodes.complete:
        taken = episodes.steps & episodes.revealed[:, :-1]
        excluded["initial"] = excluded["initial"] & episodes.revealed[:, :1]
        excluded["emission"] = excluded["emission"] & taken
        excluded["transition"] = excluded["transition"] & taken & episodes.revealed[:, 1:]
    found = [
        (int(episode), int(step), order, where)
        for order, (where, wrong) in enumerate(excluded.items())
        for episode, step in np.argwhere(wrong)[:LISTED]
    ]
    problems = []
    for episode, step, _, where in sorted(found)[:LISTED]:
        x = before[episode, step]
        index = {
            "initial": [x],
            "emission": [x, seen[episode, step]],
            "transition": [x, actions[episode, step], after[episode, step]],
        }[where]
        got = f"{where} ({spaces.entry(where, index)}), declared impossible"
        at = entry_place((episode, step), episodes.ids)
        problems.append(Problem("data", got, "steps that the program allows", IMPOSSIBLE, at))
    more = sum(int(wrong.sum()) for wrong in excluded.values()) - len(problems)
    if more > 0:
        problems.append(Problem("data", f"{more} more", "steps that the program allows"))
    return problems


def summary(episodes: Episodes) -> str:
    """Describe the numbers of episodes and steps, and what is missing."""
    n, H = len(episodes), episodes.horizon
    said = [f"Episodes: {n:,} episode{'s' * (n != 1)} of {H:,} step{'s' * (H != 1)}"]
    if not episodes.full_length:
        said.append(f"{(episodes.length < H).sum():,} ended early")
    for name, known, steps in (
        ("states", episodes.revealed, episodes.length + 1),
        ("rewards", episodes.rewards_known, episodes.length),
        ("labels", episodes.labels_known, episodes.length + 1),
    ):
        if known is not None and known.sum() < steps.sum():
            said.append(f"{steps.sum() - known.sum():,} of {steps.sum():,} {name} missing")
        elif known is not None and name != "states":
            said.append(f"with {name}")
    if episodes.behaviour is not None:
        said.append(f"behaviour: {episodes.behaviour}")
    return ", ".join(said)

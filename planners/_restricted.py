"""The shape of a history tree with restricted actions: by a mask, an edited graph, or both.

Like _histories.py, but each generation also has the allowed actions of its histories, and branches
of other actions are left out. The tree grows step by step, and its size is checked before each
step, since the number of histories is not known in advance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.core.allowed import Allowed, allowed_table, history_words
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.memory import count
from homdp_ppl.planners._graph_shape import MOST, SUBJECT, HistoryShape
from homdp_ppl.planners._histories import Generation, Support
from homdp_ppl.precision import Array


class LargeTreeError(PlanningError):
    """Raised if the restricted tree has too many histories."""


class Restriction(NamedTuple):
    """How actions are restricted, and the largest number of histories."""

    allowed: Allowed | None
    graph: HistoryShape | None
    spaces: Spaces
    most: int

    def check(self) -> None:
        """Raise PlanningError if the graph was made for another model."""
        if self.graph is None:
            return
        _, Y, A, H = self.spaces.sizes
        given = {
            "observations": (len(self.graph.observations), Y),
            "actions": (len(self.graph.actions), A),
            "steps": (self.graph.horizon, H),
        }
        remedy = "Create the graph for this model: planners.history_graph(model)."
        problems = [
            Problem("graph", f"{graph} {word}", f"{model} {word}, as in the model", remedy)
            for word, (graph, model) in given.items()
            if graph != model
        ]
        if problems:
            raise PlanningError(SUBJECT, problems)


class _Front(NamedTuple):
    """The histories of one step while the tree grows."""

    states: Array  # (N, X)  which states are possible
    seen: Array  # (N, h)
    done: Array  # (N, h - 1)
    parent: Array  # (N,)
    place: Array  # (N,)  the index of the history in the graph, if there is one


def restricted_generations(support: Support, restriction: Restriction) -> list[Generation]:
    """All possible histories with allowed actions only, by step.

    Parameters
    ----------
    support
        Which probabilities can be non-zero. Impossible branches are pruned.
    restriction
        How actions are restricted.

    Raises
    ------
    PlanningError
        If a mask is invalid, if the graph lacks a possible observation after an action that it
        allows, or if there are too many histories.
    """
    restriction.check()
    _, Y, A = support.sizes
    horizon = restriction.spaces.horizon
    front, problems = _first(support, restriction)
    found: list[Generation] = []
    total = 0
    for h in range(horizon):
        total += len(front.parent)
        _check_size(total, h + 1, restriction)
        allowed = _allowed(front, h, restriction)
        last = h + 1 == horizon
        child = np.full((0 if last else len(front.parent), A, Y), -1, dtype=np.int32)
        before = np.zeros_like(front.parent) if h == 0 else front.done[:, -1].astype(np.int32)
        seen = front.seen[:, -1].astype(np.int32)
        found.append(Generation(front.parent, before, seen, child, False, allowed))
        if not last:
            front, missing = _next(support, h, restriction, front, found[-1])
            problems += missing
    if problems:
        raise PlanningError(SUBJECT, problems[:MOST])
    return found


def _first(support: Support, restriction: Restriction) -> tuple[_Front, list[Problem]]:
    """The histories of the first observation."""
    states = support.initial & support.first_shows().T  # (Y, X)
    possible, place, problems = states.any(1), np.full(len(states), -1), []
    if restriction.graph is not None:
        given = restriction.graph.steps[0].observation
        place[given] = np.arange(len(given))
        for y in np.flatnonzero(possible & (place < 0)):
            word = restriction.graph.observations[y]
            problems.append(_missing("node 0", f"the first observation {word!r}"))
        possible &= place >= 0
    seen = np.flatnonzero(possible)
    parent = np.zeros(len(seen), dtype=np.int32)
    done = np.zeros((len(seen), 0), dtype=int)
    return _Front(states[seen], seen[:, None], done, parent, place[seen]), problems


def _allowed(front: _Front, h: int, restriction: Restriction) -> Array:
    """The allowed actions of each history, (N, A)."""
    graph, spaces = restriction.graph, restriction.spaces
    mask: Array = np.ones((len(front.parent), len(spaces.actions)), dtype=bool)
    if restriction.allowed is not None:
        mask = allowed_table(restriction.allowed, front.seen, front.done, spaces, SUBJECT)
    if graph is None:
        return mask
    both = mask & np.asarray(graph.steps[h].allowed)[front.place]
    empty = np.flatnonzero(~both.any(1))[:MOST]
    if len(empty):
        remedy = "Allow an action whose nodes are in the graph."
        expected = "an action that both the graph and `allowed` permit"
        raise PlanningError(
            SUBJECT,
            [
                Problem(
                    "allowed",
                    "no action that is also in the graph",
                    expected,
                    remedy,
                    at=history_words(front.seen[n], front.done[n], spaces),
                )
                for n in empty
            ],
        )
    return both


def _next(
    support: Support, h: int, restriction: Restriction, front: _Front, generation: Generation
) -> tuple[_Front, list[Problem]]:
    """The histories of the next step, and the problems of the graph; fills in the children."""
    A, graph = len(restriction.spaces.actions), restriction.graph
    moves, shows = support.moves(h), support.shows_after(h + 1)
    reached = np.stack([front.states @ moves[:, a] for a in range(A)])  # (A, N, X)
    possible = (reached @ shows).swapaxes(0, 1)  # (N, A, Y)
    possible &= np.asarray(generation.allowed)[:, :, None]
    problems = []
    place: Array = np.zeros(0, dtype=int)
    if graph is not None:
        places = graph.steps[h].child[front.place]  # (N, A, Y)
        for n, a, y in np.argwhere(possible & (places < 0))[:MOST]:
            node = graph.nodes[h][front.place[n]]
            what = f"{graph.observations[y]!r} after {graph.actions[a]!r}"
            problems.append(_missing(f"node {node}", what))
        possible &= places >= 0
        place = places[possible]
    _check_size(int(possible.sum()), h + 2, restriction)
    parent, action, observation = np.nonzero(possible)
    generation.child[possible] = np.arange(len(parent))
    return _Front(
        states=reached[action, parent] & shows[action, :, observation],
        seen=np.concatenate([front.seen[parent], observation[:, None]], axis=1),
        done=np.concatenate([front.done[parent], action[:, None]], axis=1),
        parent=parent.astype(np.int32),
        place=place,
    ), problems


def _missing(where: str, what: str) -> Problem:
    remedy = (
        "Restore the node of this observation with its subtree, or remove all nodes of the action. "
        "What is observed cannot be chosen."
    )
    expected = "a node for every possible observation"
    return Problem("graph", f"no node for {what}", expected, remedy, at=where)


def _check_size(nodes: int, step: int, restriction: Restriction) -> None:
    if nodes > restriction.most:
        horizon = restriction.spaces.horizon
        got = f"{count(nodes)} histories up to step {step} of {horizon}"
        remedy = "Use a shorter horizon, or allow fewer actions."
        problem = Problem(f"horizon {horizon}", got, f"at most {restriction.most:,}", remedy)
        raise LargeTreeError(SUBJECT, [problem])

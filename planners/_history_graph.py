"""history_graph: the tree of possible histories as a networkx graph that a user can edit."""

from __future__ import annotations

from itertools import product
from typing import Any

import networkx as nx
import numpy as np

from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.checked import checked_but
from homdp_ppl.core.pomdp import POMDP, numbered_spaces
from homdp_ppl.core.pomdp_validation import validated
from homdp_ppl.core.spaces import Spaces, require_finite
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.memory import count, require_memory
from homdp_ppl.planners._histories import Support, check_support, counted
from homdp_ppl.precision import Array

SUBJECT = "history_graph"
NODE = 1400  # bytes of a node with its edge and its attributes, without the text of the history
WORD = 60  # bytes of one name in the text of a history
ENDLESS = 10**30  # counting stops at this number of histories


@checked_but("horizon")
def history_graph(model: World | POMDP | Support | HOMDP, horizon: int | None = None) -> nx.DiGraph:
    """All possible histories as a networkx graph, to edit and to plan on.

    Nodes are integers. Node 0 is the start; every other node is a history y_1, a_1, ..., y_h with
    the attributes ``step`` (h), ``observation`` (y_h), ``action`` (a_{h-1}, empty at step 1),
    ``history`` (all of it, as text) and ``actions`` (the names of the actions that can be taken
    next). The graph has the attributes ``observations``, ``actions`` and ``horizon``.

    There are two ways to forbid an action after a history: remove the nodes of all observations
    that follow it, with their subtrees, or remove its name from ``actions`` of the node. Pass the
    edited graph to :func:`history_tree`, which then plans exactly for the policies that remain.
    Observations cannot be removed: all that are possible after an action must have their nodes.

    Parameters
    ----------
    model
        A world or a POMDP, or, to plan for many models, a declaration or a :class:`Support`.
    horizon
        The number of steps. Required for a support; otherwise at most the horizon of the model,
        which is the default.

    Raises
    ------
    PlanningError
        If the graph would need more memory than the budget; nothing is allocated before.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.planners import history_graph, history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> graph = history_graph(world)
    >>> len(graph), graph.nodes[3]["history"]
    (15, 'growl left, listen, growl left')
    >>> round(history_tree(graph=graph)(world.pomdp).value, 4)
    1.852
    >>> for node in (1, 2):  # doors stay closed at the first step
    ...     graph.nodes[node]["actions"] = ("listen",)
    >>> round(history_tree(graph=graph)(world.pomdp).value, 4)
    1.852
    >>> for node in graph:  # and at the second step
    ...     graph.nodes[node]["actions"] = ("listen",)
    >>> round(history_tree(graph=graph)(world.pomdp).value, 4)
    1.8
    """
    support, spaces = _tables(model, horizon)
    _check_size(support, spaces)
    graph = nx.DiGraph(observations=spaces.names[1], actions=spaces.actions, horizon=spaces.horizon)
    graph.add_node(0, step=0, observation="", action="", history="", actions=())
    states = support.initial & support.first_shows().T  # (Y, X)
    front = [
        (_add(graph, 0, spaces, (int(y), None)), states[y]) for y in np.flatnonzero(states.any(1))
    ]
    for h in range(spaces.horizon - 1):
        front = _next(graph, front, spaces, support.moves(h), support.shows_after(h + 1))
    return graph


def _tables(model: Any, horizon: int | None) -> tuple[Support, Spaces]:
    """The support of a model, and its names with the requested horizon."""
    if horizon is not None:
        refuse(PlanningError, SUBJECT, count_problems(1, horizon=horizon))
    if isinstance(model, Support):
        check_support(SUBJECT, "model", model)
        if horizon is None:
            remedy = "Pass it: history_graph(support, horizon=4)."
            problem = Problem("horizon", "None", "a number of steps", remedy)
            raise PlanningError(SUBJECT, [problem])
        return model, numbered_spaces(*model.sizes, int(horizon))
    if not isinstance(model, POMDP):
        require_finite(model.spaces, SUBJECT, "model")
    spaces: Spaces = model.spaces
    if horizon is not None and horizon > spaces.horizon:
        expected = f"at most {spaces.horizon}, the horizon of the model"
        raise PlanningError(SUBJECT, [Problem("horizon", str(horizon), expected)])
    if isinstance(model, HOMDP):
        tables: Any = model.structure.support
    else:
        tables = validated(model if isinstance(model, POMDP) else model.pomdp, SUBJECT)
    return Support.of(tables), spaces._replace(horizon=int(horizon or spaces.horizon))


def _check_size(support: Support, spaces: Spaces) -> None:
    """Raise PlanningError for a graph that is too large, before anything is allocated."""
    needed, nodes = 0, 0
    for h, more in enumerate(counted(support, spaces.horizon), 1):
        nodes += more
        needed += more * (NODE + WORD * h)
        if nodes > ENDLESS:  # the exact number would have too many digits
            break
    got = f"{count(nodes)} histories"
    remedy = (
        "Use a shorter horizon. history_tree() without a graph needs less memory, and "
        "bounded_search() searches without the whole tree."
    )
    require_memory(PlanningError, SUBJECT, f"horizon {spaces.horizon}", got, needed, remedy)


def _next(
    graph: nx.DiGraph,
    front: list[tuple[int, Array]],
    spaces: Spaces,
    moves: Array,
    shows: Array,
) -> list[tuple[int, Array]]:
    """Add the histories of the next step; nodes come with their possible states."""
    _, Y, A, _ = spaces.sizes
    following = []
    for parent, states in front:
        reached = np.any(moves[states], axis=0)  # (A, X)
        for a, y in product(range(A), range(Y)):
            after = reached[a] & shows[a, :, y]
            if after.any():
                following.append((_add(graph, parent, spaces, (y, a)), after))
    return following


def _add(graph: nx.DiGraph, parent: int, spaces: Spaces, event: tuple[int, int | None]) -> int:
    """Add the history that continues a node by an action and an observation."""
    y, a = event
    before = graph.nodes[parent]
    observation, action = spaces.names[1][y], "" if a is None else spaces.actions[a]
    node = len(graph)
    words = (before["history"], action, observation)
    graph.add_node(
        node,
        step=before["step"] + 1,
        observation=observation,
        action=action,
        history=", ".join(word for word in words if word),
        actions=spaces.actions,
    )
    graph.add_edge(parent, node)
    return node

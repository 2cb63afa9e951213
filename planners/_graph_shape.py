"""History graphs as arrays: reads and validates networkx graphs that a user may have edited.

This checks what can be checked without a model. Whether observations are missing depends on the
model and is checked by _restricted.py.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from numbers import Integral
from typing import Any

import networkx as nx
import numpy as np

from homdp_ppl.errors import PlanningError, Problem, shown
from homdp_ppl.memory import count, require_memory
from homdp_ppl.planners._histories import Generation

ROOT = 0  # the node before the first observation
MOST = 8  # problems of one kind in an error
SUBJECT = "history_tree"
CREATE = "Create the graph with planners.history_graph(model), then remove what you do not want."
SUBTREE = "Remove whole subtrees: graph.remove_nodes_from({node} | nx.descendants(graph, node))."


@dataclass(frozen=True, eq=False, repr=False)
class HistoryShape:
    """The histories of a graph by step, and the actions that it allows; compares by value."""

    observations: tuple[str, ...]
    actions: tuple[str, ...]
    steps: tuple[Generation, ...]
    nodes: tuple[tuple[int, ...], ...]  # the nodes of the graph, by step
    key: bytes

    @property
    def horizon(self) -> int:
        """Number of steps."""
        return len(self.steps)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HistoryShape) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"<a graph of {sum(map(len, self.nodes)):,} histories>"


class _Names:
    """The names and the horizon of a graph, with the problems of its nodes, by kind."""

    def __init__(self, graph: nx.DiGraph) -> None:
        self.graph = graph
        self.problems: dict[str, list[Problem]] = {}
        self.observations = self._names("observations")
        self.actions = self._names("actions")
        horizon = graph.graph.get("horizon")
        if not _whole(horizon) or horizon < 1:
            self.add("horizon", Problem("graph.horizon", shown(horizon), "a number of steps"))
            horizon = 1
        self.horizon = int(horizon)

    def _names(self, attribute: str) -> dict[str, int]:
        given = self.graph.graph.get(attribute)
        if not isinstance(given, tuple | list) or not all(isinstance(name, str) for name in given):
            given = ()
        if not given or len(set(given)) < len(given):
            shows = shown(self.graph.graph.get(attribute))
            self.add(attribute, Problem(f"graph.{attribute}", shows, "distinct names", CREATE))
        return {name: k for k, name in enumerate(given)}

    def add(self, kind: str, problem: Problem) -> None:
        self.problems.setdefault(kind, []).append(problem)

    def wrong(self, kind: str, node: Any, got: str, expected: str, remedy: str = "") -> None:
        """Add a problem of a node."""
        self.add(kind, Problem("graph", got, expected, remedy, at=f"node {shown(node)}"))

    def refuse(self) -> None:
        """Raise the problems, if there are any."""
        found = [problem for kind in self.problems.values() for problem in kind[:MOST]]
        if found:
            raise PlanningError(SUBJECT, found)


def read_history_graph(graph: nx.DiGraph) -> HistoryShape:
    """Convert a history graph to arrays.

    Raises
    ------
    PlanningError
        If it is not a history graph; all problems are reported together, at most 8 of each kind.
    """
    about = _Names(graph)
    about.refuse()
    _check_tree(about)
    about.refuse()
    Y, A, nodes = len(about.observations), len(about.actions), graph.number_of_nodes()
    remedy = "Remove more histories."
    got = f"{count(nodes)} nodes"
    require_memory(PlanningError, SUBJECT, "graph", got, nodes * (4 * A * Y + A + 100), remedy)
    steps: list[Generation] = []
    by_step, before = [], [ROOT]
    for step in range(1, about.horizon + 1):
        rows = _rows(about, before)
        parent, action, observation = (
            np.array([row[k] for row in rows], dtype=np.int32) for k in range(3)
        )
        if steps:
            steps[-1].child[parent, action, observation] = np.arange(len(rows))
        before = [row[3] for row in rows]
        last = step == about.horizon
        child = np.full((0 if last else len(rows), A, Y), -1, dtype=np.int32)
        allowed = np.zeros((len(rows), A), dtype=bool)
        for n, node in enumerate(before):
            allowed[n, sorted(_available(about, node))] = True
        steps.append(Generation(parent, action, observation, child, False, allowed))
        by_step.append(tuple(int(node) for node in before))
    about.refuse()
    digest = blake2b(repr((tuple(about.observations), tuple(about.actions))).encode())
    for generation in steps:
        for part in (*generation[:4], np.asarray(generation.allowed)):
            digest.update(repr(np.shape(part)).encode() + np.asarray(part).tobytes())
    return HistoryShape(
        tuple(about.observations),
        tuple(about.actions),
        tuple(steps),
        tuple(by_step),
        digest.digest(),
    )


def _check_tree(about: _Names) -> None:
    """Report nodes that are not histories, cycles, and nodes that the start does not lead to."""
    graph = about.graph
    if ROOT not in graph:
        about.wrong("root", ROOT, "no such node", "the start of the episode", CREATE)
    for node, data in graph.nodes(data=True):
        if problem := _attribute_problem(about, node, data):
            about.wrong("attributes", node, *problem, CREATE)
        elif graph.in_degree(node) > 1:
            got = f"{graph.in_degree(node)} edges that lead to it"
            about.wrong("parents", node, got, "one edge: each node is one history")
    if not nx.is_directed_acyclic_graph(graph):
        cycle = [edge[0] for edge in nx.find_cycle(graph)]
        about.wrong("cycle", cycle[0], f"a cycle of {len(cycle)} nodes", "a tree")
    elif ROOT in graph:
        lost = set(graph) - nx.descendants(graph, ROOT) - {ROOT}
        for node in islice(lost, MOST):
            expected = "histories that continue from the start, node 0"
            about.wrong("lost", node, "a node that the start does not lead to", expected, SUBTREE)


def _attribute_problem(about: _Names, node: Any, data: dict[str, Any]) -> tuple[str, str] | None:
    """What is wrong with the attributes of a node, and what is expected."""
    if not _whole(node):
        return f"a node of type {type(node).__name__}", "an integer"
    missing = [name for name in ("step", "observation", "action") if name not in data]
    if missing:
        return f"no attribute {' and '.join(missing)}", "the attributes of a history"
    step = data["step"]
    if not _whole(step) or not (step == 0 if node == ROOT else 1 <= step <= about.horizon):
        expected = "step 0" if node == ROOT else f"a step in 1..{about.horizon}"
        return f"step {shown(step)}", expected
    if node == ROOT:
        return None
    if not _known(data["observation"], about.observations):
        return f"observation {shown(data['observation'])}", "an observation of the graph"
    if data["action"] != "" if step == 1 else not _known(data["action"], about.actions):
        expected = "'' before the first action" if step == 1 else "an action of the graph"
        return f"action {shown(data['action'])}", expected
    choices = data.get("actions")
    if not isinstance(choices, Collection) or isinstance(choices, str):
        return f"actions {shown(choices)}", "a collection of names of actions"
    unknown = [name for name in choices if not _known(name, about.actions)]
    return (f"actions {shown(unknown)}", "actions of the graph") if unknown else None


def _rows(about: _Names, before: list[int]) -> list[tuple[int, int, int, int]]:
    """The nodes after those of the previous step: parent, action, observation, node; sorted."""
    rows = []
    for place, parent in enumerate(before):
        seen: dict[tuple[int, int], int] = {}
        for node in about.graph.successors(parent):
            data = about.graph.nodes[node]
            due = about.graph.nodes[parent]["step"] + 1
            if data["step"] != due:
                about.wrong(
                    "step", node, f"step {data['step']}", f"step {due}, after node {parent}"
                )
                continue
            key = _key(about, data)
            if key in seen:
                got = f"the same action and observation as node {seen[key]}"
                about.wrong("twice", node, got, "one node for each action and observation")
                continue
            seen[key] = node
            rows.append((place, *key, node))
    return sorted(rows)


def _key(about: _Names, data: dict[str, Any]) -> tuple[int, int]:
    return about.actions.get(data["action"], 0), about.observations[data["observation"]]


def _available(about: _Names, node: int) -> set[int]:
    """The actions at a node: those that are listed and, before the last step, have children."""
    data = about.graph.nodes[node]
    found = {about.actions[name] for name in data["actions"]}
    if data["step"] < about.horizon:
        followed = {
            about.actions[about.graph.nodes[child]["action"]]
            for child in about.graph.successors(node)
            if about.graph.nodes[child]["action"] in about.actions
        }
        found &= followed
    if not found:
        remedy = "Keep the nodes of at least one action, or remove this history with its subtree."
        about.wrong("choices", node, "no action", "at least one action at every history", remedy)
    return found


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _known(name: Any, names: dict[str, int]) -> bool:
    return isinstance(name, str) and name in names

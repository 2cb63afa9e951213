"""The tree of histories that a policy can reach in a model, as a networkx graph."""

from __future__ import annotations

from typing import NamedTuple

import networkx as nx
import numpy as np

from homdp_ppl.core.alphas import alphas_of, layers
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.spaces import Spaces, names_of
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.precision import Array

MAX_GRAPH = 200_000  # nodes; networkx needs about 16 microseconds per node


class Planned(NamedTuple):
    """What a tree shows: a policy in a model, with the names of the model."""

    policy: GraphPolicy
    model: POMDP
    spaces: Spaces
    allowed: Array | None  # (N, A)  which actions are allowed at each node; None: all of them


def policy_tree(graph: nx.DiGraph, planned: Planned, steps: int, max_nodes: int) -> nx.DiGraph:
    """Add the histories of the first steps to a graph that contains only the root.

    Parameters
    ----------
    graph
        A graph with node 0, the time before the first observation.
    planned
        The policy, and the model in which it acts.
    steps
        The number of steps to include.
    max_nodes
        The largest number of nodes; raises PlanningError if the graph is larger.
    """
    policy, model, spaces, _ = planned
    worth = _Worth(planned, steps)
    # graph node, history, policy node, action, joint weights of the next state
    front: list[tuple[int, str, int, int, Array]] = [(0, "", -1, -1, np.asarray(model.initial))]
    for h in range(steps):
        following = []
        for parent, history, node, action, weights in front:
            for y, word in enumerate(names_of(spaces.observations)):
                joint = weights * np.asarray(model.likelihood(y, None if h == 0 else action, h))
                total = float(joint.sum())
                if total <= 0:
                    continue
                here = int(policy.first(y) if node < 0 else policy.next(node, action, y))
                chances = policy.probabilities[here]
                seen = f"{history}, {word}" if history else word
                decided = " / ".join(spaces.actions[a] for a in np.flatnonzero(chances > 0))
                child = graph.number_of_nodes()
                if child >= max_nodes:
                    raise _too_large(max_nodes)
                graph.add_node(
                    child,
                    step=h + 1,
                    history=seen,
                    action=decided,
                    value=worth.of_node(h, here, y, joint),
                    probability=total,
                    **_beliefs(joint / total, spaces),
                    **worth.of_actions(h, here, y, joint / total),
                )
                done = spaces.actions[action] if action >= 0 else ""
                graph.add_edge(parent, child, observation=word, action=done)
                for a in np.flatnonzero(chances > 0):
                    onward = model.predict(joint * chances[a], a, h)
                    following.append((child, f"{seen}, {spaces.actions[a]}", here, int(a), onward))
        front = following
    return graph


def _beliefs(belief: Array, spaces: Spaces) -> dict[str, float]:
    """The probabilities of the possible states, as attributes."""
    names = names_of(spaces.states)
    return {f"belief in {names[x]}": float(belief[x]) for x in np.flatnonzero(belief > 0)}


def _too_large(max_nodes: int) -> PlanningError:
    got, expected = f"more than {max_nodes:,} histories", f"at most {max_nodes:,}"
    remedy = "Use fewer steps, for example tree(steps=3)."
    return PlanningError("tree", [Problem("tree", got, expected, remedy)])


class _Worth:
    """Expected remaining returns, in the user's units, from the alpha-vectors of a policy.

    The vectors include those of the nodes that one other action leads to.
    """

    def __init__(self, planned: Planned, steps: int) -> None:
        self.policy, self.model, spaces, self.allowed = planned
        self.actions = spaces.actions
        self.nodes = _one_deviation(self.policy, self.model.horizon, steps)
        self.alphas = alphas_of(self.policy, self.model, self.nodes)

    def of_node(self, h: int, node: int, y: int, joint: Array) -> float:
        """The value of following the policy, for weights of states that need not sum to 1."""
        return self._in_units(float(joint @ self._alpha(h, node, y)) / float(joint.sum()), h)

    def of_actions(self, h: int, node: int, y: int, belief: Array) -> dict[str, float]:
        """The value of each allowed action, followed by the policy, as attributes."""
        rewards = self.model.rewards(h)
        now = belief @ rewards[:, 0 if rewards.shape[1] == 1 else y]  # (A,)
        possible = np.ones(len(now), dtype=bool) if self.allowed is None else self.allowed[node]
        found = {}
        for a in np.flatnonzero(possible):
            value = float(now[a])
            if h + 1 < self.model.horizon:
                value += self._later(h, node, int(a), belief)
            found[f"value of {self.actions[a]}"] = self._in_units(value, h)
        return found

    def _later(self, h: int, node: int, a: int, belief: Array) -> float:
        """The expected value of the next step."""
        ahead = np.asarray(self.model.predict(belief, a, h))[:, None] * self.model.shows(h + 1, a)
        own = self.policy.probabilities[node, a] > 0 or self.policy.successor.shape[1] > 1
        total = 0.0
        for y in np.flatnonzero(ahead.sum(0) > 0):
            if own:
                after = int(self.policy.next(node, a, int(y)))
                total += float(self._alpha(h + 1, after, int(y)) @ ahead[:, y])
            else:  # the graph has no successors of this action: the best continuation it has
                total += float(np.max(self._every(h + 1, int(y)) @ ahead[:, y]))
        return total

    def _alpha(self, h: int, node: int, y: int) -> Array:
        alpha = self.alphas[h][int(np.searchsorted(self.nodes[h], node))]
        return alpha if alpha.ndim == 1 else alpha[y]

    def _every(self, h: int, y: int) -> Array:
        alphas = self.alphas[h]
        return alphas if alphas.ndim == 2 else alphas[:, y]

    def _in_units(self, value: float, h: int) -> float:
        """A value of the steps from h on, in the user's units."""
        return float(self.model.to_user(value, self.model.horizon - h))


def _one_deviation(policy: GraphPolicy, horizon: int, steps: int) -> list[Array]:
    """The nodes of each step, with those that one other action in the first steps leads to."""
    own = layers(policy, horizon)
    if policy.successor.shape[1] == 1:
        return own
    found = own[:1]
    for h in range(horizon - 1):
        nodes = found[h]
        followed = policy.successor[nodes][policy.probabilities[nodes] > 0].ravel()
        other = policy.successor[own[h]].ravel() if h < steps else own[h + 1]
        found.append(np.unique(np.concatenate([followed, other])))
    return found

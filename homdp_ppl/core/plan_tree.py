"""The tree of histories that a policy can reach in a model, as a networkx graph."""

from __future__ import annotations

import networkx as nx
import numpy as np

from homdp_ppl.core.alphas import alphas_of, layers
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.spaces import Spaces, names_of
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.precision import Array

MAX_GRAPH = 200_000  # nodes; networkx needs about 16 microseconds per node


def policy_tree(
    graph: nx.DiGraph,
    policy: GraphPolicy,
    model: POMDP,
    spaces: Spaces,
    steps: int,
    max_nodes: int,
) -> nx.DiGraph:
    """Add the histories of the first steps to a graph that contains only the root.

    Parameters
    ----------
    graph
        A graph with node 0, the time before the first observation.
    policy, model
        The policy, and the model in which it acts.
    spaces
        The names to use.
    steps
        The number of steps to include.
    max_nodes
        The largest number of nodes; raises PlanningError if the graph is larger.
    """
    alphas = _values(policy, model)
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
                alpha = alphas[h][here]  # (X,), or (Y, X) where the reward depends on y
                inside = float(joint @ (alpha if alpha.ndim == 1 else alpha[y])) / total
                value = float(model.to_user(inside, model.horizon - h))
                child = graph.number_of_nodes()
                if child >= max_nodes:
                    raise _too_large(max_nodes)
                graph.add_node(
                    child, step=h + 1, history=seen, action=decided, value=value, probability=total
                )
                done = spaces.actions[action] if action >= 0 else ""
                graph.add_edge(parent, child, observation=word, action=done)
                for a in np.flatnonzero(chances > 0):
                    onward = model.predict(joint * chances[a], a, h)
                    following.append((child, f"{seen}, {spaces.actions[a]}", here, int(a), onward))
        front = following
    return graph


def _too_large(max_nodes: int) -> PlanningError:
    got, expected = f"more than {max_nodes:,} histories", f"at most {max_nodes:,}"
    remedy = "Use fewer steps, for example tree(steps=3)."
    return PlanningError("tree", [Problem("tree", got, expected, remedy)])


def _values(policy: GraphPolicy, model: POMDP) -> list[dict[int, Array]]:
    """For each step, the alpha-vectors by policy node."""
    return [
        dict(zip(map(int, nodes), alphas, strict=True))
        for nodes, alphas in zip(
            layers(policy, model.horizon), alphas_of(policy, model), strict=True
        )
    ]

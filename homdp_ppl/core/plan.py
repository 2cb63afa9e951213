"""Plan: what a planner returns, and how a person looks at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import networkx as nx
import numpy as np

from homdp_ppl.core.alphas import layers, policy_alphas
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.spaces import HasSpaces, Spaces
from homdp_ppl.core.tree_picture import draw_tree
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.precision import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

READABLE = 24  # histories side by side in a picture that can be read
ROUNDING = 1e-7  # what float64 may do to a value, in units of the horizon or of the value itself
MAX_GRAPH = 200_000  # nodes of a graph for people; networkx needs about 16 microseconds each


class Solution(NamedTuple):
    """The numbers of a plan; arrays only, so that it passes through JAX."""

    value: Array  # ()  of the policy; with a backup or a clip the optimistic root value
    upper: Array  # ()  bound of the optimum
    # (Y, X)  alpha-vectors after each first observation, where a backup or a clip asked for vectors
    first: Array
    policy: GraphPolicy


class Plan(NamedTuple):
    """A policy for a model, with what is known about its quality.

    ``value <= optimum <= upper``; the two are equal when the planner is exact. Under an optimistic
    backup or a clip of values, both are the optimistic root value.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP
    >>> from homdp_ppl.planners import history_tree
    >>> guess = POMDP.of(
    ...     np.array([0.5, 0.5]),
    ...     np.full((2, 2, 2), 0.5),
    ...     np.array([[0.9, 0.1], [0.1, 0.9]]),
    ...     np.eye(2)[None],
    ... )
    >>> plan = history_tree()(guess)
    >>> plan
    Plan by history_tree: value 0.9 (exact), GraphPolicy(2 nodes, 2 observations, 2 actions)
    >>> dict(plan.tree().nodes(data="action"))  # before, and after each first observation
    {0: '', 1: 'a0', 2: 'a1'}
    """

    policy: GraphPolicy
    value: float  # the policy's value in the planned model
    upper: float  # certified upper bound of the optimum
    model: POMDP
    planner: str  # who planned, and why if it was chosen among several
    statistics: Mapping[str, float]  # nodes, seconds and the like
    spaces: Spaces

    @property
    def gap(self) -> float:
        """How far the policy may be from the optimum."""
        return self.upper - self.value

    @property
    def rounding(self) -> float:
        """How far its numbers may be off by rounding alone."""
        return ROUNDING * max(self.model.horizon, abs(self.upper))

    def named(self, model: HasSpaces) -> Plan:
        """The same plan, in the names of a declaration or world."""
        return self._replace(policy=self.policy.named(model), spaces=model.spaces)

    def tree(self, steps: int | None = None, max_nodes: int = MAX_GRAPH) -> nx.DiGraph:
        """The histories that the policy meets, as a graph with integer nodes and scalar attributes.

        Each node has ``step``, ``history`` (in names), ``action``, ``value`` (expected reward from
        here on) and ``probability``; each edge the ``action`` and ``observation`` that lead on.
        Node 0 is the time before the first observation.

        Parameters
        ----------
        steps
            How many steps of the episode; by default all.
        max_nodes
            Refuse larger graphs.
        """
        alphas = _values(self.policy, self.model)
        graph = nx.DiGraph(planner=self.planner, value=float(self.value), upper=float(self.upper))
        graph.add_node(0, step=0, history="", action="", value=float(self.value), probability=1.0)
        front = [
            (0, "", -1, -1, np.asarray(self.model.initial))
        ]  # graph node, history, policy node, action, joint weights of the next state
        for h in range(self.model.horizon if steps is None else min(steps, self.model.horizon)):
            following = []
            for parent, history, node, action, weights in front:
                for y, word in enumerate(self.spaces.observations):
                    previous = None if action < 0 else action
                    joint = weights * np.asarray(self.model.likelihood(y, previous, h))
                    total = float(joint.sum())
                    if total <= 0:
                        continue
                    here = int(
                        self.policy.first(y) if node < 0 else self.policy.next(node, action, y)
                    )
                    chances = self.policy.probabilities[here]
                    told = f"{history}, {word}" if history else word
                    decided = " / ".join(
                        self.spaces.actions[a] for a in np.flatnonzero(chances > 0)
                    )
                    alpha = alphas[h][here]  # (X,), or (Y, X) where the reward depends on y
                    value = float(joint @ (alpha if alpha.ndim == 1 else alpha[y])) / total
                    child = graph.number_of_nodes()
                    if child >= max_nodes:
                        got = f"more than {max_nodes:,} histories"
                        raise PlanningError(
                            "tree",
                            [
                                Problem(
                                    "tree",
                                    got,
                                    f"at most {max_nodes:,}",
                                    "Ask for fewer steps: tree(steps=3).",
                                )
                            ],
                        )
                    graph.add_node(
                        child,
                        step=h + 1,
                        history=told,
                        action=decided,
                        value=value,
                        probability=total,
                    )
                    done = self.spaces.actions[action] if action >= 0 else ""
                    graph.add_edge(parent, child, observation=word, action=done)
                    for a in np.flatnonzero(chances > 0):
                        onward = self.model.predict(joint * chances[a], a, h)
                        following.append(
                            (child, f"{told}, {self.spaces.actions[a]}", here, int(a), onward)
                        )
            front = following
        return graph

    def first_steps(self, histories: int) -> nx.DiGraph:
        """The tree of as many steps as have no more than so many histories, but at least one."""
        tree = self.tree(1)
        for steps in range(2, self.model.horizon + 1):
            try:
                longer = self.tree(steps, max_nodes=len(tree) + histories)
            except PlanningError:
                break
            tree = longer
        return tree

    def draw(self, steps: int | None = None, axes: Axes | None = None) -> Axes:
        """Draw the first decisions as a tree; by default as many steps as can be read."""
        tree = self.first_steps(READABLE) if steps is None else self.tree(steps)
        shown, horizon = max(step for _, step in tree.nodes(data="step")), self.model.horizon
        told = "The decisions" if shown == horizon else f"The first {shown} of {horizon} decisions"
        return draw_tree(tree, f"{told}, with the value from there on", axes)

    def __repr__(self) -> str:
        bound = "exact" if self.gap == 0 else f"at most {self.gap:.2g} below the optimum"
        return f"Plan by {self.planner}: value {self.value:.6g} ({bound}), {self.policy!r}"


def make_plan(
    policy: GraphPolicy, value: float, upper: float, model: POMDP, planner: str, **statistics: float
) -> Plan:
    """A plan with the names x0, y0, a0, ... until it is told better ones.

    Parameters
    ----------
    policy
        What to do.
    value
        Its value in the model.
    upper
        A proved bound of the optimum; the same number where the planner is exact.
    model
        What was planned for.
    planner
        Who planned.
    statistics
        Numbers to tell, such as ``seconds``.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, evaluate, make_plan, uniform_policy
    >>> model = POMDP.of([1], np.ones((1, 2, 1)), np.ones((1, 1)), [[0, 1]], horizon=1)
    >>> policy = uniform_policy(model)
    >>> plan = make_plan(policy, evaluate(policy, model), 1.0, model, "a coin")
    >>> plan.planner, plan.value, plan.upper
    ('a coin', 0.5, 1.0)
    """
    if not isinstance(policy, GraphPolicy):
        remedy = "GraphPolicy.from_policy(policy, model) writes any policy out."
        raise PlanningError(
            planner, [Problem("policy", f"a {type(policy).__name__}", "a GraphPolicy", remedy)]
        )
    plan = Plan(policy, float(value), float(upper), model, planner, statistics, model.spaces)
    if not plan.value <= plan.upper + plan.rounding:
        got = f"value {plan.value:.6g} and upper {plan.upper:.6g}"
        remedy = (
            "value is evaluate(policy, model); upper is a proved bound of the "
            "optimum, the same number if it is exact."
        )
        raise PlanningError(planner, [Problem("certificate", got, "value <= upper", remedy)])
    return plan


def _values(policy: GraphPolicy, model: POMDP) -> list[dict[int, Array]]:
    """The alpha-vector of each policy node, step by step."""
    return [
        dict(zip(map(int, nodes), alphas, strict=True))
        for nodes, alphas in zip(
            layers(policy, model.horizon), policy_alphas(policy, model), strict=True
        )
    ]

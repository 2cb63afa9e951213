"""history_tree: the exact planner on the tree of histories.

    y_1 ──a──► y_2 ──a──► ... y_H      a node is a history y_1, a_1, ..., y_h;
                                       its value is the largest expected remaining return

The shape of the tree depends only on which probabilities can be non-zero. It is computed once
(_histories.py) and solved for many models (_tree_solver.py): with NumPy for a single plan, with JAX
inside ``jit``, ``vmap`` and ``lax.scan``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import networkx as nx
import numpy as np

from homdp_ppl.core.allowed import Allowed, allowed_problems
from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.bound import by_value
from homdp_ppl.core.cache import Cache
from homdp_ppl.core.checked import checked_but
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.optimism import Backup, Caps
from homdp_ppl.core.plan import Plan, Solution, make_plan
from homdp_ppl.core.pomdp import POMDP, numbered_spaces
from homdp_ppl.core.pomdp_validation import check_parameters, check_pomdp, validated
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.memory import amount, count, memory_budget
from homdp_ppl.planners._graph_shape import HistoryShape, read_history_graph
from homdp_ppl.planners._histories import Generation, Support, counted, generations
from homdp_ppl.planners._restricted import Restriction, restricted_generations
from homdp_ppl.planners._tree_score import follow, history_rewards
from homdp_ppl.planners._tree_solver import (
    Beliefs,
    at_children,
    backward,
    backward_vectors,
    forward,
)
from homdp_ppl.precision import Array

ENDLESS = 10**30  # counting stops at this number of histories
SHAPES_BYTES = 500_000_000  # memory limit of cached shapes
# by support and horizon, for all planners
_shapes = Cache(SHAPES_BYTES, lambda shape: sum(map(_generation_bytes, shape)))


@dataclass(frozen=True)
class HistoryTree:
    """The planner returned by :func:`history_tree`."""

    max_nodes: int
    backup: Backup | None
    caps: Caps | None = None
    graph: HistoryShape | None = None

    def __call__(
        self,
        pomdp: POMDP,
        parameters: Any = None,
        support: Any = None,
        *,
        allowed: Allowed | None = None,
    ) -> Plan:
        """Plan for a model.

        Parameters
        ----------
        pomdp
            The model.
        parameters
            Parameters of the optimistic backup or of the caps, if there are any.
        support
            Which entries can be non-zero. Impossible branches are pruned. Default: the support of
            the model.
        allowed
            Which actions are allowed after a history: a function of y_1 .. y_h and a_1 .. a_{h-1}
            that returns (A,) booleans. Default: all, or those of the graph.
        """
        start = time.perf_counter()
        refuse(PlanningError, "history_tree", allowed_problems(allowed))
        model = validated(pomdp, "history_tree")
        solved = self._arrays(model, parameters, support, allowed)
        policy = GraphPolicy(
            solved.policy.start, solved.policy.probabilities, solved.policy.successor
        )
        nodes, seconds = len(policy.probabilities), time.perf_counter() - start
        value, upper = (float(model.to_user(v)) for v in (solved.value, solved.upper))
        plan = make_plan(policy, value, upper, model, "history_tree", nodes=nodes, seconds=seconds)
        return plan if solved.allowed is None else replace(plan, allowed=solved.allowed)

    def optimistic(self, backup: Backup | None, caps: Caps | None) -> HistoryTree:
        """The same planner with an optimistic backup or with caps on values."""
        return replace(self, backup=backup, caps=caps)

    def solve(
        self,
        pomdp: POMDP,
        parameters: Any = None,
        support: Any = None,
        *,
        allowed: Allowed | None = None,
    ) -> Solution:
        """The arrays of a plan, computed with NumPy. Arguments are those of ``__call__``."""
        return self._arrays(check_pomdp(pomdp, "history_tree"), parameters, support, allowed)

    def _arrays(
        self, model: POMDP, parameters: Any, support: Any, allowed: Allowed | None
    ) -> Solution:
        check_parameters(parameters, "history_tree")  # once; backups are called at every history
        pattern = Support.of(model if support is None else support)
        return self._solve(np, self._shape(pattern, model.horizon, allowed), model, parameters)

    def scorer(
        self, support: Any, world: POMDP, *, allowed: Allowed | None = None
    ) -> Callable[[GraphPolicy], Array] | None:
        """A pure function for the exact values in ``world`` of the policies from :meth:`compile`
        for the same support and the same allowed actions.

        The expected rewards of histories are computed once; the value of a policy is a sum over the
        histories that it reaches. None if something is possible in the world that the support
        excludes.
        """
        pattern = Support.of(support)
        if not pattern.covers(Support.of(world)):
            return None
        shape = self._shape(pattern, world.horizon, allowed)
        rewards = history_rewards(shape, world)

        def score(policy: GraphPolicy) -> Array:
            return follow(shape, rewards, policy.probabilities)

        return score

    def compile(self, support: Any, *, allowed: Allowed | None = None) -> Callable[..., Solution]:
        """A pure function of (POMDP, backup parameters) for all models with this support, which JAX
        can trace.

        Parameters
        ----------
        support
            A POMDP or Boolean tables, such as ``homdp.structure.support``. Branches that are
            impossible there are pruned.
        allowed
            Which actions are allowed after a history, as in ``__call__``.
        """
        pattern = Support.of(support)

        def solve(pomdp: POMDP, parameters: Any = None) -> Solution:
            model = POMDP(*(jnp.asarray(part) for part in check_pomdp(pomdp, "history_tree")))
            shape = self._shape(pattern, model.horizon, allowed)
            return self._solve(jnp, shape, model, parameters)

        return solve

    def _shape(
        self, support: Support, horizon: int, allowed: Allowed | None = None
    ) -> list[Generation]:
        if self.graph is not None or allowed is not None:
            return self._restricted_shape(support, horizon, allowed)

        def make() -> list[Generation]:
            self._check_size(support, horizon)
            return generations(support, horizon)

        shape = _shapes.get((support.key, horizon), make)
        if sum(_lengths(shape)) > self.max_nodes:  # cached by a planner with a larger limit
            self._check_size(support, horizon)
        return shape

    def _restricted_shape(
        self, support: Support, horizon: int, allowed: Allowed | None
    ) -> list[Generation]:
        most = min(self.max_nodes, int(memory_budget() // tree_bytes(1, support)))
        spaces = numbered_spaces(*support.sizes, horizon)
        restriction = Restriction(allowed, self.graph, spaces, most)
        # the limit is part of the key: the cached shape of a larger limit may be too large
        key = (support.key, horizon, by_value(allowed), self.graph, most)
        return _shapes.get(key, lambda: restricted_generations(support, restriction))

    def _check_size(self, support: Support, horizon: int) -> None:
        """Raise PlanningError for too large a tree, before anything is allocated."""
        totals = [0]
        for more in counted(support, horizon):
            totals.append(totals[-1] + more)
            if totals[-1] > ENDLESS:  # the exact number would have too many digits
                break
        most = min(self.max_nodes, int(memory_budget() // tree_bytes(1, support)))
        if totals[-1] > most:
            least = "more than " * (len(totals) <= horizon)
            size = amount(tree_bytes(totals[-1], support))
            got = f"{least}{count(totals[-1])} histories, about {size}"
            fits = sum(nodes <= most for nodes in totals[1:])
            remedy = (
                f"The largest horizon that fits is {fits}; for longer horizons use bounded_search "
                f"or alpha_vectors."
            )
            problem = Problem(f"horizon {horizon}", got, f"at most {most:,} histories", remedy)
            raise PlanningError("history_tree", [problem])

    def _solve(
        self, xp: ModuleType, shape: list[Generation], model: POMDP, parameters: Any
    ) -> Solution:
        beliefs = forward(xp, shape, model)
        if self.backup is None:
            limits = None if self.caps is None else self.caps(parameters, model.horizon)
            values = backward(xp, shape, model, beliefs, limits)
        else:
            optimistic = self.backup
            values = backward_vectors(
                xp, shape, model, beliefs, lambda h, later: optimistic(parameters, h, later)
            )
        _, Y, A = model.sizes
        policy = _policy(xp, shape, beliefs, values.actions, Y, A)
        masks = [step.allowed for step in shape if step.allowed is not None]
        allowed = np.concatenate(masks) if masks else None
        return Solution(values.value, values.upper, values.first[policy.start], policy, allowed)


@checked_but("max_nodes")
def history_tree(
    max_nodes: int = 5_000_000,
    backup: Backup | None = None,
    caps: Caps | None = None,
    graph: nx.DiGraph | None = None,
) -> HistoryTree:
    """The exact planner on the tree of histories.

    Parameters
    ----------
    max_nodes
        The largest number of nodes. Larger trees raise PlanningError before anything is allocated.
    backup
        An optimistic one-step backup ``(parameters, h, alpha_next) -> (X, A)``, called at each node
        with h counted from 1 and the alpha-vectors of the next step, (A, Y, X). The reward is added
        to its result. Default: the expected value.
    caps
        Upper bounds on values: a function ``(parameters, H) -> Limits``. The value of an action
        after a history is at most the mean of its caps under the belief. For example,
        :func:`homdp_ppl.planners.remaining_steps` caps values at H - h + 1. Caps apply only without
        ``backup``, since backups have their own limits.
    graph
        The result of :func:`history_graph`, from which you may have removed subtrees or actions.
        The plan is optimal among the policies that stay in the graph. Default: all histories.

    Returns
    -------
    HistoryTree
        A callable from a POMDP to a :class:`Plan`; ``.compile(support)`` returns a form that JAX
        can trace.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> plan = history_tree()(models.load("tiger", horizon=5).pomdp)
    >>> round(plan.value, 4), plan.gap
    (4.6128, 0.0)
    """
    refuse(PlanningError, "history_tree", count_problems(1, max_nodes=max_nodes))
    shape = None if graph is None else read_history_graph(graph)
    return HistoryTree(max_nodes, backup, caps, shape)


def _generation_bytes(generation: Generation) -> int:
    masks = 0 if generation.allowed is None else generation.allowed.nbytes
    return sum(part.nbytes for part in generation[:4]) + masks


def _lengths(shape: list[Generation]) -> Iterator[int]:
    """Yield the number of histories of each step."""
    nodes = len(shape[0].observation)
    for generation in shape:
        _, A, Y = generation.child.shape
        yield nodes if generation.regular else len(generation.observation)
        nodes *= A * Y


def tree_bytes(nodes: int, support: Support) -> int:
    """Memory of planning and its policy, in bytes: beliefs with temporaries, probabilities and
    successors of each node.
    """
    X, Y, A = support.sizes
    return nodes * (8 * (3 * X + 2 * A) + 4 * A * Y + 32)


def _policy(
    xp: ModuleType,
    shape: list[Generation],
    beliefs: Beliefs,
    actions: list[Array],
    observations: int,
    choices: int,
) -> GraphPolicy:
    """The chosen actions as a graph over all histories.

    Observations that the support excludes are pruned. If one occurs, the policy continues as after
    the observation that is likeliest under the predicted belief. An observation that the support
    allows but that has probability zero in this model has its own node, with the predicted belief.
    After a forbidden action, the policy continues as after its own action.
    """
    offsets = np.concatenate([[0], np.cumsum([len(a) for a in actions])])
    successor = []
    for h, generation in enumerate(shape):
        own = offsets[h] + np.arange(len(actions[h]), dtype=np.int32)
        if h + 1 == len(shape):
            successor.append(np.broadcast_to(own[:, None, None], (len(own), choices, observations)))
            continue
        places = np.arange(len(actions[h + 1]), dtype=np.int32)
        child = at_children(np, generation, places) if generation.regular else generation.child
        if (child < 0).any():
            # above 1 for possible observations, the likeliest highest
            chance = at_children(xp, generation, beliefs.chance[h + 1] + 1.0)
            likeliest = xp.take_along_axis(xp.asarray(child), chance.argmax(-1)[:, :, None], axis=2)
            child = xp.where(child < 0, likeliest, child)
            if generation.allowed is not None:
                own = xp.take_along_axis(child, actions[h][:, None, None], axis=1)  # (N, 1, Y)
                child = xp.where(generation.allowed[:, :, None], child, own)
        successor.append(offsets[h + 1] + child)
    start = np.full(observations, -1)
    start[shape[0].observation] = np.arange(len(actions[0]))
    first = xp.where(start < 0, beliefs.chance[0].argmax(), start)
    probabilities = xp.concatenate(
        [(a[:, None] == np.arange(choices)).astype(np.float64) for a in actions]
    )
    return GraphPolicy.tree_unflatten(
        None, (first, probabilities, xp.concatenate([xp.asarray(s) for s in successor]))
    )

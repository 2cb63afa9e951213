"""Conversion of any policy to a graph: the tree of the histories that it can reach."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.graph_arrays import GraphArrays
from homdp_ppl.core.policy import BatchPolicy, Policy, ask, ask_many
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.errors import PolicyError, Problem
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array

SUBJECT = "GraphPolicy.from_policy"
COPIES = 4  # of the arrays during the conversion
OVER = -1  # the node after the end of an episode, until the number of nodes is known
ASKED_TWICE = 32  # histories for which the policy is called twice
ROUNDING = 1e-5  # largest difference between answers in a batch and alone

History: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # observations and actions


def written_out(policy: Policy, spaces: Spaces, max_nodes: int) -> GraphArrays:
    """Return the arrays of the graph of a policy.

    The policy is asked for all histories of a step at once. It is not called after an episode has
    ended: all such histories share the last node.

    Parameters
    ----------
    policy
        An object with ``act``.
    spaces
        The spaces of the model in which it acts; they must be finite.
    max_nodes
        The largest number of nodes; raises PolicyError if the tree is larger.
    """
    refuse(PolicyError, SUBJECT, count_problems(max_nodes=max_nodes))
    _, Y, A, H = spaces.sizes
    ongoing = np.arange(Y - 1 if spaces.terminal else Y)  # the last observation is the end
    ended = np.arange(Y) >= len(ongoing)
    _require_least(len(ongoing), A, H, max_nodes)
    level: list[History] = [((int(y),), ()) for y in ongoing]  # of one step
    first: list[History] = []  # the first histories of all steps
    probabilities: list[Array] = []
    successor: list[Array] = []
    nodes, held = len(level), 0  # of numbers
    for h in range(1, H + 1):
        answers = ask_many(policy, *_arrays(level), spaces)
        first += level[: ASKED_TWICE - len(first)]
        following: list[History] = []
        for (observations, actions), chances in zip(level, answers, strict=True):
            successor.append(np.where(ended, OVER, np.full((A, Y), len(probabilities))))
            probabilities.append(chances)
            held += A * Y + A
            if h == H:
                continue
            for action in np.flatnonzero(chances > 0):
                held += Y * 2 * (h + 1)
                _require_nodes(nodes + len(ongoing), held, H, max_nodes)
                for y in ongoing:
                    successor[-1][action, y] = nodes
                    following.append(((*observations, int(y)), (*actions, int(action))))
                    nodes += 1
        level = following
    _ask_again(policy, first, probabilities, spaces)
    start = np.full(Y, OVER)
    start[ongoing] = np.arange(len(ongoing))
    if ended.any():
        probabilities.append(np.eye(A)[0])
        successor.append(np.full((A, Y), OVER))
    ways = np.stack(successor)
    return GraphArrays(
        np.where(start == OVER, nodes, start),
        np.stack(probabilities),
        np.where(ways == OVER, nodes, ways),
    )


def _arrays(histories: list[History]) -> tuple[Array, Array]:
    """Observations (N, h) and actions (N, h - 1) of histories of the same length."""
    seen = np.array([observations for observations, _ in histories], dtype=np.int64)
    done = np.array([actions for _, actions in histories], dtype=np.int64)
    return seen, done.reshape(len(histories), seen.shape[1] - 1)


def _require_nodes(nodes: int, numbers: int, horizon: int, max_nodes: int) -> None:
    """Raise an error for a tree with more than ``max_nodes`` nodes, or too large for memory."""
    got, remedy = f"{count(nodes)} histories within {horizon} steps", "Use a shorter horizon."
    if nodes > max_nodes:
        problem = Problem("policy", got, f"at most {max_nodes:,}", "Raise max_nodes.")
        raise PolicyError(SUBJECT, [problem])
    require_memory(PolicyError, SUBJECT, "policy", got, COPIES * NUMBER * numbers, remedy)


def _require_least(observations: int, actions: int, horizon: int, max_nodes: int) -> None:
    """Raise an error early if even a deterministic policy would have too many histories."""
    nodes = held = 0
    for h in range(1, horizon + 1):
        nodes += observations**h
        held += observations**h * (actions * (observations + 1) + 2 * h)
        _require_nodes(nodes, held, h, max_nodes)


def _ask_again(
    policy: Policy,
    histories: list[History],
    answers: list[Array],
    spaces: Spaces,
) -> None:
    """Raise an error for a policy that gives different answers for the same history.

    A policy that answered batches is asked without a batch, which may change the rounding.
    """
    tolerance = ROUNDING if isinstance(policy, BatchPolicy) else 0.0
    for (observations, actions), before in zip(histories, answers, strict=False):
        after = ask(policy, observations, actions, spaces)
        if not np.allclose(before, after, rtol=0.0, atol=tolerance):
            got = f"{before}, then {after}, after the observations {observations}"
            expected = "the same action probabilities for the same history"
            remedy = "Return probabilities instead of sampling; the caller samples from them."
            problem = Problem("act", got, expected, remedy)
            raise PolicyError(SUBJECT, [problem])

"""Conversion of any policy to a graph: the tree of the histories that it can reach."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.graph_arrays import GraphArrays
from homdp_ppl.core.policy import Policy, ask
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.errors import PolicyError, Problem
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array

SUBJECT = "GraphPolicy.from_policy"
COPIES = 4  # of the arrays during the conversion
OVER = -1  # the node after the end of an episode, until the number of nodes is known
ASKED_TWICE = 32  # histories for which the policy is called twice

History: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]  # observations and actions


def written_out(
    policy: Policy, spaces: Spaces, max_nodes: int, endings: Array | None = None
) -> GraphArrays:
    """Return the arrays of the graph of a policy.

    The policy is not called after an episode has ended. All such histories share the last node.

    Parameters
    ----------
    policy
        An object with ``act``.
    spaces
        The spaces of the model in which it acts; they must be finite.
    max_nodes
        The largest number of nodes; raises PolicyError if the tree is larger.
    endings
        The observations that show that the episode has ended, (Y,) of booleans; none by default.
    """
    refuse(PolicyError, SUBJECT, count_problems(max_nodes=max_nodes))
    _, Y, A, H = spaces.sizes
    ended = np.zeros(Y, dtype=bool) if endings is None else np.asarray(endings, dtype=bool)
    ongoing = np.flatnonzero(~ended)
    _require_least(len(ongoing), A, H, max_nodes)
    histories: list[History] = [((int(y),), ()) for y in ongoing]
    probabilities: list[Array] = []
    successor: list[Array] = []
    held = 0  # numbers
    for node, (observations, actions) in enumerate(histories):  # the list grows in this loop
        chances = ask(policy, observations, actions, spaces)
        probabilities.append(chances)
        successor.append(np.where(ended, OVER, np.full((A, Y), node)))
        held += A * Y + A
        if len(observations) == H:
            continue
        for action in np.flatnonzero(chances > 0):
            held += Y * 2 * (len(observations) + 1)
            _require_nodes(len(histories) + len(ongoing), held, H, max_nodes)
            for y in ongoing:
                successor[node][action, y] = len(histories)
                histories.append(((*observations, int(y)), (*actions, int(action))))
    _ask_again(policy, histories, probabilities, spaces)
    start = np.full(Y, OVER)
    start[ongoing] = np.arange(len(ongoing))
    if ended.any():
        probabilities.append(np.eye(A)[0])
        successor.append(np.full((A, Y), OVER))
    over, following = len(histories), np.stack(successor)
    return GraphArrays(
        np.where(start == OVER, over, start),
        np.stack(probabilities),
        np.where(following == OVER, over, following),
    )


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
    """Raise an error for a policy that gives different answers for the same history."""
    for (observations, actions), before in zip(histories[:ASKED_TWICE], answers, strict=False):
        after = ask(policy, observations, actions, spaces)
        if not np.array_equal(before, after):
            got = f"{before}, then {after}, after the observations {observations}"
            expected = "the same action probabilities for the same history"
            remedy = "Return probabilities instead of sampling; the caller samples from them."
            problem = Problem("act", got, expected, remedy)
            raise PolicyError(SUBJECT, [problem])

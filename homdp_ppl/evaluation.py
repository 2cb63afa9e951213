"""Exact values of policies by their alpha-vectors (appendix B of the paper), and the simulation lemma.

A policy's graph and a model's arrays are all it takes: any :class:`GraphPolicy`, also a stochastic one, in any POMDP.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.acting import Policy
from homdp_ppl.errors import PolicyError, Problem
from homdp_ppl.policy import GraphPolicy, check_policy, graph_of
from homdp_ppl.pomdp import POMDP, numbers_of
from homdp_ppl.precision import Array

__all__ = ["SimulationLemma", "evaluate", "occupancy", "policy_alphas", "simulation_lemma", "trajectory_distance", "uniform_at"]

CHUNK = 2_000_000  # numbers held at once while alpha-vectors are backed up


def layers(policy: GraphPolicy, horizon: int) -> list[Array]:
    """The nodes that can be met at each step, sorted, whatever is observed; only actions of positive probability are followed."""
    nodes = np.unique(policy.start)
    found = [nodes]
    for _ in range(horizon - 1):
        if policy.successor.shape[1] == 1:
            following = policy.successor[nodes]
        else:
            taken = policy.probabilities[nodes] > 0
            following = policy.successor[nodes][taken]
        nodes = np.unique(following)
        found.append(nodes)
    return found


def policy_alphas(policy: GraphPolicy, pomdp: POMDP) -> list[Array]:
    """The alpha-vectors of a policy: for each step an array (nodes of that step in the order of :func:`layers`, X).

    alpha_h(x) = sum_a pi(a) [r_h(x, a) + sum_x' T(x'|x, a) sum_y O(y|x') alpha'_{h+1}(x')], alpha' the vector of the node that
    a and y lead to, alpha_{H+1} = 0. The value of a node under a belief b is b . alpha.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> lamp = POMDP(np.array([0.0, 1.0]), np.array([[[1, 0]], [[0.5, 0.5]]]), np.eye(2), np.array([[[0], [1]]] * 2))
    >>> [alpha.tolist() for alpha in policy_alphas(uniform_policy(lamp), lamp)]  # one node a step; lit now, half a chance later
    [[[0.0, 1.5]], [[0.0, 1.0]]]
    """
    check_policy(policy, pomdp)
    by_step = layers(policy, pomdp.horizon)
    X, A, _ = pomdp.transition.shape
    Y = pomdp.emission.shape[1]
    alphas: list[Array] = [np.zeros(0)] * len(by_step)
    for h in reversed(range(pomdp.horizon)):
        nodes = by_step[h]
        alpha = policy.probabilities[nodes] @ pomdp.reward[h].T  # (N, X)
        if h + 1 < pomdp.horizon:
            later, following = by_step[h + 1], alphas[h + 1]
            step = max(1, CHUNK // (A * Y * X))
            for start in range(0, len(nodes), step):
                some = nodes[start : start + step]
                alpha[start : start + step] += _continue(policy, pomdp, some, later, following)
        alphas[h] = alpha
    return alphas


def _continue(policy: GraphPolicy, pomdp: POMDP, nodes: Array, later: Array, following: Array) -> Array:
    """Expected alpha-vectors of the next step, (nodes, X)."""
    onward = np.zeros((len(nodes), pomdp.transition.shape[0]))
    for action in range(pomdp.transition.shape[1]):
        chance = policy.probabilities[nodes, action]
        taken = np.flatnonzero(chance > 0)
        if len(taken) == 0:
            continue
        column = 0 if policy.successor.shape[1] == 1 else action
        places = np.searchsorted(later, policy.successor[nodes[taken], column])  # (n, Y)
        hoped = np.einsum("nyx,xy->nx", following[places], pomdp.emission)  # sum_y O(y|x') alpha(x')
        onward[taken] += chance[taken, None] * (hoped @ pomdp.transition[:, action].T)
    return onward


def evaluate(policy: Policy, pomdp: POMDP) -> float:
    """The exact value of a policy in a model, by the alpha-vector recursion.

    Parameters
    ----------
    policy
        Any policy; one that is asked step by step is first written out as the tree of histories it can meet.
    pomdp
        Any model with as many observations and actions.

    Examples
    --------
    >>> from homdp_ppl import evaluate, models, uniform_policy
    >>> world = models.load("tiger")
    >>> round(evaluate(uniform_policy(world), world.pomdp), 6)
    2.533333
    """
    graph = graph_of(policy, numbers_of(pomdp, "evaluate"))
    first, nodes = policy_alphas(graph, pomdp)[0], layers(graph, 1)[0]
    alpha = first[np.searchsorted(nodes, graph.start)]  # (Y, X)
    return float(np.einsum("x,xy,yx->", pomdp.initial, pomdp.emission, alpha))


def uniform_at(policy: GraphPolicy, step: int, horizon: int) -> GraphPolicy:
    """Pi o_h Unif(A): follow a policy, but act uniformly at one step (Algorithm 2).

    Parameters
    ----------
    policy
        The policy.
    step
        h, from 1 to H.
    horizon
        H.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import BlindPolicy
    >>> policy = BlindPolicy(np.array([[1.0, 0.0], [1.0, 0.0]])).graph(observations=2)
    >>> uniform_at(policy, step=2, horizon=2).probabilities.tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    by_step = layers(policy, horizon)
    if not 1 <= step <= horizon:
        raise PolicyError("uniform_at", [Problem("step", str(step), f"a step in 1..{horizon}")])
    nodes = by_step[step - 1]
    others = np.concatenate([by_step[k] for k in range(horizon) if k != step - 1] or [np.zeros(0, int)])
    if np.isin(nodes, others).any():
        raise PolicyError("uniform_at", [Problem("policy", "nodes met at several steps", "a node for each step")])
    probabilities = policy.probabilities.copy()
    probabilities[nodes] = 1 / probabilities.shape[1]
    return GraphPolicy(policy.start, probabilities, policy.successor)


def occupancy(policy: Policy, pomdp: POMDP) -> Array:
    """P(x_h, a_h) under a policy, (H, X, A), by pushing the joint weights of (node, state) forward.

    Parameters
    ----------
    policy
        Any policy; one that is asked step by step is first written out.
    pomdp
        Any model with as many observations and actions.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> lamp = POMDP(np.array([0.0, 1.0]), np.array([[[1, 0]], [[0.5, 0.5]]]), np.eye(2), np.array([[[0], [1]]] * 3))
    >>> occupancy(uniform_policy(lamp), lamp)[:, :, 0].tolist()  # off and on: half of the lamps burn out at each step
    [[0.0, 1.0], [0.5, 0.5], [0.75, 0.25]]
    """
    graph = graph_of(policy, numbers_of(pomdp, "occupancy"))
    by_step = layers(graph, pomdp.horizon)
    X, A, _ = pomdp.transition.shape
    visits = np.zeros((pomdp.horizon, X, A))
    weights = np.zeros((len(by_step[0]), X))  # P(node, x)
    np.add.at(weights, np.searchsorted(by_step[0], graph.start), (pomdp.initial[:, None] * pomdp.emission).T)
    for h, nodes in enumerate(by_step):
        chances = graph.probabilities[nodes]  # (N, A)
        visits[h] = weights.T @ chances
        if h + 1 == pomdp.horizon:
            break
        following = np.zeros((len(by_step[h + 1]), X))
        for action in range(A):
            onward = (weights * chances[:, action, None]) @ pomdp.transition[:, action]  # (N, X)
            taken = np.flatnonzero(chances[:, action] > 0)
            column = 0 if graph.successor.shape[1] == 1 else action
            places = np.searchsorted(by_step[h + 1], graph.successor[nodes[taken], column])  # (n, Y)
            np.add.at(following, places, onward[taken, None, :] * pomdp.emission.T)
        weights = following
    return visits


class SimulationLemma(NamedTuple):
    """Both sides of the simulation lemma (appendix E): ``difference <= H * distance`` and ``distance <= bound``.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> truth = POMDP(np.array([0.5, 0.5]), np.full((2, 1, 2), 0.5), np.array([[0.9, 0.1], [0.1, 0.9]]), np.ones((1, 2, 1)))
    >>> sides = simulation_lemma(uniform_policy(truth), truth, truth._replace(emission=np.full((2, 2), 0.5)))
    >>> sides.difference, round(sides.distance, 6), round(sides.bound, 6)  # the reward does not depend on what is seen
    (0.0, 0.8, 0.8)
    """

    difference: float  # |v(pi) - v-hat(pi)|
    distance: float  # ||P_pi - P-hat_pi||_1 over trajectories with their latent states
    bound: float  # E_pi sum_h ||O - O-hat||_1 (x_h) + E_pi sum_{h < H} ||T - T-hat||_1 (x_h, a_h)


def simulation_lemma(policy: Policy, pomdp: POMDP, other: POMDP) -> SimulationLemma:
    """The simulation lemma's sides for a policy in two models with the same rewards and initial distribution.

    Parameters
    ----------
    policy
        Any policy; one that is asked step by step is first written out.
    pomdp
        The model under which the bound takes its expectations.
    other
        What it is mistaken for.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> lamp = POMDP(np.array([0.0, 1.0]), np.array([[[1, 0]], [[0.5, 0.5]]]), np.eye(2), np.array([[[0], [1]]] * 2))
    >>> better = lamp._replace(transition=np.array([[[1, 0]], [[0.25, 0.75]]]))
    >>> simulation_lemma(uniform_policy(lamp), lamp, better)  # values 1.5 and 1.75
    SimulationLemma(difference=0.25, distance=0.5, bound=0.5)
    """
    graph = graph_of(policy, numbers_of(pomdp, "simulation_lemma"))
    visits = occupancy(graph, pomdp)
    emission = np.abs(pomdp.emission - other.emission).sum(-1)  # (X,)
    transition = np.abs(pomdp.transition - other.transition).sum(-1)  # (X, A)
    bound = (visits.sum((0, 2)) @ emission) + (visits[:-1].sum(0) * transition).sum()
    difference = abs(evaluate(graph, pomdp) - evaluate(graph, other))
    return SimulationLemma(difference, trajectory_distance(graph, pomdp, other), float(bound))


def trajectory_distance(policy: Policy, pomdp: POMDP, other: POMDP) -> float:
    """||P_pi - P-hat_pi||_1 over all trajectories (x_1, y_1, a_1, ..., a_H), by enumeration: for small models.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> fair = POMDP(np.ones(1), np.ones((1, 1, 1)), np.array([[0.5, 0.5]]), np.ones((2, 1, 1)))
    >>> bent = fair._replace(emission=np.array([[0.75, 0.25]]))
    >>> trajectory_distance(uniform_policy(fair), fair, bent)  # |1/4 - 9/16| + 2 |1/4 - 3/16| + |1/4 - 1/16|
    0.625
    """
    graph = graph_of(policy, numbers_of(pomdp, "trajectory_distance"))
    X, Y = pomdp.emission.shape
    A = pomdp.transition.shape[1]
    joint = [(m.initial[:, None] * m.emission).ravel() for m in (pomdp, other)]  # over (x, y)
    state, seen = (part.ravel() for part in np.indices((X, Y)))
    node = graph.start[seen]
    for _ in range(pomdp.horizon - 1):
        a, x, y = (part.ravel() for part in np.indices((A, X, Y)))
        chances = graph.probabilities[node][:, a]  # (paths, A X Y)
        joint = [
            (weight[:, None] * chances * m.transition[state[:, None], a, x] * m.emission[x, y]).ravel()
            for weight, m in zip(joint, (pomdp, other), strict=True)
        ]
        column = np.zeros_like(a) if graph.successor.shape[1] == 1 else a
        node = graph.successor[node[:, None], column, y].ravel()
        state = np.broadcast_to(x, (len(state), len(x))).ravel()
        alive = (joint[0] > 0) | (joint[1] > 0)
        joint, node, state = [j[alive] for j in joint], node[alive], state[alive]
    return float(np.abs(joint[0] - joint[1]).sum())


def __dir__() -> list[str]:
    return __all__

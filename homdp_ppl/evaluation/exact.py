"""Exact values and occupancies of policies, by alpha-vectors (appendix B of the paper).

The functions work for any :class:`GraphPolicy`, deterministic or stochastic, in any POMDP.
"""

from __future__ import annotations

import numpy as np

from homdp_ppl.core.allowed import are_masks
from homdp_ppl.core.alphas import after_observations, alphas_of, layers
from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.graph_policy import GraphPolicy, graph_of
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import check_pomdp
from homdp_ppl.errors import PlanningError, PolicyError, Problem, shown, with_article
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array, namespace


def evaluate(policy: Policy, pomdp: POMDP) -> float:
    """The exact value of a policy in a model, in the user's units.

    Parameters
    ----------
    policy
        Any policy. If it is not a graph, it is first converted to the tree of histories that it can
        reach.
    pomdp
        Any model with the same numbers of observations and actions.

    Examples
    --------
    >>> from homdp_ppl import evaluate, models, uniform_policy
    >>> world = models.load("tiger")
    >>> round(evaluate(uniform_policy(world), world.pomdp), 6)
    2.533333
    """
    model = check_pomdp(pomdp, "evaluate", sparse=True)
    return float(model.to_user(policy_value(graph_of(policy, model.spaces), model)))


def policy_value(graph: GraphPolicy, pomdp: POMDP) -> float:
    """Like :func:`evaluate` with rewards in [0, 1], for a validated graph and model."""
    first, nodes = alphas_of(graph, pomdp)[0], layers(graph, 1)[0]
    alpha = after_observations(first, np.searchsorted(nodes, graph.start))  # (Y, X)
    return float(np.einsum("x,xy,yx->", pomdp.initial, pomdp.shows(0), alpha))


def uniform_at(
    policy: GraphPolicy, step: int, horizon: int, allowed: Array | None = None
) -> GraphPolicy:
    """Pi o_h Unif(A): follow a policy, but act uniformly at random at step h (Algorithm 2).

    Parameters
    ----------
    policy
        The policy.
    step
        h, from 1 to H.
    horizon
        H.
    allowed
        Which actions are allowed at each node, (N, A), as in ``plan.allowed``. Default: all.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import BlindPolicy
    >>> policy = BlindPolicy(np.array([[1.0, 0.0], [1.0, 0.0]])).graph(observations=2)
    >>> uniform_at(policy, step=2, horizon=2).probabilities.tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    if not isinstance(policy, GraphPolicy):
        remedy = "Convert it: GraphPolicy.from_policy(policy, model)."
        problem = Problem("policy", with_article(type(policy).__name__), "a GraphPolicy", remedy)
        raise PolicyError("uniform_at", [problem])
    refuse(PolicyError, "uniform_at", count_problems(step=step, horizon=horizon))
    shape = np.shape(policy.probabilities)
    if allowed is not None and not (are_masks(allowed, shape) and allowed.any(1).all()):
        expected = f"booleans of shape {shape}, at least one True at each node"
        raise PolicyError("uniform_at", [Problem("allowed", shown(allowed, 80), expected)])
    if step > horizon:
        raise PolicyError("uniform_at", [Problem("step", str(step), f"a step in 1..{horizon}")])
    if horizon > len(policy.probabilities):  # some node is used at two steps
        got = f"{len(policy.probabilities)} nodes, some of them used at several steps"
        expected = f"separate nodes for each of {shown(horizon)} steps"
        raise PolicyError("uniform_at", [Problem("policy", got, expected)])
    by_step = layers(policy, horizon)
    nodes = by_step[step - 1]
    others = np.concatenate(
        [by_step[k] for k in range(horizon) if k != step - 1] or [np.zeros(0, int)]
    )
    if np.isin(nodes, others).any():
        raise PolicyError(
            "uniform_at",
            [Problem("policy", "nodes used at several steps", "separate nodes for each step")],
        )
    probabilities = policy.probabilities.copy()
    probabilities[nodes] = uniform_rows(probabilities, allowed)[nodes]
    return GraphPolicy(policy.start, probabilities, policy.successor)


def uniform_rows(probabilities: Array, allowed: Array | None = None) -> Array:
    """Uniform probabilities of the allowed actions at each node, (N, A); can be traced.

    Parameters
    ----------
    probabilities
        The action probabilities of a policy, (N, A).
    allowed
        Which actions are allowed at each node, (N, A), at least one in each row. Default: all.

    Examples
    --------
    >>> import numpy as np
    >>> uniform_rows(np.eye(2), np.array([[True, True], [False, True]])).tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    if allowed is None:
        return namespace(probabilities).full(probabilities.shape, 1 / probabilities.shape[1])
    return allowed / allowed.sum(-1, keepdims=True)


def occupancy(policy: Policy, pomdp: POMDP) -> Array:
    """P(x_h, a_h) under a policy, (H, X, A), by a forward recursion over (node, state).

    Parameters
    ----------
    policy
        Any policy; if it is not a graph, it is first converted to one.
    pomdp
        Any model with the same numbers of observations and actions.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> lamp = POMDP.of(
    ...     [0, 1], [[[1, 0]], [[0.5, 0.5]]], emission=np.eye(2), reward=[[0], [1]], horizon=3
    ... )
    >>> occupancy(uniform_policy(lamp), lamp)[
    ...     :, :, 0
    ... ].tolist()  # off and on: half of the lamps burn out at each step
    [[0.0, 1.0], [0.5, 0.5], [0.75, 0.25]]
    """
    pomdp = check_pomdp(pomdp, "occupancy", sparse=True)
    graph = graph_of(policy, pomdp.spaces)
    by_step = layers(graph, pomdp.horizon)
    X, Y, A = pomdp.sizes
    widest = max(map(len, by_step))
    got = f"{count(widest)} nodes at one step, {count(X)} states and {count(Y)} observations"
    remedy = "Use a shorter horizon, or a policy with fewer nodes."
    require_memory(PlanningError, "occupancy", "policy", got, 2 * NUMBER * widest * X * Y, remedy)
    visits = np.zeros((pomdp.horizon, X, A))
    weights = np.zeros((len(by_step[0]), X))  # P(node, x)
    np.add.at(
        weights,
        np.searchsorted(by_step[0], graph.start),
        (pomdp.initial[:, None] * pomdp.shows(0)).T,
    )
    for h, nodes in enumerate(by_step):
        chances = graph.probabilities[nodes]  # (N, A)
        visits[h] = weights.T @ chances
        if h + 1 == pomdp.horizon:
            break
        following = np.zeros((len(by_step[h + 1]), X))
        for action in range(A):
            onward = pomdp.predict(weights * chances[:, action, None], action, h)  # (N, X)
            taken = np.flatnonzero(chances[:, action] > 0)
            column = 0 if graph.successor.shape[1] == 1 else action
            places = np.searchsorted(
                by_step[h + 1], graph.successor[nodes[taken], column]
            )  # (n, Y)
            np.add.at(following, places, onward[taken, None, :] * pomdp.shows(h + 1, action).T)
        weights = following
    return visits

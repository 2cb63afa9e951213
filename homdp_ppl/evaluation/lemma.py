"""Both sides of the simulation lemma (appendix E of the paper), computed exactly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.core.alphas import layers
from homdp_ppl.core.graph_policy import GraphPolicy, graph_of
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import check_pomdp, sizes_of
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.evaluation.exact import occupancy, policy_value
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array

COPIES = 6  # of the weights of all trajectories during their extension
ENDLESS = 1e30  # larger numbers of trajectories are not counted exactly


class SimulationLemma(NamedTuple):
    """Both sides of the simulation lemma (appendix E).

    The lemma states ``difference <= H * scale * distance`` and ``distance <= bound``, where scale
    is the range of one reward.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> truth = POMDP.of(
    ...     [0.5, 0.5], np.full((2, 1, 2), 0.5), [[0.9, 0.1], [0.1, 0.9]], [[1], [1]], horizon=1
    ... )
    >>> sides = simulation_lemma(
    ...     uniform_policy(truth), truth, truth.with_tables(emission=np.full((2, 2), 0.5))
    ... )
    >>> (
    ...     sides.difference,
    ...     round(sides.distance, 6),
    ...     round(sides.bound, 6),
    ... )  # the reward does not depend on the observation
    (0.0, 0.8, 0.8)
    """

    difference: float  # |v(pi) - v-hat(pi)|, in the user's units
    distance: float  # ||P_pi - P-hat_pi||_1 over trajectories with their latent states
    bound: float  # E_pi sum_h ||O - O-hat||_1 (x_h) + E_pi sum_{h < H} ||T - T-hat||_1 (x_h, a_h)


def simulation_lemma(policy: Policy, pomdp: POMDP, other: POMDP) -> SimulationLemma:
    """Compute both sides of the simulation lemma for a policy in two models.

    The models must have the same rewards and the same initial distribution.

    Parameters
    ----------
    policy
        Any policy; if it is not a graph, it is first converted to one.
    pomdp
        The model under which the expectations of the bound are taken.
    other
        The model to which it is compared.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> lamp = POMDP.of(
    ...     [0, 1], [[[1, 0]], [[0.5, 0.5]]], emission=np.eye(2), reward=[[0], [1]], horizon=2
    ... )
    >>> better = lamp.with_tables(transition=np.array([[[1, 0]], [[0.25, 0.75]]]))
    >>> simulation_lemma(uniform_policy(lamp), lamp, better)  # values 1.5 and 1.75
    SimulationLemma(difference=0.25, distance=0.5, bound=0.5)
    """
    pomdp, other = _two_models(pomdp, other, "simulation_lemma")
    graph = graph_of(policy, pomdp.spaces)
    visits = occupancy(graph, pomdp)
    bound = _expected_errors(pomdp, other, visits)
    scale = float(pomdp.scale)
    difference = scale * abs(policy_value(graph, pomdp) - policy_value(graph, other))
    return SimulationLemma(difference, trajectory_distance(graph, pomdp, other), bound)


def _two_models(pomdp: POMDP, other: POMDP, subject: str) -> tuple[POMDP, POMDP]:
    """Validate two models, which must have the same sizes."""
    models = check_pomdp(pomdp, subject), check_pomdp(other, subject)
    mine, theirs = (sizes_of(model, subject) for model in models)
    if mine != theirs:
        expected = f"{mine}: the states, observations, actions and steps of the first"
        raise PlanningError(subject, [Problem("other", f"sizes {theirs}", expected)])
    return models


def _require_paths(graph: GraphPolicy, pomdp: POMDP, other: POMDP) -> None:
    """Raise an error if the trajectories do not fit in memory.

    This counts the trajectories that lead to each node and state and are possible in one of the
    models.
    """
    X, Y, A = pomdp.sizes
    by_step = layers(graph, pomdp.horizon)
    paths = np.zeros((len(by_step[0]), X))
    possible = ((pomdp.initial[:, None] * pomdp.shows(0)) > 0) | (
        (other.initial[:, None] * other.shows(0)) > 0
    )
    np.add.at(paths, np.searchsorted(by_step[0], graph.start), possible.T)
    for h, nodes in enumerate(by_step[:-1]):
        number = min(paths.sum() * A * X * Y, ENDLESS)
        got = f"{count(int(number))} trajectories of {h + 2} steps"
        remedy = "Use smaller models, or a shorter horizon."
        needed = COPIES * NUMBER * int(number)
        require_memory(PlanningError, "trajectory_distance", "horizon", got, needed, remedy)
        following = np.zeros((len(by_step[h + 1]), X))
        for action in range(A):
            taken = np.flatnonzero(graph.probabilities[nodes, action] > 0)
            moves = (pomdp.moves(h)[:, action] > 0) | (other.moves(h)[:, action] > 0)
            shows = (pomdp.shows(h + 1, action) > 0) | (other.shows(h + 1, action) > 0)
            column = 0 if graph.successor.shape[1] == 1 else action
            places = np.searchsorted(by_step[h + 1], graph.successor[nodes[taken], column])
            np.add.at(following, places, (paths[taken] @ moves)[:, None, :] * shows.T)
        paths = following


def _expected_errors(pomdp: POMDP, other: POMDP, visits: Array) -> float:
    """E_pi sum_h ||O_h - O-hat_h||_1 (x_h, a_{h-1}) + E_pi sum_{h < H} ||T_h - T-hat_h||_1."""
    total = pomdp.initial @ np.abs(pomdp.shows(0) - other.shows(0)).sum(-1)
    for h in range(pomdp.horizon - 1):
        total += (visits[h] * np.abs(pomdp.moves(h) - other.moves(h)).sum(-1)).sum()
        arrived = np.einsum("xa,xaz->az", visits[h], pomdp.moves(h))  # P(a_h, x_{h+1})
        shown = np.abs(pomdp.shows_after(h + 1) - other.shows_after(h + 1)).sum(-1)  # (A|1, X)
        total += (arrived * shown).sum()
    return float(total)


def trajectory_distance(policy: Policy, pomdp: POMDP, other: POMDP) -> float:
    """||P_pi - P-hat_pi||_1 over all trajectories (x_1, y_1, a_1, ..., a_H), by enumeration.

    Only for small models: the number of trajectories grows exponentially with the horizon.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> fair = POMDP.of([1], [[[1]]], [[0.5, 0.5]], reward=[[1]], horizon=2)
    >>> bent = fair.with_tables(emission=np.array([[0.75, 0.25]]))
    >>> trajectory_distance(
    ...     uniform_policy(fair), fair, bent
    ... )  # |1/4 - 9/16| + 2 |1/4 - 3/16| + |1/4 - 1/16|
    0.625
    """
    pomdp, other = _two_models(pomdp, other, "trajectory_distance")
    graph = graph_of(policy, pomdp.spaces)
    X, Y, A = pomdp.sizes
    _require_paths(graph, pomdp, other)
    joint = [(m.initial[:, None] * m.shows(0)).ravel() for m in (pomdp, other)]  # over (x, y)
    state, seen = (part.ravel() for part in np.indices((X, Y)))
    node = graph.start[seen]
    for h in range(pomdp.horizon - 1):
        a, x, y = (part.ravel() for part in np.indices((A, X, Y)))
        chances = graph.probabilities[node][:, a]  # (paths, A X Y)
        joint = [
            (
                weight[:, None]
                * chances
                * m.moves(h)[state[:, None], a, x]
                * _broadcast(m.shows_after(h + 1), A)[a, x, y]
            ).ravel()
            for weight, m in zip(joint, (pomdp, other), strict=True)
        ]
        column = np.zeros_like(a) if graph.successor.shape[1] == 1 else a
        node = graph.successor[node[:, None], column, y].ravel()
        state = np.broadcast_to(x, (len(state), len(x))).ravel()
        alive = (joint[0] > 0) | (joint[1] > 0)
        joint, node, state = [j[alive] for j in joint], node[alive], state[alive]
    return float(np.abs(joint[0] - joint[1]).sum())


def _broadcast(tables: Array, actions: int) -> Array:
    return np.broadcast_to(tables, (actions, *tables.shape[1:]))

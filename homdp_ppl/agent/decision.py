"""What would change a decision: other observations, or another belief."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from homdp_ppl.core.alphas import after_observations, alphas_of, layers
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.precision import Array


class Moment(NamedTuple):
    """A history in one model."""

    chance: float  # of the history
    belief: Array  # (X,)
    values: Array  # (A, X)  of each action in each state, if the policy is followed afterwards
    following: Array  # (A, Y)  the probability of each next observation; zero at the last step


class Turning(NamedTuple):
    """Another belief that would change which action is best."""

    state: str
    now: float  # its probability
    then: float  # from this probability on, ``action`` is better than the most probable one
    action: str


class Following(NamedTuple):
    """What the policy would do after an observation."""

    probability: float  # of the observation
    action: str  # or several, separated by " / "


def moment(graph: GraphPolicy, model: POMDP, seen: Array, done: Array) -> Moment:
    """The belief after a history, the value of every action, and what may be seen next."""
    predicted, chance, belief = np.asarray(model.initial), 1.0, np.asarray(model.initial)
    for h, y in enumerate(seen):
        previous = int(done[h - 1]) if h else None
        joint = predicted * np.asarray(model.likelihood(int(y), previous, h))
        total = float(joint.sum())
        chance *= total
        belief = joint / total if total > 0 else predicted
        if h < len(done):
            predicted = np.asarray(model.predict(belief, int(done[h]), h))
    node, h, y = node_after(graph, seen, done), len(seen), int(seen[-1])
    rest = _rest(model, belief, h, y)
    _, Y, A = model.sizes
    following = np.zeros((A, Y))
    values = np.stack([_state_values(_forced(graph, node, a), rest, y) for a in range(A)])
    if h < model.horizon:
        for a in range(A):
            ahead = np.asarray(model.predict(belief, a, h - 1))
            following[a] = ahead @ np.asarray(model.shows(h, a))
    return Moment(chance, belief, values, following)


def node_after(graph: GraphPolicy, seen: Sequence[int] | Array, done: Sequence[int] | Array) -> int:
    """The node of a policy after a history."""
    node = graph.first(int(seen[0]))
    for action, y in zip(done, seen[1:], strict=True):
        node = graph.next(node, int(action), int(y))
    return int(node)


def turnings(
    belief: Array, values: Array, chosen: int, states: Sequence[str], actions: Sequence[str]
) -> list[Turning]:
    """For each state, the smallest probability at which another action is better.

    The belief moves from the present one towards certainty of the state.

    Parameters
    ----------
    belief
        The probabilities of the states, (X,).
    values
        The values of each action in each state, (A, X).
    chosen
        The action that is taken now.
    states, actions
        Their names.
    """
    now = values @ belief  # (A,)
    found = []
    for x, state in enumerate(states):
        lead, loss = now[chosen] - now, values[:, x] - values[chosen, x]
        better = (lead >= 0) & (loss > 0)
        if belief[x] >= 1 or not better.any():
            continue
        share = np.full(len(now), np.inf)
        share[better] = lead[better] / (lead[better] + loss[better])
        a = int(np.argmin(share))
        then = float(belief[x] + share[a] * (1 - belief[x]))
        found.append(Turning(state, float(belief[x]), then, actions[a]))
    return sorted(found, key=lambda turning: turning.then - turning.now)


def named_action(graph: GraphPolicy, node: int, actions: Sequence[str]) -> str:
    """The actions that a policy may take at a node."""
    return " / ".join(actions[int(a)] for a in np.flatnonzero(graph.probabilities[node] > 0))


def _state_values(graph: GraphPolicy, rest: POMDP, y: int) -> Array:
    """The value from each state, (X,), in the user's units."""
    places = np.searchsorted(layers(graph, 1)[0], graph.start)
    first: Array = after_observations(alphas_of(graph, rest)[0], places)[y]
    return np.asarray(rest.to_user(first))


def _rest(model: POMDP, belief: Array, h: int, y: int) -> POMDP:
    """The remaining steps h..H as a model of their own, which starts with the observation y."""
    _, Y, A = model.sizes
    steps = range(h - 1, model.horizon)
    moves = np.stack([np.asarray(model.moves(k)) for k in steps])
    shows = np.stack(
        [np.stack([np.asarray(model.shows(k, a)) for a in (*range(A), None)]) for k in steps]
    )
    shows[0] = np.eye(Y)[y]
    reward = np.asarray(model.reward)[h - 1 :]
    return model._replace(initial=belief, transition=moves, emission=shows, reward=reward)


def _forced(graph: GraphPolicy, node: int, action: int) -> GraphPolicy:
    """The policy from a node on, with a given first action."""
    start, chances, successor = graph.start, graph.probabilities, graph.successor
    first = np.eye(chances.shape[1])[action]
    return GraphPolicy(
        np.full(len(start), len(chances)),
        np.vstack([chances, first]),
        np.concatenate([successor, successor[node : node + 1]]),
    )

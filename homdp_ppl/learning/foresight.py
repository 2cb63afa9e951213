"""Foresight: a collector that sees the state gathers the episodes.

The policies of the rule still act on observations only.
"""

from __future__ import annotations

import numpy as np

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.policy import Trajectory
from homdp_ppl.core.pomdp import POMDP, TIE
from homdp_ppl.core.randomness import Noise, choose
from homdp_ppl.evaluation.relaxations import qmdp
from homdp_ppl.precision import Array, namespace


def seeing_actions(model: POMDP) -> Array:
    """The actions of the collector, an agent that sees the state, (H, X, Y or 1).

    They depend on the observation only if the reward does. Ties are broken in favour of the lowest
    action.
    """
    Q = qmdp(model.unscaled)  # (H, X, A) or (H, X, Y, A)
    best = namespace(Q).argmax(Q.max(-1, keepdims=True) - TIE * model.horizon <= Q, axis=-1)
    return best if best.ndim == 3 else best[..., None]


def seeing_value(world: POMDP, actions: Array) -> float:
    """The exact value of an agent that sees the state and takes ``actions`` (H, X, Y or 1).

    Rewards are in [0, 1].
    """
    X, Y, A = world.sizes
    if actions.shape[-1] == 1 and not world.rewards_by_observation:  # emissions do not matter
        states = np.arange(X)
        value: Array = np.zeros(X)
        for h in reversed(range(world.horizon)):
            taken = actions[h, :, 0]
            value = world.rewards(h)[states, 0, taken] + world.moves(h)[states, taken] @ value
        return float(world.initial @ value)
    x, y = np.ogrid[:X, :Y]
    later: Array = np.zeros((1, X))  # value of the next state after each action
    for h in reversed(range(world.horizon)):
        taken = np.broadcast_to(actions[h], (X, Y))
        onward = (world.moves(h)[x, taken] * later[taken % len(later)]).sum(-1)
        value = np.broadcast_to(world.rewards(h), (X, Y, A))[x, y, taken] + onward  # (X, Y)
        shows = world.shows_after(h) if h else world.shows(0)[None]
        later = np.einsum("bxy,xy->bx", shows, value)
    return float(world.initial @ later[0])


def play_seeing(world: POMDP, actions: Array, noise: Noise) -> Episode:
    """Play one episode of the collector; ``actions`` (H, X, Y or 1).

    It ends at a terminal state. It uses the same random numbers as other policies.
    """
    state = int(choose(world.initial, noise.state[0]))
    states, observations = [state], []
    taken: list[int] = []
    for h in range(world.horizon):
        if world.terminal[state]:
            break
        shows = world.shows(h, taken[-1] if taken else None)
        observations.append(int(choose(shows[state], noise.observation[h])))
        taken.append(int(actions[h, state, observations[-1] % actions.shape[-1]]))
        state = int(choose(world.moves(h)[state, taken[-1]], noise.state[h + 1]))
        states.append(state)
    seen = Trajectory(np.array(observations, dtype=int), np.array(taken, dtype=int))
    return Episode(seen, np.array(states), ended="terminal" if world.terminal[state] else "horizon")

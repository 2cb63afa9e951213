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
    """The actions of the collector, an agent that sees the state, (H, X).

    Ties are broken in favour of the lowest action.
    """
    Q = qmdp(model.unscaled)
    return namespace(Q).argmax(Q.max(-1, keepdims=True) - TIE * model.horizon <= Q, axis=-1)


def seeing_value(world: POMDP, actions: Array) -> float:
    """The exact value of an agent that sees the state and takes ``actions`` (H, X).

    Rewards are in [0, 1].
    """
    initial, T, _, r = world.stationary("foresight")
    value: Array = np.zeros(len(initial))
    states = np.arange(len(initial))
    for h in reversed(range(world.horizon)):
        value = r[h][states, actions[h]] + T[states, actions[h]] @ value
    return float(initial @ value)


def play_seeing(world: POMDP, actions: Array, noise: Noise) -> Episode:
    """Play one episode of the collector; ``actions`` (H, X).

    It uses the same random numbers as other policies.
    """
    state = int(choose(world.initial, noise.state[0]))
    states, observations = [state], []
    taken: list[int] = []
    for h in range(world.horizon):
        observations.append(
            int(choose(world.shows(h, taken[-1] if taken else None)[state], noise.observation[h]))
        )
        taken.append(int(actions[h, state]))
        state = int(choose(world.moves(h)[state, taken[-1]], noise.state[h + 1]))
        states.append(state)
    return Episode(Trajectory(np.array(observations), np.array(taken)), np.array(states))

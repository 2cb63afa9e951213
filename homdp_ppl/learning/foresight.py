"""Foresight: a collector that sees the state gathers the episodes, while the rule's own policies
act on observations.
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
    """What an agent that sees the state does, (H, X): the collector of foresight.

    Ties go to the lowest action.
    """
    Q = qmdp(model)
    return namespace(Q).argmax(Q.max(-1, keepdims=True) - TIE * model.horizon <= Q, axis=-1)


def seeing_value(world: POMDP, actions: Array) -> float:
    """The exact value of an agent that sees the state and does ``actions`` (H, X)."""
    value, states = np.zeros(len(world.initial)), np.arange(len(world.initial))
    for h in reversed(range(world.horizon)):
        value = world.reward[h][states, actions[h]] + world.transition[states, actions[h]] @ value
    return float(world.initial @ value)


def play_seeing(world: POMDP, actions: Array, luck: Noise) -> Episode:
    """An episode of the collector that sees the state; ``actions`` (H, X).

    The same noise as for other policies.
    """
    state = int(choose(world.initial, luck.state[0]))
    states, observations, taken = [state], [], []
    for h in range(world.horizon):
        observations.append(int(choose(world.emission[state], luck.observation[h])))
        taken.append(int(actions[h, state]))
        state = int(choose(world.transition[state, taken[-1]], luck.state[h + 1]))
        states.append(state)
    return Episode(Trajectory(np.array(observations), np.array(taken)), np.array(states))

"""Decisions of rules from given counts, reference plans by recursion, and a tiny program."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.nn import sigmoid

from homdp_ppl import HOMDP, POMDP, Counts, Kernels, homdp
from homdp_ppl.explorers import Explorer, Pairs, Proposal
from homdp_ppl.learning.learner import Decision, Learner
from tests.runs import TREE


def decide(
    rule: Explorer, model: HOMDP, counts: Counts, episodes: int = 50, seed: int = 0
) -> tuple[Proposal | Pairs, Decision]:
    """The proposal and the decision of a rule with these counts."""
    state = replace(rule.init(model, episodes), counts=counts)
    proposal = rule.propose(jax.random.key(seed), state)
    return proposal, Learner(model, rule, TREE, episodes).plan(proposal, state)


def backed_up(model: POMDP, backup) -> tuple[np.ndarray, dict]:
    """Alpha-vectors after each first observation, (Y, X), and the action after every history.

    ``backup(h, later)`` is an optimistic backup: the values of the actions in each state after step
    h, (X, A), from the vectors that follow, (A, Y, X). The action maximises the belief times alpha.
    """
    rho, T, O, r = model.stationary()  # noqa: E741
    A, Y, H = T.shape[1], O.shape[1], len(r)
    actions = {}

    def vector(history, predicted):
        h = len(history) // 2  # steps before this one; a history is y_1, a_1, ..., y_h
        joint = predicted * O[:, history[-1]]
        belief = joint / joint.sum()
        Q = np.array(r[h])
        if h + 1 < H:
            later = [
                [vector((*history, a, y), belief @ T[:, a]) for y in range(Y)] for a in range(A)
            ]
            Q = Q + backup(h + 1, np.array(later))
        actions[history] = int(np.argmax(belief @ Q))
        return Q[:, actions[history]]

    return np.array([vector((y,), rho) for y in range(Y)]), actions


def clipped_optimum(model: POMDP) -> float:
    """The optimal value if the value of a history is clipped at the number of steps left.

    Weights are not normalised.
    """
    rho, T, O, r = model.stationary()  # noqa: E741
    H = len(r)

    def best(weights, h):
        following = range(O.shape[1]) if h + 1 < H else ()
        values = [
            weights @ r[h, :, a]
            + sum(best((weights @ T[:, a]) * O[:, y], h + 1) for y in following)
            for a in range(T.shape[1])
        ]
        return min(max(values), weights.sum() * (H - h))

    return sum(best(rho * O[:, y], 0) for y in range(O.shape[1]))


@cache
def sensor() -> HOMDP:
    """A tiny program without a closed form.

    The accuracy of observations and the probability of moving, on logistic scales.
    """

    @homdp(
        states=2, observations=2, actions=2, horizon=2, reward=np.array([[1.0, 0.2], [0.0, 0.7]])
    )
    def sensor():
        ear = numpyro.sample("ear", dist.Normal(1.0, 1.0))
        drift = numpyro.sample("drift", dist.Normal(-0.5, 0.8))
        hears, moves = sigmoid(ear), sigmoid(drift + jnp.array([0.0, 1.0]))
        T = jnp.stack(
            [jnp.stack([1 - moves, moves], -1), jnp.stack([moves / 2, 1 - moves / 2], -1)]
        )
        return Kernels([0.6, 0.4], T, jnp.array([[hears, 1 - hears], [1 - hears, hears]]))

    return sensor

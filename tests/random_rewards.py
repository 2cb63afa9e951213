"""Declarations with random rewards, and the same models with the last reward in the state."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl import Kernels, homdp

SPACES = {"states": ("bad", "good"), "observations": ("low", "high"), "actions": ("stay", "go")}
MOVES = np.array([[[0.7, 0.3], [0.5, 0.5]], [[0.5, 0.5], [0.4, 0.6]]])
CERTAIN = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])  # "go" changes the state
PRIOR = np.array([[2.0, 3.0], [4.0, 1.5]]), np.array([[1.0, 2.0], [2.0, 5.0]])
CHANCES = np.array([[0.1, 0.9], [0.5, 0.3]])  # P(r = 1 | x, a) in the true world


def sites():
    """P(r = 1 | x, a) and the accuracy of the observations."""
    p = numpyro.sample("p", dist.Beta(*PRIOR).to_event(2))
    accuracy = numpyro.sample("accuracy", dist.Beta(8.0, 2.0))
    return p, jnp.array([[accuracy, 1 - accuracy], [1 - accuracy, accuracy]])


def native(law="bernoulli", moves=MOVES, horizon=3, reward_range=(0.0, 1.0), **options):
    """A declaration with random rewards: a law of finitely many outcomes, or a density."""

    @homdp(**SPACES, horizon=horizon, reward_range=reward_range, **options)
    def shop():
        p, shows = sites()
        kernels = {
            "bernoulli": lambda x, a: dist.Bernoulli(p[x, a]),
            "points": lambda x, a: dist.MixtureSameFamily(
                dist.Categorical(probs=jnp.stack([1 - p[x, a], p[x, a]])),
                dist.Delta(jnp.array([-1.0, 2.0]) + x),
            ),
            "beta": lambda x, a: dist.Beta(5 * p[x, a], 5 * (1 - p[x, a])),
            "normal": lambda x, a: dist.Normal(p[x, a], 0.2),
        }
        return Kernels([0.5, 0.5], moves, shows, reward=kernels[law])

    return shop


def carried(moves=MOVES, horizon=3):
    """The Bernoulli rewards by hand: states (x, reward of the last step); the last reward counts.

    With one step more, the values are those of the native declaration.
    """

    @homdp(
        states=4,
        observations=SPACES["observations"],
        actions=SPACES["actions"],
        horizon=horizon,
        reward=[[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0]],
    )
    def by_hand():
        p, shows = sites()
        last = jnp.stack([1 - p, p], -1)  # (X, A, r)
        both = jnp.asarray(moves)[..., :, None] * last[..., None, :]  # (X, A, X', r)
        table = jnp.repeat(both.reshape(2, 2, 4), 2, axis=0)
        return Kernels([0.5, 0.0, 0.5, 0.0], table, jnp.repeat(shows, 2, axis=0))

    return by_hand


def in_states(episodes):
    """States of :func:`carried` from episodes with recorded rewards."""
    before = np.concatenate([np.zeros((len(episodes), 1)), episodes.rewards], axis=1)
    return 2 * episodes.states + before.astype(int)

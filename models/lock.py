"""Combination lock: dial the right numbers in a row, with a lamp that is not quite reliable, or go
home.

    stage 1 ──right dial──► stage 2 ──► ... ──► open
       ├──────wrong dial──► jammed: no dial moves it any more (so at every stage)
       └───────leave──────► home (a little reward at every step; also from a jammed lock)

The problem that needs exploration: the reward waits behind a gate, a small certain reward beside
it. A learner that trusts its estimates may dial each number once, be unlucky with the right one,
and go home for ever. The lamp shines green on track and red when jammed, correctly with probability
`lamp`; open and home are seen for what they are.

Known in `structured`: that a dial leads on or jams, that dials do nothing to a jammed lock, where
leaving leads, that open and home stay, the rewards. Unknown: the chance that each dial works at
each stage, and the lamp. In `table` every row of T and O is unknown under a flat Dirichlet prior.
Combination locks as hard exploration problems: Koenig and Simmons (1996); Misra et al. (2020).
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.declare.sizes import check_counts, check_sizes_of
from homdp_ppl.models.flat import flat_table
from homdp_ppl.precision import Array

OBSERVATIONS = ("green", "red", "open", "home")
HOME_REWARD = 0.03
WORKS, FAILS = 0.9, 0.05  # chance to get on with the right dial and with a wrong one
LAMP = 0.8


def structured(length: int = 3, dials: int = 3) -> World:
    """The lock of a learner who knows how locks work: unknown are each dial's chance and the lamp.

    Parameters
    ----------
    length
        Numbers to dial in a row; the horizon is one more.
    dials
        Numbers to choose from.
    """
    check_counts("lock", length=length, dials=dials)
    check_sizes_of("lock", states=length + 3, observations=4, actions=dials + 1, horizon=length + 1)

    @homdp(**_spaces(length, dials), reward=_reward(length, dials))
    def lock() -> Kernels:
        with numpyro.plate("stages", length, dim=-2), numpyro.plate("dials", dials, dim=-1):
            works = numpyro.sample("works", dist.Beta(1, 1))
        lamp = numpyro.sample("lamp", dist.Beta(8, 2))
        return Kernels(
            initial=jnp.eye(length + 3)[0], transition=_moves(works), emission=_sees(lamp, length)
        )

    world: World = lock.at(works=_truth(length, dials), lamp=LAMP)
    return world


def table(length: int = 3, dials: int = 3) -> World:
    """The same lock for a learner who knows no structure."""
    return flat_table(structured(length, dials))


def _spaces(length: int, dials: int) -> dict[str, Any]:
    return {
        "states": (*(f"stage {k}" for k in range(1, length + 1)), "jammed", "open", "home"),
        "observations": OBSERVATIONS,
        "actions": (*(f"dial {k}" for k in range(1, dials + 1)), "leave"),
        "horizon": length + 1,
    }


def _truth(length: int, dials: int) -> np.ndarray:
    """Right dials 1, 2, 3, ... in turn."""
    works = np.full((length, dials), FAILS)
    works[np.arange(length), np.arange(length) % dials] = WORKS
    return works


def _moves(works: Array) -> Array:
    """T(x' | x, a) from the chance that each dial works at each stage, (length, dials)."""
    length, dials = works.shape
    jammed, opened, home = length, length + 1, length + 2
    stages = np.arange(length)
    onward = np.where(stages + 1 < length, stages + 1, opened)
    moves = jnp.zeros((length + 3, dials + 1, length + 3))
    moves = moves.at[stages[:, None], np.arange(dials), onward[:, None]].set(works)
    moves = moves.at[stages[:, None], np.arange(dials), jammed].set(1 - works)
    moves = moves.at[stages, dials, home].set(1.0)
    moves = moves.at[jammed, :dials, jammed].set(1.0).at[jammed, dials, home].set(1.0)
    return moves.at[opened, :, opened].set(1.0).at[home, :, home].set(1.0)


def _sees(lamp: Array, length: int) -> Array:
    """O(y | x) from the reliability of the lamp."""
    on_track = jnp.array([lamp, 1 - lamp, 0.0, 0.0])
    jammed = jnp.array([1 - lamp, lamp, 0.0, 0.0])
    return jnp.stack([*[on_track] * length, jammed, jnp.eye(4)[2], jnp.eye(4)[3]])


def _reward(length: int, dials: int) -> np.ndarray:
    reward = np.zeros((length + 3, dials + 1))
    reward[length + 1] = 1.0
    reward[length + 2] = HOME_REWARD
    return reward

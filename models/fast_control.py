"""High-frequency control: a rally car is steered by a fast and coarse sensor.

Where it truly was is worked out afterwards.

    (place, drift) ──► drift' = drift + steering (`grip`), or the old drift
          │            place' = place + drift', as far as the kerbs
          ▼
    left, centre or right: a fast picture, which finds a car beside the centre with probability
    `sharp`

An application of the paper (appendix A, after Pan et al. 2017; the numbers are ours). Lidar would
tell place and drift, but takes longer to process than there is time to steer; it is ready when the
lap is over. The fast sensor never shows the drift, nor how far aside the car is: two pictures and
the steering between them say more than one. The car enters the track in its centre, drifting to
either side. A step is worth 1 on the centre line, less to the sides, nothing at the kerbs.

Known in `structured`: how place follows from drift, that a car which drifts goes on drifting, the
kerbs, that the car never looks to be on the wrong side, the rewards, the start. Unknown: how often
steering grips, one number for all places, drifts and directions; how a car that goes straight is
pushed (to the left, not at all, to the right); how sharp the sensor is (Beta and Dirichlet, so the
posterior has a closed form). In `table` every row of T and O is unknown under a flat Dirichlet
prior.
"""

from itertools import product

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

OBSERVATIONS = ("left", "centre", "right")
ACTIONS = ("steer left", "straight", "steer right")
DRIFTS = (-1, 0, 1)
PUSH = (0.15, 0.7, 0.15)  # of a car that goes straight: to the left, not at all, to the right


def structured(
    half_width: int = 2, horizon: int = 5, grip: float = 0.8, sharp: float = 0.8
) -> World:
    """The track of a driver who knows how cars move, but neither these tyres nor this sensor.

    Parameters
    ----------
    half_width
        Places on either side of the centre; the outermost are the kerbs.
    horizon
        Number of actions in an episode.
    grip
        Chance that steering changes the drift.
    sharp
        Chance that a car beside the centre is seen there, and not in the centre.
    """
    check_counts("fast_control", half_width=half_width)
    check_sizes_of("fast_control", states=(2 * half_width + 1) * len(DRIFTS), actions=len(ACTIONS))
    states = list(product(range(-half_width, half_width + 1), DRIFTS))
    place = np.array([p for p, _ in states])
    reward = np.repeat((1 - np.abs(place) / half_width)[:, None], len(ACTIONS), axis=1)
    start = np.array([0.5 * (p == 0 and d != 0) for p, d in states])
    outcomes = _outcomes(states, half_width)

    @homdp(
        states=tuple(f"place {p:+d}, drift {d:+d}" for p, d in states),
        observations=OBSERVATIONS,
        actions=ACTIONS,
        horizon=horizon,
        reward=reward,
    )
    def fast_control() -> Kernels:
        grip = numpyro.sample("grip", dist.Beta(1, 1))
        push = numpyro.sample("push", dist.Dirichlet(np.ones(3)))
        sharp = numpyro.sample("sharp", dist.Beta(1, 1))
        chances = jnp.concatenate([jnp.array([1.0, grip, 1 - grip]), push])
        return Kernels(start, jnp.tensordot(chances, outcomes, axes=1), _pictures(place, sharp))

    return fast_control.at(grip=grip, push=np.array(PUSH), sharp=sharp)


def table(half_width: int = 2, horizon: int = 5, grip: float = 0.8, sharp: float = 0.8) -> World:
    """The same track for a learner who knows no structure."""
    return flat_table(structured(half_width, horizon, grip, sharp))


def _outcomes(states: list[tuple[int, int]], half_width: int) -> np.ndarray:
    """Where actions lead in six cases.

    What is sure, steering grips or not, a push left, none, or right; (6, X, A, X).
    """
    outcomes = np.zeros((6, len(states), len(ACTIONS), len(states)))
    for (state, (place, drift)), (action, steering) in product(
        enumerate(states), enumerate(DRIFTS)
    ):
        if steering == drift == 0:
            cases = {3: -1, 4: 0, 5: 1}
        elif steering in (0, drift):  # a car that drifts goes on, and cannot drift more
            cases = {0: drift}
        else:
            cases = {1: drift + steering, 2: drift}
        for case, after in cases.items():
            outcomes[
                case,
                state,
                action,
                states.index((min(max(place + after, -half_width), half_width), after)),
            ] = 1.0
    return outcomes


def _pictures(place: np.ndarray, sharp: Array) -> Array:
    """O(y | x) from the sharpness of the sensor."""
    sides = jnp.array([[sharp, 1 - sharp, 0.0], [0.0, 1.0, 0.0], [0.0, 1 - sharp, sharp]])
    return sides[np.sign(place) + 1]

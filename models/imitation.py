"""Online imitation: an apprentice at the wheel.

Afterwards the expert says what she would have done at every moment.

    (course, expert's action) ──► course' = on it if the apprentice did the same, else to its left
              │                   or right; the expert's next action by her `habit` after this
              ▼                   one: bends of the road go on for a while
            course   a car beside its course looks so with probability `notice`

An application of the paper (appendix A, after Ross, Gordon and Bagnell 2011; the numbers are ours).
The latent state is where the car is together with the expert's action, and the latter is asked for
only when the drive is over. The apprentice earns 1 for doing as the expert would and nothing
otherwise; it sees whether the car is on course, which tells something about what the expert wanted
a moment ago, and so about what she wants now.

Known in `structured`: what course follows from the two actions, the rewards, the start (on course,
the expert about to do anything). Unknown: the expert's habits, a row for each of her actions,
whatever the course and the apprentice's action (Dirichlet), and how often a car beside its course
is noticed (Beta): the posterior has a closed form. In `table` every row of T and O is unknown under
a flat Dirichlet prior.
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
from homdp_ppl.errors import DeclarationError, Problem
from homdp_ppl.models.flat import flat_table
from homdp_ppl.precision import Array

COURSES = ("left of course", "on course", "right of course")
KEEPS = 0.7  # the chance that the expert does the same again


def structured(actions: int = 3, horizon: int = 5, notice: float = 0.9) -> World:
    """The drive of an apprentice who knows the car, but not the expert.

    Parameters
    ----------
    actions
        Positions of the wheel, from far left to far right: an odd number.
    horizon
        Number of actions in an episode.
    notice
        Chance that a car beside its course is seen to be there.
    """
    check_counts("imitation", 3, actions=actions)
    check_sizes_of("imitation", states=3 * actions, observations=3, actions=actions)
    if actions % 2 == 0:
        raise DeclarationError(
            "imitation", [Problem("actions", repr(actions), "an odd number of at least 3")]
        )
    turns = [k - actions // 2 for k in range(actions)]
    wheel = tuple(
        "straight" if k == 0 else f"{'left' if k < 0 else 'right'} {abs(k)}" for k in turns
    )
    states = list(product(range(3), range(actions)))  # course, expert's action
    wants = np.array([wanted for _, wanted in states])
    start = np.array([float(COURSES[course] == "on course") for course, _ in states]) / actions

    @homdp(
        states=tuple(f"{COURSES[course]}, expert {wheel[wanted]}" for course, wanted in states),
        observations=COURSES,
        actions=wheel,
        horizon=horizon,
        reward=np.eye(actions)[wants],
    )
    def imitation() -> Kernels:
        habit = numpyro.sample("habit", dist.Dirichlet(np.ones((actions, actions))).to_event(1))
        notice = numpyro.sample("notice", dist.Beta(1, 1))
        moves = _courses(wants, actions)[..., None] * habit[wants][:, None, None]
        looks = jnp.array([[notice, 1 - notice, 0.0], [0.0, 1.0, 0.0], [0.0, 1 - notice, notice]])
        X = len(states)
        return Kernels(
            start, moves.reshape(X, actions, X), looks[np.array([course for course, _ in states])]
        )

    return imitation.at(habit=_habit(actions), notice=notice)


def table(actions: int = 3, horizon: int = 5, notice: float = 0.9) -> World:
    """The same drive for a learner who knows no structure."""
    return flat_table(structured(actions, horizon, notice))


def _courses(wants: Array, actions: int) -> Array:
    """The next course for sure, (X, A, 3).

    To the side to which the apprentice turned more than the expert would have.
    """
    side = np.sign(np.subtract.outer(wants, range(actions)))
    return np.eye(3)[1 - side]


def _habit(actions: int) -> Array:
    """The same again, or anything else alike."""
    return np.where(np.eye(actions) == 1, KEEPS, (1 - KEEPS) / (actions - 1))

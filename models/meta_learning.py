"""Meta-learning as a latent MDP: every episode is one of several tasks, which the agent cannot see.

    (task, rung) ──► (task, rung')     the lever of the task leads up (`works`), or has no effect;
          │                            any other lever leads up (`luck`), or down
          ▼
        rung       observed exactly; the task is hidden

An application of the paper (appendix A, after Wang et al. 2016 and Kwon et al. 2021; the numbers
are ours). Levers move the agent on a ladder, and the right lever changes from episode to episode.
During training, tasks are labelled after each episode. At test time the agent has to find out by
trying: a lever that leads down was wrong. The reward of a step is the fraction of the ladder that
has been climbed.

Known in `structured`: that the task does not change within an episode, that every task has one
right lever, that rungs are observed, the rewards, the start (all tasks equally likely, at the
foot). Unknown: the two probabilities that a lever leads up, shared by all tasks and rungs (Beta, so
the posterior has a closed form). Data of one task are informative about all. In `table` every row
of T and O is unknown under a flat Dirichlet prior, including that the task does not change.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.declare.sizes import check_counts, check_sizes_of
from homdp_ppl.models.flat import flat_table


def structured(
    tasks: int = 3, rungs: int = 3, horizon: int = 5, works: float = 0.9, luck: float = 0.2
) -> World:
    """The ladder for a learner who knows the structure of tasks, but not how reliable levers are.

    Parameters
    ----------
    tasks
        Number of tasks, and of levers.
    rungs
        Number of rungs.
    horizon
        Number of actions in an episode.
    works
        Probability that the lever of the task leads up.
    luck
        Probability that another lever leads up.
    """
    check_counts("meta_learning", 2, tasks=tasks, rungs=rungs)
    check_sizes_of("meta_learning", states=tasks * rungs, observations=rungs, actions=tasks)
    rung = np.tile(np.arange(rungs), tasks)  # of each state
    up, stay, down = (_steps(tasks, rungs, by) for by in (1, 0, -1))
    # (X, A, 1) whether it is the lever of the task
    own = np.repeat(np.eye(tasks), rungs, axis=0)[:, :, None]

    @homdp(
        states=tuple(f"task {k + 1}, rung {n}" for k in range(tasks) for n in range(rungs)),
        observations=tuple(f"rung {n}" for n in range(rungs)),
        actions=tuple(f"lever {k + 1}" for k in range(tasks)),
        horizon=horizon,
        reward=np.repeat(rung[:, None] / (rungs - 1), tasks, axis=1),
    )
    def meta_learning() -> Kernels:
        works = numpyro.sample("works", dist.Beta(1, 1))
        luck = numpyro.sample("luck", dist.Beta(1, 1))
        moves = own * (works * up + (1 - works) * stay) + (1 - own) * (
            luck * up + (1 - luck) * down
        )
        return Kernels(initial=(rung == 0) / tasks, transition=moves, emission=jnp.eye(rungs)[rung])

    return meta_learning.at(works=works, luck=luck)


def table(
    tasks: int = 3, rungs: int = 3, horizon: int = 5, works: float = 0.9, luck: float = 0.2
) -> World:
    """The same ladder for a learner who knows no structure."""
    return flat_table(structured(tasks, rungs, horizon, works, luck))


def _steps(tasks: int, rungs: int, by: int) -> np.ndarray:
    """Transitions that move ``by`` rungs up, within the ladder, in every task; (X, 1, X)."""
    ends = np.eye(rungs)[np.clip(np.arange(rungs) + by, 0, rungs - 1)]
    return np.kron(np.eye(tasks), ends)[:, None]

"""Data-centre scheduling: at every step a job comes in whose length nobody knows until it is done,
and some server must take it.

    (left on A, left on B) ──► one less on each, and the length of the new job more on the server
              │                that took it
              ▼
    which servers are busy; not for how long

An application of the paper (appendix A, after Sinclair et al. 2022; the numbers are ours). A server
takes a job when it is idle or in the last step of what it runs, and turns it away otherwise: the
job is lost. Jobs can also be sent to another site, which is sure and worth little. The scheduler
sees who is busy, remembers when it placed what, and must guess who will be ready in time. Lengths
are known when jobs have ended: in hindsight.

Known in `structured`: how servers work off jobs, that a job comes in at every step, what is seen,
the rewards, the start (servers in any state alike, as the last shift left them). Unknown: the
distribution of lengths, one for all jobs and servers (Dirichlet, so the posterior has a closed
form). In `table` every row of T and O is unknown under a flat Dirichlet prior.
"""

from collections.abc import Sequence
from itertools import product

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.declare.sizes import check_counts, check_sizes_of, power
from homdp_ppl.errors import DeclarationError, Problem, shown
from homdp_ppl.models.flat import flat_table

LENGTHS = (0.5, 0.1, 0.4)  # of one, two and three steps
ELSEWHERE = 0.3  # what a job sent to another site is worth; a job that is taken here is worth 1


def structured(lengths: Sequence[float] = LENGTHS, servers: int = 2, horizon: int = 5) -> World:
    """The data centre of a scheduler who has not seen its jobs yet.

    Parameters
    ----------
    lengths
        How likely a job is to take one step, two steps, and so on.
    servers
        Number of servers.
    horizon
        Number of jobs, and of actions.
    """
    check_counts("scheduling", servers=servers)
    if np.ndim(lengths) != 1 or len(lengths) < 2:
        got = shown(lengths)
        raise DeclarationError("scheduling", [Problem("lengths", got, "at least 2 probabilities")])
    longest = len(lengths)
    check_sizes_of(
        "scheduling",
        states=power(longest + 1, servers),
        observations=power(2, servers),
        actions=servers,
    )
    states = list(product(range(longest + 1), repeat=servers))
    busy = list(product((False, True), repeat=servers))
    letters = [chr(ord("A") + k) for k in range(servers)]
    outcomes, reward = _outcomes(states, longest)
    shows = np.array(
        [[np.array_equal(np.array(left) > 0, pattern) for pattern in busy] for left in states],
        dtype=float,
    )

    @homdp(
        states=tuple(
            " ".join(f"{letter}{n}" for letter, n in zip(letters, left, strict=True))
            for left in states
        ),
        observations=tuple(
            " ".join(np.array(letters)[list(pattern)]) + " busy" if any(pattern) else "idle"
            for pattern in busy
        ),
        actions=(*(f"to {letter}" for letter in letters), "elsewhere"),
        horizon=horizon,
        reward=reward,
    )
    def scheduling() -> Kernels:
        lengths = numpyro.sample("lengths", dist.Dirichlet(np.ones(longest)))
        chances = jnp.concatenate([jnp.ones(1), lengths])
        return Kernels(
            np.full(len(states), 1 / len(states)), jnp.tensordot(chances, outcomes, axes=1), shows
        )

    return scheduling.at(lengths=np.asarray(lengths))


def table(lengths: Sequence[float] = LENGTHS, servers: int = 2, horizon: int = 5) -> World:
    """The same data centre for a learner who knows no structure."""
    return flat_table(structured(lengths, servers, horizon))


def _outcomes(states: list[tuple[int, ...]], longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Where states and actions lead for sure, and with a new job of each length, (1 + L, X, A, X).

    And the reward, (X, A).
    """
    servers = len(states[0])
    outcomes = np.zeros((1 + longest, len(states), servers + 1, len(states)))
    reward = np.zeros((len(states), servers + 1))
    reward[:, servers] = ELSEWHERE
    for state, left in enumerate(states):
        after = [max(n - 1, 0) for n in left]
        for server in range(servers):
            if left[server] > 1:  # turned away
                outcomes[0, state, server, states.index(tuple(after))] = 1.0
                continue
            reward[state, server] = 1.0
            for length in range(1, longest + 1):
                begun = length if left[server] == 1 else length - 1  # an idle server starts at once
                outcomes[
                    length,
                    state,
                    server,
                    states.index((*after[:server], begun, *after[server + 1 :])),
                ] = 1.0
        outcomes[0, state, servers, states.index(tuple(after))] = 1.0
    return outcomes, reward

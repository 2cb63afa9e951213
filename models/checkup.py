"""Check-up: wait, scan (cheap, unreliable), take a biopsy (costly, exact), or treat.

    condition ──► condition'     healthy ─onset─► early ─progression─► advanced; treatment ends it
        │
        ▼
    (condition, test just taken) ──► result of that test

A smaller version of `screening`. A patient's condition is hidden until tests and time reveal it in
hindsight. An application of the paper (appendix A, after Ayer, Alagoz and Stout 2012; the numbers
are ours, for illustration only). The result of a test is the next observation, so the state
includes the test just taken. Treating a healthy patient does harm, but delaying the treatment of a
sick one costs more. With the default parameters it is best to pay for the biopsy at once and to act
on its result.

Known in `structured`: that the disease only gets worse, the effect of treatment, that a biopsy is
exact, the rewards. Unknown: the rates of onset and progression (a hierarchy: both vary around one
unknown `pace`), the scan's sensitivity at each stage, and its specificity. In `table` every row of
T and O is unknown under a flat Dirichlet prior.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.nn import sigmoid
from numpy.typing import ArrayLike

from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.models.flat import flat_table
from homdp_ppl.precision import Array

CONDITIONS = ("healthy", "early", "advanced")
TESTS = ("no test", "scan", "biopsy")
# state = 3 * test + condition
STATES = (*(f"{c}, {t}" for t in TESTS for c in CONDITIONS), "treated early", "treated late")
OBSERVATIONS = (
    "no news",
    "scan clear",
    "scan shadow",
    "biopsy healthy",
    "biopsy early",
    "biopsy advanced",
)
ACTIONS = ("wait", "scan", "biopsy", "treat")
INITIAL = np.array([0.8, 0.2] + [0.0] * 9)
WELL = np.array([1.0, 0.8, 0.3] * 3 + [0.9, 0.4])  # quality of life in each state
COST = np.array([0.0, 0.02, 0.08, 0.3])  # of each action
REWARD = WELL[:, None] - COST  # (X, A)
REWARD[[0, 3, 6], 3] = 0.2  # treating a healthy patient does harm
TRUTH: dict[str, ArrayLike] = {
    "pace": -1.2,
    "logit_rates": np.array([-1.7, -0.6]),  # onset 0.15, progression 0.35
    "sensitivity": np.array([0.6, 0.95]),
    "specificity": 0.9,
}


def structured(horizon: int = 5) -> World:
    """A check-up for a learner who knows the structure of the disease but not the parameters."""

    @homdp(
        states=STATES, observations=OBSERVATIONS, actions=ACTIONS, horizon=horizon, reward=REWARD
    )
    def checkup() -> Kernels:
        pace = numpyro.sample("pace", dist.Normal(-1.0, 1.0))
        logit_rates = numpyro.sample("logit_rates", dist.Normal(pace, 0.5).expand([2]).to_event(1))
        sensitivity = numpyro.sample(
            "sensitivity", dist.Beta(np.array([6.0, 9.0]), np.array([4.0, 1.0])).to_event(1)
        )
        specificity = numpyro.sample("specificity", dist.Beta(9, 1))
        return Kernels(
            initial=INITIAL,
            transition=_moves(sigmoid(logit_rates)),
            emission=_results(sensitivity, specificity),
        )

    return checkup.at(**TRUTH)


def table(horizon: int = 5) -> World:
    """The same check-up for a learner who knows no structure."""
    return flat_table(structured(horizon))


def _moves(rates: Array) -> Array:
    """T(x' | x, a) from the rates of onset and progression, (2,)."""
    onset, progression = rates
    worsens = jnp.array(
        [[1 - onset, onset, 0.0], [0.0, 1 - progression, progression], [0.0, 0.0, 1.0]]
    )
    moves = jnp.zeros((11, 4, 11))
    for test in range(3):
        patients = slice(3 * test, 3 * test + 3)
        for action in range(3):  # wait, scan, biopsy: the next state includes the test taken
            moves = moves.at[patients, action, 3 * action : 3 * action + 3].set(worsens)
        moves = (
            moves.at[3 * test, 3, 0]
            .set(1.0)
            .at[3 * test + 1, 3, 9]
            .set(1.0)
            .at[3 * test + 2, 3, 10]
            .set(1.0)
        )
    return moves.at[9, :, 9].set(1.0).at[10, :, 10].set(1.0)


def _results(sensitivity: Array, specificity: Array) -> Array:
    """O(y | x) from the scan's sensitivity to early and advanced disease, (2,), and its
    specificity.
    """
    shadow = jnp.array([1 - specificity, sensitivity[0], sensitivity[1]])
    results = jnp.zeros((11, 6)).at[np.array([0, 1, 2, 9, 10]), 0].set(1.0)
    results = results.at[np.arange(3, 6), 1].set(1 - shadow).at[np.arange(3, 6), 2].set(shadow)
    return results.at[np.arange(6, 9), np.arange(3, 6)].set(1.0)

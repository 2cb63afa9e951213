"""Gaussian screening: wait, order an assay of a blood marker (a real number), or treat.

    condition ──► condition'     healthy ─onset─► early ─progression─► advanced; treatment ends it
        │
        ▼
    (condition, assay ordered or not) ──► marker ~ Normal(rise * stage, noise)
                                          with the noise of the assay, or of a quick test

The check-up of checkup.py (appendix A of the paper, after Ayer, Alagoz and Stout 2012; the numbers
are ours, for illustration only) with laboratory values instead of yes or no. A quick test measures
the marker with much noise at every visit. An assay, ordered at one visit and available at the next,
measures it well and costs a little. The marker is 0 in healthy patients, rises from stage to stage,
and is 0 again after treatment. Treating a healthy patient does harm, but delaying the treatment of
a sick one costs more. The condition is revealed in hindsight.

Known: that the disease only gets worse, the effect of treatment, the noise of the quick test
relative to the assay, the rewards, the start. Unknown: the rates of onset and progression (`rates`,
Beta), the rise of the marker per stage, and the noise of the assay. One rise and one noise are
shared by all stages, so the posterior is sampled.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.core.spaces import Real
from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.precision import Array

CONDITIONS = ("healthy", "early", "advanced")
# state = 3 * assay + condition
STATES = (*CONDITIONS, *(f"{c}, assay" for c in CONDITIONS), "treated early", "treated late")
ACTIONS = ("wait", "assay", "treat")
STAGE = np.array([0.0, 1.0, 2.0, 0.0, 1.0, 2.0, 0.0, 0.0])
QUICK = np.array([3.0] * 3 + [1.0] * 5)  # noise relative to the assay
INITIAL = np.array([0.7, 0.3] + [0.0] * 6)
WELL = np.array([1.0, 0.7, 0.2] * 2 + [0.9, 0.4])  # quality of life in each state
COST = np.array([0.0, 0.03, 0.2])  # of each action
REWARD = WELL[:, None] - COST  # (X, A)
REWARD[[0, 3], 2] = 0.2  # treating a healthy patient does harm


def structured(
    horizon: int = 3,
    onset: float = 0.15,
    progression: float = 0.5,
    rise: float = 2.0,
    noise: float = 1.0,
) -> World:
    """Screening for a learner who knows the structure, but neither the rates nor the laboratory.

    Parameters
    ----------
    horizon
        Number of visits.
    onset, progression
        Probabilities per visit that a healthy patient falls ill, and that early disease becomes
        advanced.
    rise
        Mean increase of the marker per stage.
    noise
        Standard deviation of the assay.
    """

    @homdp(states=STATES, observations=Real(1), actions=ACTIONS, horizon=horizon, reward=REWARD)
    def gaussian_screening() -> Kernels:
        rates = numpyro.sample(
            "rates", dist.Beta(np.array([2.0, 2.0]), np.array([6.0, 2.0])).to_event(1)
        )
        rise = numpyro.sample("rise", dist.Normal(1.5, 1.0))
        noise = numpyro.sample("noise", dist.Gamma(4.0, 4.0))
        levels, scales = rise * STAGE, noise * QUICK
        return Kernels(INITIAL, _moves(rates), lambda x: dist.Normal(levels[x], scales[x]))

    return gaussian_screening.at(rates=np.array([onset, progression]), rise=rise, noise=noise)


def _moves(rates: Array) -> Array:
    """T(x' | x, a) from the rates of onset and progression, (2,)."""
    onset, progression = rates
    worsens = jnp.array(
        [[1 - onset, onset, 0.0], [0.0, 1 - progression, progression], [0.0, 0.0, 1.0]]
    )
    moves = jnp.zeros((8, 3, 8)).at[6, :, 6].set(1.0).at[7, :, 7].set(1.0)
    for test in (0, 3):
        for action in (0, 1):  # the next state includes whether an assay was ordered
            moves = moves.at[test : test + 3, action, 3 * action : 3 * action + 3].set(worsens)
        moves = (
            moves.at[test, 2, 0].set(1.0).at[test + 1, 2, 6].set(1.0).at[test + 2, 2, 7].set(1.0)
        )
    return moves

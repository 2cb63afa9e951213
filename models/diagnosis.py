"""Diagnosis: choose among 30 tests, each at most once, then treat or dismiss the patient.

    condition ──► condition      a patient is well or ill throughout
        │
        ▼
    result of the test just done; nothing otherwise

Sequential diagnosis; the numbers are ours, for illustration only. Every test has its own price and
its own error rates: the better it is, the more it costs. After at most ``horizon - 1`` tests the
patient is treated or dismissed. Dismissing an ill patient costs most. Whether the patient was ill
becomes known later. Which tests were done is known from the history, so a rule about them restricts
the actions, and two states are enough.

Known: the prices, and that the condition does not change. Unknown: the share of ill patients (the
start), and the error rates of every test (Beta, in closed form).
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.declare.sizes import check_counts, check_sizes_of
from homdp_ppl.precision import Array

ILL = 0.3  # share of patients
ALARMS = np.array([[2.0, 6.0], [6.0, 2.0]])  # Beta priors of alarms of the well and of the ill
TREATED, MISSED = 20.0, 100.0  # costs of treating the well and of dismissing the ill


def structured(tests: int = 30, horizon: int = 4) -> World:
    """Diagnosis by some of many tests.

    Parameters
    ----------
    tests
        Number of tests.
    horizon
        Number of actions: at most ``horizon - 1`` tests, and the decision.
    """
    check_counts("diagnosis", tests=tests)
    check_sizes_of("diagnosis", states=2, actions=tests + 3)
    quality = np.linspace(0.0, 1.0, tests)
    cost = np.zeros((2, tests + 3))
    cost[:, :tests] = np.round(0.2 + quality**2, 2)
    cost[0, tests + 1], cost[1, tests + 2] = TREATED, MISSED
    prior = np.repeat(ALARMS[:, :, None], tests, axis=2)

    def once(observations: Array, actions: Array) -> Array:
        last = len(observations) >= horizon
        untried = ~np.isin(np.arange(tests), actions) & (tests not in actions) & (not last)
        return np.append(untried, [not last, last, last])

    @homdp(
        states=("well", "ill"),
        observations=("nothing", "negative", "positive"),
        actions=(*(f"test {k + 1}" for k in range(tests)), "no more tests", "treat", "dismiss"),
        horizon=horizon,
        cost=cost,
        allowed=once,
    )
    def diagnosis() -> Kernels:
        ill = numpyro.sample("ill", dist.Beta(3, 7))
        alarm = numpyro.sample("alarm", dist.Beta(*prior).to_event(2))  # (X, tests)
        results = jnp.stack([jnp.zeros((2, tests)), 1 - alarm, alarm], axis=-1)
        nothing = np.eye(3)[0]
        return Kernels(
            initial=jnp.array([1 - ill, ill]),
            transition=np.repeat(np.eye(2)[:, None], tests + 3, axis=1),
            emission=lambda x, a: dist.Categorical(jnp.where(a < tests, results[x, a], nothing)),
            first_emission=np.array([nothing, nothing]),
        )

    return diagnosis.at(ill=ILL, alarm=np.stack([0.4 - 0.2 * quality, 0.6 + 0.25 * quality]))

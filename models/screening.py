"""Screening for a disease: wait, take a mammogram (cheap, unreliable) or a biopsy (costly, exact),
or give one of two drugs.

    condition ──► condition'     healthy ─onset─► early ─progression─► advanced; a patient has type
        │                        A or B for good, and the drug for it leads one stage back
        ▼                        (`response`) or holds the disease; the other does nothing
    (condition, test just taken) ──► result of that test

An application of the paper (appendix A, after Ayer, Alagoz and Stout 2012; the numbers here are
ours, for illustration only). A patient's condition is hidden until tests and time reveal it in
hindsight. The result of a test is the next observation, so the state carries the test just taken. A
mammogram hints at disease, a biopsy tells its type; treatment takes more than one visit and says
nothing by itself, so whoever treats has to remember what the biopsy said. Every test is a burden, a
drug that is not needed a heavy one, and waiting with a sick patient costs more.

Known in `structured`: that disease only gets worse by itself, that both types are alike, what the
wrong drug does, that a biopsy is exact, the rewards, the start (half of those who are called in are
ill). Unknown: how fast disease comes and progresses (a hierarchy: all rates scatter around one
unknown `pace`; this part of the posterior is sampled by NUTS, and has a closed form with
``hierarchy=False``), how often the right drug helps, the mammogram's sensitivity at each stage and
its specificity (Beta, always in closed form). In `table` every row of T and O is unknown under a
flat Dirichlet prior.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.nn import sigmoid
from numpy.typing import ArrayLike
from scipy.special import expit

from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.declare.sizes import check_counts, check_sizes_of
from homdp_ppl.models.flat import flat_table
from homdp_ppl.precision import Array

TYPES = ("A", "B")
TESTS = ("no test", "mammogram", "biopsy")
RESULTS = (
    "no news",
    "mammogram clear",
    "mammogram shadow",
    "biopsy healthy",
    *(f"biopsy type {kind}" for kind in TYPES),
)
ACTIONS = ("wait", "mammogram", "biopsy", *(f"drug {kind}" for kind in TYPES))
BURDEN = np.array(
    [0.0, 0.02, 0.2, 0.4, 0.4]
)  # of each action: the share of a good life that it takes
ILL = 0.5  # share of those who are called in
PACE, ONSET, PROGRESSION = -1.0, -1.7, 0.0  # in logits: 0.15 and 0.5 a visit
RESPONSE, SPECIFICITY = 0.8, 0.95
SENSITIVITY = 0.7, 0.95  # in the first stage and in the last


def structured(horizon: int = 5, stages: int = 2, hierarchy: bool = True) -> World:
    """Screening by someone who knows medicine but not the numbers.

    Parameters
    ----------
    horizon
        Number of visits.
    stages
        Stages of the disease.
    hierarchy
        Whether rates scatter around one pace; otherwise each has a Beta prior of its own, and the
        whole posterior a closed form.
    """

    @homdp(**_spaces(stages), horizon=horizon)
    def screening() -> Kernels:
        if hierarchy:
            pace = numpyro.sample("pace", dist.Normal(-1.0, 1.0))
            rates = sigmoid(
                numpyro.sample("logit_rates", dist.Normal(pace, 0.5).expand([stages]).to_event(1))
            )
        else:
            rates = numpyro.sample(
                "rates", dist.Beta(np.ones(stages), np.full(stages, 2.0)).to_event(1)
            )
        response = numpyro.sample("response", dist.Beta(6, 4))
        hits, misses = np.linspace(6, 9, stages), np.linspace(4, 1, stages)
        sensitivity = numpyro.sample("sensitivity", dist.Beta(hits, misses).to_event(1))
        specificity = numpyro.sample("specificity", dist.Beta(9, 1))
        return Kernels(_start(stages), _moves(rates, response), _results(sensitivity, specificity))

    logits = np.array([ONSET] + [PROGRESSION] * (stages - 1))
    truth: dict[str, ArrayLike] = (
        {"pace": PACE, "logit_rates": logits} if hierarchy else {"rates": expit(logits)}
    )
    truth |= {
        "response": RESPONSE,
        "sensitivity": np.linspace(*SENSITIVITY, stages),
        "specificity": SPECIFICITY,
    }
    world: World = screening.at(**truth)
    return world


def table(horizon: int = 5, stages: int = 2) -> World:
    """The same patients seen by a learner who knows no medicine."""
    return flat_table(structured(horizon, stages))


def _spaces(stages: int) -> dict[str, Any]:
    """Names and rewards; a state is a test, a type and a condition, in that order."""
    check_counts("screening", stages=stages)
    states = len(TESTS) * len(TYPES) * (stages + 1)
    check_sizes_of("screening", states=states, actions=len(ACTIONS))
    conditions = (
        "healthy",
        *(("early", "advanced") if stages == 2 else (f"stage {k + 1}" for k in range(stages))),
    )
    well = np.concatenate([[1.0], np.linspace(0.5, 0.1, stages)])
    return {
        "states": tuple(
            f"{condition} {kind}, {test}"
            for test in TESTS
            for kind in TYPES
            for condition in conditions
        ),
        "observations": RESULTS,
        "actions": ACTIONS,
        "reward": np.tile(well, 6)[:, None] * (1 - BURDEN),
    }


def _start(stages: int) -> np.ndarray:
    """The first visit, before any test: both types alike, healthy or in the first stage."""
    return np.concatenate(
        [np.tile([1 - ILL, ILL] + [0.0] * (stages - 1), 2) / 2, np.zeros(4 * (stages + 1))]
    )


def _moves(rates: Array, response: Array) -> Array:
    """T(x' | x, a) from the rates of onset and progression, (stages,), and the chance that the
    right drug helps.
    """
    n = len(rates) + 1  # conditions
    worsens = jnp.diag(jnp.append(1 - rates, 1.0)) + jnp.diag(rates, 1)
    helps = worsens.at[1:].set((1 - response) * np.eye(n)[1:] + response * np.eye(n, k=-1)[1:])
    alone = jnp.kron(np.eye(2), worsens)  # both types, left to themselves
    drugs = [
        jnp.kron(np.diag(own), helps) + jnp.kron(np.diag(1 - own), worsens) for own in np.eye(2)
    ]
    ends = [
        (0, alone),
        (1, alone),
        (2, alone),
        *((0, drug) for drug in drugs),
    ]  # the next state knows which test was taken
    after = jnp.stack(
        [jnp.kron(np.eye(3)[[test]], conditions) for test, conditions in ends], axis=1
    )  # (2 n, A, 6 n)
    return jnp.tile(after, (3, 1, 1))


def _results(sensitivity: Array, specificity: Array) -> Array:
    """O(y | x) from the mammogram's sensitivity at each stage, (stages,), and its specificity."""
    shadow = jnp.tile(jnp.append(1 - specificity, sensitivity), 2)  # both types look alike
    mammogram = jnp.stack([1 - shadow, shadow], axis=1)
    stages = len(sensitivity)
    told = np.eye(6)[np.array([3] + [4] * stages + [3] + [5] * stages)]
    return jnp.concatenate(
        [np.eye(6)[[0] * len(shadow)], jnp.pad(mammogram, ((0, 0), (1, 3))), told]
    )

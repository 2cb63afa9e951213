"""Screening: wait, test by mammogram (unreliable) or biopsy (exact), or give one of two drugs.

    condition ──► condition'     healthy ─onset─► early ─progression─► advanced; the type of a
        │                        patient, A or B, is permanent, and the drug for it leads one stage
        ▼                        back (`response`) or holds the disease; the other has no effect
    result of the last action, if that was a test

An application of the paper (appendix A, after Ayer, Alagoz and Stout 2012; the numbers are ours,
for illustration only). A patient's condition is hidden until tests and time reveal it in hindsight.
The result of a test is the next observation: it answers the last action. A mammogram indicates
disease, and a biopsy shows its type. Treatment takes more than one visit and gives no
information, so the policy has to remember the result of the biopsy. Every test is a burden, an
unnecessary drug is a large one, and delaying the treatment of a sick patient costs more.

Known in `structured`: that the untreated disease only gets worse, that both types have the same
parameters, the effect of the wrong drug, that a biopsy is exact, the rewards, the start (half of
the patients are ill). Unknown: the rates of onset and progression (a hierarchy: all rates vary
around one unknown `pace`; this part of the posterior is sampled by NUTS, or has a closed form with
``hierarchy=False``), how often the right drug helps, the mammogram's sensitivity at each stage, and
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
RESULTS = (
    "no news",
    "mammogram clear",
    "mammogram shadow",
    "biopsy healthy",
    *(f"biopsy type {kind}" for kind in TYPES),
)
ACTIONS = ("wait", "mammogram", "biopsy", *(f"drug {kind}" for kind in TYPES))
BURDEN = np.array([0.0, 0.02, 0.2, 0.4, 0.4])  # loss of quality of life, per action
ILL = 0.5  # share of patients at the first visit
PACE, ONSET, PROGRESSION = -1.0, -1.7, 0.0  # logits; the rates are 0.15 and 0.5 per visit
RESPONSE, SPECIFICITY = 0.8, 0.95
SENSITIVITY = 0.7, 0.95  # in the first stage and in the last


def structured(horizon: int = 5, stages: int = 2, hierarchy: bool = True) -> World:
    """Screening for a learner who knows the structure of the disease but not the parameters.

    Parameters
    ----------
    horizon
        Number of visits.
    stages
        Number of stages of the disease.
    hierarchy
        Whether rates vary around one pace. Otherwise each rate has a separate Beta prior, and the
        whole posterior has a closed form.
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
        results = _results(sensitivity, specificity)
        return Kernels(
            initial=np.tile([1 - ILL, ILL] + [0.0] * (stages - 1), 2) / 2,
            transition=_moves(rates, response),
            emission=lambda x, a: dist.Categorical(probs=results[a, x]),
            first_emission=np.eye(len(RESULTS))[[0] * 2 * (stages + 1)],
        )

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
    """The same patients for a learner who knows no structure."""
    return flat_table(structured(horizon, stages))


def _spaces(stages: int) -> dict[str, Any]:
    """Names and rewards; states are ordered by type and condition."""
    check_counts("screening", stages=stages)
    check_sizes_of("screening", states=len(TYPES) * (stages + 1), actions=len(ACTIONS))
    conditions = (
        "healthy",
        *(("early", "advanced") if stages == 2 else (f"stage {k + 1}" for k in range(stages))),
    )
    well = np.concatenate([[1.0], np.linspace(0.5, 0.1, stages)])
    return {
        "states": tuple(f"{condition} {kind}" for kind in TYPES for condition in conditions),
        "observations": RESULTS,
        "actions": ACTIONS,
        "reward": np.tile(well, 2)[:, None] * (1 - BURDEN),
    }


def _moves(rates: Array, response: Array) -> Array:
    """T(x' | x, a) from the rates, (stages,), and the probability that the right drug helps."""
    n = len(rates) + 1  # conditions
    worsens = jnp.diag(jnp.append(1 - rates, 1.0)) + jnp.diag(rates, 1)
    helps = worsens.at[1:].set((1 - response) * np.eye(n)[1:] + response * np.eye(n, k=-1)[1:])
    alone = jnp.kron(np.eye(2), worsens)  # both types, untreated
    drugs = [
        jnp.kron(np.diag(own), helps) + jnp.kron(np.diag(1 - own), worsens) for own in np.eye(2)
    ]
    return jnp.stack([alone] * 3 + drugs, axis=1)


def _results(sensitivity: Array, specificity: Array) -> Array:
    """O(y | x, a) after each action a, (A, X, Y).

    From the mammogram's sensitivity at each stage, (stages,), and its specificity.
    """
    shadow = jnp.tile(jnp.append(1 - specificity, sensitivity), 2)  # both types look alike
    mammogram = jnp.pad(jnp.stack([1 - shadow, shadow], axis=1), ((0, 0), (1, 3)))
    stages = len(sensitivity)
    biopsy = np.eye(6)[np.array([3] + [4] * stages + [3] + [5] * stages)]
    nothing = np.eye(6)[[0] * len(shadow)]
    return jnp.stack([nothing, mammogram, biopsy, nothing, nothing])

"""Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari and Gelman 2018).

Parameters are drawn from the prior and episodes given the parameters, both in plain NumPy. If the
posterior is correct, the rank of the true value among posterior draws is uniform. The ranked
quantities are all parameters and the log-likelihood of the data. Parameters alone cannot detect
dropped data, because the posterior given fewer data is calibrated too (Modrak et al. 2023).
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import jax
import numpy as np
from scipy import stats

from homdp_ppl import Counts, Episodes, Posterior
from tests.worlds import Replicas, simulate

LEVEL = 1e-4  # probability of any alarm in one call of `alarms` if the posterior is correct
DRAWS = 31
INITIAL = np.array([0.6, 0.3, 0.1])


class Study(NamedTuple):
    """True parameters of many replicas, their tables, and the episodes of each."""

    truth: dict[str, np.ndarray]  # (R, ...)
    # T (..., X, A, X), O (..., X, Y) and, if the start is unknown, rho (..., X)
    tables: Callable[[dict[str, np.ndarray]], tuple[np.ndarray, ...]]
    data: Replicas


def study(truth, tables, initial, horizon: int, episodes: int, seed: int) -> Study:
    """Simulate data for every replica; ``initial`` is None if the start is unknown."""
    T, O, *start = tables(truth)  # noqa: E741
    rho = start[0] if start else np.broadcast_to(initial, (len(T), len(initial)))
    return Study(truth, tables, simulate(rho, T, O, horizon, episodes, np.random.default_rng(seed)))


def uniforms(study: Study, beliefs: Iterable[Posterior]) -> dict[str, np.ndarray]:
    """Ranks (R,) for each entry of each site and for the log-likelihood.

    They are uniform if the posteriors are correct. The rank is that of the true value among the
    draws; ties and the position within the rank are random.
    """
    generator = np.random.default_rng(0)
    draws = [belief.parameters(jax.random.key(r), DRAWS) for r, belief in enumerate(beliefs)]
    ranked = {
        name: np.concatenate([true[:, None], np.stack([drawn[name] for drawn in draws])], axis=1)
        for name, true in study.truth.items()
    }
    rows = [{name: values[r] for name, values in ranked.items()} for r in range(len(draws))]
    ranked["log-likelihood"] = np.stack(
        [log_likelihood(study.tables(row), study.data[r]) for r, row in enumerate(rows)]
    )
    columns: dict[str, np.ndarray] = {}
    for name, values in ranked.items():
        true, drawn = values[:, :1], values[:, 1:]
        less, equal = (drawn < true).sum(1), (drawn == true).sum(1)
        uniform = (less + generator.uniform(size=less.shape) * (equal + 1)) / (DRAWS + 1)
        columns |= {
            f"{name} {k}": column for k, column in enumerate(uniform.reshape(len(draws), -1).T)
        }
    return columns


def log_likelihood(tables, data: Episodes) -> np.ndarray:
    """The log-likelihood of all outcomes, for tables with a leading axis."""
    T, O, *start = tables  # noqa: E741
    x = data.states[:, :-1]
    total = (
        np.log(T[:, x, data.actions, data.states[:, 1:]]) + np.log(O[:, x, data.observations])
    ).sum((1, 2))
    return total + np.log(start[0][:, x[:, 0]]).sum(1) if start else total


def alarms(columns: dict[str, np.ndarray]) -> list[str]:
    """Quantities that are not uniform.

    There are three exact tests for each of M quantities, each at LEVEL / (3 M): the share below
    1/2, the share in the outer half, and Kolmogorov-Smirnov.
    """
    found = []
    for name, u in columns.items():
        tails = (
            stats.binomtest(int(np.sum(u < 0.5)), len(u)).pvalue,
            stats.binomtest(int(np.sum(np.abs(u - 0.5) > 0.25)), len(u)).pvalue,
            stats.kstest(u, "uniform", method="exact").pvalue,
        )
        if min(tails) < LEVEL / (3 * len(columns)):
            found.append(name)
    return found


def shifted(data: Episodes, counts: Counts) -> Counts:
    emission = np.zeros_like(counts.emission)
    np.add.at(emission, (data.states[:, 1:], data.observations), 1)
    return Counts(counts.transition, emission)


def other_action(data: Episodes, counts: Counts) -> Counts:
    return Counts(np.roll(counts.transition, 1, axis=1), counts.emission)


def without_last_transition(data: Episodes, counts: Counts) -> Counts:
    transition = np.array(counts.transition)
    np.subtract.at(transition, (data.states[:, -2], data.actions[:, -1], data.states[:, -1]), 1)
    return Counts(transition, counts.emission)


def last_state_as_visit(data: Episodes, counts: Counts) -> Counts:
    emission = np.array(counts.emission)
    np.add.at(emission, (data.states[:, -1], data.observations[:, -1]), 1)
    return Counts(counts.transition, emission)


CORRUPTIONS: dict[str, Callable[[Episodes, Counts], Counts]] = {
    "wrong action index": other_action,
    "double counting": lambda _, counts: counts + counts,
    "shifted emission": shifted,
    "dropped last transition": without_last_transition,
    "swapped axes": lambda _, counts: Counts(counts.transition.transpose(2, 1, 0), counts.emission),
    "last state counted as a visit": last_state_as_visit,
    "data dropped": lambda _, counts: Counts(0 * counts.transition, 0 * counts.emission),
}

"""Confidence sets from posteriors: radii of rows around their means, and sets of finite classes."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import jax
import numpy as np

from homdp_ppl.confidence.backups import one_step_values, upper_quantile
from homdp_ppl.confidence.dirichlet import DRAWS, ROWS, bounds, quantiles
from homdp_ppl.confidence.radii import Radii
from homdp_ppl.confidence.reward_beliefs import reward_bounds, reward_quantiles
from homdp_ppl.confidence.rewards import unknown_rewards
from homdp_ppl.confidence.row_moments import backup_moments, has_moments, moments
from homdp_ppl.confidence.rows import unknown_rows
from homdp_ppl.confidence.sensor_dirichlet import product_bounds, product_quantiles
from homdp_ppl.core.arguments import check_arguments, refuse, size_problems
from homdp_ppl.core.checked import checked
from homdp_ppl.core.counts import Counts, check_counts
from homdp_ppl.core.randomness import as_key, refuse_traced_key
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import InferenceError, ParameterError, Problem, TracedError
from homdp_ppl.posteriors import Posterior
from homdp_ppl.posteriors.dirichlet import closed_form
from homdp_ppl.posteriors.tables import tables_at
from homdp_ppl.precision import Array, namespace

LARGEST = 1e100  # the squares of larger numbers overflow
CHUNK = 2**22  # table entries in memory at a time


class OneStep(NamedTuple):
    """The posterior mean and standard deviation of the one-step backup.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, posterior, tabular
    >>> lamp = tabular(
    ...     T=dist.Dirichlet(np.ones((2, 1, 2))),
    ...     O=np.eye(2),
    ...     initial=[0, 1],
    ...     reward=[[0], [1]],
    ...     horizon=2,
    ... )
    >>> lit = np.array([[[0, 1], [0, 1]]])  # alpha-vectors that are 1 in the second state
    >>> step = one_step(posterior(lamp, Counts.zero(lamp)), lit)
    >>> (
    ...     step.mean.ravel().tolist(),
    ...     step.deviation.ravel().round(4).tolist(),
    ... )  # of uniform rows: 1/2 and sqrt(1/12)
    ([0.5, 0.5], [0.2887, 0.2887])
    """

    mean: Array  # (X, A)
    deviation: Array  # (X, A)


def row_level(homdp: HOMDP, delta: float) -> float:
    """Delta divided by the number of unknown rows of T, O, the initial distribution and rewards."""
    unknown = sum(int(np.sum(rows)) for rows in unknown_rows(homdp))
    unknown += int(unknown_rewards(homdp).sum())
    return delta / max(unknown, 1)


@checked
def quantile_radii(
    belief: Posterior,
    key: Array,
    delta: float = 0.1,
    previous: tuple[Posterior, Radii] | None = None,
) -> Radii:
    """Radii that hold for all rows together with posterior probability 1 - delta.

    The radius of an unknown row is the quantile of ||row - mean||_1 at level 1 - delta', with
    delta' = delta / (number of unknown rows): the ceil((1 - delta')(S + 1))-th smallest of S draws.
    Known rows have radius 0, and so have rows that are never used. A table with a step axis has one
    row per step. An initial distribution with sites is one more row. For random rewards, the rows
    are means, and the radius is the quantile of |mean reward - its posterior mean|.

    Parameters
    ----------
    belief
        The posterior.
    key
        A JAX random key.
    delta
        Allowed posterior probability of error.
    previous
        An earlier posterior of the same declaration, with its radii at the same delta. Closed-form
        rows without new data keep their radii.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import Counts, models, posterior
    >>> tiger = models.load("tiger").homdp
    >>> seen = Counts(np.zeros((2, 3, 2)), np.array([[850, 150], [150, 850]]))
    >>> quantile_radii(posterior(tiger, seen), jax.random.key(0)).emission.round(2)
    array([0.03, 0.03])
    """
    check_arguments("quantile_radii", delta=delta)
    belief.require_quantiles()
    refuse_traced_key(key, "quantile_radii")
    key = as_key(key, "quantile_radii")
    homdp, level = belief.homdp, row_level(belief.homdp, delta)
    unknown = unknown_rows(homdp)
    radii = Radii(*(np.zeros(getattr(unknown, name).shape) for name in ROWS))
    if belief.atoms is not None:
        radii = _sampled(belief, key, level)
    if len(belief.closed):
        form = closed_form(homdp)
        kept = None if previous is None else (previous[0].closed, previous[1])
        closed = quantiles(form, belief.closed, key, level, kept)
        if form.product is not None:
            joint = product_quantiles(form, belief.closed, key, level, kept)
            closed = closed._replace(emission=joint)
        radii = Radii(
            *(
                np.where(form.rows[name], c, r)
                for name, c, r in zip(ROWS, closed, radii, strict=False)
            )
        )
    if unknown_rewards(homdp).any():
        draws = belief.parameters(jax.random.fold_in(key, 2), _draws_for(belief, level))
        radii = radii._replace(reward=reward_quantiles(belief, draws, level))
    return _of_unknown(homdp, radii)


@checked
def dirichlet_radii(homdp: HOMDP, counts: Counts, delta: float = 0.1) -> Radii:
    """An upper bound on :func:`quantile_radii` for conjugate declarations.

    It needs no draws and may be traced. For a row with d unknown entries it is mass sqrt(2 log((2^d
    - 2) / delta') / (alpha_0 + 1)): Weissman's argument with the constant of Marchal and Arbel, "On
    the sub-Gaussianity of the Beta and Dirichlet distributions" (2017). For nested rows, see
    :func:`homdp_ppl.confidence.dirichlet.bounds`; for mean rewards, see
    :func:`homdp_ppl.confidence.reward_beliefs.reward_bounds`; for several sensors, see
    docs/explanation/soundness.md.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, tabular
    >>> lamp = tabular(
    ...     T=dist.Dirichlet(np.ones((2, 1, 2))),
    ...     O=np.eye(2),
    ...     initial=[0, 1],
    ...     reward=[[0], [1]],
    ...     horizon=2,
    ... )
    >>> seen = Counts(np.array([[[0, 0]], [[47, 150]]]), np.array([[0, 0], [0, 197]]))
    >>> dirichlet_radii(lamp, seen).transition.ravel().round(
    ...     4
    ... ).tolist()  # sqrt(2 log(2 / 0.05) / n), n = 3 and 200
    [1.5682, 0.1921]
    """
    check_arguments("dirichlet_radii", delta=delta)
    check_counts(counts, homdp)
    form = closed_form(homdp)
    left = sum(
        int(np.sum(unknown & ~form.rows[name]))
        for name, unknown in unknown_rows(homdp)._asdict().items()
    ) + int(np.sum(unknown_rewards(homdp) & np.logical_not(form.rows.get("reward", False))))
    if left:
        problem = Problem(
            "rows",
            f"{left} unknown rows without a closed form",
            "Dirichlet rows only",
            "Use quantile_radii.",
        )
        raise InferenceError(f"dirichlet_radii of {homdp.name}", [problem])
    level = row_level(homdp, delta)
    concentration = form.concentration(counts)
    distances = dict(bounds(form, concentration, level))
    if form.product is not None:
        distances["emission"] = product_bounds(form, concentration, level)
    radii = Radii(*(distances[name] for name in ROWS))
    if "reward" in distances:
        means = reward_bounds(form, concentration, distances["reward"], level)
        radii = radii._replace(reward=means)
    return _of_unknown(homdp, radii)


def _of_unknown(homdp: HOMDP, radii: Radii) -> Radii:
    """Set the radii of rows to 0 that are known or never used."""
    xp, unknown = namespace(radii), unknown_rows(homdp)
    moves, shows = (
        xp.where(getattr(unknown, name), getattr(radii, name), 0.0)
        for name in ("transition", "emission")
    )
    reward = radii.reward
    if homdp.rewards.law is not None:
        reward = xp.where(unknown_rewards(homdp), reward, 0.0)
    return Radii(moves, shows, radii.initial if unknown.initial else 0.0, reward)


@checked
def one_step(
    belief: Posterior,
    alpha_next: Array,
    key: Array | None = None,
    draws: int = 256,
    step: int = 1,
) -> OneStep:
    """Mean and standard deviation of the one-step backup, (X, A).

    They have a closed form for Dirichlet rows, and are estimated from draws otherwise.

    Parameters
    ----------
    belief
        The posterior.
    alpha_next
        Alpha-vectors of the next step by action and observation, (A, Y, X).
    key
        A JAX random key for the draws.
    draws
        The number of draws.
    step
        The step of the action, from 1. It matters only if tables depend on the step.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, posterior, tabular
    >>> lamp = tabular(
    ...     T=dist.Dirichlet(np.ones((2, 1, 2))),
    ...     O=np.eye(2),
    ...     initial=[0, 1],
    ...     reward=[[0], [1]],
    ...     horizon=2,
    ... )
    >>> seen = Counts(
    ...     np.array([[[0, 0]], [[2, 6]]]), np.array([[0, 0], [0, 8]])
    ... )  # a lit lamp went out twice in eight steps
    >>> lit = np.array([[[0, 1], [0, 1]]])  # alpha-vectors that are 1 in the second state
    >>> one_step(posterior(lamp, seen), lit).mean.ravel().round(3).tolist()  # 1/2 and 7/10
    [0.5, 0.7]
    """
    X, Y, A, H = belief.homdp.spaces.sizes
    if isinstance(alpha_next, jax.core.Tracer):
        remedy = "Call it outside of jit, vmap and grad."
        problem = Problem("alpha_next", "traced JAX values", "numbers", remedy)
        raise TracedError("one_step", [problem])
    if alpha_next.shape != (A, Y, X) or not (np.abs(np.asarray(alpha_next)) <= LARGEST).all():
        expected = f"numbers up to {LARGEST:g} of shape {(A, Y, X)}: action, observation, state"
        problem = Problem("alpha_next", f"shape {alpha_next.shape}", expected)
        raise ParameterError("one_step", [problem])
    problems = size_problems(2, draws=draws) + size_problems(1, step=step)
    if not problems and step > max(H - 1, 1):
        problems = [Problem("step", str(step), f"a step in 1..{max(H - 1, 1)}")]
    refuse(ParameterError, "one_step", problems)
    if has_moments(belief.homdp) and belief.atoms is None:
        mean, variance = backup_moments(belief.homdp)(
            moments(belief.homdp, belief.counts), alpha_next, step
        )
        return OneStep(mean, np.sqrt(variance))
    batch = belief.draws(jax.random.key(0) if key is None else key, draws)
    values = one_step_values(batch, step, alpha_next)
    return OneStep(values.mean(0), values.std(0, ddof=1))


def _sampled(belief: Posterior, key: Array, level: float) -> Radii:
    """Quantiles over draws of the tables, in chunks that fit in memory."""
    S = _draws_for(belief, level)
    size = max(1, CHUNK // sum(table.size for table in belief.homdp.structure.reference))
    distances: list[tuple[Array, ...]] = []
    mean, batch = belief.mean, belief.parameters(key, S)
    moves, shows = belief.homdp.form.short(mean.transition, mean.emission)
    centre = {"transition": moves, "emission": shows, "initial": mean.initial}
    for start in range(0, S, size):
        part = slice(start, min(start + size, S))
        some = {name: value[part] for name, value in batch.items()}
        tables = tables_at(belief.homdp, some, part.stop - start)
        distances.append(
            tuple(np.abs(getattr(tables, name) - centre[name]).sum(-1) for name in ROWS)
        )
    quantiles = (
        upper_quantile(np.concatenate(parts), 1 - level) for parts in zip(*distances, strict=True)
    )
    return Radii(*quantiles)


def _draws_for(belief: Posterior, level: float) -> int:
    """The number of draws for a quantile; raises an error if too few are stored."""
    stored = belief.atoms
    S = ceil(DRAWS / level)
    if stored is not None and stored.weights is None:
        S = min(S, len(stored))
        if 1 / level - 1 > S:
            remedy = f"Sample more: Sampling(draws={ceil(1 / level / stored.chains)})."
            problem = Problem(
                "draws",
                f"{S}",
                f"at least {ceil(1 / level - 1)} for a quantile at level {1 - level:.6f}",
                remedy,
            )
            raise InferenceError(f"quantiles for {belief.homdp.name}", [problem])
    return S

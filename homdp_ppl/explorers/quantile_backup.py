"""Optimism inside the history tree: one-step backups of mean plus z standard deviations."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr

from homdp_ppl.confidence.backups import Backup, draw_backup, moment_backup, upper_quantile
from homdp_ppl.confidence.reward_beliefs import (
    reward_deviation,
    with_quantile_rewards,
    with_upper_rewards,
)
from homdp_ppl.confidence.row_moments import has_moments, moments, start_variance
from homdp_ppl.core.arguments import check_arguments, number_problems, refuse
from homdp_ppl.core.bound import bind
from homdp_ppl.core.checked import checked
from homdp_ppl.core.plan import Solution
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers._believing import draw_models, init_tables, mean_model, update_belief
from homdp_ppl.explorers.explorer import About, Explorer, Objective, Root, changed
from homdp_ppl.explorers.state import Proposal, State, one
from homdp_ppl.precision import Array, namespace

DRAWS = 256  # models that represent a posterior without closed form
NORMAL = 1.645  # standard deviations: the 95% quantile of a normal distribution
FLAT = 0.7, 2.5  # for flat tables: of rows with many data, and of rows without data


@checked
def quantile_backup(z: float | None = None, unvisited: float | None = None) -> Explorer:
    """Plan with the backups alpha(x, a) = r(x, a) + min(H - h, mu + z sigma).

    Here mu and sigma are the posterior mean and standard deviation of the one-step backup. The
    recommended default where no guarantee is needed. It is optimistic only where the posterior is
    wide. Each backup has its own deviation, so errors that cancel add no optimism. A heuristic:
    there is no guarantee that the root value is at least the optimum with a stated probability, and
    a rule with a fixed z can stop to visit a good action for ever after unlucky outcomes. Requires
    the history tree.

    For Dirichlet rows mu and sigma are exact. mu + z sigma is not the quantile at level Phi(z): for
    skewed rows the level differs, for example 0.916 instead of 0.95 for Beta(1/11, 10/11). For
    other posteriors the quantile at level Phi(z) of 256 draws is used instead. Unknown or random
    rewards are treated in the same way: r(x, a) is then the posterior mean reward plus z of its
    standard deviations, at most the largest possible reward.

    The prior matters. A flat Dirichlet prior on many next states counts as many observations, and
    rows that were never visited then look known: use a sparse prior, as the flat tables of the
    model zoo do (``models.flat.flat_table``), or declare the structure.

    Parameters
    ----------
    z
        The number of standard deviations. Default: 1.645, the 95% quantile of a normal
        distribution. For a flat table, in which every row of T and O is a Dirichlet row of its own,
        the default is ``z=0.7, unvisited=2.5``: errors of different rows are independent, and a
        plan adds up the optimism of all rows that it passes, so fewer deviations per row are
        enough, but rows that were never tried must stay attractive.
    unvisited
        The number of standard deviations for rows of T without data; it falls to z as data come in
        (:func:`homdp_ppl.confidence.moment_backup`). Default: z, or 2.5 on flat tables if z is not
        given either. Needs a posterior in closed form.

    Examples
    --------
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> runs = [learn(world, quantile_backup(z), history_tree(), episodes=1) for z in (0.0, 1.645)]
    >>> [
    ...     run.optimistic.round(3) for run in runs
    ... ]  # z = 0 uses the mean accuracy, 0.8: 0.9 + 0.64 + 0.32 * 0.9
    [array([1.828]), array([1.9])]
    """
    given = {} if unvisited is None else {"unvisited": unvisited}
    check_arguments("quantile_backup", **({} if z is None else {"z": z}))
    refuse(ParameterError, "quantile_backup", number_problems(**given))
    options = changed(quantile_backup, z=z, unvisited=unvisited)
    return Explorer(
        About("quantile_backup", options, uses_prior=True),
        init=_init if given else init_tables,
        propose=bind(_propose, z=z),
        update=update_belief,
        objective=Objective(backup=bind(_backup, z=z, **given), root=bind(_root, z=z)),
    )


def _init(homdp: HOMDP, episodes: int | None) -> State:
    if homdp.spaces.finite and not has_moments(homdp):
        got, expected = "a posterior without closed form", "Dirichlet rows"
        problem = Problem("unvisited", got, expected, "Leave out unvisited.")
        raise ParameterError("quantile_backup", [problem])
    return init_tables(homdp, episodes)


def _deviations(
    homdp: HOMDP, z: float | None, unvisited: float | None = None
) -> tuple[float, float | None]:
    """The numbers of standard deviations, as given or by default."""
    if z is not None:
        return z, unvisited
    if not homdp.cache.get("flat table", lambda: is_flat(homdp)):
        return NORMAL, unvisited
    visited, first = FLAT
    return visited, first if unvisited is None else unvisited


def is_flat(homdp: HOMDP) -> bool:
    """Whether every row of T and O is a Dirichlet row of its own, except for terminal states.

    Rewards must be known.
    """
    plain = homdp.spaces.finite and not homdp.spaces.sensors and homdp.rewards.law is None
    if not plain or not has_moments(homdp):
        return False
    rows, structure, live = 0, homdp.structure, ~homdp.spaces.ends
    for name, axis in (("transition", -2), ("emission", -1)):
        known = np.asarray(getattr(structure.known, name))
        unknown = np.compress(live, ~known, axis=axis)
        if not unknown.all() or len(structure.conjugate.rows_of(name)) != unknown.sum():
            return False
        rows += unknown.size
    return rows > 0


def _propose(key: Array, state: State, z: float | None) -> Proposal:
    homdp = state.homdp
    z, _ = _deviations(homdp, z)
    random = homdp.rewards.law is not None
    if has_moments(homdp) and state.memory is None:
        believed = moments(homdp, state.counts)
        if random:
            deviation = reward_deviation(homdp, state.counts)
            believed = believed._replace(model=with_upper_rewards(believed.model, z, deviation))
        return one(believed.model, believed)
    model, draws = mean_model(state), draw_models(key, state, DRAWS)
    return one(with_quantile_rewards(model, z, draws) if random else model, draws)


def _backup(homdp: HOMDP, z: float | None, unvisited: float | None = None) -> Backup:
    deviations, first = _deviations(homdp, z, unvisited)
    by_draws = draw_backup(deviations)
    if not has_moments(homdp):
        return by_draws
    by_moments = moment_backup(homdp, deviations, first)

    def backup(parameters: Any, h: int, alpha_next: Array) -> Array:
        if not isinstance(parameters, POMDP):
            return by_moments(parameters, h, alpha_next)
        if unvisited is None:
            return by_draws(parameters, h, alpha_next)
        got, expected = "a number, with missing states", "None"
        remedy = "Leave out unvisited: it needs a posterior in closed form."
        raise ParameterError("quantile_backup", [Problem("unvisited", got, expected, remedy)])

    return backup


def _root(homdp: HOMDP, z: float | None) -> Root:
    z, _ = _deviations(homdp, z)
    H, level = float(homdp.horizon), float(ndtr(z))

    def by_draws(batch: Any, solution: Solution) -> Array:
        xp = namespace(batch, solution.value)
        values = xp.einsum("sx,sxy,yx->s", batch.initial, batch.shows(0), solution.first)
        return xp.minimum(upper_quantile(values, level), H)

    if not has_moments(homdp):
        return by_draws
    variance = start_variance(homdp)

    def root(believed: Any, solution: Solution) -> Array:
        if isinstance(believed, POMDP):
            return by_draws(believed, solution)
        xp = namespace(believed, solution.value)
        deviation = xp.sqrt(xp.maximum(variance(believed, solution.first), 0.0))
        return xp.minimum(solution.value + z * deviation, H)

    return root

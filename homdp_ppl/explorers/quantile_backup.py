"""Optimism inside the history tree: each one-step backup is a posterior quantile."""

from __future__ import annotations

from typing import Any

from scipy.special import ndtr

from homdp_ppl.confidence.backups import (
    Backup,
    draw_backup,
    has_moments,
    moment_backup,
    moments,
    start_variance,
    upper_quantile,
)
from homdp_ppl.core.arguments import check_arguments
from homdp_ppl.core.bound import bind
from homdp_ppl.core.checked import checked
from homdp_ppl.core.plan import Solution
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.explorers._believing import draw_models, init_tables, mean_model, update_belief
from homdp_ppl.explorers.explorer import About, Explorer, Objective, Root, changed
from homdp_ppl.explorers.state import Proposal, State, one
from homdp_ppl.precision import Array, namespace

DRAWS = 256  # models that represent a posterior without closed form


@checked
def quantile_backup(z: float = 1.645) -> Explorer:
    """Plan with the backups alpha(x, a) = r(x, a) + min(H - h, mu + z sigma).

    Here mu and sigma are the posterior mean and standard deviation of the one-step backup. The
    recommended default. It is optimistic only where the posterior is wide. Each backup uses its own
    quantile, so errors that cancel add no optimism. A heuristic: there is no guarantee that the
    root value is at least the optimum with a stated probability. Requires the history tree. For
    Dirichlet rows mu and sigma are exact; otherwise the quantile at level Phi(z) of 256 draws is
    used.

    Parameters
    ----------
    z
        The number of standard deviations; 1.645 is the 95% quantile of a normal distribution.

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
    check_arguments("quantile_backup", z=z)
    return Explorer(
        About("quantile_backup", changed(quantile_backup, z=z), uses_prior=True),
        init=init_tables,
        propose=_propose,
        update=update_belief,
        objective=Objective(backup=bind(_backup, z=z), root=bind(_root, z=z)),
    )


def _propose(key: Array, state: State) -> Proposal:
    if has_moments(state.homdp):
        believed = moments(state.homdp, state.counts)
        return one(believed.model, believed)
    return one(mean_model(state), draw_models(key, state, DRAWS))


def _backup(homdp: HOMDP, z: float) -> Backup:
    return moment_backup(homdp, z) if has_moments(homdp) else draw_backup(z)


def _root(homdp: HOMDP, z: float) -> Root:
    H, level = float(homdp.horizon), float(ndtr(z))
    if has_moments(homdp):
        variance = start_variance(homdp)

        def by_moments(believed: Any, solution: Solution) -> Array:
            xp = namespace(believed, solution.value)
            deviation = xp.sqrt(xp.maximum(variance(believed, solution.first), 0.0))
            return xp.minimum(solution.value + z * deviation, H)

        return by_moments

    def by_draws(batch: Any, solution: Solution) -> Array:
        xp = namespace(batch, solution.value)
        values = xp.einsum("sx,sxy,yx->s", batch.initial, batch.shows(0), solution.first)
        return xp.minimum(upper_quantile(values, level), H)

    return by_draws

"""Optimism by posterior quantiles of whole rows: sound under the prior, but loose."""

from __future__ import annotations

from homdp_ppl.confidence.posteriors import dirichlet_radii, quantile_radii
from homdp_ppl.core.arguments import check_arguments
from homdp_ppl.core.bound import bind
from homdp_ppl.core.checked import checked
from homdp_ppl.core.optimism import remaining_steps
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers._believing import init_tables, mean_model, update_belief
from homdp_ppl.explorers._rooted import capped_root, with_bonuses
from homdp_ppl.explorers.explorer import About, Deployment, Explorer, Objective, changed
from homdp_ppl.explorers.state import Proposal, State
from homdp_ppl.posteriors import posterior
from homdp_ppl.posteriors.particles import Particles, Reweighted
from homdp_ppl.posteriors.tracking import Tracked
from homdp_ppl.precision import Array


@checked
def quantile_bonus(delta: float = 0.1, bound: bool = False) -> Explorer:
    """Like `tight`, with the posterior mean model and posterior quantiles as radii.

    The radii are quantiles of ||T - T-bar||_1 and ||O - O-bar||_1. Then P(v-hat >= v* | data) >= 1
    - delta: the posterior guarantees optimism if the prior is correct. Each row gets an equal share
    delta' of delta, so the radii grow with the number of unknown rows. Means of random rewards are
    rows, too: their radius is added, at most up to the largest reward.

    Parameters
    ----------
    delta
        Allowed posterior probability of error.
    bound
        Whether to bound the quantiles of Dirichlet rows by sqrt(2 log((2^d - 2)/delta') / (alpha_0
        + 1)) instead of estimating them from draws. This is looser and much faster, also in the
        compiled loop. For conjugate declarations only.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models
    >>> rule, tiger = quantile_bonus(bound=True), models.load("tiger", horizon=2).homdp
    >>> proposal = rule.propose(jax.random.key(0), rule.init(tiger, 100))
    >>> (
    ...     proposal.models.shows(0)[0, 0],
    ...     proposal.parameters.round(3),
    ... )  # Beta(8, 2), two rows: sqrt(2 log(2 / 0.05) / 11) for each
    (array([0.8, 0.2]), array([0.819]))
    """
    check_arguments("quantile_bonus", delta=delta)
    options = changed(quantile_bonus, delta=delta, bound=bound)
    return Explorer(
        About("quantile_bonus", options, guarantee="Bayesian", uses_prior=True),
        init=init_tables,
        propose=bind(_propose, delta=delta, bound=bound),
        update=update_belief,
        objective=Objective(root=capped_root, caps=remaining_steps),
        deployment=Deployment(replan="doubled"),
    )


def _propose(key: Array, state: State, delta: float, bound: bool) -> Proposal:
    if bound:
        if isinstance(state.memory, Particles | Reweighted):
            got, expected = "bound=True, with missing states", "bound=False"
            remedy = "The bound holds for posteriors in closed form only."
            raise ParameterError("quantile_bonus", [Problem("bound", got, expected, remedy)])
        return with_bonuses(mean_model(state), dirichlet_radii(state.homdp, state.counts, delta))
    belief = (
        state.memory.belief
        if isinstance(state.memory, Tracked | Particles | Reweighted)
        else posterior(state.homdp, state.counts)
    )
    return with_bonuses(mean_model(state), quantile_radii(belief, key, delta))

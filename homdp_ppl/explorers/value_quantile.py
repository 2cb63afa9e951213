"""Optimism by a quantile of the optimal value."""

from __future__ import annotations

from math import ceil

from homdp_ppl.core.arguments import check_arguments, refuse
from homdp_ppl.core.bound import bind
from homdp_ppl.core.checked import checked
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.sizes import draw_problems
from homdp_ppl.errors import ParameterError
from homdp_ppl.explorers._believing import draw_models, init_belief, update_belief
from homdp_ppl.explorers.explorer import About, Explorer, Objective, changed
from homdp_ppl.explorers.state import Proposal, State, refuse_real_spaces
from homdp_ppl.precision import Array


@checked
def value_quantile(q: float = 0.9, draws: int = 20) -> Explorer:
    """Draw S models, plan each exactly, deploy the plan with the ceil(q S)-th smallest value.

    Sound by construction: the posterior coverage P(v-hat >= v* | data) is exactly ceil(q S)/(S + 1)
    if the prior is correct, because the true model and the draws are exchangeable. The rule
    computes S plans per round and requires an exact planner.

    Parameters
    ----------
    q
        The level of the quantile.
    draws
        S, the number of models drawn in every round.

    Examples
    --------
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> rule = value_quantile(q=0.75, draws=3)
    >>> (
    ...     rule.objective.pick,
    ...     rule.objective.pick / (3 + 1),
    ... )  # the largest of three values is at least the optimum with probability 3/4
    (3, 0.75)
    >>> run = learn(models.load("tiger", horizon=2), rule, history_tree(), episodes=2)
    >>> run.record.plans
    array([3, 3])
    """
    check_arguments("value_quantile", q=q, draws=draws)
    options, pick = changed(value_quantile, q=q, draws=draws), max(ceil(q * draws - 1e-9), 1)
    return Explorer(
        About(
            "value_quantile",
            options,
            guarantee="Bayesian",
            uses_prior=True,
            coverage=pick / (draws + 1),
        ),
        init=bind(_init, draws=draws),
        propose=bind(_propose, draws=draws),
        update=update_belief,
        objective=Objective(candidates=draws, pick=pick, exact=True),
    )


def _init(homdp: HOMDP, episodes: int | None, draws: int) -> State:
    refuse_real_spaces(homdp)
    problems = draw_problems("draws", draws, homdp.sites, homdp.spaces)
    refuse(ParameterError, "value_quantile", problems)
    return init_belief(homdp, episodes)


def _propose(key: Array, state: State, draws: int) -> Proposal:
    return Proposal(draw_models(key, state, draws))

"""Optimism by a quantile of the optimal value itself."""

from __future__ import annotations

from math import ceil

from homdp_ppl.confidence.arguments import check_arguments
from homdp_ppl.explorers._believing import believe, closed, draw_models, learn_more
from homdp_ppl.explorers.explorer import Explorer, Proposal, Replan, State, changed
from homdp_ppl.precision import Array


def value_quantile(q: float = 0.9, draws: int = 20, replan: Replan = "every episode") -> Explorer:
    """Draw S models, plan each exactly, deploy the plan of the ceil(q S)-th smallest optimal value.

    Sound by construction: its posterior coverage P(v-hat >= v* | data) is exactly ceil(q S)/(S +
    1), for any prior that is right, since the truth and the draws are exchangeable. Costs S plans a
    round, and needs an exact planner.

    Parameters
    ----------
    q
        Level of the quantile.
    draws
        S, how many models are drawn anew in every round.
    replan
        Redrawing only when counts have doubled harms sampling rules; it can be had.

    Examples
    --------
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> rule = value_quantile(q=0.75, draws=3)
    >>> (
    ...     rule.pick,
    ...     rule.pick / (3 + 1),
    ... )  # the largest of three values: it covers the optimum with probability 3/4
    (3, 0.75)
    >>> run = learn(models.load("tiger", horizon=2), rule, history_tree(), episodes=2)
    >>> run.record.plans
    array([3, 3])
    """
    check_arguments("value_quantile", q=q, draws=draws)

    def propose(key: Array, state: State) -> Proposal:
        return Proposal(draw_models(key, state, draws))

    options = changed(value_quantile, q=q, draws=draws, replan=replan)
    return Explorer(
        "value_quantile",
        propose,
        "Bayesian",
        options,
        init=believe,
        update=learn_more,
        candidates=draws,
        pick=max(ceil(q * draws - 1e-9), 1),
        replan=replan,
        compilable=closed,
        exact=True,
    )

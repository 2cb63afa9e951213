"""Exploration rules, one per file; ``explorer.py`` defines their interface."""

from collections.abc import Callable

from homdp_ppl.core.bound import Bound, bind
from homdp_ppl.explorers._believing import draw_models, init_belief, mean_model, update_belief
from homdp_ppl.explorers._classes import low_rank
from homdp_ppl.explorers._densities import candidates
from homdp_ppl.explorers.anytime import anytime
from homdp_ppl.explorers.epsilon_greedy import epsilon_greedy
from homdp_ppl.explorers.explorer import About, Deployment, Explorer, Objective
from homdp_ppl.explorers.greedy import greedy
from homdp_ppl.explorers.hop_b import hop_b
from homdp_ppl.explorers.hop_b_class import hop_b_class
from homdp_ppl.explorers.hop_v import hop_v
from homdp_ppl.explorers.oracle import oracle
from homdp_ppl.explorers.posterior_sampling import posterior_sampling
from homdp_ppl.explorers.quantile_backup import quantile_backup
from homdp_ppl.explorers.quantile_bonus import quantile_bonus
from homdp_ppl.explorers.state import Pairs, Proposal, State
from homdp_ppl.explorers.tight import tight
from homdp_ppl.explorers.transforms import (
    replan_every_episode,
    replan_on_doubling,
    replan_once,
    with_random_actions,
)
from homdp_ppl.explorers.uniform import uniform
from homdp_ppl.explorers.value_quantile import value_quantile

EXPLORERS: dict[str, Callable[..., Explorer]] = {
    factory.__name__: factory
    for factory in (
        anytime,
        epsilon_greedy,
        greedy,
        hop_b,
        hop_b_class,
        hop_v,
        oracle,
        posterior_sampling,
        quantile_backup,
        quantile_bonus,
        tight,
        uniform,
        value_quantile,
    )
}

__all__ = [
    "EXPLORERS",
    "About",
    "Bound",
    "Deployment",
    "Explorer",
    "Objective",
    "Pairs",
    "Proposal",
    "State",
    "anytime",
    "bind",
    "candidates",
    "draw_models",
    "epsilon_greedy",
    "greedy",
    "hop_b",
    "hop_b_class",
    "hop_v",
    "init_belief",
    "low_rank",
    "mean_model",
    "oracle",
    "posterior_sampling",
    "quantile_backup",
    "quantile_bonus",
    "replan_every_episode",
    "replan_on_doubling",
    "replan_once",
    "tight",
    "uniform",
    "update_belief",
    "value_quantile",
    "with_random_actions",
]


def __dir__() -> list[str]:
    return __all__

"""Planners: one a file, each a factory for functions from a POMDP to a plan."""

from collections.abc import Callable
from typing import Any

from homdp_ppl.planners._bounds import RootBounds, root_bounds
from homdp_ppl.planners._histories import Support, count_histories
from homdp_ppl.planners._online_policy import OnlinePolicy
from homdp_ppl.planners.alpha_vectors import alpha_vectors
from homdp_ppl.planners.auto import auto
from homdp_ppl.planners.bounded_search import bounded_search
from homdp_ppl.planners.history_tree import history_tree
from homdp_ppl.planners.particle_tree import EstimatedPlan, particle_tree
from homdp_ppl.planners.quantised import QuantisedPlan, plan_on_cells, quantised

__all__ = [
    "CONTINUOUS_PLANNERS",
    "PLANNERS",
    "EstimatedPlan",
    "OnlinePolicy",
    "QuantisedPlan",
    "RootBounds",
    "Support",
    "alpha_vectors",
    "auto",
    "bounded_search",
    "count_histories",
    "history_tree",
    "particle_tree",
    "plan_on_cells",
    "quantised",
    "root_bounds",
]

PLANNERS: dict[str, Callable[..., Callable[..., Any]]] = {
    "alpha_vectors": alpha_vectors,
    "auto": auto,
    "bounded_search": bounded_search,
    "history_tree": history_tree,
}
CONTINUOUS_PLANNERS: dict[str, Callable[..., Callable[..., Any]]] = {
    "particle_tree": particle_tree,
    "quantised": quantised,
}


def __dir__() -> list[str]:
    return __all__

"""Planners, one per file. Each is a factory of functions from a model or a world to a plan."""

from collections.abc import Callable
from typing import Any

from homdp_ppl.core.optimism import remaining_steps
from homdp_ppl.planners._bounds import RootBounds, root_bounds
from homdp_ppl.planners._histories import Support, count_histories
from homdp_ppl.planners._history_graph import history_graph
from homdp_ppl.planners._online_policy import OnlinePolicy
from homdp_ppl.planners.alpha_vectors import alpha_vectors
from homdp_ppl.planners.auto import auto
from homdp_ppl.planners.bounded_search import bounded_search
from homdp_ppl.planners.history_tree import history_tree
from homdp_ppl.planners.particle_tree import particle_tree
from homdp_ppl.planners.quantised import plan_on_cells, quantised

__all__ = [
    "PLANNERS",
    "OnlinePolicy",
    "RootBounds",
    "Support",
    "alpha_vectors",
    "auto",
    "bounded_search",
    "count_histories",
    "history_graph",
    "history_tree",
    "particle_tree",
    "plan_on_cells",
    "quantised",
    "remaining_steps",
    "root_bounds",
]

PLANNERS: dict[str, Callable[..., Any]] = {
    factory.__name__: factory
    for factory in (
        alpha_vectors,
        auto,
        bounded_search,
        history_tree,
        particle_tree,
        quantised,
    )
}


def __dir__() -> list[str]:
    return __all__

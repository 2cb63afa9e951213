"""Planners: one a file, each a factory for functions from a POMDP to a plan."""

from collections.abc import Callable
from typing import Any

from homdp_ppl.planners.alpha_vectors import alpha_vectors as alpha_vectors
from homdp_ppl.planners.auto import auto as auto
from homdp_ppl.planners.bounded_search import bounded_search as bounded_search
from homdp_ppl.planners.history_tree import history_tree as history_tree
from homdp_ppl.planners.online_policy import OnlinePolicy as OnlinePolicy
from homdp_ppl.planners.particle_tree import EstimatedPlan as EstimatedPlan
from homdp_ppl.planners.particle_tree import particle_tree as particle_tree
from homdp_ppl.planners.quantised import QuantisedPlan as QuantisedPlan
from homdp_ppl.planners.quantised import plan_on_cells as plan_on_cells
from homdp_ppl.planners.quantised import quantised as quantised

PLANNERS: dict[str, Callable[..., Callable[..., Any]]] = {
    "alpha_vectors": alpha_vectors,
    "auto": auto,
    "bounded_search": bounded_search,
    "history_tree": history_tree,
}
CONTINUOUS_PLANNERS: dict[str, Callable[..., Callable[..., Any]]] = {"particle_tree": particle_tree, "quantised": quantised}

"""Values of policies: exact, by simulation, and bounds from agents that see more or less."""

from homdp_ppl.core.alphas import policy_alphas
from homdp_ppl.evaluation.exact import evaluate, occupancy, uniform_at
from homdp_ppl.evaluation.lemma import SimulationLemma, simulation_lemma, trajectory_distance
from homdp_ppl.evaluation.relaxations import fast_informed_bound, mdp_values, qmdp, root_value
from homdp_ppl.evaluation.restricted import Restricted, best_blind, best_memoryless
from homdp_ppl.evaluation.simulation import Estimate, estimate

__all__ = [
    "Estimate",
    "Restricted",
    "SimulationLemma",
    "best_blind",
    "best_memoryless",
    "estimate",
    "evaluate",
    "fast_informed_bound",
    "mdp_values",
    "occupancy",
    "policy_alphas",
    "qmdp",
    "root_value",
    "simulation_lemma",
    "trajectory_distance",
    "uniform_at",
]


def __dir__() -> list[str]:
    return __all__

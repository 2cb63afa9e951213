"""The paper's statements as functions: regret bounds, sample sizes, the lower bound, and lemmas.

The paper is Lee, Agarwal, Dann and Zhang, "Learning in POMDPs is Sample-Efficient with Hindsight
Observability" (2023). Bounds are given term by term, lemmas with both sides. Every function cites
its statement and says where it differs from the printed version. ``report`` collects all statements
about a model.
"""

from homdp_ppl.evaluation.lemma import simulation_lemma
from homdp_ppl.theory.counting import (
    elliptical_potential,
    pigeonhole,
    reciprocal_pigeonhole,
    root_pigeonhole,
)
from homdp_ppl.theory.lower import divergence, lower_bound, packing, separation, unavoidable_gap
from homdp_ppl.theory.optimism import hop_b_class_optimism, hop_b_optimism
from homdp_ppl.theory.recursion import Recursion, alpha_recursion, simulation_recursion
from homdp_ppl.theory.regret import hop_b_bound, hop_b_class_bound, hop_v_bound
from homdp_ppl.theory.samples import hop_b_class_samples, hop_b_samples, hop_v_samples
from homdp_ppl.theory.summary import Statement, report
from homdp_ppl.theory.total_variation import hop_b_tv_bound

__all__ = [
    "Recursion",
    "Statement",
    "alpha_recursion",
    "divergence",
    "elliptical_potential",
    "hop_b_bound",
    "hop_b_class_bound",
    "hop_b_class_optimism",
    "hop_b_class_samples",
    "hop_b_optimism",
    "hop_b_samples",
    "hop_b_tv_bound",
    "hop_v_bound",
    "hop_v_samples",
    "lower_bound",
    "packing",
    "pigeonhole",
    "reciprocal_pigeonhole",
    "report",
    "root_pigeonhole",
    "separation",
    "simulation_lemma",
    "simulation_recursion",
    "unavoidable_gap",
]


def __dir__() -> list[str]:
    return __all__

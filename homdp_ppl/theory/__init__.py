"""The paper's statements as functions: bounds term by term, sample sizes, the lower bound, and lemmas with both sides computed.

Lee, Agarwal, Dann and Zhang, "Learning in POMDPs is Sample-Efficient with Hindsight Observability" (2023). Every function cites
its statement and says where it differs from print. ``report`` gathers what there is to say about a model.
"""

from homdp_ppl.evaluation import simulation_lemma as simulation_lemma
from homdp_ppl.theory.counting import elliptical_potential as elliptical_potential
from homdp_ppl.theory.counting import pigeonhole as pigeonhole
from homdp_ppl.theory.counting import reciprocal_pigeonhole as reciprocal_pigeonhole
from homdp_ppl.theory.counting import root_pigeonhole as root_pigeonhole
from homdp_ppl.theory.lower import divergence as divergence
from homdp_ppl.theory.lower import lower_bound as lower_bound
from homdp_ppl.theory.lower import packing as packing
from homdp_ppl.theory.lower import separation as separation
from homdp_ppl.theory.lower import unavoidable_gap as unavoidable_gap
from homdp_ppl.theory.optimism import hop_b_class_optimism as hop_b_class_optimism
from homdp_ppl.theory.optimism import hop_b_optimism as hop_b_optimism
from homdp_ppl.theory.regret import hop_b_bound as hop_b_bound
from homdp_ppl.theory.regret import hop_b_class_bound as hop_b_class_bound
from homdp_ppl.theory.regret import hop_v_bound as hop_v_bound
from homdp_ppl.theory.samples import hop_b_class_samples as hop_b_class_samples
from homdp_ppl.theory.samples import hop_b_samples as hop_b_samples
from homdp_ppl.theory.samples import hop_v_samples as hop_v_samples
from homdp_ppl.theory.summary import Statement as Statement
from homdp_ppl.theory.summary import report as report

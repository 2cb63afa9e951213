"""Confidence sets: radii, bonuses and optimistic backups, from counts and from posteriors."""

from homdp_ppl.confidence.backups import Moments as Moments
from homdp_ppl.confidence.backups import backup_moments as backup_moments
from homdp_ppl.confidence.backups import draw_backup as draw_backup
from homdp_ppl.confidence.backups import has_moments as has_moments
from homdp_ppl.confidence.backups import moment_backup as moment_backup
from homdp_ppl.confidence.backups import moments as moments
from homdp_ppl.confidence.backups import start_variance as start_variance
from homdp_ppl.confidence.backups import upper_quantile as upper_quantile
from homdp_ppl.confidence.counts import Radii as Radii
from homdp_ppl.confidence.counts import bernstein as bernstein
from homdp_ppl.confidence.counts import centred_bonus as centred_bonus
from homdp_ppl.confidence.counts import empirical as empirical
from homdp_ppl.confidence.counts import hoeffding as hoeffding
from homdp_ppl.confidence.counts import hop_b_bonus as hop_b_bonus
from homdp_ppl.confidence.counts import hop_b_class_bonus as hop_b_class_bonus
from homdp_ppl.confidence.counts import hop_b_class_radii as hop_b_class_radii
from homdp_ppl.confidence.counts import hop_b_radii as hop_b_radii
from homdp_ppl.confidence.counts import start_bonus as start_bonus
from homdp_ppl.confidence.counts import weissman as weissman
from homdp_ppl.confidence.counts import weissman_radii as weissman_radii
from homdp_ppl.confidence.posteriors import OneStep as OneStep
from homdp_ppl.confidence.posteriors import dirichlet_radii as dirichlet_radii
from homdp_ppl.confidence.posteriors import highest_density_set as highest_density_set
from homdp_ppl.confidence.posteriors import likelihood_set as likelihood_set
from homdp_ppl.confidence.posteriors import one_step as one_step
from homdp_ppl.confidence.posteriors import quantile_radii as quantile_radii

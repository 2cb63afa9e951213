"""Confidence sets from counts and posteriors: radii, sequences, value ranges, bonuses, backups."""

from homdp_ppl.confidence.backups import draw_backup, moment_backup, upper_quantile
from homdp_ppl.confidence.bonuses import centred_bonus, hop_b_bonus, hop_b_class_bonus, start_bonus
from homdp_ppl.confidence.class_events import (
    ClassEvent,
    class_emission_event,
    class_transition_event,
    freedman_event,
    likelihood_event,
)
from homdp_ppl.confidence.estimates import empirical
from homdp_ppl.confidence.events import (
    Continuations,
    Event,
    continuations,
    emission_event,
    relative_transition_event,
    tilde_epsilon,
    transition_event,
)
from homdp_ppl.confidence.finite_classes import highest_density_set, likelihood_set
from homdp_ppl.confidence.inequalities import bernstein, hoeffding, weissman
from homdp_ppl.confidence.policies import interval
from homdp_ppl.confidence.posteriors import (
    OneStep,
    dirichlet_radii,
    one_step,
    quantile_radii,
)
from homdp_ppl.confidence.radii import Radii, hop_b_class_radii, hop_b_radii, weissman_radii
from homdp_ppl.confidence.ranges import Ranges, value_ranges
from homdp_ppl.confidence.row_moments import (
    Moments,
    backup_moments,
    has_moments,
    moments,
    start_variance,
)
from homdp_ppl.confidence.sequences import Interval, confidence_sequence
from homdp_ppl.confidence.sets import Box, Sets, confidence_sets
from homdp_ppl.confidence.transport import transport_bound

__all__ = [
    "Box",
    "ClassEvent",
    "Continuations",
    "Event",
    "Interval",
    "Moments",
    "OneStep",
    "Radii",
    "Ranges",
    "Sets",
    "backup_moments",
    "bernstein",
    "centred_bonus",
    "class_emission_event",
    "class_transition_event",
    "confidence_sequence",
    "confidence_sets",
    "continuations",
    "dirichlet_radii",
    "draw_backup",
    "emission_event",
    "empirical",
    "freedman_event",
    "has_moments",
    "highest_density_set",
    "hoeffding",
    "hop_b_bonus",
    "hop_b_class_bonus",
    "hop_b_class_radii",
    "hop_b_radii",
    "interval",
    "likelihood_event",
    "likelihood_set",
    "moment_backup",
    "moments",
    "one_step",
    "quantile_radii",
    "relative_transition_event",
    "start_bonus",
    "start_variance",
    "tilde_epsilon",
    "transition_event",
    "transport_bound",
    "upper_quantile",
    "value_ranges",
    "weissman",
    "weissman_radii",
]


def __dir__() -> list[str]:
    return __all__

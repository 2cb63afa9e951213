"""Confidence sets from counts and posteriors: radii, bonuses and optimistic backups."""

from homdp_ppl.confidence.backups import (
    Moments,
    backup_moments,
    draw_backup,
    has_moments,
    moment_backup,
    moments,
    start_variance,
    upper_quantile,
)
from homdp_ppl.confidence.bonuses import centred_bonus, hop_b_bonus, hop_b_class_bonus, start_bonus
from homdp_ppl.confidence.counts import (
    Radii,
    bernstein,
    empirical,
    hoeffding,
    hop_b_class_radii,
    hop_b_radii,
    weissman,
    weissman_radii,
)
from homdp_ppl.confidence.events import (
    Continuations,
    Event,
    continuations,
    emission_event,
    relative_transition_event,
    tilde_epsilon,
    transition_event,
)
from homdp_ppl.confidence.posteriors import (
    OneStep,
    dirichlet_radii,
    highest_density_set,
    likelihood_set,
    one_step,
    quantile_radii,
)

__all__ = [
    "Continuations",
    "Event",
    "Moments",
    "OneStep",
    "Radii",
    "backup_moments",
    "bernstein",
    "centred_bonus",
    "continuations",
    "dirichlet_radii",
    "draw_backup",
    "emission_event",
    "empirical",
    "has_moments",
    "highest_density_set",
    "hoeffding",
    "hop_b_bonus",
    "hop_b_class_bonus",
    "hop_b_class_radii",
    "hop_b_radii",
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
    "upper_quantile",
    "weissman",
    "weissman_radii",
]


def __dir__() -> list[str]:
    return __all__

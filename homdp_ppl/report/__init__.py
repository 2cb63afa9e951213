"""Tables, plots and HTML reports of models, plans, runs and studies."""

from typing import TYPE_CHECKING

from homdp_ppl._lazy import attach

if TYPE_CHECKING:  # for type checkers and editors; _HOMES is the same at run time
    from homdp_ppl.report.agents import draw_explanation, draw_live_check
    from homdp_ppl.report.checks import check_table, draw_check
    from homdp_ppl.report.classes import draw_versions, versions_of
    from homdp_ppl.report.comparisons import comparison_table, differences_table
    from homdp_ppl.report.curves import draw_bands, draw_bracket, draw_curves, use_style
    from homdp_ppl.report.draws import draw_densities, draw_intervals, draw_shares
    from homdp_ppl.report.forest import draw_forest
    from homdp_ppl.report.formatting import COLOURS
    from homdp_ppl.report.hindsight import draw_hindsight
    from homdp_ppl.report.intervals import draw_choice, draw_evaluation
    from homdp_ppl.report.labels import label_ends
    from homdp_ppl.report.ladders import draw_bounds, draw_ladder, draw_savings
    from homdp_ppl.report.learning import draw_optimistic_values, draw_regret
    from homdp_ppl.report.logs import draw_log
    from homdp_ppl.report.lower_bound import draw_instance, draw_scaling
    from homdp_ppl.report.page import write_page
    from homdp_ppl.report.planning import draw_beliefs, draw_cells, draw_envelope, draw_losses
    from homdp_ppl.report.priors import draw_priors
    from homdp_ppl.report.program import draw_program
    from homdp_ppl.report.radii import compare_radii, draw_radii, radius_table
    from homdp_ppl.report.studies import draw_episodes_to, draw_optimism
    from homdp_ppl.report.tables import (
        decisions_table,
        models_table,
        revealed_table,
        seen_table,
        theory_table,
    )

__all__ = [
    "COLOURS",
    "check_table",
    "compare_radii",
    "comparison_table",
    "decisions_table",
    "differences_table",
    "draw_bands",
    "draw_beliefs",
    "draw_bounds",
    "draw_bracket",
    "draw_cells",
    "draw_check",
    "draw_choice",
    "draw_curves",
    "draw_densities",
    "draw_envelope",
    "draw_episodes_to",
    "draw_evaluation",
    "draw_explanation",
    "draw_forest",
    "draw_hindsight",
    "draw_instance",
    "draw_intervals",
    "draw_ladder",
    "draw_live_check",
    "draw_log",
    "draw_losses",
    "draw_optimism",
    "draw_optimistic_values",
    "draw_priors",
    "draw_program",
    "draw_radii",
    "draw_regret",
    "draw_savings",
    "draw_scaling",
    "draw_shares",
    "draw_versions",
    "label_ends",
    "models_table",
    "radius_table",
    "revealed_table",
    "seen_table",
    "theory_table",
    "use_style",
    "versions_of",
    "write_page",
]

_HOMES = {  # module: the public names that it defines
    "agents": "draw_explanation draw_live_check",
    "checks": "check_table draw_check",
    "classes": "draw_versions versions_of",
    "comparisons": "comparison_table differences_table",
    "curves": "draw_bands draw_bracket draw_curves use_style",
    "draws": "draw_densities draw_intervals draw_shares",
    "forest": "draw_forest",
    "formatting": "COLOURS",
    "hindsight": "draw_hindsight",
    "intervals": "draw_choice draw_evaluation",
    "labels": "label_ends",
    "ladders": "draw_bounds draw_ladder draw_savings",
    "learning": "draw_optimistic_values draw_regret",
    "logs": "draw_log",
    "lower_bound": "draw_instance draw_scaling",
    "page": "write_page",
    "planning": "draw_beliefs draw_cells draw_envelope draw_losses",
    "priors": "draw_priors",
    "program": "draw_program",
    "radii": "compare_radii draw_radii radius_table",
    "studies": "draw_episodes_to draw_optimism",
    "tables": "decisions_table models_table revealed_table seen_table theory_table",
}

if not TYPE_CHECKING:
    __getattr__ = attach(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__

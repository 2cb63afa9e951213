"""Studies: compare rules over models, priors and seeds, with results that survive a crash."""

from typing import TYPE_CHECKING

from homdp_ppl._lazy import attach

if TYPE_CHECKING:  # for type checkers and editors; _HOMES is the same at run time
    from homdp_ppl.study.differences import Difference, paired_difference, pairwise_differences
    from homdp_ppl.study.directory import StudyDirectory
    from homdp_ppl.study.memory import side_by_side
    from homdp_ppl.study.reading import read_runs
    from homdp_ppl.study.results import digest
    from homdp_ppl.study.revealing import HindsightStudy, ShareRow, hindsight
    from homdp_ppl.study.running import Finished, compare, resume
    from homdp_ppl.study.sources import find_planner, find_rule, find_world
    from homdp_ppl.study.specification import Study, Unit
    from homdp_ppl.study.summary import Row, episodes_to, summarise

__all__ = [
    "Difference",
    "Finished",
    "HindsightStudy",
    "Row",
    "ShareRow",
    "Study",
    "StudyDirectory",
    "Unit",
    "compare",
    "digest",
    "episodes_to",
    "find_planner",
    "find_rule",
    "find_world",
    "hindsight",
    "paired_difference",
    "pairwise_differences",
    "read_runs",
    "resume",
    "side_by_side",
    "summarise",
]

_HOMES = {  # public names by module
    "differences": "Difference paired_difference pairwise_differences",
    "directory": "StudyDirectory",
    "revealing": "HindsightStudy ShareRow hindsight",
    "memory": "side_by_side",
    "reading": "read_runs",
    "results": "digest",
    "running": "Finished compare resume",
    "sources": "find_planner find_rule find_world",
    "specification": "Study Unit",
    "summary": "Row episodes_to summarise",
}

if not TYPE_CHECKING:
    __getattr__ = attach(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__

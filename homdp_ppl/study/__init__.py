"""Studies: many rules, many problems, many seeds; results that survive a crash and can be had again."""

from homdp_ppl.study.directory import StudyDirectory as StudyDirectory
from homdp_ppl.study.memory import side_by_side as side_by_side
from homdp_ppl.study.results import digest as digest
from homdp_ppl.study.results import read_runs as read_runs
from homdp_ppl.study.running import compare as compare
from homdp_ppl.study.running import resume as resume
from homdp_ppl.study.sources import find_planner as find_planner
from homdp_ppl.study.sources import find_rule as find_rule
from homdp_ppl.study.sources import find_world as find_world
from homdp_ppl.study.specification import Study as Study
from homdp_ppl.study.summary import Row as Row
from homdp_ppl.study.summary import episodes_to as episodes_to
from homdp_ppl.study.summary import paired_difference as paired_difference
from homdp_ppl.study.summary import summarise as summarise

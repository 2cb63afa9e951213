"""Planners: one a file, each a factory for functions from a POMDP to a plan."""

from homdp_ppl.planners.history_tree import history_tree as history_tree

PLANNERS = {"history_tree": history_tree}

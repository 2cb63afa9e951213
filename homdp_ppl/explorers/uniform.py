"""Uniform actions: the baseline that learns nothing from what it sees."""

from __future__ import annotations

from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.explorers.greedy import certainty_equivalent
from homdp_ppl.explorers.sampled_worlds import uniform_rule


def uniform() -> Explorer:
    """Every action with the same probability, in every episode: a baseline without optimism.

    Costs one plan in the whole run, which is not played; in continuous worlds none.
    """
    return Explorer("uniform", certainty_equivalent(True), "none", explore=1.0, replan="once", continuous=uniform_rule())

"""The start term of `tight` and `quantile_bonus`: added to the root value after all clipping."""

from __future__ import annotations

from collections.abc import Callable

from homdp_ppl.declare import HOMDP
from homdp_ppl.plan import Solution
from homdp_ppl.precision import Array, namespace


def capped_root(homdp: HOMDP) -> Callable[[Array, Solution], Array]:
    """min(H, value + offset). Inside the first reward the term would be clipped, and optimism fail."""

    def root(offset: Array, solution: Solution) -> Array:
        return namespace(offset, solution.upper).minimum(solution.upper + offset, float(homdp.horizon))

    return root

"""Certificates of planners contain the optimal values from other solvers."""

import pytest

from homdp_ppl import evaluate
from homdp_ppl.planners import alpha_vectors, auto, bounded_search
from tests.planners.references import REFERENCE, reference

ROUGHLY = ("tiger_hat", 15), ("maze", 15), ("rocksample", 20)  # for bounded_search only
# dense and long: not for bounded_search
LONG = (("tiger_hat", 20), ("tiger_hat", 100), ("rand_x5y3a2", 200))
VECTORS = {
    **dict.fromkeys(REFERENCE, 1e-9),
    **dict.fromkeys(LONG, 1e-6),
    ("maze", 20): 1e-3,
}  # tolerances
CASES = [
    *((auto, *case, 1e-3) for case in REFERENCE if case not in ROUGHLY),
    *(
        (alpha_vectors, *case, VECTORS[case])
        for case in REFERENCE
        if case not in ROUGHLY and case[0] != "hallway"
    ),
    *(
        (bounded_search, *case, 1e-3)
        for case in REFERENCE
        if case not in LONG and case != ("maze", 9)
    ),
]


@pytest.mark.parametrize(
    ("planner", "problem", "horizon", "gap"), CASES, ids=lambda v: getattr(v, "__name__", str(v))
)
def test_reference_values(planner, problem, horizon, gap):
    model = reference(problem, horizon)
    plan = planner(gap)(model)
    value, exactness = REFERENCE[problem, horizon]
    assert plan.value - exactness <= value <= plan.upper + exactness
    assert plan.gap <= 1.01 * gap
    assert plan.value == pytest.approx(evaluate(plan.policy, model), abs=1e-10)

"""Problems with optimal values from other solvers.

All have an observation before the first action.
"""

from functools import cache

import numpy as np

from homdp_ppl import POMDP, models
from tests.worlds import world

REFERENCE = {  # problem, horizon: optimum and accuracy
    ("tiger", 200): (185.2, 1e-6),  # AI-Toolbox, Storm and pomdp-solve
    ("tiger_hat", 10): (9.334149617, 1e-9),  # pomdp-solve and AI-Toolbox
    ("tiger_hat", 15): (13.9944, 1e-4),  # a bounded search in plain NumPy
    ("tiger_hat", 20): (18.66862888, 1e-6),  # pomdp-solve
    ("tiger_hat", 100): (93.3635188, 1e-6),  # pomdp-solve
    ("rand_x5y3a2", 10): (7.363117029, 1e-9),  # pomdp-solve
    ("rand_x5y3a2", 200): (153.444771, 1e-6),  # pomdp-solve and AI-Toolbox
    ("maze", 9): (4.894584192, 1e-9),  # pomdp-solve and AI-Toolbox
    ("maze", 15): (8.2403, 1e-4),  # SARSOP
    ("maze", 20): (
        11.0294,
        1e-3,
    ),  # SARSOP with a gap of 8e-3, then bounded search in NumPy
    ("hallway", 5): (0.135, 1e-4),  # SARSOP
    ("hallway", 6): (0.1773, 1e-4),  # the bounded search in NumPy
    ("rocksample", 10): (20.0, 1e-8),  # SARSOP
    ("rocksample", 20): (20.0, 1e-5),  # SARSOP
    ("lower_bound_tree", 6): (0.65, 1e-9),  # Storm and SARSOP; (1 + epsilon) / 2 by the paper
}

HAT_T = [  # tables of the tiger, drawn from a Dirichlet posterior: dense, like learned models
    [[98986968, 1013032], [52924539, 47075461], [53607030, 46392970]],
    [[10679, 99989321], [42350849, 57649151], [45691983, 54308017]],
]
HAT_O = [[91488975, 8511025], [13280287, 86719713]]
RANDOM_T = [
    [
        [54827326, 15462454, 13796956, 15648964, 264300],
        [30377777, 62507068, 6291667, 607138, 216350],
    ],
    [
        [14066021, 41608365, 28551376, 2281303, 13492935],
        [583520, 11509283, 3075080, 70949396, 13882722],
    ],
    [
        [604426, 300862, 4877742, 73233374, 20983595],
        [32055336, 1067105, 41497787, 1388474, 23991298],
    ],
    [[1868255, 86212318, 7748379, 4161534, 9514], [2437472, 27319143, 16568693, 4745828, 48928864]],
    [[8638487, 7078, 57736261, 24705818, 8912356], [8640283, 14656303, 3331725, 73339966, 31722]],
]
RANDOM_O = [
    [534827, 58731821, 40733352],
    [86618886, 13258156, 122957],
    [85786067, 1986159, 12227774],
    [9445807, 3898283, 86655910],
    [4547092, 86086667, 9366242],
]
RANDOM_R = [
    [0.35607750443665465, 0.3959233708294302],
    [0.7561075199001407, 0.9631145925077149],
    [0.4255944879168173, 0.2551612430626973],
    [0.9225043392294818, 0.9396586671707212],
    [0.10118585095035315, 0.08813702351886488],
]


def rows(weights: list) -> np.ndarray:
    """Probabilities from integer weights."""
    return np.array(weights) / np.sum(weights, axis=-1, keepdims=True)


@cache
def tables(problem: str) -> POMDP:
    """The tables of a problem, with an arbitrary horizon."""
    if problem == "tiger_hat":
        return POMDP.of(
            rows([1, 1]), rows(HAT_T), rows(HAT_O), np.array([[[0.9, 0.0, 1.0], [0.9, 1.0, 0.0]]])
        )
    if problem == "rand_x5y3a2":
        return POMDP.of(rows([1] * 5), rows(RANDOM_T), rows(RANDOM_O), np.array([RANDOM_R]))
    if problem == "lower_bound_tree":
        return models.load(problem, depth=6, observations=10, epsilon=0.3).pomdp
    return world(problem).pomdp


def reference(problem: str, horizon: int) -> POMDP:
    """A problem with the given horizon; its rewards do not depend on the step."""
    model = tables(problem)
    return model._replace(
        reward=np.broadcast_to(model.reward[0], (horizon, *model.reward.shape[1:])).copy()
    )

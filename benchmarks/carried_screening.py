"""A fixture: screening with the test just taken carried in the state, as a flat table.

    condition ──► condition'     healthy ─onset─► early ─progression─► advanced; type A or B
        │
        ▼
    (condition, test just taken) ──► result of that test

18 states, 6 observations, 5 actions, horizon 3. The learner knows no structure. It is a hard case
for Bayesian rules with a flat prior: Dirichlet(1) rows over 18 next states count as 18
observations, and the right drug after a biopsy is never tried. The optimum is 1.9256; without the
drug, 1.9026.
"""

import numpy as np
import numpyro.distributions as dist

from homdp_ppl import World, tabular

ONSET, PROGRESSION, RESPONSE = 1 / (1 + np.exp(1.7)), 0.5, 0.8
SENSITIVITY, SPECIFICITY = (0.7, 0.95), 0.95
WELL = np.array([1.0, 0.5, 0.1])  # healthy, early, advanced
BURDEN = np.array([0.0, 0.02, 0.2, 0.4, 0.4])  # wait, mammogram, biopsy, drug A, drug B


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Initial distribution (18,), T (18, 5, 18), O (18, 6) and rewards (18, 5).

    States are ordered by test (none, mammogram, biopsy), type and condition.
    """
    worsens = np.array(
        [[1 - ONSET, ONSET, 0.0], [0.0, 1 - PROGRESSION, PROGRESSION], [0.0, 0.0, 1.0]]
    )
    helps = worsens.copy()
    helps[1:] = (1 - RESPONSE) * np.eye(3)[1:] + RESPONSE * np.eye(3, k=-1)[1:]
    moves = np.zeros((3, 2, 3, 5, 3, 2, 3))  # test, type, condition, action, next test, type, ...
    for kind in range(2):
        for action in range(5):
            rows = helps if action == 3 + kind else worsens
            moves[:, kind, :, action, action if action < 3 else 0, kind] = rows
    shows = np.zeros((3, 2, 3, 6))
    shows[0, :, :, 0] = 1.0
    shadow = np.array([1 - SPECIFICITY, *SENSITIVITY])
    shows[1, :, :, 1], shows[1, :, :, 2] = 1 - shadow, shadow
    shows[2, :, 0, 3] = 1.0
    for kind in range(2):
        shows[2, kind, 1:, 4 + kind] = 1.0
    initial = np.zeros((3, 2, 3))
    initial[0, :, :2] = 0.25
    reward = np.tile(WELL, 6)[:, None] * (1 - BURDEN)
    return initial.ravel(), moves.reshape(18, 5, 18), shows.reshape(18, 6), reward


def world(transition: float, emission: float) -> World:
    """The world of a learner with symmetric Dirichlet priors of these concentrations."""
    initial, T, O, reward = arrays()  # noqa: E741
    declared = tabular(
        T=dist.Dirichlet(np.full(T.shape, transition)),
        O=dist.Dirichlet(np.full(O.shape, emission)),
        initial=initial,
        reward=reward,
        horizon=3,
        name="carried_screening",
    )
    return declared.at(T=T, O=O)

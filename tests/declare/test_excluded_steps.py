"""Counts and hindsight raise DataError for steps that a declaration excludes."""

import numpy as np
import pytest

from homdp_ppl import DataError, Episode, Trajectory, tabular

LAMP = tabular(
    T=np.array([[[1.0, 0.0]], [[0.5, 0.5]]]),
    O=np.eye(2),
    initial=[0.0, 1.0],
    reward=[[0.0], [1.0]],
    horizon=2,
)
POSSIBLE = Episode(Trajectory(np.array([1, 0]), np.zeros(2, int)), np.array([1, 0, 0]))
WRONG = {
    "transition": Episode(Trajectory(np.array([1, 0]), np.zeros(2, int)), np.array([1, 0, 1])),
    "emission": Episode(Trajectory(np.array([0, 0]), np.zeros(2, int)), np.array([1, 0, 0])),
    "initial": Episode(Trajectory(np.array([0, 0]), np.zeros(2, int)), np.array([0, 0, 0])),
}


@pytest.mark.parametrize("asked", ["counts", "hindsight"])
@pytest.mark.parametrize("where", WRONG)
def test_impossible_steps(asked, where):
    with pytest.raises(DataError) as caught:
        getattr(LAMP, asked)([POSSIBLE, WRONG[where]])
    problem = caught.value.problems[0]
    assert problem.where == "data"
    assert problem.got.startswith(where)
    assert problem.at == f"episode 1, step {2 if where == 'transition' else 1}"


def test_possible_steps():
    assert LAMP.counts([POSSIBLE]).visits.tolist() == [1, 1]
    assert callable(LAMP.hindsight([POSSIBLE]))

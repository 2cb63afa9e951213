"""The figures of the case study in notebook 15, against computations without the library."""

from importlib.util import find_spec
from pathlib import Path

import nbformat
import numpy as np
import pytest

NOTEBOOK = Path(__file__).parents[1] / "tutorials" / "15_case_study_diagnosis.ipynb"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("sklearn"), reason="needs scikit-learn"),
]


@pytest.fixture(scope="module")
def names():
    """The variables of the notebook after the deployment of section 4."""
    import matplotlib

    matplotlib.use("agg")
    found: dict = {}
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        if cell.cell_type == "code" and "%pip" not in cell.source:
            exec(compile(cell.source, NOTEBOOK.name, "exec"), found)
        if "def deploy" in cell.source:
            return found
    raise AssertionError("the notebook has no cell that deploys")


def cheapest(benign, malignant, level, left, untried):
    """The least expected cost by recursion over tests; weights include the results so far."""
    found = min(0.5 * benign, 1.0 * malignant)
    for test in untried if left else ():
        rest = [other for other in untried if other != test]
        cost = 0.02 * (benign + malignant)
        for p, q in level[test].T:  # of one result, for benign and malignant
            cost += cheapest(benign * p, malignant * q, level, left - 1, rest)
        found = min(found, cost)
    return found


def test_the_posterior_is_that_of_counts(names):
    """Means of 1,000 draws: six standard errors are below 0.02."""
    ill, train, levels = names["ILL"], names["train"], names["levels"]
    counts = 1 + np.array(
        [[np.bincount(levels[train][ill[train] == d, k], minlength=3) for d in (0, 1)]
         for k in range(30)]
    )  # fmt: skip
    expected = counts / counts.sum(-1, keepdims=True)
    assert np.abs(names["world"].parameters["level"] - expected).max() < 0.02
    assert np.abs(expected[:, ::-1] - names["world"].parameters["level"]).max() > 0.3  # planted


def test_the_plan_is_optimal(names):
    parameters = names["world"].parameters
    level = np.asarray(parameters["level"])
    assert level.shape == (30, 2, 3)
    value = cheapest(*np.asarray(parameters["share"]), level, 2, list(range(30)))
    assert -names["plan"].value == pytest.approx(value, abs=1e-9)
    one_test = cheapest(*np.asarray(parameters["share"]), level, 1, list(range(30)))
    assert one_test > value + 1e-3  # planted: a shorter plan


def test_patients_pay_for_what_they_get(names):
    """One patient after the other, asking the policy by name."""
    world, plan = names["world"], names["plan"]
    tests, levels = list(names["TESTS"]), ("low", "middle", "high")
    for k, who in enumerate(names["test"]):
        seen, done, cost = ["nothing"], [], 0.0
        while True:
            action = world.spaces.actions[int(plan.policy.act(seen, done).argmax())]
            if action in ("benign", "malignant"):
                break
            assert action not in done
            cost += 0.02
            seen.append(levels[names["levels"][who, tests.index(action)]])
            done.append(action)
        ill = bool(names["ILL"][who])
        cost += {("benign", True): 1.0, ("malignant", False): 0.5}.get((action, ill), 0.0)
        assert names["paid"][k] == pytest.approx(cost)

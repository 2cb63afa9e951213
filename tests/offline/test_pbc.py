"""The data of notebook 16, and how it makes episodes of them, against plain Python.

The notebook asserts the figures that it states; `tests/test_tutorials.py` runs it.
"""

import ast
import csv
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "tutorials"
DATA = FOLDER / "data" / "pbcseq.csv"
NAMED = "table", "mixed", "kaplan_meier"  # the functions of the notebook that are tested
YEAR = 365.25


@pytest.fixture(scope="module")
def notebook():
    """The functions of the notebook and the constants that they use, without running the rest."""
    path = FOLDER / "16_a_log_of_real_patients.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    code = [c.source for c in cells if c.cell_type == "code" and "%pip" not in c.source]
    parts = [part for source in code for part in ast.parse(source).body]
    kept = [part for part in parts if isinstance(part, ast.FunctionDef) and part.name in NAMED]
    kept += [
        part
        for part in parts
        if isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) in ("YEARS", "BILIRUBIN")
    ]
    visits = pd.read_csv(DATA)
    patients = visits.groupby("id").first()
    arms = patients["trt"].map({0: "placebo", 1: "D-penicillamine"})
    found = {"np": np, "pd": pd, "visits": visits, "patients": patients, "arms": arms}
    exec(compile(ast.Module(kept, []), "notebook 16", "exec"), found)  # our own notebook
    return found


@pytest.fixture(scope="module")
def rows():
    """The visits of each patient, in order, as dicts of numbers."""
    found: dict[int, list[dict[str, float]]] = {}
    with DATA.open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(int(row["id"]), []).append({k: float(v) for k, v in row.items()})
    return found


def test_the_data_are_those_of_the_trial(rows):
    assert DATA.stat().st_size < 1_000_000
    assert len(rows) == 312
    assert sum(map(len, rows.values())) == 1945
    first = [visits[0] for visits in rows.values()]
    assert [sum(v["trt"] == arm for v in first) for arm in (0, 1)] == [154, 158]
    assert [sum(v["status"] == end for v in first) for end in (0, 1, 2)] == [143, 29, 140]
    assert all(v["day"] == 0 for v in first)
    for visits in rows.values():
        assert len({(v["futime"], v["status"], v["trt"]) for v in visits}) == 1
        assert [v["day"] for v in visits] == sorted(v["day"] for v in visits)
        assert {v["stage"] for v in visits} <= {1, 2, 3, 4}
        assert all(v["bili"] > 0 for v in visits)
    assert "LESSER GENERAL PUBLIC LICENSE" in (DATA.parent / "LGPL-2.1.txt").read_text()


def test_episodes_of_the_notebook(notebook, rows):
    """Year by year: the nearest visit within half a year, the end, and the end of follow-up."""
    made = notebook["table"](notebook["visits"], notebook["mixed"])
    made = made.astype(object).where(made.notna(), None)
    by_year = {(row["patient"], row["year"]): row for row in made.to_dict("records")}
    expected = {}
    for patient, visits in rows.items():
        last, gone = visits[0]["futime"], visits[0]["status"] > 0
        for year in range(6):
            if last < year * YEAR:
                if gone:
                    expected[patient, year] = ("gone", None, None)
                break
            state, seen = None, "no visit"
            distances = [(abs(v["day"] - year * YEAR), k) for k, v in enumerate(visits)]
            distance, k = min(distances)
            if distance <= YEAR / 2:
                seen = "raised" if visits[k]["bili"] > 2 else "low"
                state = f"stage {'4' if visits[k]['stage'] == 4 else '1-3'}, {seen}"
            expected[patient, year] = (
                state,
                seen,
                "D-penicillamine" if visits[0]["trt"] else "placebo",
            )
    assert by_year.keys() == expected.keys()
    for place, (state, seen, drug) in expected.items():
        row = by_year[place]
        assert (row["state"], row["seen"], row["drug"]) == (state, seen, drug)
        assert row["reached"] == (None if seen is None else float(place[1] > 0))


def test_survival_of_the_notebook(notebook, rows):
    """The product-limit estimate, from the sorted list of all ends."""
    for arm, name in enumerate(("placebo", "D-penicillamine")):
        ends = sorted(
            (v[0]["futime"], v[0]["status"] > 0) for v in rows.values() if v[0]["trt"] == arm
        )
        curve = [1.0] * 6
        for year in range(1, 6):
            for moment in {time for time, gone in ends if gone and time < year * YEAR}:
                at_risk = sum(time >= moment for time, _ in ends)
                curve[year] *= 1 - ends.count((moment, True)) / at_risk
        patients = notebook["patients"][notebook["arms"] == name]
        assert np.allclose(notebook["kaplan_meier"](patients), curve)

"""Episodes from tables and back: every library, in any order, with every problem reported."""

import random
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from homdp_ppl import DataError, Episodes, Spaces
from tests.raising import raises
from tests.tables import (
    COLUMNS,
    LIBRARIES,
    SPACES,
    alike,
    as_table,
    in_order,
    rows_of,
    some_episodes,
)

LAMP = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=2)


def lamp(**changes):
    """A small table without problems, with some columns changed."""
    table = {
        "episode": ["p", "p", "p", "q", "q"],
        "step": [1, 2, 3, 1, 2],
        "observation": ["dark", "light", None, "dark", "dark"],
        "action": ["press", "wait", None, "wait", "wait"],
        "state": ["off", None, "on", "off", "off"],
    }
    return {**table, **changes}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(sorted(SPACES)),
    library=st.sampled_from(LIBRARIES),
    number=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    first=st.integers(0, 1),
    names=st.booleans(),
)
def test_reads_rows_that_were_written_one_by_one(kind, library, number, seed, first, names):
    rng, spaces = random.Random(seed), SPACES[kind]
    single = some_episodes(kind, rng, number)
    rows = rows_of(single, spaces, first, names)
    rng.shuffle(rows)
    if not any(row["step"] == first for row in rows):  # it would be a table from step 1
        return
    found = Episodes.from_frame(as_table(rows, library), spaces, **COLUMNS.get(kind, {}))
    expected = Episodes.of(single, spaces)
    assert alike(in_order(found, [each.id for each in single]), expected)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(sorted(SPACES)),
    number=st.integers(0, 6),
    seed=st.integers(0, 10**6),
    names=st.booleans(),
    pandas=st.booleans(),
)
def test_round_trip(kind, number, seed, names, pandas):
    spaces = SPACES[kind]
    log = Episodes.of(some_episodes(kind, random.Random(seed), number), spaces)
    with pytest.MonkeyPatch.context() as patch:
        if not pandas:
            patch.setattr("homdp_ppl.core.table_writing.find_spec", lambda name: None)
        table = log.to_frame(spaces if names else None)
    assert isinstance(table, pd.DataFrame if pandas else dict)
    columns = {"state": ["state 1", "state 2"]} if kind == "vectors" else {}
    found = Episodes.from_frame(table, spaces, **columns)
    if number:
        assert alike(found, log)
    else:
        assert len(found) == 0


def test_numbers_episodes_without_ids():
    log = Episodes([[0, 1], [1, 0], [1, 1]], [[0, 0]] * 3, [[0] * 3] * 3, ids=["0", None, None])
    found = Episodes.from_frame(log.to_frame(), LAMP)
    assert found.ids.tolist() == ["0", "1", "2"]
    clash = Episodes([[0, 1], [1, 0]], [[0, 0]] * 2, [[0] * 3] * 2, ids=[None, "0"])
    assert Episodes.from_frame(clash.to_frame(), LAMP).ids.tolist() == ["episode 0", "0"]
    assert Episodes.from_frame(log[:2].to_frame(), LAMP)[1].actions.tolist() == [0, 0]


@pytest.mark.parametrize(
    "steps",
    [
        [0, 1, 2, 0, 1],
        [1.0, 2.0, 3.0, 1.0, 2.0],
        ["1", "2", "3", "1", "2"],
        ["2024-03-01", "2024-03-05", "2024-04-01", "2024-03-02", "2024-03-03"],
        pd.to_datetime(["2024-03-01", "2024-03-05", "2024-04-01", "2023-03-02", "2024-03-03"]),
        pd.to_datetime(["2024-03-01", "2024-03-05", "2024-04-01"] * 2, utc=True)[:5].astype(object),
        pd.array([1, 2, 3, 1, 2], dtype="Int64"),
        np.ma.MaskedArray([1, 2, 3, 1, 2], mask=[False] * 5),
    ],
)
def test_steps_are_numbers_from_0_or_1_or_moments(steps):
    expected = Episodes.from_frame(lamp(), LAMP)
    assert Episodes.from_frame(lamp(step=steps), LAMP).same_as(expected)
    backwards = {name: list(column)[::-1] for name, column in lamp(step=steps).items()}
    assert Episodes.from_frame(backwards, LAMP)[::-1].same_as(expected)


def test_rows_may_be_in_order_without_steps():
    table = lamp()
    table.pop("step")
    expected = Episodes.from_frame(lamp(), LAMP)
    assert Episodes.from_frame(table, LAMP, step=None).same_as(expected)


@pytest.mark.parametrize("missing", [None, np.nan, ""], ids=lambda value: repr(value))
def test_rows_without_an_id_are_reported_once(missing):
    """And not also as gaps of other episodes, or as steps of an episode without a name."""
    ids = lamp()["episode"]
    with pytest.raises(DataError) as caught:
        Episodes.from_frame(lamp(episode=[*ids[:1], missing, *ids[2:4], missing]), LAMP)
    assert [(one.where, one.at) for one in caught.value.problems] == [("episode", "rows 1 and 4")]


@pytest.mark.parametrize(
    "missing", [None, np.nan, pd.NA, pd.NaT, "", float("nan")], ids=lambda value: repr(value)
)
def test_many_values_are_missing(missing):
    states = ["off", missing, "on", "off", "off"]
    expected = Episodes.from_frame(lamp(), LAMP)
    assert Episodes.from_frame(lamp(state=states), LAMP).same_as(expected)


def test_reads_what_the_libraries_make_of_missing_values():
    expected = Episodes.from_frame(lamp(), LAMP)
    frame = pd.DataFrame(lamp())
    categories = frame.astype(dict.fromkeys(("observation", "action", "state"), "category"))
    nullable = pd.DataFrame(lamp(state=pd.array([0, None, 1, 0, 0], dtype="Int64")))
    encoded = pa.table(lamp()).set_column(4, "state", pa.array(lamp()["state"]).dictionary_encode())
    for table in (
        categories,
        nullable,
        frame.set_index(["episode", "step"]),
        frame.convert_dtypes(),
        encoded,
        pa.table(lamp()).to_batches()[0],
        pl.DataFrame(lamp()).with_columns(pl.col("state").cast(pl.Categorical)),
        pl.DataFrame(lamp()).with_columns(pl.col("state").cast(pl.Enum(["off", "on"]))),
        {name: np.array(column) for name, column in lamp().items()},
        {name: pd.Series(column) for name, column in lamp().items()},
        lamp(state=np.ma.MaskedArray([0, 7, 1, 0, 0], mask=[0, 1, 0, 0, 0])),
        lamp(state=np.array([0, np.nan, 1, 0, 0])),
    ):
        assert Episodes.from_frame(table, LAMP).same_as(expected), type(table)


def test_reads_a_padded_dataset():
    padded = xr.Dataset(
        {
            "observation": (("episode", "step"), [[0, 1, np.nan], [0, 0, np.nan]]),
            "action": (("episode", "step"), [[1, 0, np.nan], [0, 0, np.nan]]),
            "state": (("episode", "step"), [[0, np.nan, 1], [0, 0, np.nan]]),
            "weight": (("sample",), [1.0, 2.0]),  # ignored, in spite of its dimension
        },
        coords={"episode": ["p", "q"], "step": [1, 2, 3]},
    )
    assert Episodes.from_frame(padded, LAMP).same_as(Episodes.from_frame(lamp(), LAMP))
    apart = padded.assign(state=(("episode", "visit"), [[0, 1, 0], [0, 0, 0]]))
    with raises(DataError, "state"):
        Episodes.from_frame(apart, LAMP)


def test_texts_of_digits_are_indices_unless_they_are_names():
    table = lamp(state=["0", None, "1", "0", "0"])
    assert Episodes.from_frame(table, LAMP).same_as(Episodes.from_frame(lamp(), LAMP))
    shifted = LAMP._replace(states=("1", "2"))
    found = Episodes.from_frame(lamp(state=["1", None, "2", "1", "1"]), shifted)
    assert found.states[:, 0].tolist() == [0, 0]
    with raises(DataError, "state[rows 0, 2, 3 and 4]"):  # the index 1, or the name "1"?
        Episodes.from_frame(lamp(state=[1, None, 1, 1, 1]), shifted)


def test_an_early_end_is_terminal_or_truncated():
    spaces = SPACES["terminal"]
    table = {
        "episode": ["a", "a", "b", "c", "c"],
        "step": [1, 2, 1, 1, 2],
        "observation": ["dark", "ended", "dark", "dark", None],
        "action": ["wait", None, "wait", "wait", None],
        "state": ["home", "discharged", "home", "home", None],
    }
    log = Episodes.from_frame(table, spaces)
    assert log.ended.tolist() == ["terminal", "truncated", "truncated"]
    assert log.length.tolist() == [1, 1, 1]
    log = Episodes.from_frame({**table, "ended": [None] * 3 + ["terminal", None]}, spaces)
    assert log.ended.tolist() == ["terminal", "truncated", "terminal"]
    with raises(DataError, "ended[row 3]", "ended[row 1]"):
        reasons = ["truncated", "truncated", None, "terminal", "truncated"]
        states = ["home", "discharged", "home", "home", "home"]
        Episodes.from_frame({**table, "state": states, "ended": reasons}, spaces)


@pytest.mark.parametrize(
    ("changes", "places"),
    [
        ({"state": ["off", None, "onn", "off", "off"]}, ["state[row 2]"]),
        ({"state": ["off", None, 2, -1, "off"]}, ["state[row 2]", "state[row 3]"]),
        ({"state": [0.0, None, 0.5, 0.0, 1.0]}, ["state[row 2]"]),
        ({"state": [False, None, True, False, False]}, ["state[row 2]"]),
        ({"state": ["off", None, ["on"], "off", "off"]}, ["state[row 2]"]),
        ({"action": ["press", None, None, "wait", "wait"]}, ["action[row 1]"]),
        ({"observation": [None, "light", None, "dark", "dark"]}, ["observation[row 0]"]),
        ({"episode": ["p", "p", None, "q", "q"]}, ["episode[row 2]"]),
        (
            {"episode": ["p", "p", None, "q", "q"], "step": [1, 1, 3, 1, 2]},
            ["episode[row 2]", "step[rows 0 and 1]"],
        ),
        ({"step": [1, 2, 4, 1, 2]}, ["step[row 2]"]),
        ({"step": [1, 1, 2, 1, 2]}, ["step[rows 0 and 1]"]),
        ({"step": [0, 1, 2, 1, 2]}, ["step[row 3]"]),
        ({"step": [5, 6, 7, 5, 6]}, ["step[rows 0 and 3]"]),
        ({"step": [1, 2, "x", 1, 2]}, ["step[row 2]"]),
        ({"step": [1, 2, 2.5, 1, 2]}, ["step[row 2]"]),
        ({"step": [1, 2, None, 1, 2]}, ["step[row 2]"]),
        ({"episode": ["p"] * 5, "step": [1, 2, 5, 3, 4]}, ["length[row 3]"]),
        ({"reward": [0.5, 1, 7, 0, 0]}, ["reward[row 2]"]),
        ({"reward": [0.5, "much", None, np.inf, 0]}, ["reward[row 1]", "reward[row 3]"]),
        ({"ended": [True] * 5}, ["ended[rows 0, 1, 2, 3 and 4]"]),
        ({"ended": ["truncated"] * 5}, ["ended[rows 2 and 4]"]),
        (
            {"state": ["of", None, "on", "off", 9], "step": [1, 1, 3, 1, 2]},
            ["state[row 0]", "state[row 4]", "step[rows 0 and 1]", "step[row 2]"],
        ),
    ],
)
def test_problems_have_row_numbers(changes, places):
    with raises(DataError, *places):
        Episodes.from_frame(lamp(**changes), LAMP)


def test_problems_have_the_names_of_the_columns():
    """Also those that are found after the columns have been read."""
    own = {"observation": "saw", "action": "did", "step": "visit", "episode": "job"}
    table = lamp(observation=["dark", None, None, "dark", "dark"], action=[None] + ["wait"] * 4)
    renamed = {own.get(name, name): column for name, column in table.items()}
    with raises(DataError, "saw[rows 1 and 2]", "did[row 0]"):
        Episodes.from_frame(renamed, LAMP, **own)
    sensors = SPACES["sensors"]
    names = {sensor: f"the {sensor}" for sensor in sensors.observations.sensors}
    nothing = {column: [None, None] for column in names.values()}
    acted = {"episode": ["a", "a"], "action": [sensors.actions[0]] * 2, **nothing}
    with raises(DataError, "observation[rows 0 and 1]"):
        Episodes.from_frame(acted, sensors, observation=names, step=None, state=None)


def test_missing_ids_hide_no_gaps_and_make_none():
    """A row without an id may be the missing step of any episode."""
    with pytest.raises(DataError) as caught:
        Episodes.from_frame(lamp(episode=["p", None, "p", "q", "q"]), LAMP)
    assert [str(p.where) for p in caught.value.problems] == ["episode"]
    with pytest.raises(DataError) as caught:
        Episodes.from_frame(lamp(episode=[None] * 5), LAMP)
    assert [str(p.where) for p in caught.value.problems] == ["episode"]


@pytest.mark.parametrize("empty", [None, ""])
def test_empty_rows_are_ignored(empty):
    """Also without an id and a step, as at the end of a spreadsheet."""
    more = {name: [*column, empty, empty] for name, column in lamp().items()}
    assert alike(Episodes.from_frame(more, LAMP), Episodes.from_frame(lamp(), LAMP))
    dated = {**more, "step": [*(f"2024-01-0{k}" for k in (1, 2, 3, 1, 2)), empty, empty]}
    assert alike(Episodes.from_frame(dated, LAMP), Episodes.from_frame(lamp(), LAMP))


def test_rows_in_a_wrong_order_are_not_too_many_steps():
    """With the row after the end first, the last step is in the place of this row."""
    table = {name: [column[k] for k in (2, 0, 1)] for name, column in lamp().items()}
    with pytest.raises(DataError) as caught:
        Episodes.from_frame(table, LAMP, step=None)
    assert {p.where for p in caught.value.problems} == {"observation", "action"}


def test_decimal_commas_are_explained():
    with pytest.raises(DataError) as caught:
        Episodes.from_frame(lamp(reward=["0,5", "much", None, "1.5", ""]), LAMP)
    first, second = caught.value.problems
    assert "decimal point" in first.remedy
    assert not second.remedy


def test_a_step_in_a_terminal_state_is_reported():
    table = {"episode": ["a", "a"], "observation": ["dark"] * 2, "action": ["wait"] * 2}
    with raises(DataError, "state[row 0]"):
        states = ["discharged", "home"]
        Episodes.from_frame({**table, "state": states}, SPACES["terminal"], step=None)


def test_one_problem_per_value_and_at_most_twenty():
    many = {name: column * 100 for name, column in lamp().items()}
    many["episode"] = [f"{k // 5}{name}" for k, name in enumerate(many["episode"])]
    many["state"] = ["oof"] * 500
    with pytest.raises(DataError) as caught:
        Episodes.from_frame(many, LAMP)
    assert [p.at for p in caught.value.problems] == ["rows 0, 1, 2, 3 and 496 more"]
    many["state"] = [f"s{k}" for k in range(500)]
    with pytest.raises(DataError) as caught:
        Episodes.from_frame(many, LAMP)
    listed = caught.value.problems
    assert [p.at for p in listed[:-1]] == [f"row {k}" for k in range(20)]
    assert (listed[-1].where, listed[-1].got) == (
        "table",
        "480 more problems, 500 rows with problems in all",
    )
    assert "480 more problems" in str(caught.value)


def test_columns_are_checked():
    with raises(DataError, "state"):
        Episodes.from_frame(lamp(), LAMP, state="truth")
    with pytest.raises(DataError) as caught:
        Episodes.from_frame(lamp(), LAMP, state="stat", action="act")
    assert [p.remedy for p in caught.value.problems] == [
        "Did you mean 'action'?",
        "Did you mean 'state'?",
    ]
    table = lamp()
    table["actoin"] = table.pop("action")
    with pytest.raises(DataError) as caught:
        Episodes.from_frame(table, LAMP)
    remedy = "Did you mean 'actoin'? Name the column: action=..."
    assert [p.remedy for p in caught.value.problems] == [remedy]
    with raises(DataError, "columns"):
        Episodes.from_frame(lamp(state=["off"]), LAMP)
    with raises(DataError, "columns"):
        Episodes.from_frame(lamp(state=np.zeros((5, 2))), LAMP)
    twice = pd.DataFrame(lamp()).assign(extra=1).rename(columns={"extra": "state"})
    with raises(DataError, "state"):
        Episodes.from_frame(twice, LAMP)
    with raises(DataError, "observation"):
        Episodes.from_frame(lamp(), LAMP, observation={"ear": "observation"})
    with raises(DataError, "observation"):
        Episodes.from_frame(lamp(), SPACES["sensors"], observation={"ear": "a", "nose": "b"})
    with raises(DataError, "observation"):
        Episodes.from_frame(lamp(), SPACES["sensors"], observation=["a"])
    with raises(DataError, "state"):
        Episodes.from_frame(lamp(), SPACES["vectors"], state=["a", "b", "c"])
    with raises(DataError, "observation") as caught:  # the remedy has all sensors
        Episodes.from_frame({"ear": ["off"], "action": ["wait"]}, SPACES["sensors"], step=None)
    (remedy,) = (p.remedy for p in caught.value.problems if p.where == "observation")
    assert all(f'"{sensor}"' in remedy for sensor in SPACES["sensors"].observations.sensors)


def test_part_of_an_observation_is_reported():
    table = {"episode": ["a"], "heard": ["left"], "seen": [None], "action": ["wait"]}
    columns = {"observation": ["heard", "seen"], "state": None, "step": None}
    with raises(DataError, "seen[row 0]"):
        Episodes.from_frame(table, SPACES["sensors"], **columns)
    vector = {"episode": ["a"], "x": [0.5], "y": [None], "observation": [1.0], "action": ["wait"]}
    with raises(DataError, "y[row 0]"):
        Episodes.from_frame(vector, SPACES["vectors"], state=["x", "y"], step=None)


@pytest.mark.parametrize(
    "frame",
    [
        pl.LazyFrame(lamp()),
        pd.Series([1, 2]),
        xr.DataArray([1, 2]),
        [lamp()],
        "log.csv",
        np.zeros((5, 5)),
        None,
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_objects_are_refused(frame):
    with raises(DataError, "frame"):
        Episodes.from_frame(frame, LAMP)


def test_imports_no_library(monkeypatch):
    for name in ("pandas", "polars", "pyarrow", "xarray"):
        monkeypatch.setitem(sys.modules, name, None)
    assert len(Episodes.from_frame(lamp(), LAMP)) == 2


def test_reads_with_a_wrong_order_of_steps_would_be_noticed():
    """Planted bug: a reader that ignores the step column gives other episodes."""
    backwards = {name: list(column)[::-1] for name, column in lamp().items()}
    backwards["observation"][2:], backwards["action"][2:] = ["light", "dark", "dark"], ["wait"] * 3
    backwards["step"] = [2, 1, 3, 2, 1]
    with raises(DataError):
        Episodes.from_frame(backwards, LAMP, step=None)

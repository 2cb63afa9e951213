"""Logs from CSV and parquet files: the same episodes as from a table, and errors with lines."""

import contextlib
import csv
import os
import random
import sys

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

from homdp_ppl import DataError, Episodes, HOMDPError, Spaces
from homdp_ppl.formats import read_log
from tests.children import attacked
from tests.raising import raises
from tests.tables import COLUMNS, SPACES, alike, as_table, rows_of, some_episodes

LAMP = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=2)
PLAIN = """episode,step,observation,action,state,comment
p,1,dark,press,off,fine
p,2,light,wait,,"a comment, with
a line break"

p,3,,,on,
q,1,dark,wait,NA,
"""


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def expected():
    return Episodes([[0, 1], [0, 0]], [[1, 0], [0, 0]], [[0, None, 1], [None] * 3],
                    length=[2, 1], ended=["horizon", "truncated"], ids=["p", "q"])  # fmt: skip


@pytest.mark.parametrize("kind", sorted(SPACES))
@pytest.mark.parametrize("seed", range(4))
def test_files_and_tables_give_the_same_episodes(kind, seed, tmp_path):
    spaces, rng = SPACES[kind], random.Random(seed)
    rows = rows_of(some_episodes(kind, rng, 8), spaces, names=seed % 2 == 0)
    rng.shuffle(rows)
    columns = COLUMNS.get(kind, {})
    wanted = Episodes.from_frame(as_table(rows, "dict"), spaces, **columns)
    with (tmp_path / "log.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert alike(read_log(tmp_path / "log.csv", spaces, **columns), wanted)
    pyarrow.parquet.write_table(as_table(rows, "pyarrow"), tmp_path / "log.parquet")
    assert alike(read_log(tmp_path / "log.parquet", spaces, **columns), wanted)
    frame = as_table(rows, "pandas").set_index(["episode", "step"])
    frame.to_parquet(tmp_path / "index.parquet")
    assert alike(read_log(tmp_path / "index.parquet", spaces, **columns), wanted)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_separators_line_ends_and_marks(separator, end, tmp_path):
    text = PLAIN.replace("comment, with", "comment with").replace(",", separator)
    path = written(tmp_path / "log.csv", "\ufeff" + text.replace("\n", end))
    assert alike(read_log(path, LAMP), expected())


def test_names_of_the_model_are_never_missing(tmp_path):
    spaces = LAMP._replace(states=("None", "on"))
    path = written(tmp_path / "log.csv", PLAIN.replace("off", "None"))
    log = read_log(path, spaces)
    assert log.revealed.tolist() == [[True, False, True], [False] * 3]
    assert log.states[0, 0] == 0


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (PLAIN.replace("NA", "onn"), ["state[line 7]"]),
        (PLAIN.replace("p,3", "p,4"), ["step[line 6]"]),
        (PLAIN.replace("p,3,,,on,", "p,3,,,on\np"), ["line[6]", "line[7]"]),
        (PLAIN.replace("state", "truth"), ["state"]),
        ("", ["header"]),
        ("\n\n", ["header"]),
        (b"episode,step\n\xff,1\n", ["encoding"]),
        ("episode,step\n\0,1\n", ["path"]),
        ('episode,step\n"p,1\n', ["path"]),
        ("episode,step\n" + "p" * 200_000 + ",1\n", ["path"]),
        (PLAIN.replace("comment\n", "state\n"), ["state"]),
    ],
    ids=range(11),
)
def test_problems_have_line_numbers(text, places, tmp_path):
    with raises(DataError, *places):
        read_log(written(tmp_path / "log.csv", text), LAMP)


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "log.xlsx", "log", "."])
def test_other_paths_are_refused(name, tmp_path):
    with raises(DataError, "path"):
        read_log(tmp_path / name, LAMP)
    (tmp_path / "folder.csv").mkdir()
    with raises(DataError, "path"):
        read_log(tmp_path / "folder.csv", LAMP)


def test_parquet_needs_pyarrow(tmp_path, monkeypatch):
    path = written(tmp_path / "log.parquet", b"PAR1")
    with raises(DataError, "path"):
        read_log(path, LAMP)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError) as caught:
        read_log(path, LAMP)
    assert "pip install pyarrow" in caught.value.problems[0].remedy


def test_large_files_are_refused_before_they_are_read(tmp_path, monkeypatch):
    frame = pd.DataFrame({"episode": ["p"] * 4000, "step": range(4000)})
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    monkeypatch.setenv("HOMDP_MEMORY", "0.00001")
    for name in ("log.csv", "log.parquet"):
        with raises(DataError, "path"):
            read_log(tmp_path / name, LAMP)


def of_one_text(path, text, rows):
    """A parquet file whose columns contain one text in every row; it is stored once."""
    column = pyarrow.DictionaryArray.from_arrays(np.zeros(rows, dtype=np.int32), [text])
    names = ("episode", "observation", "action", "state")
    steps = pyarrow.array(np.zeros(rows, dtype=np.int8))
    pyarrow.parquet.write_table(
        pyarrow.table({**dict.fromkeys(names, column), "step": steps}), path, store_schema=False
    )
    return path


def test_a_long_text_in_every_row_is_in_memory_once(tmp_path):
    """The texts of these 20,000 rows would take 8 GB."""
    path = of_one_text(tmp_path / "log.parquet", "x" * 100_000, 20_000)
    assert path.stat().st_size < 100_000
    attack = {"read": f"read_log({str(path)!r}, LAMP)"}
    code = (
        "from homdp_ppl import Spaces; from homdp_ppl.formats import read_log; "
        "LAMP = Spaces(('off', 'on'), ('dark', 'light'), ('wait', 'press'), horizon=2)"
    )
    error, _, grown = attacked(code, attack)["read"]
    assert error == "DataError"
    assert grown < 300_000_000


def test_many_rows_in_a_small_parquet_file_are_refused(tmp_path):
    path = of_one_text(tmp_path / "log.parquet", "p", 10_000_000)
    assert path.stat().st_size < 1_000_000
    with raises(DataError, "path") as caught:
        read_log(path, LAMP)
    assert caught.value.problems[0].got.startswith("10,000,000 rows")


@pytest.mark.parametrize("batch", [False, True])
def test_dictionaries_of_arrow_tables(batch):
    """Missing values, values that no row has, and chunks with other dictionaries."""

    def column(values, codes):
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(codes, "int8"), values)

    first = {
        "episode": column(["p"], [0, 0, 0]),
        "step": pyarrow.array([1, 2, 3]),
        "observation": column(["unused", "dark", "light"], [1, 2, None]),
        "action": column(["wait", "press", None], [1, 0, 2]),
        "state": column(["on", "off"], [1, None, 0]),
    }
    second = {
        "episode": column(["unused", "q"], [1]),
        "step": pyarrow.array([1]),
        "observation": column(["dark"], [0]),
        "action": column(["wait"], [0]),
        "state": column(["off"], [None]),
    }
    parts = [pyarrow.record_batch(part) for part in (first, second)]
    table = pyarrow.Table.from_batches(parts)
    if batch:
        wanted = Episodes([[0, 1]], [[1, 0]], [[0, None, 1]], ids=["p"])
        assert alike(Episodes.from_frame(parts[0], LAMP), wanted)
        assert alike(Episodes.from_frame(table.slice(0, 3), LAMP), wanted)
    else:
        assert alike(Episodes.from_frame(table, LAMP), expected())


@pytest.mark.parametrize("name", ["log.csv", "log.parquet"])
def test_files_without_an_end_are_refused(name, tmp_path):
    """Pipes and devices; links that the user names are followed."""
    os.mkfifo(tmp_path / name)
    with raises(DataError, "path"):
        read_log(tmp_path / name, LAMP)
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    with raises(DataError, "path"):
        read_log(tmp_path / name, LAMP)


def test_wide_lines_are_refused_before_they_are_split(tmp_path):
    """Values of 2 characters take 60 bytes of memory. A quoted text may have many separators."""
    first = "episode,step,observation,action,state"
    for text in ("ab," * 20_000, f"{first}\n{'ab,' * 20_000}\n"):
        with raises(DataError, "path") as caught:
            read_log(written(tmp_path / "log.csv", text), LAMP)
        assert "separators" in caught.value.problems[0].got
    text = PLAIN.replace("a comment, with", "a comment, with" + "," * 900)
    assert alike(read_log(written(tmp_path / "log.csv", text), LAMP), expected())
    many = ",".join(map(str, range(5000)))
    text = f"{first},{many}\np,1,dark,wait,off,{many}\n"
    assert len(read_log(written(tmp_path / "log.csv", text), LAMP)) == 1


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_mutated_files_are_read_or_refused(kind, tmp_path):
    path = tmp_path / f"log.{kind}"
    if kind == "csv":
        written(path, PLAIN)
    else:
        log = expected().to_frame(LAMP)
        log.to_parquet(path)
    data, rng = path.read_bytes(), random.Random(0)
    for _ in range(150):
        changed = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(changed))
            piece = rng.choice([b"", b",", b'"', b"\n", b"\0", b"7", bytes([rng.randrange(256)])])
            changed[at : at + rng.randint(0, 2)] = piece
        path.write_bytes(changed)
        with contextlib.suppress(HOMDPError):
            assert isinstance(read_log(path, LAMP), Episodes)


def test_text_in_a_file_is_never_evaluated(tmp_path):
    code = "__import__('os').remove('x')"
    path = written(tmp_path / "log.csv", PLAIN.replace("NA", f'"{code}"'))
    with pytest.raises(DataError) as caught:
        read_log(path, LAMP)
    assert code in caught.value.problems[0].got

"""Journals that are misplaced, forged or corrupted are never read as valid results."""

import json
import random
import shutil
from itertools import combinations, permutations
from pathlib import Path

import pytest

from homdp_ppl import HOMDPError, study
from homdp_ppl.cli.main import main
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.journal import Journal
from homdp_ppl.storage.whole_journal import read_journal
from homdp_ppl.study import StudyDirectory
from homdp_ppl.study.results import write_results
from tests.raising import raises

ASKED = {
    "models": ["tiger:horizon=2", "tiger:horizon=2,accuracy=0.7"],
    "explorers": ["greedy", "posterior_sampling"],
    "episodes": 6,
    "seeds": 2,
    "priors": ["declared", "flat"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The directory of a small, complete study."""
    done = study.compare(**ASKED, out=tmp_path_factory.mktemp("made") / "here", workers=1)
    assert done.complete
    return done.directory


@pytest.fixture
def copy(made, tmp_path):
    return Path(shutil.copytree(made.path, tmp_path / "here"))


def read(path):
    """All numbers that can be read from a directory."""
    directory = StudyDirectory.open(path)
    runs = study.read_runs(directory)
    found = {key: [run.regret.tolist() for run in several] for key, several in runs.items()}
    return found, study.digest(directory)


def journals(path):
    return sorted(path.rglob("*.journal"))


def forged(path, change, blocks=None):
    """Rewrite a journal with another description and valid checksums."""
    described, kept = read_journal(path)
    path.unlink()
    with Journal.create(path, change(dict(described))) as journal:
        for arrays, facts in kept if blocks is None else kept[:blocks]:
            journal.append(arrays, facts)


def test_every_pair_of_journals_swapped(copy):
    """Also every journal copied to the place of every other: none is accepted."""
    good, contents = read(copy), {path: path.read_bytes() for path in journals(copy)}
    tries = [{a: contents[b], b: contents[a]} for a, b in combinations(contents, 2)]
    tries += [{a: contents[b]} for a, b in permutations(contents, 2)]
    accepted = 0
    for change in tries:
        for path, content in change.items():
            path.write_bytes(content)
        try:
            read(copy)
            accepted += 1
        except StorageError:
            pass
        for path in change:
            path.write_bytes(contents[path])
    assert len(contents) == 12
    assert len(tries) == 66 + 132
    assert accepted == 0
    assert read(copy) == good


def test_swapped_journals_are_an_error_of_every_command(copy, capsys):
    first, *_, last = journals(copy)
    one, other = first.read_bytes(), last.read_bytes()
    first.write_bytes(other)
    last.write_bytes(one)
    assert main(["report", str(copy)]) == 4
    assert main(["resume", str(copy), "--workers", "1"]) == 4
    with pytest.raises(StorageError):
        study.resume(copy, workers=1)
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert first.read_bytes() == other  # nothing was changed


@pytest.mark.parametrize(
    "other",
    [{"episodes": 3}, {"seeds": 3}, {"epsilon": 0.3}, {"planner": "history_tree"}],
)
def test_journals_of_another_study(copy, tmp_path, other):
    """The same run of a study that differs in one attribute."""
    asked = {**ASKED, "models": ASKED["models"][:1], "explorers": ["greedy"], **other}
    done = study.compare(**asked, out=tmp_path / "other", workers=1)
    _, _, path = next(done.directory.journals())
    place = next(path for path in journals(copy) if "greedy" in str(path))
    place.write_bytes(path.read_bytes())
    with raises(StorageError, str(place)):
        read(copy)


@pytest.mark.parametrize(
    "change",
    [
        {"optimum": 3.0},
        {"optimum": 1.0},
        {"optimum": "1.852"},
        {"optimum": float("nan")},
        {"slack": 0.5},
        {"slack": -1.0},
        {"episodes": 3},
        {"horizon": 3},
        {"seed": 1},
        {"episodes_per_round": 2},
        {"estimated": 1},
        {"soundness": "optimistic, frequentist"},
        {"explorer": "tight"},
        {"model": "another"},
        {"more": 1},
    ],
)
def test_forged_descriptions(copy, change):
    """With valid checksums, they contradict the study, the other journals or the values."""
    path = journals(copy)[0]
    forged(path, lambda described: {**described, **change})
    with pytest.raises(StorageError):
        read(copy)


def test_numbers_that_are_forged_in_all_journals_change_the_digest(copy):
    """If all journals of a model are forged consistently, only the digest shows it."""
    _, digest = read(copy)
    for path in journals(copy):
        forged(path, lambda described: {**described, "optimum": described["optimum"] + 1.0})
    assert read(copy)[1] != digest


@pytest.mark.parametrize("column", ["values", "states", "actions", "planned", "played"])
def test_forged_records(copy, column):
    """Values above the optimum, and entries outside the model."""
    path = journals(copy)[0]
    described, kept = read_journal(path)
    path.unlink()
    with Journal.create(path, described) as journal:
        for arrays, facts in kept:
            journal.append({**arrays, column: arrays[column] + 7}, facts)
    with pytest.raises(StorageError):
        read(copy)


def test_a_journal_without_its_end_is_incomplete(copy, capsys):
    """It is not in the tables, and resuming gives the same digest."""
    good = read(copy)
    path = journals(copy)[0]
    forged(path, dict, blocks=len(read_journal(path).blocks) - 1)
    assert main(["report", str(copy)]) == 0
    assert "Not complete" in capsys.readouterr().out
    assert study.resume(copy, workers=1).complete
    assert read(copy) == good


def test_a_study_of_an_older_format(copy, capsys):
    file = copy / "study.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "format": 1}))
    with raises(StorageError, str(file)):
        StudyDirectory.open(copy)
    assert main(["resume", str(copy)]) == 4
    capsys.readouterr()


@pytest.mark.parametrize(
    "n",
    [
        200,
        pytest.param(1000, marks=pytest.mark.slow),
        pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.long]),
    ],
)
def test_flipped_bits(copy, n):
    """One flipped bit in a journal or study.json is never accepted.

    A flipped bit in results.nc is repaired: the file is written again from the journals.
    """
    generator, good = random.Random(n), read(copy)
    directory = StudyDirectory.open(copy)
    results = write_results(directory, study.read_runs(directory))
    files = [*journals(copy), copy / "study.json", results]
    contents = {path: path.read_bytes() for path in files}
    accepted = repaired = 0
    for k in range(n):
        path = files[k % len(files)]
        content = bytearray(contents[path])
        content[generator.randrange(len(content))] ^= 1 << generator.randrange(8)
        path.write_bytes(content)
        if path == results:
            write_results(directory, study.read_runs(directory))
            repaired += path.read_bytes() == contents[path]
            continue
        try:
            read(copy)
            accepted += 1
        except HOMDPError:
            pass
        path.write_bytes(contents[path])
    assert accepted == 0
    assert repaired == sum(files[k % len(files)] == results for k in range(n))
    assert read(copy) == good

"""Invalid input of every kind: messages instead of tracebacks, bounded time and memory, and no code
executed from data files.
"""

import contextlib
import gc
import io
import os
import pickle
import random
import re
import resource
import signal
from functools import cache
from pathlib import Path

import jax
import numpy as np
import pytest

from homdp_ppl import GraphPolicy, HOMDPError, models, study, uniform_policy
from homdp_ppl.cli.main import main
from homdp_ppl.continuous.quantised_policy import QuantisedPolicy
from homdp_ppl.formats import read_pomdp
from homdp_ppl.storage.journal import Journal
from homdp_ppl.storage.whole_journal import read_journal
from homdp_ppl.study import Study, StudyDirectory, find_world, running, units

SECONDS = 60  # limit of processor time per input; other load on the machine does not count
MEMORY = 2**30  # limit in bytes, in addition to the idle process

TOML = (
    'models = ["tiger", "lock"]\nexplorers = ["hop_b:scale=0.1", "greedy"]\nepisodes = '
    '20\nseeds = 3\npriors = ["declared"]\n'
)
MODEL = """
import numpyro, numpyro.distributions as dist
from homdp_ppl import Kernels, homdp

@homdp(states=2, observations=2, actions=2, horizon=2, reward=[[0.0, 0.2], [1.0, 0.5]])
def mine():
    p = numpyro.sample("p", dist.Beta(1, 1))
    return Kernels([1.0, 0.0], lambda x, a: dist.Bernoulli(p), lambda x: dist.Delta(x))
"""
OPTIONS = """--episodes --seeds --seed --explorers --explorer --planner --horizon --out --workers
--debug --time-limit --scheduler --priors --epsilon --block --delta --accuracy --draw --save --hlep
"""
RUBBISH = """tigre lok no.py:x nothing.POMDP x.toml dir - -- é 💥 tiger: tiger:= tiger:a=b
0 -1 1e9 nan inf ٣ 1.5 hop_b:scale=x greedy,, : = flat,declared tcp://127.0.0.1:1"""
COMMANDS = "models play plan learn compare resume report theory"
WORDS = [
    *f"{COMMANDS} {OPTIONS} {RUBBISH}".split(),
    "",
    "\0",
    "a" * 500,
    "10" * 30,
]  # no valid model, which would take time


class HangError(Exception):
    """An input that took too long."""


@contextlib.contextmanager
def limited():
    """Limit the processor time; memory is checked afterwards."""

    def stop(number, frame):
        raise HangError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.fixture(autouse=True)
def frugal():
    """Assert that a test of this file needs at most one additional gigabyte."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before < MEMORY


def forget(k):
    """Clear JAX's caches from time to time: thousands of models in one process are no use case."""
    if k % 25 == 24:
        jax.clear_caches()
        gc.collect()


def times(few, many):
    """In total 300 inputs by default, 780 in the slow suite and 7,800 in `make test-long`."""
    slow, long = pytest.mark.slow, pytest.mark.long
    some = pytest.param(many // 10, marks=slow)
    return pytest.mark.parametrize("n", [few, some, pytest.param(many, marks=[slow, long])])


def mutated(generator, content):
    """Content with bytes cut, flipped, doubled, deleted or replaced by garbage."""
    data = bytearray(content)
    for _ in range(generator.randint(1, 4)):
        if not data:
            break
        at, kind = generator.randrange(len(data)), generator.randrange(6)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            data[at] ^= 1 << generator.randrange(8)
        elif kind == 2:
            data[at:at] = data[at : at + generator.randint(1, 40)]
        elif kind == 3:
            del data[at : at + generator.randint(1, 20)]
        elif kind == 4:
            data[at : at + 1] = bytes(
                generator.randrange(256) for _ in range(generator.randint(1, 8))
            )
        else:
            data[at:at] = generator.choice(
                [b"\x00", b"[", b'"', b"=", b"-", b"1e999", b"nan", b"\xff\xfe", b"\n"]
            )
    return bytes(data)


def refused_or_read(read, content, path):
    """Whether a mutated file raises HOMDPError; other errors make the test fail."""
    path.write_bytes(content)
    refused = False
    with limited():
        try:
            read(path)
        except HOMDPError as error:
            refused = bool(str(error))
    return refused


def command_line(generator):
    """Random words, or a valid command with one random word."""
    word = generator.choice(WORDS)
    once = ["--episodes", "1", "--workers", "1", "--priors", "declared"]
    nearly = [
        ["theory", "tiger", "--delta", word],
        ["theory", "tiger", "--accuracy", word],
        ["play", "tiger", "--seed", word],
        ["plan", "tiger", "--planner", word],
        ["plan", "tiger", "--save", word],
        ["plan", "tiger", "--save", f"{word}.npz"],
        ["learn", "tiger", "--explorer", word, "--episodes", "1"],
        ["learn", "tiger", "--episodes", "1", "--out", word],
        ["compare", "tiger", "--explorers", word, *once, "--seeds", "1"],
        ["compare", "tiger", "--explorers", "greedy", *once, "--seeds", word],
        ["compare", "tiger", "--explorers", "greedy", *once, "--time-limit", word],
        ["resume", word],
        ["report", word],
        ["report", "damaged"],
    ]
    return (
        generator.choice(nearly)
        if generator.random() < 0.5
        else [generator.choice(WORDS) for _ in range(generator.randint(0, 6))]
    )


@times(60, 3000)
def test_command_lines(n, tmp_path, monkeypatch):
    """Exit codes are 0, 2, 3, 4 or 5, never 1 (internal error), and errors take one line."""
    monkeypatch.chdir(tmp_path)
    found = cache(find_world)

    def small(text, horizon=None, seed=0):
        return found("tiger:horizon=2") if text == "tiger" else find_world(text)

    for module in (study, units):
        monkeypatch.setattr(module, "find_world", small)
    monkeypatch.setattr(running, "find_again", small)
    found("tiger:horizon=2")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "study.json").write_text("{")
    generator, codes = random.Random(n), set()
    known = [["models", "tiger"], ["report", "damaged"]]  # exit codes 0 and 4
    for k in range(n):
        forget(k)
        line = known[k] if k < len(known) else command_line(generator)
        if line[:1] == ["models"] and all(word.startswith("-") for word in line[1:]):
            continue  # this lists the whole model zoo, which takes long
        errors, out = io.StringIO(), io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(out), limited():
            try:
                code = main(line)
            except SystemExit as usage:  # argparse's own
                code = usage.code
        codes.add(code)
        assert code in (0, 2, 3, 4, 5), (line, errors.getvalue())
        assert ("Traceback" not in errors.getvalue()) or "--debug" in line, line
        if code in (2, 4) and "usage:" not in errors.getvalue() and "--debug" not in line:
            assert len(errors.getvalue().splitlines()) == 1, (line, errors.getvalue())
    assert codes >= {0, 2, 4}


@times(100, 2000)
def test_study_files(n, tmp_path):
    generator = random.Random(n)
    refused = sum(
        refused_or_read(Study.from_toml, mutated(generator, TOML.encode()), tmp_path / "a.toml")
        for _ in range(n)
    )
    assert n / 4 < refused < n


@times(20, 400)
def test_model_files(n, tmp_path):
    """Python files are executed; their errors are reported as HOMDPError."""
    generator = random.Random(n)
    messages = []
    for k in range(n):
        forget(k)
        path = tmp_path / f"model{k}.py"
        path.write_bytes(
            mutated(generator, MODEL.encode()) if k % 2 else reworded(generator, MODEL).encode()
        )
        try:
            with limited():
                messages.append(repr(find_world(f"{path}:mine")))
        except HOMDPError as error:
            messages.append(str(error))
    assert len({text.replace(str(tmp_path), "") for text in messages}) > n / 3


def reworded(generator, text):
    """The file with some numbers and names replaced."""
    words = re.split(r"(\b\w+\b)", text)
    for _ in range(generator.randint(1, 2)):
        at = generator.choice(
            [
                k
                for k, word in enumerate(words)
                if word in ("0", "1", "2", "5", "x", "p", "Beta", "Delta", "Bernoulli")
            ]
        )
        words[at] = generator.choice(
            ["0", "1", "3", "None", "x", "'x'", "Beta", "Normal", "Delta", "print", "mine"]
        )
    return "".join(words)


def some_journal(directory):
    path = Path(directory) / "good.journal"
    with Journal.create(path, {"model": "tiger", "seed": 0}) as journal:
        for k in range(5):
            journal.append(
                {"values": np.arange(3.0), "planned": np.ones(3, dtype=bool)}, {"first": 3 * k}
            )
    return path.read_bytes()


@times(60, 1200)
def test_journals(n, tmp_path):
    """Truncated journals are read up to the cut; others raise errors or are shorter."""
    generator, good = random.Random(n), some_journal(str(tmp_path))
    intact = read_journal(tmp_path / "good.journal").blocks
    for _ in range(n):
        path = tmp_path / "bad.journal"
        if not refused_or_read(read_journal, mutated(generator, good), path):
            for block, original in zip(read_journal(path).blocks, intact, strict=False):
                np.testing.assert_array_equal(block.arrays["values"], original.arrays["values"])


@times(40, 800)
def test_study_directories(n, tmp_path):
    generator = random.Random(n)
    asked = Study(("tiger:horizon=2",), ("greedy",), episodes=5)
    worlds = {"tiger:horizon=2": models.load("tiger", horizon=2)}
    good = StudyDirectory.create(tmp_path, asked, worlds).manifest.encode()
    for _ in range(n):
        refused_or_read(
            lambda path: StudyDirectory.open(path.parent),
            mutated(generator, good),
            tmp_path / "study.json",
        )


@times(20, 400)
def test_policy_files(n, tmp_path):
    generator = random.Random(n)
    uniform_policy(models.load("tiger", horizon=2)).save(tmp_path / "good.npz")
    good = (tmp_path / "good.npz").read_bytes()
    for load in (GraphPolicy.load, QuantisedPolicy.load):
        for _ in range(n // 2):
            refused_or_read(load, mutated(generator, good), tmp_path / "bad.npz")


class Canary:
    """An object that creates a directory when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (os.mkdir, (self.path,))


def test_no_code_is_executed_from_data_files(tmp_path):
    """A canary in arrays, texts and bytes of every kind of file has no effect.

    Unpickled on purpose, it has.
    """
    nest = tmp_path / "executed"
    pickled = pickle.dumps(Canary(nest))
    python = f"__import__('os').mkdir({str(nest)!r})"
    arrays = {
        "start": np.array([Canary(nest)], dtype=object),
        "edges": np.zeros(1),
        "format": np.array("homdp_ppl policy 1"),
    }
    np.savez(tmp_path / "object.npz", **arrays, allow_pickle=True)
    for content, suffix, read in (
        ((tmp_path / "object.npz").read_bytes(), "npz", GraphPolicy.load),
        ((tmp_path / "object.npz").read_bytes(), "npz", QuantisedPolicy.load),
        (pickled, "npz", GraphPolicy.load),
        (pickled, "journal", read_journal),
        (pickled, "toml", Study.from_toml),
        (
            f'models = ["{python}"]\nexplorers = ["hop_b:scale={python}"]\n'.encode(),
            "toml",
            Study.from_toml,
        ),
        (
            f"discount: {python}\nvalues: reward\nstates: 2\n".encode(),
            "POMDP",
            lambda path: read_pomdp(path, 2),
        ),
        (pickled, "POMDP", lambda path: read_pomdp(path, 2)),
        (
            f'{{"format": 2, "study": {{"models": ["{python}"]}}}}'.encode(),
            "json",
            lambda path: StudyDirectory.open(path.parent),
        ),
    ):
        path = tmp_path / (f"canary.{suffix}" if suffix != "json" else "study.json")
        refused_or_read(read, content, path)
        assert not nest.exists(), suffix
    for text in (python, f"tiger:horizon={python}", f"greedy:{python}=1"):
        with pytest.raises(HOMDPError):
            find_world(text)
        assert not nest.exists()
    pickle.loads(pickled)
    assert nest.exists()

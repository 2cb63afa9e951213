"""The homdp command, with and without mistakes."""

import pytest

from homdp_ppl.cli import main

DECLARATION = """
import numpyro, numpyro.distributions as dist
from homdp_ppl import Kernels, homdp

@homdp(states=2, observations=2, actions=1, horizon=3, reward=[[0.0], [1.0]])
def mine():
    p = numpyro.sample("p", dist.Beta(1, 1))
    return Kernels([1.0, 0.0], lambda x, a: dist.Bernoulli(p), lambda x: dist.Delta(x))

fixed = mine.at(p=0.25)
number = 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(DECLARATION)
    return path


def test_play_shows_and_reveals(capsys):
    assert main(["play", "tiger", "--episodes", "2", "--seed", "1"]) == 0
    first = capsys.readouterr().out
    assert first.count("as the policy saw it") == first.count("in hindsight") == 2
    assert "growl" in first
    main(["play", "tiger", "--episodes", "2", "--seed", "1"])
    assert capsys.readouterr().out == first


def test_models_lists_the_zoo_and_shows_one(capsys):
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ("tiger", "lock", "screening", "lower_bound_tree", "random"))
    assert main(["models", "tiger"]) == 0
    out = capsys.readouterr().out
    assert "growl left; growl right" in out
    assert "accuracy=0.85" in out


def test_a_model_from_a_file(capsys, file):
    assert main(["models", f"{file}:fixed"]) == 0
    assert "p=0.25" in capsys.readouterr().out
    assert main(["play", f"{file}:mine"]) == 0  # no truth given: drawn from the prior
    assert "World 'mine' at p=" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "words"),
    [("lion", "one of tiger"), ("no.py:x", "no file"), ("{}:number", "a HOMDP or a World"), ("{}:other", "mine, fixed")],
)
def test_mistakes_are_answered_with_a_sentence(capsys, file, model, words):
    assert main(["play", model.format(file)]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert "Traceback" not in captured.err


def test_usage_errors(capsys):
    for arguments in ([], ["plan"], ["play", "tiger", "--episodes", "0"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "not a positive number" in capsys.readouterr().err

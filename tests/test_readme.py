"""The code of the README runs and gives the results that it states."""

import contextlib
import re
import shlex
import tomllib
from pathlib import Path

import numpy as np
import pytest

from homdp_ppl import models
from homdp_ppl.cli.parser import make_parser

README = Path(__file__).parents[1] / "README.md"
CODE = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The variables after all blocks have run in order."""
    found = {}
    with contextlib.chdir(tmp_path_factory.mktemp("readme")):
        for code in CODE:
            exec(compile(code, "README.md", "exec"), found)
    return found


def test_ten_lines(names):
    assert f"{names['run'].regret[-1]:.2f} lost in 200 episodes" in CODE[0]
    assert f"right in {names['run'].posterior.mean.shows(0)[0, 0]:.0%} of cases" in CODE[0]
    assert names["run"].policy.act([0, 0], [0]) == pytest.approx([0, 0, 1])


def test_the_longer_example(names):
    assert names["episodes"].states.shape == (100, 5)
    claimed = re.search(r"\ntiger\n((?:# .*\n)+)", CODE[1])
    assert claimed is not None
    assert repr(names["tiger"]) == claimed.group(1).replace("# ", "", 1).replace(
        "\n#", "\n"
    ).rstrip().replace("\n   ", "\n  ")
    assert np.round([names["plan"].value, names["plan"].upper], 3).tolist() == [3.704, 3.704]


def test_the_agent(names):
    agent = names["agent"]
    assert len(names["actions"]) == 4
    assert agent.pending == ()
    assert repr(agent.posterior).splitlines()[0] in CODE[2]


def test_the_log(names):
    low, high = names["found"].certified
    assert f"between {low:.2f} and {high:.2f}" in CODE[3]
    assert low <= names["plan"].value <= high
    assert names["choice"].chosen.low > names["choice"].baseline.high or names["choice"].kept
    assert len(CODE) == 4


def test_the_command_line():
    """All commands are accepted by the parser, and the model zoo has as many worlds as stated."""
    text = README.read_text()
    commands = re.findall(r"^homdp (.*?)(?: *#.*)?$", text, flags=re.MULTILINE)
    for command in commands:
        make_parser().parse_args(shlex.split(command))
    assert len(commands) >= 10
    assert f"the model zoo: {len(models.MODELS)} worlds" in text


def test_figures_are_those_of_the_benchmarks_page():
    page = (README.parent / "docs" / "benchmarks.md").read_text()
    pattern = r"planning, (.*?) \((\d+) states\), (\d+) steps, certified gap (\S+) \| (\S+) s"
    rows = re.findall(pattern, README.read_text())
    for _, states, steps, gap, seconds in rows:
        assert re.search(rf"\({states}, .*?\| {steps} \| .*? \| {gap} \| {seconds} \|", page)
    named = {name.strip("`"): int(states) for name, states, *_ in rows if name.startswith("`")}
    assert len(named) == len(rows) - 1 == 2
    assert named == {name: len(models.load(name).spaces.states) for name in named}


def test_length():
    assert len(README.read_text().splitlines()) <= 200


def test_links_are_absolute_and_exist():
    """A package index shows the README without the files around it."""
    project = tomllib.loads((README.parent / "pyproject.toml").read_text())["project"]
    links = re.findall(r"\]\(([^)#]+)", README.read_text())
    assert [link for link in links if not link.startswith("https://")] == []
    inside = re.compile(re.escape(project["urls"]["Source"]) + "/(?:blob|raw)/main/(.+)")
    paths = [found.group(1) for link in links if (found := inside.match(link))]
    assert len(paths) > 20
    assert [path for path in paths if not (README.parent / path).exists()] == []

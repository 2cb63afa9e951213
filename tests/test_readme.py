"""The code of the README runs and gives the results that it states."""

import contextlib
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

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


def test_links_are_absolute_and_exist():
    """A package index shows the README without the files around it."""
    project = tomllib.loads((README.parent / "pyproject.toml").read_text())["project"]
    links = re.findall(r"\]\(([^)#]+)", README.read_text())
    assert [link for link in links if not link.startswith("https://")] == []
    inside = re.compile(re.escape(project["urls"]["Source"]) + "/(?:blob|raw)/main/(.+)")
    paths = [found.group(1) for link in links if (found := inside.match(link))]
    assert len(paths) > 20
    assert [path for path in paths if not (README.parent / path).exists()] == []

"""Tables for notebooks: well-formed, escaped and labelled, for every class that users look at."""

from html.parser import HTMLParser

import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import Agent, explorers, learn, models, posterior, study, tabular
from homdp_ppl.core import html
from tests.runs import TREE

EVIL = '<script>alert("1 & 2")</script>'


class Reader(HTMLParser):
    """Collects tags and text, and requires that every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        """A tag begins."""
        self.open.append(tag)
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        """The last open tag ends."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Text between tags."""
        self.text.append(data)


def evil():
    """A declaration with names that contain markup."""
    return tabular(
        T=dist.Dirichlet(np.ones((2, 2, 2))),
        O=np.full((2, 2), 0.5),
        initial=[0.5, 0.5],
        reward=np.eye(2),
        horizon=2,
        states=(EVIL, "b"),
        observations=(EVIL, "b"),
        actions=(EVIL, "b"),
    )


@pytest.fixture(scope="module")
def things(tmp_path_factory):
    homdp = evil()
    world = homdp.at(T=np.full((2, 2, 2), 0.5))
    agent = Agent(homdp, explorers.posterior_sampling(), TREE)
    for k in range(4):
        episode = agent.begin(f"{EVIL} {k}")
        for _ in range(2):
            episode.act(EVIL)
        if k:
            agent.reveal(f"{EVIL} {k}", [EVIL] * 3)
    asked = study.Study(("tiger",), ("greedy",), episodes=3, seeds=1, horizon=2)
    out = tmp_path_factory.mktemp("study")
    return {
        "HOMDP": homdp,
        "World": world,
        "Plan": TREE(world.pomdp).named(world),
        "Posterior": posterior(homdp, agent.episodes),
        "Run": learn(world, explorers.greedy(), TREE, 3, compiled=False),
        "Study": asked,
        "Finished": study.compare(asked, out=out / "new", workers=1),
        "Agent": agent,
        "LiveCheck": agent.check(),
        "LiveCertificate": agent.certificate(),
        "Explanation": agent.explain(f"{EVIL} 0"),
        "continuous": models.load("gaussian_tiger", horizon=2),
        "continuous HOMDP": models.load("gaussian_tiger", horizon=2).homdp,
    }


NAMES = ["HOMDP", "World", "Plan", "Posterior", "Run", "Study", "Finished"]
NAMES += ["Agent", "LiveCheck", "LiveCertificate", "Explanation"]


@pytest.mark.parametrize("name", [*NAMES, "continuous", "continuous HOMDP"])
def test_tables_for_notebooks(things, name):
    """Every table has a caption and headers with a scope; names are escaped."""
    found = Reader(things[name]._repr_html_())
    tags = [tag for tag, _ in found.tags]
    assert "script" not in tags
    assert tags.count("table") == tags.count("caption") >= 1
    assert all("scope" in attributes for tag, attributes in found.tags if tag == "th")
    assert "".join(found.text).strip()


@pytest.mark.parametrize("name", ["HOMDP", "Plan", "Agent", "LiveCheck", "Explanation"])
def test_names_are_shown_as_text(things, name):
    assert EVIL in "".join(Reader(things[name]._repr_html_()).text)


def test_parts():
    found = Reader(html.table(EVIL, ["a", "b"], [(EVIL, 1.23456), ("x", True)]))
    assert found.text.count(EVIL) == 2
    assert "1.235" in found.text
    assert "True" in found.text
    assert html.listing([]) == ""
    assert Reader(html.block("", html.paragraph(EVIL))).tags[-1][0] == "p"

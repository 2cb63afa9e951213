"""report.html: one page that loads nothing from elsewhere, says what the tables say, and works
before a study is at its end.
"""

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from homdp_ppl import models, study
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.report.page import write_page
from homdp_ppl.report.page.model import Shown, calibration
from homdp_ppl.report.page.progress import drawable, missing, whole
from homdp_ppl.report.studies import draw_optimism
from homdp_ppl.study.specification import Unit

VOID = {"meta", "img", "br", "link", "hr", "input"}
RULES = ["tight", "posterior_sampling", "hop_b:scale=0.1"]
NASTY = """
import jax.numpy as jnp, numpyro, numpyro.distributions as dist, numpy as np
from homdp_ppl import Kernels, homdp

@homdp(states=("<b>off", "on"), observations=("<i>dark", "a & b"),
       actions=("<script>wait()</script>", "go"), horizon=2, reward=np.eye(2))
def lamp():
    works = numpyro.sample("works", dist.Beta(2, 2))
    sees = jnp.array([[works, 1 - works], [1 - works, works]])
    return Kernels(initial=np.array([0.5, 0.5]), transition=np.full((2, 2, 2), 0.5), emission=sees)

world = lamp.at(works=0.6)
"""
SECTIONS = [
    "Results",
    "What the rules guarantee",
    "Regret",
    "Optimism against width",
    "Prior sensitivity",
    "Radius against visits",
    "The final policy",
    "What was learned",
    "The theory beside the measured",
    "What was run",
]


class Reader(HTMLParser):
    """What is in a page: its elements, and what is opened but not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        """Words inside an element."""
        self.words.setdefault(self.open[-1] if self.open else "", []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of a kind."""
        return [attributes for name, attributes in self.elements if name == tag]


def read(path: Path) -> tuple[str, Reader]:
    page = path.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert not reader.wrong, "tags are balanced"
    assert not reader.open, "tags are balanced"
    return page, reader


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    return study.compare(
        "tiger",
        RULES,
        episodes=20,
        seeds=2,
        out=out,
        workers=1,
        horizon=2,
        priors=("declared", "flat"),
    )


@pytest.fixture(scope="module")
def page(done):
    return read(write_page(done.directory, done.runs, done.failed))


def test_well_formed_and_alone(page):
    """Balanced tags, unique ids, links that lead somewhere, pictures inside the page and with
    words, nothing loaded.
    """
    source, reader = page
    assert "http" not in source
    assert "@import" not in source
    assert not re.search(r"url\(", source)
    assert not reader.all("script")
    assert not reader.all("link")
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    assert {str(link["href"]).removeprefix("#") for link in reader.all("a")} <= set(ids)
    images = reader.all("img")
    assert len(images) >= 6
    assert all(
        str(image["src"]).startswith("data:image/svg+xml;base64,") and len(str(image["alt"])) > 30
        for image in images
    )
    assert any(meta.get("name") == "viewport" for meta in reader.all("meta"))
    assert "@media print" in source


def test_sections_and_facts(page, done):
    source, reader = page
    headings = reader.words["h2"] + reader.words["h3"]
    assert [title for title in SECTIONS if title not in headings] == []
    for fact in (study.digest(done.directory), "numpyro", "results.nc", "homdp resume", "0 to 1"):
        assert fact in source
    assert "could not be" not in source
    assert 'id="missing"' not in source


def test_numbers_are_those_of_the_summary(page, done):
    """All digits of regret, error, gap, optimism, width, episodes, seconds and differences.

    Rules in the study's order.
    """
    source, reader = page
    told = [float(str(element["value"])) for element in reader.all("data")]
    rows = study.summarise(
        {rule: done.runs["tiger", "declared", rule] for rule in RULES}, done.directory.study.epsilon
    )
    at = 0
    for k, row in enumerate(rows):
        differences = [] if k == 0 else [row.less, *row.interval]
        wanted = [
            row.regret,
            row.error,
            *differences,
            row.gap,
            row.optimistic,
            row.width,
            row.needed,
            row.seconds,
        ]
        np.testing.assert_equal(told[at : at + len(wanted)], wanted)
        at += len(wanted)
    places = [source.index(f'<th scope="row">{rule}') for rule in RULES]
    assert places == sorted(places)


def test_scaled_bonuses_are_labelled(page):
    source, _ = page
    assert '<th scope="row">hop_b:scale=0.1 <span class="mark">scaled</span></th>' in source
    assert "bonuses are scaled, which voids the guarantee" in source
    assert '<th scope="row">tight <span' not in source
    assert "estimated</span>" not in source


def test_half_finished(done, tmp_path):
    """Runs cut short, rules that have not begun, and a unit that failed are named.

    The rest of the page stands.
    """
    directory = elsewhere(done.directory, tmp_path)
    first, second = done.runs["tiger", "declared", "tight"]
    short = cut(second, 7)
    runs = {
        ("tiger", "declared", "tight"): [first, short],
        ("tiger", "declared", RULES[1]): [cut(first, 5), cut(second, 9)],
    }
    failed = {Unit("tiger", "declared", RULES[2], (0, 1)): "got <nothing>"}
    source, _ = read(write_page(directory, runs, failed))
    told = missing(directory, runs, failed)
    assert len(told) == 4
    assert told[0] == (
        "tight in tiger, seeds 0 to 1: 1 of 2 runs are at their end, seed 1 has played "
        "7 of 20 episodes."
    )
    assert "seed 0 has played 5 of 20 episodes, seed 1 has played 9 of 20 episodes" in told[1]
    assert "failed (got &lt;nothing&gt;)" in source
    assert "drawn as far as all their runs go: posterior_sampling" in source
    assert [
        len(run.values) for run in drawable({"a": runs["tiger", "declared", RULES[1]]})["a"]
    ] == [5, 5]
    assert whole({"a": [short], "b": [first, short]}) == {"b": [first]}


def cut(run: Saved, rounds: int) -> Saved:
    return replace(run, record=run.record.until(rounds, rounds))


def elsewhere(directory, path, models=None):
    """The same study in another directory, if wished with other models."""
    found = directory.manifest
    return study.StudyDirectory(path, found._replace(models=models or found.models))


def test_nothing_has_begun(done, tmp_path):
    directory = elsewhere(done.directory, tmp_path)
    source, _ = read(write_page(directory, {}))
    assert "No run has begun yet." in source


def test_texts_are_escaped(tmp_path, monkeypatch):
    """A model, a state and an action that are called like elements: words, and no elements."""
    monkeypatch.chdir(tmp_path)
    Path("x<script>alert(1).py").write_text(NASTY)
    model = "x<script>alert(1).py:world"
    made = study.compare(
        model, ["greedy"], episodes=4, seeds=1, out="out & in", workers=1, priors=("declared",)
    )
    source, reader = read(write_page(made.directory, made.runs))
    assert not reader.all("script")
    assert not reader.all("b")
    assert not reader.all("i")
    assert "x&lt;script&gt;alert(1).py:world" in source
    assert "homdp resume &#x27;out &amp; in&#x27;" in source
    assert "One seed each." in source
    assert "could not be" not in source


def test_changed_model(done, tmp_path):
    """Pictures that need the world are left out when it is not the one of the study.

    The measured stays.
    """
    models = {"tiger": done.directory.manifest.models["tiger"] | {"numbers": "others"}}
    directory = elsewhere(done.directory, tmp_path, models)
    source, reader = read(write_page(directory, done.runs))
    assert source.count("This could not be shown") == 3
    assert "the model that the study began with" in source
    assert len(reader.all("img")) == 3


def test_calibration_lines(done, tmp_path):
    """1/2 for one draw; ceil(0.7 * 5) / 6 for the fourth of five.

    Nothing for rules that are not exchangeable.
    """
    rules = (
        "posterior_sampling",
        "value_quantile:q=0.7,draws=5",
        "posterior_sampling:replan=once",
        "tight",
    )
    runs = {("tiger", "declared", rule): done.runs["tiger", "declared", "tight"] for rule in rules}
    asked = study.Study(("tiger",), rules, horizon=2)
    directory = study.StudyDirectory.create(
        tmp_path, asked, {"tiger": models.load("tiger", horizon=2)}
    )
    found = calibration(Shown(directory, runs, "tiger"))
    assert found == {rules[0]: 1 / 2, rules[1]: 4 / 6}
    axes = draw_optimism(
        {rule: runs["tiger", "declared", rule] for rule in rules}, calibration=found
    )
    dashed = [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"]
    assert dashed == [1 / 2, 4 / 6]


@pytest.mark.slow
def test_continuous(tmp_path):
    """Sections that need tables say that there are none."""
    made = study.compare(
        "gaussian_tiger",
        ["posterior_sampling"],
        episodes=3,
        seeds=1,
        out=tmp_path,
        workers=1,
        horizon=2,
        priors=("declared",),
    )
    source, reader = read(write_page(made.directory, made.runs, made.failed))
    assert "The paper&#x27;s bounds are for tables" in source
    assert "Radii are for rows of tables" in source
    assert len(reader.all("img")) >= 2


BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [360, 1200])
def test_in_a_browser(page, done, tmp_path, width):
    """A real browser lays it out, on a phone and on a desk: the picture is not blank."""
    shot = tmp_path / "page.png"
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--window-size={width},2000",
    ]
    address = (done.directory.path / "report.html").resolve().as_uri()
    subprocess.run(
        [str(BROWSER), *options, f"--screenshot={shot}", address],
        check=True,
        timeout=120,
        capture_output=True,
    )
    seen = plt.imread(shot)
    assert seen.shape[1] >= width
    assert seen[..., :3].std() > 0.02

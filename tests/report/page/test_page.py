"""report.html is self-contained, agrees with the tables, and works for incomplete studies."""

import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from homdp_ppl import learn, models, study
from homdp_ppl.explorers import hop_b, posterior_sampling, tight
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.planners import history_tree
from homdp_ppl.report.page import write_page
from homdp_ppl.report.page.model import Shown, calibration
from homdp_ppl.report.page.progress import complete_runs, drawable, missing
from homdp_ppl.report.studies import draw_optimism
from homdp_ppl.study.differences import COVERS
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
    "Columns of the tables",
    "Guarantees",
    "The problem",
    "Regret",
    "Optimism",
    "Certificates",
    "Prior sensitivity",
    "Confidence radii",
    "Final policy",
    "Posterior",
    "Bounds and measurements",
    "Settings and data",
]


class Reader(HTMLParser):
    """The elements of a page, and tags that are not balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: dict[str, list[str]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Start of an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """End of an element."""
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        """Text inside an element."""
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


def test_page_is_well_formed_and_self_contained(page):
    """Balanced tags, unique ids, valid links, embedded figures with alternative texts, and no
    external files.
    """
    source, reader = page
    assert "http" not in source
    assert "@import" not in source
    assert not re.search(r"url\(", source)
    assert all("src" not in script for script in reader.all("script"))
    assert not reader.all("link")
    assert len(source) < 3_000_000
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    links = {str(link["href"]) for link in reader.all("a")}
    assert links - {"results.nc"} <= {f"#{place}" for place in ids}
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
    assert "Not available" not in source
    assert 'id="missing"' not in source


def test_numbers_are_those_of_the_summary(page, done):
    """All digits of regret, error, gap, optimism, excess, episodes, seconds and differences, with
    the rules in the order of the study.
    """
    source, reader = page
    found = [float(str(element["value"])) for element in reader.all("data")]
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
            row.per_episode,
            row.per_policy,
            row.gap,
            row.optimistic,
            row.width,
            row.needed,
            row.seconds,
        ]
        np.testing.assert_equal(found[at : at + len(wanted)], wanted)
        at += len(wanted)
    places = [source.index(f'<th scope="row">{rule}') for rule in RULES]
    assert places == sorted(places)


def test_certificates_are_those_of_the_same_runs(page, done):
    """Both numbers that are certified, for each rule, beside the true ones."""
    source, _ = page
    certificates = Shown(done.directory, done.runs, "tiger").exhibit.certificates
    assert [one.rule for one in certificates] == RULES
    world = models.load("tiger", horizon=2)
    for one, rule in zip(
        certificates, (tight(), posterior_sampling(), hop_b(scale=0.1)), strict=True
    ):
        run = learn(world, rule, history_tree(), episodes=20, seed=0)
        wanted = (run.certificate.lower[-1], run.values[-1], run.certificate.upper[-1], run.optimum)
        assert one[3:] == pytest.approx(wanted, abs=1e-9)
        assert one.lower <= one.value <= one.optimum + 1e-12
        assert one.optimum <= one.upper
        assert f'value="{one.lower!r}"' in source


def test_the_model_is_shown_in_words_and_as_code(page):
    """The story is that of the file, the summary what is printed."""
    source, reader = page
    assert models.tiger.__doc__.split("\n\n")[0] in source
    assert "HOMDP &#x27;tiger&#x27;: 2 states" in source
    assert "def tiger() -&gt; Kernels:" in source
    assert {"The declaration as code"} <= set(reader.words["summary"])


def test_scaled_bonuses_are_labelled(page):
    source, _ = page
    assert '<th scope="row">hop_b:scale=0.1 <span class="mark">scaled</span></th>' in source
    assert "bonuses are scaled, which voids the guarantee" in source
    assert '<th scope="row">tight <span class="mark">guarantee</span></th>' in source
    assert '<th scope="row">posterior_sampling</th>' in source
    assert "estimated</span>" not in source


def test_differences_of_all_pairs(page, done):
    """Every pair of rules with its interval and p-values; what intervals cover is stated."""
    source, reader = page
    runs = {rule: done.runs["tiger", "declared", rule] for rule in RULES}
    found = [float(str(element["value"])) for element in reader.all("data")]
    for one in study.pairwise_differences(runs):
        wanted = [one.mean, *one.interval, one.p_value, one.adjusted]
        assert any(found[k : k + 5] == wanted for k in range(len(found)))
    assert COVERS.partition(".")[0] in source


def test_page_of_an_incomplete_study(done, tmp_path):
    """Incomplete runs, rules without runs and failed units are listed; the page is still made."""
    directory = elsewhere(done.directory, tmp_path)
    first, second = done.runs["tiger", "declared", "tight"]
    short = cut(second, 7)
    runs = {
        ("tiger", "declared", "tight"): [first, short],
        ("tiger", "declared", RULES[1]): [cut(first, 5), cut(second, 9)],
    }
    failed = {Unit("tiger", "declared", RULES[2], (0, 1)): "got <nothing>"}
    source, _ = read(write_page(directory, runs, failed))
    lines = missing(directory, runs, failed)
    assert len(lines) == 4
    assert lines[0] == (
        "tight in tiger, seeds 0 to 1: 1 of 2 runs complete, seed 1 at episode 7 of 20."
    )
    assert "seed 0 at episode 5 of 20, seed 1 at episode 9 of 20" in lines[1]
    assert "failed (got &lt;nothing&gt;)" in source
    assert "drawn up to the shortest run: posterior_sampling" in source
    assert [
        len(run.values) for run in drawable({"a": runs["tiger", "declared", RULES[1]]})["a"]
    ] == [5, 5]
    assert complete_runs({"a": [short], "b": [first, short]}) == {"b": [first]}


def cut(run: Saved, rounds: int) -> Saved:
    return replace(run, record=run.record.until(rounds, rounds))


def elsewhere(directory, path, models=None):
    """The same study in another directory, optionally with other models."""
    found = directory.manifest
    return study.StudyDirectory(path, found._replace(models=models or found.models))


def test_page_without_runs(done, tmp_path):
    directory = elsewhere(done.directory, tmp_path)
    source, _ = read(write_page(directory, {}))
    assert "No run has started yet." in source


def test_texts_are_escaped(tmp_path, monkeypatch):
    """Names of models, states and actions that look like HTML are text, not elements."""
    monkeypatch.chdir(tmp_path)
    Path("x<script>alert(1).py").write_text(NASTY)
    model = "x<script>alert(1).py:world"
    made = study.compare(
        model, ["greedy"], episodes=4, seeds=1, out="out & in", workers=1, priors=("declared",)
    )
    source, reader = read(write_page(made.directory, made.runs))
    kinds = [script.get("type") for script in reader.all("script")]
    assert kinds == ["application/json", None]  # the data of one figure, and our script
    assert not reader.all("b")
    assert not reader.all("i")
    assert "x&lt;script&gt;alert(1).py:world" in source
    assert "homdp resume &#x27;out &amp; in&#x27;" in source
    assert "Each line is one seed." in source
    assert "Not available" not in source


def test_page_after_the_model_changed(done, tmp_path):
    """Figures that need the world are left out; measured results are still shown."""
    models = {"tiger": done.directory.manifest.models["tiger"] | {"numbers": "others"}}
    directory = elsewhere(done.directory, tmp_path, models)
    source, reader = read(write_page(directory, done.runs))
    assert source.count("Not available") == 6
    assert "the model with which the study began" in source
    assert len(reader.all("img")) == 3


def test_calibration_lines(done, tmp_path):
    """1/2 for one draw, ceil(0.7 * 5) / 6 for the fourth of five draws, and no line for rules
    whose draws are not exchangeable.
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
def test_page_of_a_continuous_model(tmp_path):
    """Sections that need tables say that the model has none."""
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
    assert "The bounds of the paper are for finite tables" in source
    assert "Confidence radii are defined for rows of tables" in source
    assert len(reader.all("img")) >= 2


@pytest.mark.slow
def test_page_of_a_model_without_bounds(tmp_path):
    """The paper has no bounds for observations that answer actions, and the page says so."""
    made = study.compare(
        "tiger_listen",
        ["greedy"],
        episodes=3,
        seeds=1,
        out=tmp_path,
        workers=1,
        horizon=2,
        priors=("declared",),
    )
    source, _ = read(write_page(made.directory, made.runs, made.failed))
    assert "no bounds for this model" in source
    assert "a table that depends on the previous action" in source
    assert "bound of HOP-B" not in source


BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)


@pytest.mark.skipif(BROWSER is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [360, 1200])
def test_page_in_a_browser(page, done, tmp_path, width):
    """A screenshot at the widths of a phone and of a desktop is not blank."""
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

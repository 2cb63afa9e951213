"""The charts of the page in a real browser: controls, values, zoom, no errors, no requests."""

import json
import re
import shutil
import subprocess
from html import unescape

import matplotlib.pyplot as plt
import numpy as np
import pytest

from homdp_ppl.learning.metrics import Measured
from homdp_ppl.report.page.chart import regret_data, with_data
from homdp_ppl.report.page.html import document, picture

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=5000",
]
FIRST = """
window.found = { errors: [] };
window.addEventListener("error", (event) => window.found.errors.push(event.message));
const heard = console.error;
console.error = (...words) => window.found.errors.push(words.join(" "));
"""
ACT = """
const chart = document.querySelector(".chart"), svg = chart.querySelector("svg");
const rules = () => [...svg.querySelectorAll("polyline")].map((line) => line.dataset.rule);
const points = () => svg.querySelector("polyline").getAttribute("points").split(" ").length;
const words = () => [...svg.querySelectorAll("text")].map((text) => text.textContent);
const frame = svg.getBoundingClientRect();
const point = (kind, share) => svg.dispatchEvent(new PointerEvent(kind, {
  bubbles: true, clientX: frame.left + share * frame.width, clientY: frame.top + 50 }));
const found = window.found;
found.before = rules();
point("pointermove", 0.99);
found.readout = chart.querySelector(".readout").textContent;
found.points = points();
point("pointerdown", 0.3); point("pointerup", 0.5);
found.zoomed = points();
chart.querySelectorAll("button")[0].click();
found.again = points();
chart.querySelector("input").click();
found.after = rules();
const axis = chart.querySelector("select[data-axis=y]");
axis.value = "log";
axis.dispatchEvent(new Event("change"));
found.words = words();
const saved = [];
URL.createObjectURL = (blob) => { saved.push(blob.size); return "#"; };
URL.revokeObjectURL = () => {};
chart.querySelectorAll("button")[1].click();
found.saved = saved;
found.picture = getComputedStyle(document.querySelector("figure > .scroll")).display;
found.width = document.documentElement.scrollWidth;
found.letters = svg.querySelector("text").getBoundingClientRect().height;
found.requests = performance.getEntriesByType("resource").map((entry) => entry.name)
  .filter((name) => !name.startsWith("data:"));
const answer = document.createElement("pre");
answer.id = "answer";
answer.textContent = JSON.stringify(found);
document.body.appendChild(answer);
"""


class Line(Measured):
    """A run whose regret grows by a constant in every episode."""

    def __init__(self, slope: float, rounds: int = 300) -> None:
        self._lost = slope * np.arange(1, rounds + 1)

    @property
    def about(self):
        """No name is needed."""
        return {"model": "line", "soundness": "none"}

    @property
    def episodes_per_round(self):
        """Every round is an episode."""
        return 1

    @property
    def lost_by_round(self):
        """The sum of the losses."""
        return self._lost


def page(names=("steep & <b>", "flat")) -> str:
    """A page with one chart of two rules: regret 2 and 0.5 per episode in the mean."""
    runs = {
        names[0]: [Line(1.0), Line(3.0)],
        names[1]: [Line(0.25), Line(0.75)],
    }
    axes = plt.subplots(figsize=(3, 2))[1]
    figure = picture(lambda: axes, "two lines", "Two lines.")
    return document("Lines", with_data(figure, regret_data("line", runs, "line.csv")))


def test_data_are_means_and_bands_and_contain_no_markup():
    source = page()
    coded = re.search(r'<script type="application/json">(.*?)</script>', source, re.DOTALL)
    assert coded is not None
    assert "<b>" not in coded[1]
    steep, flat = json.loads(coded[1])["rules"]
    assert steep["name"] == "steep & <b>"
    assert steep["x"][0] == 1
    assert steep["x"][-1] == 300
    np.testing.assert_allclose(steep["mean"], 2.0 * np.array(steep["x"]))
    np.testing.assert_allclose(flat["high"], (0.25 + 0.95 * 0.5) * np.array(flat["x"]), rtol=1e-5)
    assert source.count("<img") == 1  # what readers without scripts see


def explored(folder, width: int) -> dict:
    """What the script finds in a window of a width."""
    if BROWSER is None:
        pytest.skip("no Chromium is installed")
    source = page().replace("<head>", f"<head><script>{FIRST}</script>")
    source = source.replace("</body>", f"<script>{ACT}</script></body>")
    (folder / "page.html").write_text(source, encoding="utf-8")
    where = (folder / "page.html").as_uri()
    own = [f"--window-size={width},900", f"--user-data-dir={folder / 'profile'}"]
    command = [BROWSER, *FLAGS, *own, "--dump-dom", where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stdout[-2000:] + done.stderr[-2000:]
    return json.loads(unescape(found[1]))


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    return explored(tmp_path_factory.mktemp("browser"), 800)


def test_a_rule_can_be_hidden(answer):
    assert answer["before"] == ["steep & <b>", "flat"]
    assert answer["after"] == ["flat"]


def test_pointing_shows_values(answer):
    assert answer["readout"] == (
        "Episode 300: steep & <b> 600 (330 to 870); flat 150 (82.5 to 218)"
    )


def test_dragging_zooms_and_the_button_shows_all(answer):
    assert answer["zoomed"] < answer["points"]
    assert answer["again"] == answer["points"]


def test_logarithmic_axes_say_so(answer):
    assert "regret (log scale)" in answer["words"]
    assert "episodes" in answer["words"]


def test_data_can_be_saved(answer):
    (size,) = answer["saved"]
    assert size > 1000


def test_the_chart_replaces_the_picture_and_fits_the_window(answer):
    assert answer["picture"] == "none"
    assert answer["width"] <= 800


def test_words_keep_their_size_in_a_narrow_window(tmp_path):
    """500 pixels: a browser without a screen has no narrower windows."""
    narrow = explored(tmp_path, 500)
    assert narrow["letters"] >= 12
    assert narrow["width"] <= 500
    assert narrow["zoomed"] < narrow["points"]


def test_no_errors_and_no_requests(answer):
    assert answer["errors"] == []
    assert answer["requests"] == []

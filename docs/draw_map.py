"""Draw a map of the code from the actual imports, and the data flow next to it.

Rows are the layers of the import contract in pyproject.toml. Boxes are the packages, with the first
sentence of their docstring and their public modules. All text in the boxes comes from the code.
"""

import ast
import textwrap
import tomllib
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import NamedTuple

import grimp
import matplotlib
import networkx as nx
from matplotlib.axes import Axes
from matplotlib.colors import hsv_to_rgb, to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

ROOT = Path(__file__).parents[1]
WIDTH = 10.4  # of a row, in inches
# In inches: between boxes, per line of text, inside boxes, between rows.
GAP, LINE, PAD, ARROW = 0.2, 0.155, 0.1, 0.26
GOLDEN = (5**0.5 - 1) / 2
LETTERS = 12.4  # per inch, in the font of the modules


class Step(NamedTuple):
    """A step of the data flow."""

    does: str
    gives: str  # a public name, then a description
    package: str


BEFORE = (
    Step("you declare a problem", "HOMDP: a program with unknown sites", "declare"),
    Step("it becomes a NumPyro program", "HOMDP.program: simulation, inference", "declare"),
    Step("parameters are fixed", "World: the truth, hidden from the learner", "declare"),
)
LOOP = (
    Step("the explorer proposes", "explorers.Proposal: optimistic models", "explorers"),
    Step("the planner plans", "Plan: a policy and its certificate", "planners"),
    Step("the policy acts", "Trajectory: observations, actions", "core"),
    Step("the states are revealed", "Episode: hindsight", "core"),
    Step("the explorer updates", "Counts, posteriors.Posterior", "posteriors"),
)
AFTER = (
    Step("the run is recorded", "Run: exact values, regret", "learning"),
    Step("a study runs many seeds", "study.StudyDirectory: journals, results.nc", "study"),
    Step("results are reported", "report.write_page: report.html, tables", "report"),
)


class Box(NamedTuple):
    """A package on the map."""

    left: float
    bottom: float
    width: float
    height: float
    hue: float
    name: str
    does: str  # wrapped
    modules: str  # wrapped

    def colour(self, dark: bool = False) -> str:
        """The colour of the box, or the dark colour of its outgoing arrows."""
        return to_hex(hsv_to_rgb((self.hue, 0.75, 0.6) if dark else (self.hue, 0.22, 0.98)))


def layers() -> list[list[str]]:
    """The layers of the import contract, from top to bottom."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = project["tool"]["importlinter"]["contracts"]
    return [row.split(" | ") for row in contract["layers"]]


def imports() -> nx.DiGraph:
    """The import graph of the packages; modules at the root count as packages."""
    graph = grimp.build_graph("homdp_ppl", exclude_type_checking_imports=True, cache_dir=None)
    packages = nx.DiGraph()
    packages.add_nodes_from(sorted(name.split(".")[1] for name in graph.modules if "." in name))
    for module in sorted(graph.modules - {"homdp_ppl"}):
        for imported in sorted(graph.find_modules_directly_imported_by(module) - {"homdp_ppl"}):
            above, below = module.split(".")[1], imported.split(".")[1]
            if above != below:
                packages.add_edge(above, below)
    return packages


def check(packages: nx.DiGraph, rows: list[list[str]]) -> None:
    """Check that the layers match the code.

    Raises
    ------
    ValueError
        If a package is in no layer, a layer names a missing package, or an import does not point
        downwards.
    """
    row_of = {name: number for number, row in enumerate(rows) for name in row}
    if row_of.keys() != set(packages):
        raise ValueError(f"not in both the code and the layers: {row_of.keys() ^ set(packages)}")
    upwards = [(a, b) for a, b in packages.edges if row_of[a] >= row_of[b]]
    if upwards:
        raise ValueError(f"imports that do not point downwards: {upwards}")


def draw() -> Figure:
    """The map."""
    packages, rows = imports(), layers()
    check(packages, rows)
    boxes = _boxes(rows)
    height = max(box.bottom + box.height for box in boxes.values())
    figure = Figure(figsize=(17, height + 0.9))
    left, right = (
        figure.add_axes((0.2 / 17, 0.1 / (height + 0.9), WIDTH / 17, height / (height + 0.9))),
        figure.add_axes((0.66, 0.1 / (height + 0.9), 0.33, height / (height + 0.9))),
    )
    left.set(xlim=(0, WIDTH), ylim=(0, height))
    _packages(left, packages, boxes)
    _flow(right, {name: box.colour() for name, box in boxes.items()})
    for axes, title in (
        (left, "Packages: imports point down, in the colour of the importing package"),
        (right, "Data flow, in the colours of the packages"),
    ):
        axes.set_axis_off()
        axes.set_title(title, fontsize=15, loc="left", weight="bold", pad=12)
    return figure


def write(path: Path) -> None:
    """Write the map to a file; the output is reproducible byte by byte."""
    with matplotlib.rc_context({"svg.hashsalt": "map", "font.family": "DejaVu Sans"}):
        draw().savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _boxes(rows: list[list[str]]) -> dict[str, Box]:
    """The boxes, row by row from the bottom; the longest text sets the height of a row."""
    boxes: dict[str, Box] = {}
    hues = count(0.62, GOLDEN)  # neighbours get very different hues
    bottom = 0.05
    for row in reversed(rows):
        made = []
        share = [3 if (ROOT / "homdp_ppl" / name).is_dir() else 1 for name in row]
        left = 0.02
        for name, part in zip(row, share, strict=True):
            width = (WIDTH - 0.04 - GAP * (len(row) - 1)) * part / sum(share)
            does, modules = _texts(name, width)
            made.append(Box(left, bottom, width, 0.0, next(hues) % 1, name, does, modules))
            left += width + GAP
        lines = max(1.5 + _lines(box.does) + _lines(box.modules) for box in made)
        height = lines * LINE + 2 * PAD
        boxes |= {box.name: box._replace(height=height) for box in made}
        bottom += height + ARROW
    return boxes


def _texts(name: str, width: float) -> tuple[str, str]:
    """The purpose of a package, and its public modules."""
    folder = ROOT / "homdp_ppl" / name
    source = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
    sentence = " ".join(docstring.split(".\n")[0].split()).replace("``", "").rstrip(".")
    public = sorted(
        path.stem
        for path in folder.glob("[a-z]*")
        if path.suffix == ".py" or (path / "__init__.py").exists()
    )
    letters = int(width * LETTERS)
    return (
        textwrap.fill(sentence, int(letters * 1.02)),
        textwrap.fill("  ".join(public), letters, break_on_hyphens=False),
    )


def _lines(text: str) -> int:
    return text.count("\n") + 1 if text else 0


def _packages(axes: Axes, packages: nx.DiGraph, boxes: Mapping[str, Box]) -> None:
    for a, b in sorted(nx.transitive_reduction(packages).edges):  # omit implied arrows
        above, below = boxes[a], boxes[b]
        low = max(above.left, below.left) + 0.1
        high = min(above.left + above.width, below.left + below.width) - 0.1
        ends = (
            [(low + high) / 2] * 2  # vertical if the boxes overlap
            if low <= high
            else [_nearest(above, below), _nearest(below, above)]
        )
        axes.add_patch(
            FancyArrowPatch(
                (ends[0], above.bottom),
                (ends[1], below.bottom + below.height),
                arrowstyle="-|>",
                mutation_scale=13,
                shrinkA=0,
                shrinkB=0,
                color=above.colour(dark=True),
                lw=1.3,
                zorder=1,
            )
        )
    for box in boxes.values():
        axes.add_patch(_box((box.left, box.bottom), box.width, box.height, box.colour()))
        middle, top = box.left + box.width / 2, box.bottom + box.height - PAD
        axes.text(middle, top, box.name, ha="center", va="top", fontsize=13, weight="bold")
        style = {"ha": "center", "va": "top", "linespacing": 1.15}
        axes.text(middle, top - 1.6 * LINE, box.does, fontsize=9, style="italic", **style)
        place = top - (1.65 + _lines(box.does)) * LINE
        mono = {"family": "DejaVu Sans Mono", "color": "#333333"}
        axes.text(middle, place, box.modules, fontsize=8, **mono, **style)


def _nearest(box: Box, other: Box) -> float:
    """The horizontal position on a box that is nearest to another box."""
    return box.left + 0.15 if other.left < box.left else box.left + box.width - 0.15


def _flow(axes: Axes, colours: Mapping[str, str]) -> None:
    steps = [*BEFORE, *LOOP, *AFTER]
    last = len(steps) - 1
    axes.set(xlim=(-0.16, 1.0), ylim=(-0.45, last + 0.45))
    top, bottom = last - len(BEFORE) + 0.42, last - len(BEFORE) - len(LOOP) + 0.58
    axes.add_patch(_box((-0.13, bottom), 1.1, top - bottom, "#fffbe8", edge="#d9c35a"))
    axes.text(
        0.95,
        top - 0.17,
        "learn",
        ha="right",
        va="center",
        fontsize=14,
        weight="bold",
        color="#8a7500",
    )
    for k, step in enumerate(steps):
        y = last - k
        axes.add_patch(_box((0.04, y - 0.28), 0.78, 0.56, colours[step.package], zorder=3))
        axes.text(
            0.43,
            y + 0.1,
            step.does,
            ha="center",
            va="center",
            fontsize=12.5,
            weight="bold",
            zorder=4,
        )
        axes.text(
            0.43,
            y - 0.12,
            step.gives,
            ha="center",
            va="center",
            fontsize=10,
            zorder=4,
            color="#333333",
        )
        if k < last:
            axes.add_patch(
                FancyArrowPatch(
                    (0.43, y - 0.28),
                    (0.43, y - 0.72),
                    arrowstyle="-|>",
                    mutation_scale=20,
                    color="#b0413e",
                    lw=2.4,
                    zorder=2,
                )
            )
    first, again = last - len(BEFORE), last - len(BEFORE) - len(LOOP) + 1
    axes.add_patch(
        FancyArrowPatch(
            (0.04, again),
            (0.04, first),
            connectionstyle="bar,fraction=-0.03",
            arrowstyle="-|>",
            mutation_scale=20,
            color="#b0413e",
            lw=2.4,
            zorder=2,
        )
    )
    axes.text(
        -0.06,
        (first + again) / 2,
        "K times",
        rotation=90,
        ha="center",
        va="center",
        fontsize=11,
        color="#b0413e",
    )


def _box(
    corner: tuple[float, float],
    width: float,
    height: float,
    colour: str,
    edge: str = "#666666",
    zorder: int = 2,
) -> FancyBboxPatch:
    return FancyBboxPatch(
        corner,
        width,
        height,
        boxstyle="round,pad=0,rounding_size=0.03",
        fc=colour,
        ec=edge,
        lw=1,
        zorder=zorder,
    )


if __name__ == "__main__":
    write(Path(__file__).parent / "_static" / "map.svg")

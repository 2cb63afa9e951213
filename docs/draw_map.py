"""The map of the code, drawn from what the modules really import.

Rooms above what they stand on, and how data flow through them.

Which module is in which room is written here; that each has one, that rooms do not import each
other in circles, and all arrows between them come from the code.
"""

import textwrap
from pathlib import Path
from typing import NamedTuple

import grimp
import matplotlib
import networkx as nx
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch


class Room(NamedTuple):
    """Modules that belong together."""

    does: str
    modules: str  # their names
    colour: str
    place: float  # of its middle, from left (0) to right (1)
    width: float


ROOMS = {
    "command": Room("what homdp does", "cli commands study_commands", "#dddddd", 0.55, 1.24),
    "showing": Room("tables, pictures, the page of a study", "report page", "#f6c9d4", 0.55, 1.24),
    "study": Room(
        "many rules, models and seeds; resuming; clusters", "study", "#f8d5b0", 0.72, 0.8
    ),
    "learning": Room(
        "the loop, its compiled twin, and what is measured",
        (
            "learning twin rounds pairs foresight stages continuous_stage learning_checks "
            "outcome run record measured restoring"
        ),
        "#fbeaa5",
        0.42,
        0.52,
    ),
    "theory": Room("events and bounds", "events theory", "#e3e3f1", 0.05, 0.22),
    "exploring": Room("rules: what to plan for", "explorers", "#d7ebb0", 0.38, 0.28),
    "models": Room("the zoo", "models", "#c9e6f5", 0.87, 0.18),
    "believing": Room(
        "posteriors, confidence sets", "posteriors confidence", "#bfe5d0", 0.22, 0.32
    ),
    "planners": Room("best policies", "planners", "#d9d2f0", 0.66, 0.22),
    "exchange": Room("Gymnasium, files", "gym formats", "#c9e6f5", 0.87, 0.18),
    "declaring": Room(
        "programs, worlds and their structure",
        (
            "declare model kernels program structure validation probing parameters conjugacy "
            "continuous"
        ),
        "#b9def0",
        0.5,
        0.74,
    ),
    "acting": Room(
        "policies, episodes, exact values",
        "acting policy episode counts evaluation plan restricted relaxations",
        "#c8e0f8",
        0.5,
        0.74,
    ),
    "storage": Room(
        "files that are whole or not there, also after a crash",
        "journal journal_format blocks storage locking array_files",
        "#eeeeee",
        0.5,
        0.74,
    ),
    "foundations": Room(
        "numbers, names and errors", "pomdp domain errors precision picture", "#e6e6e6", 0.55, 1.24
    ),
}


class Step(NamedTuple):
    """A station of the data."""

    does: str
    gives: str  # a public name, and more words
    room: str


BEFORE = (
    Step("you declare", "HOMDP: a program with unknowns", "declaring"),
    Step("it is a NumPyro program", "HOMDP.program: simulates, is conditioned", "declaring"),
    Step("parameters are fixed", "World: the truth, unseen by the learner", "declaring"),
)
LOOP = (
    Step("the explorer proposes", "explorers.Proposal: optimistic models", "exploring"),
    Step("the planner plans", "Plan: a policy and its certificate", "planners"),
    Step("the policy is played", "Trajectory: observations, actions", "acting"),
    Step("the states are revealed", "Episode: hindsight", "acting"),
    Step("the explorer updates", "Counts, posteriors.Posterior", "believing"),
)
AFTER = (
    Step("what happened", "Run: exact values, regret", "learning"),
    Step("of many rules and seeds", "study.StudyDirectory: journals, results.nc", "study"),
    Step("for people", "page.write_page: report.html, tables", "showing"),
)


def imports() -> nx.DiGraph:
    """Which room imports which, as the code has it.

    Raises
    ------
    ValueError
        A module without a room, a room with a module that does not exist, or rooms that import each
        other in a circle.
    """
    graph = grimp.build_graph("homdp_ppl", exclude_type_checking_imports=True, cache_dir=None)
    room_of = {module: name for name, room in ROOMS.items() for module in room.modules.split()}
    there = {module.split(".")[1] for module in graph.modules if "." in module}
    if there != set(room_of):
        raise ValueError(
            f"docs/draw_map.py: modules without a room, or rooms without a module: "
            f"{sorted(there ^ set(room_of))}"
        )
    rooms = nx.DiGraph()
    rooms.add_nodes_from(ROOMS)
    for module in there:
        inside = {f"homdp_ppl.{module}", *graph.find_descendants(f"homdp_ppl.{module}")}
        for imported in {
            part for one in inside for part in graph.find_modules_directly_imported_by(one)
        } - {"homdp_ppl"}:
            pair = room_of[module], room_of[imported.split(".")[1]]
            if pair[0] != pair[1]:
                rooms.add_edge(*pair)
    if not nx.is_directed_acyclic_graph(rooms):
        raise ValueError(f"docs/draw_map.py: rooms import each other: {nx.find_cycle(rooms)}")
    return rooms


def floors(rooms: nx.DiGraph) -> dict[str, int]:
    """On which floor each room is: one above the highest that it imports."""
    floor: dict[str, int] = {}
    for name in reversed(list(nx.topological_sort(rooms))):
        floor[name] = 1 + max((floor[below] for below in rooms.successors(name)), default=-1)
    return floor


def draw() -> Figure:
    """The map."""
    rooms = imports()
    figure = Figure(figsize=(17, 12.5))
    left, right = (
        figure.add_axes((0.01, 0.01, 0.61, 0.93)),
        figure.add_axes((0.65, 0.01, 0.34, 0.93)),
    )
    _rooms(left, rooms, floors(rooms))
    _flow(right)
    for axes, title in (
        (left, "Rooms: arrows point to what is imported, always down"),
        (right, "How data flow"),
    ):
        axes.set_axis_off()
        axes.set_title(title, fontsize=17, loc="left", weight="bold", pad=12)
    figure.text(
        0.975,
        0.962,
        "colours are those of the rooms",
        ha="right",
        fontsize=10,
        style="italic",
        color="#555555",
    )
    return figure


def write(path: Path) -> None:
    """Draw the map into a file, the same bytes every time."""
    with matplotlib.rc_context({"svg.hashsalt": "map", "font.family": "DejaVu Sans"}):
        draw().savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _rooms(axes: Axes, rooms: nx.DiGraph, floor: dict[str, int]) -> None:
    height = 0.66
    axes.set(xlim=(-0.08, 1.19), ylim=(-0.45, max(floor.values()) + 0.45))
    for a, b in sorted(
        nx.transitive_reduction(rooms).edges
    ):  # what follows from the others is left out
        start, end = (
            (ROOMS[a].place, floor[a] - height / 2),
            (ROOMS[b].place, floor[b] + height / 2),
        )
        reach = ROOMS[b].width / 2 - 0.03
        end = (
            min(max(start[0], end[0] - reach), end[0] + reach),
            end[1],
        )  # straight down where it can be
        reach = ROOMS[a].width / 2 - 0.03
        start = (min(max(end[0], start[0] - reach), start[0] + reach), start[1])
        axes.add_patch(
            FancyArrowPatch(
                start, end, arrowstyle="-|>", mutation_scale=16, color="#777777", lw=1.4, zorder=1
            )
        )
    for name, room in ROOMS.items():
        corner = room.place - room.width / 2, floor[name] - height / 2
        axes.add_patch(_box(corner, room.width, height, room.colour))
        listed = textwrap.fill(
            "  ".join(room.modules.split()), int(room.width * 113), break_on_hyphens=False
        )
        middle = floor[name] - (0.0 if "\n" in listed else 0.06)
        axes.text(
            room.place, middle + 0.21, name, ha="center", va="center", fontsize=14, weight="bold"
        )
        axes.text(
            room.place,
            middle + 0.06,
            room.does,
            ha="center",
            va="center",
            fontsize=10,
            style="italic",
        )
        axes.text(
            room.place,
            middle - 0.03,
            listed,
            ha="center",
            va="top",
            fontsize=8.7,
            family="DejaVu Sans Mono",
            color="#333333",
        )


def _flow(axes: Axes) -> None:
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
        axes.add_patch(_box((0.04, y - 0.28), 0.78, 0.56, ROOMS[step.room].colour, zorder=3))
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

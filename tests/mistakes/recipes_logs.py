"""Recipes of logs: tables and files of episodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homdp_ppl import Episodes, formats, report
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, recipe

COLUMNS: dict[str, Any] = {
    "episode": "episode",
    "step": "step",
    "observation": "observation",
    "action": "action",
    "state": "state",
    "reward": None,
    "label": None,
    "ended": None,
    "behaviour": "saw states",
}


def logs() -> Iterator[Recipe]:
    """Reading and writing tables."""
    model, episodes = things.tiger().homdp, things.episodes()
    table = {name: column.tolist() for name, column in episodes.to_frame().items()}
    columns = {"frame": table, "homdp": model, **COLUMNS}
    yield recipe("Episodes.from_frame", Episodes.from_frame, free="behaviour", **columns)
    yield recipe("Episodes.to_frame", episodes.to_frame, homdp=model)
    yield recipe("Episodes.summary", episodes.summary, homdp=model)
    yield recipe("report.draw_log", report.draw_log, log=episodes, homdp=model)
    path = things.folder() / "log.csv"
    episodes.to_frame(model).to_csv(path, index=False)
    yield recipe("formats.read_log", formats.read_log, path=path, homdp=model, **COLUMNS)

"""Data of the page that is not in the journals: the model, certificates, a policy, its posterior.

Computing it requires the program of the model. So the process that runs the study computes it, and
records it as plain data. Then the page can be generated anywhere without importing user code.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import networkx as nx
import numpy as np
import xarray as xr

from homdp_ppl.report.forest import Entry
from homdp_ppl.report.radii import AXES, ESTIMATES, RULES
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.whole_journal import read_journal, write_facts
from homdp_ppl.study import StudyDirectory
from homdp_ppl.study.directory import slug
from homdp_ppl.study.results import digest_of

Runs: TypeAlias = dict[tuple[str, str, str], list[Any]]
NODES = 10_000  # largest tree that is read from a file


class Certified(NamedTuple):
    """What the data of one run prove about its last policy, and the true values beside it."""

    rule: str
    seed: int
    delta: float  # allowed probability that one of the two bounds is wrong
    lower: float  # certified: the value of the last policy is at least this
    value: float  # in the true world
    upper: float  # certified: the optimum is at most this
    optimum: float


class Described(NamedTuple):
    """The model in words and as code."""

    story: str
    summary: str  # the declaration and the world as printed
    source: str


class Exhibit(NamedTuple):
    """Recorded data of one model. A part that could not be computed is a text with the reason."""

    model: Described | str
    certificates: list[Certified] | str  # of the first run of each rule
    tree: nx.DiGraph | str  # the first decisions of the last policy
    forest: list[Entry] | str  # the final posterior of every unknown number
    radii: xr.Dataset | str  # confidence radii and visits
    bounds: str  # why the bounds of the paper do not apply; empty if they do

    @classmethod
    def without(cls, reason: str) -> Exhibit:
        """An exhibit without any part, for the same reason."""
        return cls(*[reason] * len(cls._fields))


def read_exhibit(directory: StudyDirectory, runs: Runs, model: str) -> Exhibit | None:
    """Read the recorded exhibit of a model; None if there is none for exactly these runs.

    Parameters
    ----------
    directory
        The study.
    runs
        The contents of its journals.
    model
        One of its models.
    """
    try:
        content = dict(read_journal(_place(directory, model)).description or {})
        if {name: content.pop(name, None) for name in ("about", "of")} != _key(
            directory, runs, model
        ):
            return None
        return Exhibit(
            _or_text(content["model"], _to_described),
            _or_text(content["certificates"], _to_certified),
            _or_text(content["tree"], _to_tree),
            _or_text(content["forest"], _to_entries),
            _or_text(content["radii"], _to_radii),
            _text(content["bounds"]),
        )
    except (StorageError, ValueError, TypeError, KeyError, IndexError):
        return None  # damaged or of another version: it will be computed again


def write_exhibit(directory: StudyDirectory, runs: Runs, model: str, exhibit: Exhibit) -> None:
    """Record the exhibit of a model.

    Parameters
    ----------
    directory, runs, model
        As in :func:`read_exhibit`.
    exhibit
        The data to record.
    """
    described, certificates, tree, forest, radii, bounds = exhibit
    content = {
        "model": described if isinstance(described, str) else list(described),
        "certificates": (
            certificates if isinstance(certificates, str) else [list(one) for one in certificates]
        ),
        "tree": tree if isinstance(tree, str) else _of_tree(tree),
        "forest": forest if isinstance(forest, str) else [_of_entry(entry) for entry in forest],
        "radii": radii if isinstance(radii, str) else _of_radii(radii),
        "bounds": bounds,
    }
    place = _place(directory, model)
    if place.parent.is_dir():  # otherwise the model has no journals
        write_facts(place, {**_key(directory, runs, model), **content})


def _place(directory: StudyDirectory, model: str) -> Path:
    """The file of the exhibit; raises StorageError for symbolic links on the path."""
    path = directory.path
    for part in ("runs", slug(model)):
        path = path / part
        if path.is_symlink():
            raise StorageError(path, "a symbolic link", "a directory of the study itself")
    return path / "page.data"


def _key(directory: StudyDirectory, runs: Runs, model: str) -> dict[str, Any]:
    own = {key: several for key, several in runs.items() if key[0] == model}
    return {"about": model, "of": digest_of(directory, own)}


def _or_text(content: Any, read: Any) -> Any:
    return content if isinstance(content, str) else read(content)


def _to_described(content: Any) -> Described:
    story, summary, source = content
    return Described(_text(story), _text(summary), _text(source))


def _to_certified(content: Any) -> list[Certified]:
    found = []
    for rule, seed, *numbers in content:
        if type(seed) is not int:
            raise ValueError("seed")
        found.append(Certified(_text(rule), seed, *map(_number, numbers)))
    return found


def _of_tree(tree: nx.DiGraph) -> dict[str, Any]:
    return {
        "about": dict(tree.graph),
        "nodes": [dict(tree.nodes[node]) for node in range(len(tree))],
        "edges": [
            [parent, child, data["observation"]] for parent, child, data in tree.edges.data()
        ],
    }


def _to_tree(content: Any) -> nx.DiGraph:
    """Rebuild a tree whose nodes are listed after their parents; else raise ValueError."""
    tree, nodes = nx.DiGraph(value=_number(content["about"]["value"])), content["nodes"]
    tree.graph["optimum"] = _number(content["about"]["optimum"])
    tree.graph["horizon"] = int(content["about"]["horizon"])
    if not 1 < len(nodes) <= NODES:
        raise ValueError("nodes")
    for k, node in enumerate(nodes):
        words = {name: _text(node[name]) for name in ("history", "action")}
        numbers = {name: _number(node[name]) for name in ("value", "probability")}
        step = node["step"]
        if type(step) is not int or not (0 if k == 0 else 1) <= step <= tree.graph["horizon"]:
            raise ValueError("step")
        tree.add_node(k, step=step, **words, **numbers)
    parents = [child for _, child, _ in content["edges"]]
    if sorted(parents) != list(range(1, len(nodes))):
        raise ValueError("edges")
    for parent, child, observation in content["edges"]:
        if type(parent) is not int or not 0 <= parent < child:
            raise ValueError("edges")
        tree.add_edge(parent, child, observation=_text(observation))
    return tree


def _of_entry(entry: Entry) -> list[Any]:
    return [entry.name, [float(x) for x in entry.quantiles], float(entry.truth)]


def _to_entries(content: Sequence[Any]) -> list[Entry]:
    entries = []
    for name, quantiles, truth in content:
        numbers = [_number(x) for x in quantiles]
        if len(numbers) != 5 or type(truth) is not float:
            raise ValueError("entry")
        entries.append(Entry(_text(name), np.array(numbers), truth))
    return entries


def _of_radii(radii: xr.Dataset) -> dict[str, Any]:
    return {
        "about": {"model": radii.model, "delta": float(radii.delta), "horizon": int(radii.horizon)},
        "places": {name: radii[name].values.tolist() for name in ("episodes", "state", "action")},
        "numbers": {str(name): values.values.tolist() for name, values in radii.data_vars.items()},
    }


def _to_radii(content: Any) -> xr.Dataset:
    about, places = content["about"], content["places"]
    coordinates = {
        "episodes": [int(k) for k in places["episodes"]],
        "rule": list(RULES),
        "estimate": list(ESTIMATES),
        "state": [_text(name) for name in places["state"]],
        "action": [_text(name) for name in places["action"]],
    }
    variables = {}
    for part, axes in AXES.items():
        for name, kinds in (("visits", ()), ("radius", ("rule",)), ("error", ("estimate",))):
            numbers = np.array(content["numbers"][f"{part}_{name}"], dtype=np.float64)
            rows = axes[len(axes) + 1 + len(kinds) - numbers.ndim :]
            variables[f"{part}_{name}"] = (("episodes", *kinds, *rows), numbers)
    facts = {"model": _text(about["model"]), "delta": _number(about["delta"])}
    return xr.Dataset(variables, coordinates, {**facts, "horizon": int(about["horizon"])})


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("text")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not isfinite(value):
        raise ValueError("number")
    return float(value)

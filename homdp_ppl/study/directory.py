"""The directory of a study: what was asked for, one journal a run, and what was made of them.

study.json                                        the study, models and files as they were, versions
runs/MODEL/PRIOR/RULE/seeds-0-9/seed-3.journal    what happened: the truth
results.nc, report.html                           made from the journals, at any time again
"""

from __future__ import annotations

import json
import platform
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.declare.model import World
from homdp_ppl.errors import HOMDPError, ParameterError, Problem
from homdp_ppl.storage.atomic import StorageError, atomic_write, storage_errors
from homdp_ppl.study.files import file_of, source_of
from homdp_ppl.study.specification import Study, Unit

FORMAT = 1
ANOTHER = "Begin another study for it."
PACKAGES = (
    "homdp_ppl",
    "jax",
    "jaxlib",
    "numpyro",
    "numpy",
    "scipy",
    "numba",
    "networkx",
    "arviz",
    "xarray",
)


class StudyDirectory:
    """Where a study lives.

    Parameters
    ----------
    path
        The directory; made by :meth:`create`, found again by :meth:`open`.
    study
        What is asked for.
    models
        What each model was when the study began.
    about
        The software and the machine.
    sources
        The files of custom rules and planners, as they were.
    bayesian
        The rules that depend on the prior.

    Examples
    --------
    >>> import tempfile
    >>> from homdp_ppl import models, study
    >>> asked = study.Study(("tiger",), ("greedy",), episodes=10, seeds=2, horizon=2)
    >>> with tempfile.TemporaryDirectory() as out:
    ...     _ = StudyDirectory.create(out, asked, {"tiger": models.load("tiger", horizon=2)})
    ...     found = StudyDirectory.open(out)
    >>> found.study == asked, [path.name for unit, seed, path in found.journals()]
    (True, ['seed-0.journal', 'seed-1.journal'])
    """

    @checked
    def __init__(
        self,
        path: Path,
        study: Study,
        models: Mapping[str, Any],
        about: Mapping[str, Any],
        sources: Mapping[str, str],
        bayesian: Sequence[str] | None = None,
    ) -> None:
        self.path, self.study, self.models, self.about, self.sources = (
            path,
            study,
            dict(models),
            dict(about),
            dict(sources),
        )
        self.bayesian = study.bayesian() if bayesian is None else list(bayesian)

    @classmethod
    @checked
    def create(cls, path: str | Path, study: Study, worlds: Mapping[str, World]) -> StudyDirectory:
        """Begin a study in a directory, which is made if need be.

        One that holds another study is refused.
        """
        path = Path(path)
        found = cls.at_place(path, study)
        if found is not None:
            found.check(worlds)
            return found
        models = {text: fingerprint(text, world) for text, world in worlds.items()}
        sources = {
            text: source_of(text)
            for text in (*study.explorers, study.planner)
            if file_of(text) is not None
        }
        made = cls(path, study, models, versions(), sources)
        content = {
            "format": FORMAT,
            "study": study.to_json(),
            "models": models,
            "about": made.about,
            "sources": sources,
            "bayesian": made.bayesian,
        }
        atomic_write(path / "study.json", json.dumps(content, indent=1).encode())
        return made

    @classmethod
    @checked
    def at_place(cls, path: str | Path, study: Study) -> StudyDirectory | None:
        """The study that was begun in a directory, if any.

        A directory that holds something else is refused.
        """
        path = Path(path)
        if (path / "study.json").exists():
            found = cls.open(path)
            if found.study == study:
                return found
            raise ParameterError(
                str(path),
                [
                    Problem(
                        "directory",
                        "another study",
                        "an empty directory",
                        _difference(found, study),
                    )
                ],
            )
        if path.is_dir() and any(not entry.name.startswith(".") for entry in path.iterdir()):
            remedy = "Name another, or remove what is in it."
            raise ParameterError(
                str(path),
                [Problem("directory", "files that are no study", "an empty directory", remedy)],
            )
        return None

    @classmethod
    @checked
    def open(cls, path: str | Path) -> StudyDirectory:
        """Find a study again; refuses directories without one, damaged and newer ones."""
        path = Path(path)
        file = path / "study.json"
        if not file.exists():
            remedy = "`homdp compare ... --out DIR` makes one."
            got = "no study.json in it" if path.is_dir() else "no such directory"
            raise ParameterError(
                str(path), [Problem("directory", got, "the directory of a study", remedy)]
            )
        with storage_errors(file, "a study that can be read"):
            text = file.read_bytes()
        try:
            content = json.loads(text)
            if type(content["format"]) is not int:
                raise TypeError("format")
            if content["format"] > FORMAT:
                got, remedy = f"format {content['format']}", "A newer homdp_ppl reads it."
                raise StorageError(file, got, f"format {FORMAT} or older", remedy)
            study = Study.from_mapping(content["study"], str(file))
            return cls(
                path,
                study,
                dict(content["models"]),
                dict(content["about"]),
                dict(content.get("sources", {})),
                content.get("bayesian"),
            )
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            if isinstance(error, HOMDPError):
                raise
            raise StorageError(
                file, f"content that is no study ({type(error).__name__}: {error})", "a study"
            ) from None

    @checked
    def check(self, worlds: Mapping[str, World]) -> None:
        """Refuse models, rules and planners that are not what they were when the study began, with
        the difference.
        """
        for text, world in worlds.items():
            check_fingerprint(text, self.models.get(text, {}), world, str(self.path))
        check_sources(self.sources, str(self.path))

    def units(self) -> Iterator[Unit]:
        """The pieces of work, in the order of the study."""
        kinds = {text: model.get("kind") for text, model in self.models.items()}
        continuous = [text for text, kind in kinds.items() if kind == "continuous"]
        return self.study.units(continuous, self.bayesian)

    @checked
    def unit_path(self, unit: Unit) -> Path:
        """Where the journals of a unit are."""
        parts = (
            slug(unit.model),
            unit.prior,
            slug(unit.rule),
            f"seeds-{unit.seeds[0]}-{unit.seeds[-1]}",
        )
        return self.path.joinpath("runs", *parts)

    @checked
    def journal_path(self, unit: Unit, seed: int) -> Path:
        """The journal of one run."""
        return self.unit_path(unit) / f"seed-{seed}.journal"

    def journals(self) -> Iterator[tuple[Unit, int, Path]]:
        """All runs of the study, in its order, with where their journals are or will be."""
        for unit in self.units():
            for seed in unit.seeds:
                yield unit, seed, self.journal_path(unit, seed)

    @property
    def flag(self) -> Path:
        """A file that asks all workers to stop."""
        return self.path / ".stop"


def slug(text: str) -> str:
    """A text as a name of a directory: readable, and another one for every text.

    Examples
    --------
    >>> slug("greedy"), slug("hop_b:scale=0.1")
    ('greedy', 'hop_b_scale_0_1-92d5c4')
    """
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")[:60]
    return plain if plain == text else f"{plain}-{sha256(text.encode()).hexdigest()[:6]}"


def fingerprint(text: str, world: World) -> dict[str, Any]:
    """What a model is, in words and numbers: another model has another."""
    spaces = [
        str(space) if not isinstance(space, tuple) else [str(name) for name in space]
        for space in world.spaces[:3]
    ]
    arrays = (
        list(world.pomdp)
        if world.spaces.finite
        else [world.parameters[name] for name in sorted(world.parameters)]
    )
    numbers = sha256(
        b"".join(np.ascontiguousarray(array, dtype=np.float64).tobytes() for array in arrays)
    ).hexdigest()
    told = " ".join(repr(world.homdp).split())
    horizon = world.spaces.horizon
    kind = "finite" if world.spaces.finite else "continuous"
    return {
        "kind": kind,
        "declaration": told,
        "spaces": spaces,
        "horizon": horizon,
        "numbers": numbers,
        "source": source_of(text),
    }


def check_fingerprint(text: str, then: Mapping[str, Any], world: World, subject: str) -> None:
    """Refuse a model that is not what it was, with the difference."""
    now = fingerprint(text, world)
    if dict(then) != now:
        got = _first_difference(then, now)
        raise ParameterError(
            subject, [Problem(text, got, "the model that the study began with", ANOTHER)]
        )


def check_sources(sources: Mapping[str, str], subject: str) -> None:
    """Refuse files of rules and planners that are not what they were, with the difference."""
    for text, then in sources.items():
        got = _changed_line(then, source_of(text))
        if got:
            raise ParameterError(
                subject, [Problem(text, got, "the file that the study began with", ANOTHER)]
            )


def versions() -> dict[str, str]:
    """The software and the machine."""
    found = {name: version(name) for name in PACKAGES}
    return {
        **found,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def _first_difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    changed = _changed_line(str(then.get("source")), now["source"])
    if changed:
        return changed
    for name, value in now.items():
        if then.get(name) != value:
            return f"{name} {value!r}, which was {then.get(name)!r}"
    return "something else"


def _changed_line(then: str, now: str) -> str:
    """The first line that differs, in words; empty if none does."""
    for number, (old, new) in enumerate(zip_longest(then.splitlines(), now.splitlines()), 1):
        if old != new:
            return (
                f"line {number} of its file, which was {(old or '').strip()!r} and is "
                f"{(new or '').strip()!r}"
            )
    return ""


def _difference(found: StudyDirectory, study: Study) -> str:
    old, new = found.study.to_json(), study.to_json()
    told = [f"{name} was {old[name]} and is {new[name]}" for name in new if old[name] != new[name]]
    return f"Name another directory, or ask for the same: {'; '.join(told)}."

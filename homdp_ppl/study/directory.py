"""The directory of a study: what was asked for, one journal per run, and what was made of them.

study.json                                        the study, models and files as they were, versions
runs/MODEL/PRIOR/RULE/seeds-0-9/seed-3.journal    what happened in one run
results.nc, report.html                           made from the journals, at any time again

A directory may come from somebody else. Reading one imports nothing, follows no links, and opens
no file outside it.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from homdp_ppl.core.checked import checked
from homdp_ppl.declare.model import World
from homdp_ppl.errors import ParameterError, Problem, shown
from homdp_ppl.storage.atomic import StorageError, atomic_write, storage_errors
from homdp_ppl.study import manifest
from homdp_ppl.study.files import source_of
from homdp_ppl.study.fingerprints import check_fingerprint, check_sources, fingerprint
from homdp_ppl.study.sources import find_again, find_rule, uses_prior
from homdp_ppl.study.specification import Study, Unit
from homdp_ppl.study.trust import Trust, check_trusted, trusted_texts, user_files

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
OTHER = "a directory of this study, at its place for the whole run"


@dataclass(frozen=True, eq=False)
class StudyDirectory:
    """Where a study lives.

    Parameters
    ----------
    path
        The directory; made by :meth:`create`, found again by :meth:`open`.
    manifest
        What ``study.json`` holds.
    trusted
        The models, rules and planners whose user files may be imported.

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

    path: Path
    manifest: manifest.Manifest
    trusted: frozenset[str] = frozenset()

    @property
    def study(self) -> Study:
        """What is asked for."""
        return self.manifest.study

    @property
    def about(self) -> Mapping[str, str]:
        """The software and the machine."""
        return self.manifest.about

    @classmethod
    @checked
    def create(cls, path: str | Path, study: Study, worlds: Mapping[str, World]) -> StudyDirectory:
        """Begin a study in a directory, which exists; one that holds another study is refused.

        Parameters
        ----------
        path
            The directory.
        study
            What is asked for. The user has named its files, so they may be imported.
        worlds
            Its models.
        """
        path = Path(path)
        if set(worlds) != set(study.models):
            got, expected = ", ".join(worlds) or "none", f"the study's: {', '.join(study.models)}"
            raise ParameterError("StudyDirectory.create", [Problem("worlds", got, expected)])
        found = cls.at_place(path, study)
        if found is not None:
            for text, world in worlds.items():
                check_fingerprint(text, found.manifest.models[text], world, str(path))
            return found
        files = user_files(study)
        made = manifest.Manifest(
            study,
            {text: fingerprint(world) for text, world in worlds.items()},
            {rule: _rule(rule, next(iter(worlds.values()))) for rule in study.explorers},
            {text: source_of(text) for text in files},
            versions(),
        )
        atomic_write(path / "study.json", made.encode())
        return cls(path, made, frozenset(files))

    @classmethod
    @checked
    def at_place(cls, path: str | Path, study: Study) -> StudyDirectory | None:
        """The study that was begun in a directory, if any; its user files have not changed.

        Parameters
        ----------
        path
            The directory.
        study
            What is asked for. The user has named its files, so they are read, but not imported.

        Raises
        ------
        ParameterError
            The directory holds something else.
        """
        path = Path(path)
        with storage_errors(path, "the directory of a study"):
            path.exists()  # raises what the operating system says of an impossible name
        if os.path.lexists(path / "study.json"):
            found = cls.open(path)
            if found.study != study:
                problem = Problem(
                    "directory", "another study", "an empty directory", _difference(found, study)
                )
                raise ParameterError(str(path), [problem])
            check_sources(found.manifest.sources, str(path))
            return cls(path, found.manifest, frozenset(user_files(study)))
        if path.is_dir() and any(not entry.name.startswith(".") for entry in path.iterdir()):
            remedy = "Name another, or remove what is in it."
            raise ParameterError(
                str(path),
                [Problem("directory", "files that are no study", "an empty directory", remedy)],
            )
        return None

    @classmethod
    @checked
    def open(cls, path: str | Path, trust: Trust = False) -> StudyDirectory:
        """Find a study again, without importing anything.

        Parameters
        ----------
        path
            The directory, which may come from somebody else.
        trust
            Which user files may be imported later: none, all at or below the working directory
            (True), or those that are named. Their text is compared with the recorded one now.

        Raises
        ------
        ParameterError
            No study, or user files that have changed.
        StorageError
            A damaged study, or one in another format.
        """
        path = Path(path)
        with storage_errors(path, "the directory of a study"):
            path.exists()  # raises what the operating system says of an impossible name
        if not os.path.lexists(path / "study.json"):
            remedy = "`homdp compare ... --out DIR` makes one."
            got = "no study.json in it" if path.is_dir() else "no such directory"
            raise ParameterError(
                str(path), [Problem("directory", got, "the directory of a study", remedy)]
            )
        found = manifest.Manifest.read(path / "study.json")
        trusted = trusted_texts(found.study, trust)
        check_sources({text: found.sources[text] for text in trusted}, str(path))
        return cls(path, found, trusted)

    @checked
    def world(self, text: str) -> World:
        """A model of the study, as it was when the study began.

        Parameters
        ----------
        text
            One of ``study.models``.

        Raises
        ------
        ParameterError
            The model is in a user file that may not be imported, or it has changed.
        """
        if text not in self.manifest.models:
            expected = f"a model of this study: {', '.join(self.manifest.models)}"
            raise ParameterError("StudyDirectory.world", [Problem("text", shown(text), expected)])
        self.check_imports(text)
        world = find_again(text, self.study.horizon)
        check_fingerprint(text, self.manifest.models[text], world, str(self.path))
        return world

    @checked
    def check_imports(self, *texts: str) -> None:
        """Raise ParameterError unless these may be imported and their files have not changed.

        Parameters
        ----------
        texts
            Models, rules and planners of the study.
        """
        check_trusted(texts, self.trusted, str(self.path))
        sources = self.manifest.sources
        check_sources({text: sources[text] for text in texts if text in sources}, str(self.path))

    def confirm(self) -> None:
        """Raise StorageError unless the directory is still there and holds this study."""
        try:
            same = manifest.Manifest.read(self.path / "study.json") == self.manifest
        except StorageError:
            same = False
        if not same:
            remedy = "Nothing more is written. If it was removed, begin the study again."
            got = "a directory that was removed or replaced while the study was running"
            raise StorageError(self.path, got, OTHER, remedy)

    def units(self) -> Iterator[Unit]:
        """The pieces of work, in the order of the study."""
        models, rules = self.manifest.models, self.manifest.rules
        continuous = [text for text, model in models.items() if model["kind"] == "continuous"]
        bayesian = [text for text, rule in rules.items() if rule["uses_prior"]]
        return self.study.units(continuous, bayesian)

    @checked
    def unit_path(self, unit: Unit) -> Path:
        """Where the journals of a unit are; a link on the way raises StorageError."""
        path = self.path
        for part in _parts(unit):
            path = path / part
            if path.is_symlink():
                raise StorageError(path, "a symbolic link", "a directory of the study itself")
        return path

    @checked
    def make_unit_path(self, unit: Unit) -> Path:
        """The same, after making the directories below that of the study."""
        self.confirm()
        path = self.path
        for part in _parts(unit):
            path = path / part
            with storage_errors(path, "a directory for a unit"):
                path.mkdir(exist_ok=True)
        return self.unit_path(unit)

    @checked
    def journal_path(self, unit: Unit, seed: int) -> Path:
        """The journal of one run."""
        return self.unit_path(unit) / f"seed-{seed}.journal"

    def journals(self) -> Iterator[tuple[Unit, int, Path]]:
        """All runs of the study, in its order, with where their journals are or will be."""
        for unit in self.units():
            for seed in unit.seeds:
                yield unit, seed, self.journal_path(unit, seed)

    @checked
    def identity(self, unit: Unit, seed: int) -> dict[str, Any]:
        """What the journal of a run must say about itself: whose run it is.

        Parameters
        ----------
        unit, seed
            The run.
        """
        return {
            "study": self._identity,
            "unit": [unit.model, unit.prior, unit.rule],
            "seed": seed,
            "episodes": self.study.episodes,
            "horizon": self.manifest.models[unit.model]["horizon"],
        }

    @cached_property
    def _identity(self) -> str:
        return self.manifest.identity

    @property
    def flag(self) -> Path:
        """A file that asks all workers to stop."""
        return self.path / ".stop"


def _parts(unit: Unit) -> tuple[str, ...]:
    seeds = f"seeds-{unit.seeds[0]}-{unit.seeds[-1]}"
    return "runs", slug(unit.model), unit.prior, slug(unit.rule), seeds


def slug(text: str) -> str:
    """A text as a name of a directory: readable, and another one for every text.

    Examples
    --------
    >>> slug("greedy"), slug("hop_b:scale=0.1")
    ('greedy', 'hop_b_scale_0_1-92d5c4')
    """
    plain = re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")[:60]
    if plain == text:
        return plain
    return f"{plain}-{sha256(text.encode(errors='surrogateescape')).hexdigest()[:6]}"


def versions() -> dict[str, str]:
    """The software and the machine."""
    found = {name: version(name) for name in PACKAGES}
    return {
        **found,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def _rule(text: str, world: World) -> dict[str, Any]:
    """What the report needs to know about a rule."""
    rule = find_rule(text, world)
    level = rule.about.coverage if rule.deployment.replan == "every episode" else None
    return {"uses_prior": uses_prior(text), "coverage": None if level is None else float(level)}


def _difference(found: StudyDirectory, study: Study) -> str:
    old, new = found.study.to_json(), study.to_json()
    changed = [
        f"{name} was {old[name]} and is {new[name]}" for name in new if old[name] != new[name]
    ]
    return f"Name another directory, or ask for the same: {'; '.join(changed)}."

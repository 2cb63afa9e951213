"""The directory of a study: its specification, one journal per run, and the results.

study.json                                        the study, fingerprints, user files, versions
runs/MODEL/PRIOR/RULE/seeds-0-9/seed-3.journal    the rounds of one run
results.nc, report.html                           created from the journals

A directory may come from another user. Reading it imports nothing, follows no links, and opens no
files outside it.
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
from homdp_ppl.study.reveals import split_reveal
from homdp_ppl.study.sources import find_again, find_rule, uses_prior
from homdp_ppl.study.specification import Study, Unit
from homdp_ppl.study.trust import Trust, check_trusted, trusted_texts, user_files

NUMERICAL = ("jax", "jaxlib", "numpyro", "numpy", "scipy", "numba")
PACKAGES = ("homdp_ppl", *NUMERICAL, "networkx", "arviz", "xarray")
OTHER = "the directory of this study, unchanged during the whole run"


@dataclass(frozen=True, eq=False)
class StudyDirectory:
    """The directory of a study, with its specification.

    Parameters
    ----------
    path
        The directory, created by :meth:`create` and opened by :meth:`open`.
    manifest
        The content of ``study.json``.
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
        """The specification of the study."""
        return self.manifest.study

    @property
    def about(self) -> Mapping[str, str]:
        """The versions of the software, and the machine."""
        return self.manifest.about

    @classmethod
    @checked
    def create(cls, path: str | Path, study: Study, worlds: Mapping[str, World]) -> StudyDirectory:
        """Begin a study in an existing directory.

        Parameters
        ----------
        path
            The directory. If it contains another study, ParameterError is raised.
        study
            The study. The caller has named its user files, so they may be imported.
        worlds
            The worlds of its models.
        """
        path = Path(path)
        if set(worlds) != set(study.models):
            got = ", ".join(worlds) or "none"
            expected = f"the models of the study: {', '.join(study.models)}"
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
        """The given study if it was begun in a directory, else None.

        Parameters
        ----------
        path
            The directory.
        study
            The study. The caller has named its user files, so they are read, but not imported.

        Raises
        ------
        ParameterError
            The directory contains another study or other files, or user files have changed.
        """
        path = Path(path)
        _check_name(path)
        if os.path.lexists(path / "study.json"):
            found = cls.open(path)
            if found.study != study:
                expected = "an empty directory, or the directory of this study"
                problem = Problem("directory", "another study", expected, _difference(found, study))
                raise ParameterError(str(path), [problem])
            check_sources(found.manifest.sources, str(path))
            return cls(path, found.manifest, frozenset(user_files(study)))
        if path.is_dir() and any(not entry.name.startswith(".") for entry in path.iterdir()):
            got = "files that do not belong to a study"
            remedy = "Choose another directory, or remove the files."
            raise ParameterError(
                str(path), [Problem("directory", got, "an empty directory", remedy)]
            )
        return None

    @classmethod
    @checked
    def open(cls, path: str | Path, trust: Trust = False) -> StudyDirectory:
        """Open the directory of a study, without importing anything.

        Parameters
        ----------
        path
            The directory, which may come from another user.
        trust
            The user files that may be imported later: none (False), all in or below the working
            directory (True), or the given ones. Their text is compared with the recorded text.

        Raises
        ------
        ParameterError
            There is no study, or user files have changed.
        StorageError
            The study is damaged, or has another format.
        """
        path = Path(path)
        _check_name(path)
        if not os.path.lexists(path / "study.json"):
            remedy = "To create one: homdp compare MODEL --out DIR."
            got = "a directory without study.json" if path.is_dir() else "no such directory"
            raise ParameterError(
                str(path), [Problem("directory", got, "the directory of a study", remedy)]
            )
        found = manifest.Manifest.read(path / "study.json")
        trusted = trusted_texts(found.study, trust)
        check_sources({text: found.sources[text] for text in trusted}, str(path))
        return cls(path, found, trusted)

    @checked
    def world(self, text: str) -> World:
        """The world of a model of the study, unchanged since the study began.

        Parameters
        ----------
        text
            One of ``study.models``.

        Raises
        ------
        ParameterError
            The model has changed, or is in a user file that may not be imported.
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
        """Raise ParameterError unless the user files may be imported and have not changed.

        Parameters
        ----------
        texts
            Models, rules or planners of the study.
        """
        check_trusted(texts, self.trusted, str(self.path))
        sources = self.manifest.sources
        check_sources({text: sources[text] for text in texts if text in sources}, str(self.path))

    def confirm(self) -> None:
        """Raise StorageError unless the directory still exists and contains this study."""
        try:
            same = manifest.Manifest.read(self.path / "study.json") == self.manifest
        except StorageError:
            same = False
        if not same:
            remedy = "Nothing more was written. If the directory was removed, run the study again."
            got = "a directory that was removed or replaced while the study was running"
            raise StorageError(self.path, got, OTHER, remedy)

    def units(self) -> Iterator[Unit]:
        """The units of work, in the order of the study."""
        models, rules = self.manifest.models, self.manifest.rules
        continuous = [text for text, model in models.items() if model["kind"] == "continuous"]
        bayesian = [text for text, rule in rules.items() if rule["uses_prior"]]
        return self.study.units(continuous, bayesian)

    @checked
    def unit_path(self, unit: Unit) -> Path:
        """The directory of a unit's journals; a symbolic link in it raises StorageError."""
        path = self.path
        for part in _parts(unit):
            path = path / part
            if path.is_symlink():
                raise StorageError(path, "a symbolic link", "a directory")
        return path

    @checked
    def make_unit_path(self, unit: Unit) -> Path:
        """Create the directory of a unit, and return it."""
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
        """All runs in the order of the study, with the paths of their (future) journals."""
        for unit in self.units():
            for seed in unit.seeds:
                yield unit, seed, self.journal_path(unit, seed)

    @checked
    def identity(self, unit: Unit, seed: int) -> dict[str, Any]:
        """The entries that identify a run in its journal.

        Parameters
        ----------
        unit
            The unit of the run.
        seed
            The seed of the run.
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
        """The file that requests all workers to stop."""
        return self.path / ".stop"


def _check_name(path: Path) -> None:
    with storage_errors(path, "the directory of a study"):
        path.exists()  # raises an error for impossible names


def _parts(unit: Unit) -> tuple[str, ...]:
    seeds = f"seeds-{unit.seeds[0]}-{unit.seeds[-1]}"
    return "runs", slug(unit.model), unit.prior, slug(unit.rule), seeds


def slug(text: str) -> str:
    """A readable directory name for a text, different for different texts.

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
    """The versions of the software, and the machine."""
    found = {name: version(name) for name in PACKAGES}
    return {
        **found,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def _rule(text: str, world: World) -> dict[str, Any]:
    """The facts about a rule that the report needs."""
    text = split_reveal(text).rule
    rule = find_rule(text, world)
    level = rule.about.coverage if rule.deployment.replan == "every episode" else None
    return {"uses_prior": uses_prior(text), "coverage": None if level is None else float(level)}


def _difference(found: StudyDirectory, study: Study) -> str:
    old, new = found.study.to_json(), study.to_json()
    changed = [
        f"{name} {new[name]} instead of {old[name]}" for name in new if old[name] != new[name]
    ]
    return f"Choose another directory with --out. You asked for {'; '.join(changed)}."

"""The results of a study, from its journals: a netCDF file, and a digest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from homdp_ppl.core.checked import checked
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.precision import Array
from homdp_ppl.storage._system import printable
from homdp_ppl.storage.atomic import atomic_write
from homdp_ppl.study.directory import StudyDirectory
from homdp_ppl.study.reading import Runs, read_runs

COLUMNS = ("value", "optimistic", "gap", "regret", "lost", "was_optimistic")


@checked
def digest(directory: StudyDirectory) -> str:
    """A checksum of all results of a study.

    It covers the study, the fingerprints of its models, and the description (with the optimum) and
    the record of every run. It does not depend on run times, on the number of plans, or on how the
    work was divided. Studies with equal digests have equal results.

    Parameters
    ----------
    directory
        The directory of the study.

    Examples
    --------
    >>> import tempfile
    >>> from homdp_ppl import study
    >>> def done(out):
    ...     return study.compare(
    ...         "tiger", ["uniform"], episodes=3, seeds=2, out=out, workers=1, horizon=2
    ...     ).directory
    >>> with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
    ...     digest(done(one)) == digest(done(other))  # the same study has the same results
    True
    """
    return digest_of(directory, read_runs(directory))


def digest_of(directory: StudyDirectory, runs: Runs) -> str:
    """The digest of a study whose runs have already been read."""
    total = sha256()

    def update(facts: Any) -> None:
        total.update(json.dumps(facts, sort_keys=True).encode())

    asked = {name: value for name, value in directory.study.to_json().items() if name != "block"}
    models = directory.manifest.models
    update([asked, {text: {**model, "declaration": ""} for text, model in models.items()}])
    for key, several in runs.items():
        for run in several:
            left_out = {"study", "loop"} | (set() if run.rescaled else {"scale", "shift"})
            update([key, {k: v for k, v in run.about.items() if k not in left_out}])
            for name, column in run.record.columns.items():
                if name != "plans":
                    entries = np.ascontiguousarray(column)
                    update([name, entries.dtype.str, entries.shape])
                    total.update(entries.tobytes())
    return total.hexdigest()


def to_dataset(directory: StudyDirectory, runs: Runs) -> xr.Dataset:
    """All runs with labelled axes: model, prior, rule, seed, round.

    Missing runs and rounds are nan.

    Examples
    --------
    In the directory of a study: ``xarray.open_dataset("results.nc").regret.sel(model="tiger",
    rule="greedy").isel(round=-1)``.
    """
    study = directory.study
    rounds = max((len(run.values) for several in runs.values() for run in several), default=0)
    shape = len(study.models), len(study.priors), len(study.explorers), study.seeds
    table = {name: np.full((*shape, rounds), np.nan) for name in COLUMNS}
    once = {
        name: np.full(shape, np.nan)
        for name in ("optimum", "seconds", "episodes_per_round", "estimated")
    }
    for (model, prior, rule), several in runs.items():
        for run in several:
            at = (
                study.models.index(model),
                study.priors.index(prior),
                study.explorers.index(rule),
                int(run.about["seed"]),
            )
            for name, values in _columns(run).items():
                table[name][at][: len(values)] = values
            numbers = (
                run.optimum,
                run.seconds["all"],
                run.episodes_per_round,
                run.about["estimated"],
            )
            for name, number in zip(once, numbers, strict=True):
                once[name][at] = number
    axes = ("model", "prior", "rule", "seed")
    variables: dict[str, Any] = {name: ((*axes, "round"), values) for name, values in table.items()}
    variables |= {name: (axes, values) for name, values in once.items()}
    places = {
        "model": list(map(printable, study.models)),
        "prior": list(study.priors),
        "rule": list(map(printable, study.explorers)),
        "seed": np.arange(study.seeds),
        "round": np.arange(1, rounds + 1),
    }
    about = {
        "episodes": study.episodes,
        "planner": printable(study.planner),
        **{k: printable(v) for k, v in directory.about.items()},
    }
    return xr.Dataset(variables, places, {**about, "digest": digest_of(directory, runs)})


def write_results(directory: StudyDirectory, runs: Runs) -> Path:
    """Write ``results.nc`` atomically."""
    path = directory.path / "results.nc"
    dataset = to_dataset(directory, runs)
    atomic_write(path, lambda temporary: dataset.to_netcdf(temporary, engine="scipy"))
    return path


def _columns(run: Saved) -> Mapping[str, Array]:
    return dict(
        zip(
            COLUMNS,
            (
                run.values,
                run.optimistic,
                run.gaps,
                run.regret,
                run.lost_by_round,
                run.was_optimistic,
            ),
            strict=True,
        )
    )

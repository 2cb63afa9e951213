"""Validation of the data of a posterior."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episode_validation import IMPOSSIBLE, excluded_problems
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.numbers import as_numbers, masked_problems
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import DataError, DeclarationError, Problem, TracedError, shown


def as_counts(homdp: HOMDP, data: Episode | Iterable[Episode] | Counts) -> Counts:
    """The counts of revealed episodes.

    Raises an error if the data do not fit the declaration or are impossible under it.

    Parameters
    ----------
    homdp
        The declaration.
    data
        Episodes, or their counts.
    """
    refuse_unknown_start(homdp)
    if isinstance(data, Counts):
        refuse_traced(data)
        problems = (
            _foreign(homdp, data) or _improper(homdp, data) or _impossible_counts(homdp, data)
        )
    else:
        data = _episodes(homdp, data)
        problems = excluded_problems(data, homdp.structure.support, homdp.spaces)
    if problems:
        raise DataError(f"data for {homdp.name}", problems)
    counts = data if isinstance(data, Counts) else Counts.of(data, homdp.spaces)
    return replace(
        counts, transition=np.asarray(counts.transition), emission=np.asarray(counts.emission)
    )


def refuse_traced(counts: Counts) -> None:
    """Raise an error for counts that are traced JAX values."""
    if any(isinstance(table, jax.core.Tracer) for table in (counts.transition, counts.emission)):
        remedy = (
            "Posteriors cannot be traced. In a rule, use init_belief and update_belief with "
            "mean_model or draw_models, or run it with compiled=False."
        )
        problem = Problem("data", "traced JAX values", "numbers", remedy)
        raise TracedError("posterior", [problem])


def check_episode(homdp: HOMDP, episode: Episode) -> None:
    """Raise an error unless this is one episode that is possible under the declaration.

    The errors are the same as in :func:`homdp_ppl.posterior`.
    """
    if not isinstance(episode, Episode) or np.ndim(episode.actions) != 1:
        got = "several episodes" if isinstance(episode, Episode) else f"a {type(episode).__name__}"
        problem = Problem("episode", got, "one Episode", "Update with one episode at a time.")
        raise DataError(f"data for {homdp.name}", [problem])
    if homdp.spaces.finite:
        as_counts(homdp, episode)
    else:
        Episodes.of(episode, homdp).require_complete(f"data for {homdp.name}")


def plain(counts: Counts) -> Counts:
    """The counts as plain float64 arrays, for compiled functions."""
    return Counts(
        np.asarray(counts.transition, dtype=np.float64),
        np.asarray(counts.emission, dtype=np.float64),
    )


def refuse_unknown_start(homdp: HOMDP) -> None:
    """Raise an error if the initial distribution of a declaration has unknown parameters.

    Counts do not record where episodes start.
    """
    if not homdp.structure.known.initial:
        sites = [name for name, rows in homdp.structure.depends.items() if rows.initial]
        got = f"an initial distribution that depends on {', '.join(sites)}"
        remedy = (
            "Fix the initial distribution, or use homdp.hindsight(episodes) with NumPyro's "
            "inference, which also conditions on first states."
        )
        raise DeclarationError(
            homdp.name, [Problem("initial", got, "a known initial distribution", remedy)]
        )


def impossible(model: str) -> DataError:
    """The error for data that are impossible under all parameters that were tried."""
    remedy = (
        "Each step may be possible alone, but not all steps under the same parameters. Check the "
        "data and the prior."
    )
    got = "probability zero or NaN at all tried draws from the prior"
    return DataError(
        f"data for {model}",
        [Problem("data", got, "data that are possible under some parameters", remedy)],
    )


def _episodes(homdp: HOMDP, data: Episode | Iterable[Episode | Episodes]) -> Episodes:
    listed: Episodes | list[Episode | Episodes]
    if isinstance(data, str | jax.Array | np.ndarray):
        problem = Problem("data", f"a {type(data).__name__}", "Episodes, or Counts")
        raise DataError(f"data for {homdp.name}", [problem])
    if isinstance(data, Episodes):
        listed = data
    else:
        listed = (
            [data]
            if isinstance(data, Episode)
            else list(data)
            if isinstance(data, Iterable)
            else []
        )
    if not isinstance(data, Episodes | Episode | Iterable) or (
        isinstance(listed, list) and not all(isinstance(e, Episode | Episodes) for e in listed)
    ):
        remedy = (
            "Pass Episodes, or counts made by homdp.counts(episodes). A Trajectory has no "
            "latent states."
        )
        problem = Problem("data", f"a {type(data).__name__}", "Episodes, or Counts", remedy)
        raise DataError(f"data for {homdp.name}", [problem])
    return Episodes.of(listed, homdp).require_complete(f"data for {homdp.name}")


def _is_ragged(table: Any) -> bool:
    """Whether the table is not an array."""
    return not isinstance(table, np.ndarray | jax.Array)


def _foreign(homdp: HOMDP, counts: Counts) -> list[Problem]:
    X, Y, A, _ = homdp.spaces.sizes
    problems = [
        Problem(f"counts.{where}", shown(table), "an array", "Count episodes of this model.")
        for where, table in (("transition", counts.transition), ("emission", counts.emission))
        if as_numbers(where, table, "")[0] is None and _is_ragged(table)
    ]
    problems = problems or [
        Problem(
            f"counts.{where}",
            f"shape {np.shape(table)}",
            f"shape {shape}",
            "Count episodes of this model.",
        )
        for where, table, shape in (
            ("transition", counts.transition, (X, A, X)),
            ("emission", counts.emission, (X, Y)),
        )
        if np.shape(table) != shape
    ]
    for where, table in (("transition", counts.transition), ("emission", counts.emission)):
        problems += masked_problems(f"counts.{where}", table)
    problems += [
        Problem(f"counts.{where}", f"entries of type {np.asarray(table).dtype}", "numbers")
        for where, table in (("transition", counts.transition), ("emission", counts.emission))
        if not problems and np.asarray(table).dtype.kind not in "biuf"
    ]
    if not problems and counts.names is not None:
        kinds = ("states", "observations", "actions")
        problems = [
            Problem(
                f"names of {kind}",
                ", ".join(theirs),
                ", ".join(ours),
                "Use counts of episodes of this model.",
            )
            for kind, theirs, ours in zip(kinds, counts.names, homdp.spaces.names, strict=True)
            if theirs != ours
        ]
    return problems


def _improper(homdp: HOMDP, counts: Counts) -> list[Problem]:
    problems = []
    for where, table in (("transition", counts.transition), ("emission", counts.emission)):
        numbers = np.asarray(table, dtype=np.float64)
        wrong = ~np.isfinite(numbers) | (numbers < 0) | (numbers != np.floor(numbers))
        for index in np.argwhere(wrong)[:1]:
            expected = "integers of at least 0"
            problems.append(
                Problem(
                    f"counts.{where}",
                    f"{numbers[tuple(index)]:g}",
                    expected,
                    at=homdp.spaces.entry(where, index),
                )
            )
    return problems


def _impossible_counts(homdp: HOMDP, counts: Counts) -> list[Problem]:
    problems = []
    for where, table in (("transition", counts.transition), ("emission", counts.emission)):
        for index in np.argwhere(
            (np.asarray(table) > 0) & ~getattr(homdp.structure.support, where)
        )[:1]:
            got = f"a count of {np.asarray(table)[tuple(index)]:g}, declared impossible"
            problems.append(
                Problem(
                    f"counts.{where}",
                    got,
                    "0, since the program excludes this outcome",
                    IMPOSSIBLE,
                    homdp.spaces.entry(where, index),
                )
            )
    return problems

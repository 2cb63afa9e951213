"""Validation of the data of a posterior."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episode_validation import (
    IMPOSSIBLE,
    excluded_problems,
    incomplete_problems,
)
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.hindsight_form import HindsightForm
from homdp_ppl.core.missingness import warn_of_association
from homdp_ppl.core.numbers import as_numbers, masked_problems
from homdp_ppl.core.probabilities import entry_name
from homdp_ppl.declare.clue_likelihood import evidence_of
from homdp_ppl.declare.hindsight_validation import revealed_problems
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.returns import GAPS
from homdp_ppl.declare.reward_density import padded
from homdp_ppl.errors import DataError, Problem, TracedError, shown, with_article
from homdp_ppl.precision import Array


def data_and_episodes(
    homdp: HOMDP, data: Episode | Iterable[Episode] | Counts
) -> tuple[Counts | Evidence, Episodes | None]:
    """The counts of episodes, with the gaps if states are missing, and the episodes if given.

    Raises an error if the data do not fit the declaration or are impossible under it.
    """
    if isinstance(data, Counts):
        return as_counts(homdp, data), None
    episodes = _episodes(homdp, data)
    if not incomplete_problems(episodes):
        return as_counts(homdp, episodes), episodes
    _refuse_excluded(homdp, episodes)
    hindsight = homdp.hindsight_form
    if hindsight is None or hindsight.revealed is None or hindsight.is_coin:
        warn_of_association(episodes, homdp.spaces, hindsight)
    evidence = evidence_of(homdp, episodes)
    return evidence if len(evidence.gaps.number) else as_counts(homdp, evidence.counts), episodes


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
    if isinstance(data, Counts):
        refuse_traced(data)
        problems = (
            _foreign(homdp, data) or _improper(homdp, data) or _impossible_counts(homdp, data)
        )
        problems += [*_uncounted_starts(homdp, data), *_unrecorded(homdp, data)]
        problems += _unmarked(homdp.hindsight_form, data)
        refuse(DataError, f"data for {homdp.name}", problems)
        counts = data
    else:
        episodes = _episodes(homdp, data).require_revealed(f"data for {homdp.name}")
        _refuse_excluded(homdp, episodes)
        counts = Counts.of(episodes, homdp)
    arrays: dict[str, Any] = {where: np.asarray(table) for where, table in _tables(counts)}
    return replace(counts, **arrays)


def refuse_traced(counts: Counts) -> None:
    """Raise an error for counts that are traced JAX values."""
    if any(isinstance(table, jax.core.Tracer) for table in (counts.transition, counts.emission)):
        remedy = (
            "Posteriors cannot be traced. In a rule, use init_belief and update_belief with "
            "mean_model or draw_models, or run it with compiled=False."
        )
        problem = Problem("data", "traced JAX values", "numbers", remedy)
        raise TracedError("posterior", [problem])


def check_episodes(homdp: HOMDP, episodes: Episodes) -> None:
    """Raise an error for episodes of finite spaces that a posterior would not accept."""
    if incomplete_problems(episodes):
        _refuse_excluded(homdp, _episodes(homdp, episodes))
        evidence_of(homdp, episodes)
    else:
        as_counts(homdp, episodes)


def check_episode(homdp: HOMDP, episode: Episode, gaps: bool = False) -> None:
    """Raise an error unless this is one episode that is possible under the declaration.

    The errors are the same as in :func:`homdp_ppl.posterior`. Missing states are errors unless
    ``gaps`` is True.
    """
    if not isinstance(episode, Episode) or np.ndim(episode.actions) != 1:
        got = (
            "several episodes"
            if isinstance(episode, Episode)
            else with_article(type(episode).__name__)
        )
        problem = Problem("episode", got, "one Episode", "Update with one episode at a time.")
        raise DataError(f"data for {homdp.name}", [problem])
    if homdp.spaces.finite and gaps:
        _refuse_excluded(homdp, _episodes(homdp, episode))
    elif homdp.spaces.finite:
        as_counts(homdp, episode)
    else:
        Episodes.of(episode, homdp).require_revealed(f"data for {homdp.name}")


def plain(counts: Counts) -> Counts:
    """The counts as plain float64 arrays, for compiled functions."""
    numbers: dict[str, Any] = {
        name: np.asarray(table, dtype=np.float64) for name, table in _tables(counts)
    }
    rewards = counts.rewards
    if rewards is not None:
        outcomes = None if rewards.outcomes is None else np.asarray(rewards.outcomes, np.float64)
        single: Any = None if rewards.single is None else padded(np.asarray(rewards.single))
        numbers["rewards"] = replace(rewards, outcomes=outcomes, single=single)
    if counts.hindsight is not None:
        numbers["hindsight"] = {
            name: np.asarray(table, dtype=np.float64) for name, table in counts.hindsight.items()
        }
    return Counts(**numbers, pattern=counts.pattern)


def _tables(counts: Counts) -> list[tuple[str, Array]]:
    """The tables of counts by name; first states only if they were counted."""
    tables = [("transition", counts.transition), ("emission", counts.emission)]
    return tables if counts.initial is None else [*tables, ("initial", counts.initial)]


def _uncounted_starts(homdp: HOMDP, counts: Counts) -> list[Problem]:
    """A problem if first states were not counted although their distribution is unknown."""
    if homdp.structure.known.initial or counts.initial is not None:
        return []
    expected = "the number of episodes that started in each state"
    remedy = "Count episodes with homdp.counts(episodes), or pass the episodes."
    return [Problem("counts.initial", "None", expected, remedy)]


def _unrecorded(homdp: HOMDP, counts: Counts) -> list[Problem]:
    """Problems of the statistics of random rewards: none, too few, or not all that are needed."""
    law, rewards = homdp.rewards.law, counts.rewards
    if law is None:
        return []
    remedy = "Pass the episodes, or homdp.counts(episodes), with recorded rewards."
    if rewards is None or rewards.form != law.form:
        expected = "statistics of the random rewards of this model"
        return [Problem("counts.rewards", shown(rewards, 80), expected, remedy)]
    steps, recorded = int(np.sum(counts.transition)), int(np.sum(rewards.number))
    if recorded > steps or (recorded < steps and homdp.rewards.recorded != "coin"):
        got = f"{recorded:,} rewards of {steps:,} steps"
        expected = "a recorded reward for every step"
        return [Problem("counts.rewards", got, expected, GAPS if recorded < steps else remedy)]
    if not rewards.complete:
        got, expected = "sums of rewards only", "single rewards, which a law with a density needs"
        return [Problem("counts.rewards", got, expected, "Pass the episodes.")]
    support = homdp.structure.tables["reward"].support
    if rewards.outcomes is not None and (np.asarray(rewards.outcomes) > 0)[~support].any():
        return [Problem("counts.rewards", "an impossible outcome", "possible outcomes", remedy)]
    return []


def _unmarked(form: HindsightForm | None, counts: Counts) -> list[Problem]:
    """A problem if labels, or what was revealed, was not counted although it is declared."""
    if form is None or not form.matters or counts.hindsight is not None:
        return []
    expected = "counts of labels and of what was revealed"
    remedy = "Pass the episodes, or homdp.counts(episodes)."
    return [Problem("counts.hindsight", "None", expected, remedy)]


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
        problem = Problem("data", with_article(type(data).__name__), "Episodes, or Counts")
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
        problem = Problem("data", with_article(type(data).__name__), "Episodes, or Counts", remedy)
        raise DataError(f"data for {homdp.name}", [problem])
    return Episodes.of(listed, homdp)


def _refuse_excluded(homdp: HOMDP, episodes: Episodes) -> None:
    """Raise an error for steps that the declaration excludes."""
    problems = excluded_problems(episodes, homdp.structure.support, homdp.form, homdp.spaces)
    problems += revealed_problems(homdp, episodes)
    refuse(DataError, f"data for {homdp.name}", problems)


def _is_ragged(table: Any) -> bool:
    """Whether the table is not an array."""
    return not isinstance(table, np.ndarray | jax.Array)


def _foreign(homdp: HOMDP, counts: Counts) -> list[Problem]:
    tables = _tables(counts)
    problems = [
        Problem(f"counts.{where}", shown(table), "an array", "Count episodes of this model.")
        for where, table in tables
        if as_numbers(where, table, "")[0] is None and _is_ragged(table)
    ]
    problems = problems or [
        Problem(
            f"counts.{where}",
            f"shape {np.shape(table)}",
            f"shape {shape}",
            "Count episodes of this model.",
        )
        for where, table in tables
        for shape in [getattr(homdp.form, where)]
        if np.shape(table) != shape
    ]
    for where, table in tables:
        problems += masked_problems(f"counts.{where}", table)
    problems += [
        Problem(f"counts.{where}", f"entries of type {np.asarray(table).dtype}", "numbers")
        for where, table in tables
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
    for where, table in _tables(counts):
        numbers = np.asarray(table, dtype=np.float64)
        wrong = ~np.isfinite(numbers) | (numbers < 0) | (numbers != np.floor(numbers))
        for index in np.argwhere(wrong)[:1]:
            expected = "integers of at least 0"
            problems.append(
                Problem(
                    f"counts.{where}",
                    f"{numbers[tuple(index)]:g}",
                    expected,
                    at=entry_name(where, index, np.shape(table), homdp.spaces),
                )
            )
    return problems


def _impossible_counts(homdp: HOMDP, counts: Counts) -> list[Problem]:
    problems = []
    for where, table in _tables(counts):
        for index in np.argwhere(
            (np.asarray(table) > 0) & ~getattr(homdp.structure.support, where)
        )[:1]:
            got = f"a count of {np.asarray(table)[tuple(index)]:g}, declared impossible"
            index = homdp.form.entry(where, index)
            problems.append(
                Problem(
                    f"counts.{where}",
                    got,
                    "0, since the program excludes this outcome",
                    IMPOSSIBLE,
                    entry_name(where, index, np.shape(table), homdp.spaces),
                )
            )
    return problems

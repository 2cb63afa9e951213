"""The report of a study, ``report.html``: one self-contained page, generated from the journals."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.precision import x64
from homdp_ppl.report.formatting import counted
from homdp_ppl.report.page.hindsight import hindsight_section, shares_of
from homdp_ppl.report.page.html import Html, document, number, paragraph, tag, text
from homdp_ppl.report.page.last import forest_section, policy_section, radius_section
from homdp_ppl.report.page.model import (
    Shown,
    certificate_section,
    optimism_section,
    prior_section,
    regret_section,
    section,
    story_section,
    theory_section,
)
from homdp_ppl.report.page.progress import missing
from homdp_ppl.report.page.tables import differences_table, guarantee_table, results_table
from homdp_ppl.storage.atomic import atomic_write
from homdp_ppl.study import StudyDirectory, summarise
from homdp_ppl.study.differences import COVERS
from homdp_ppl.study.reading import Runs
from homdp_ppl.study.results import digest_of
from homdp_ppl.study.specification import Unit

TITLE = "Comparison of exploration rules"
READING = {  # the columns of the tables of results
    "Regret": (
        "the loss against the optimal policy, summed over all episodes played; mean over the seeds."
    ),
    "Difference": (
        "the regret of a rule minus the regret of another rule, paired by seed and over the same "
        f"episodes. {COVERS} The intervals are Student's, extended by an exact binomial interval "
        "where the differences form two clusters."
    ),
    "Clusters": (
        "2 if the differences of the seeds form two clusters far apart, as for a rule that fails "
        "completely with some seeds; otherwise 1."
    ),
    "p, p (Holm)": (
        "the p-value of the sign-flip test, exact for all distributions if the two rules can be "
        "exchanged, and with Holm's correction for all pairs of rules of the model."
    ),
    "Loss per episode, gap per policy": (
        "the mean loss of an episode played, and the mean gap of the rounds' policies. They differ "
        "for HOP-V, which plays each policy H times with a uniform action at one step."
    ),
    "Last gap": "the loss per episode of the policy of the last round.",
    "Mark “guarantee”": "optimism is proved for the rule; see Guarantees.",
    "Optimistic": "the share of rounds whose optimistic value is at least the optimum.",
    "Excess": "the optimistic value minus the optimum, mean over the rounds.",
    "Episodes to average gap ε": (
        "the number of episodes until the average gap stays below ε; median over the seeds."
    ),
}


@checked
def write_page(
    directory: StudyDirectory, runs: Runs, failed: Mapping[Unit, str] | None = None
) -> Path:
    """Write ``report.html`` atomically.

    The page is generated from the journals and the data that the study recorded. User files are
    imported only if the directory trusts them. Otherwise, figures without recorded data are left
    out.

    Parameters
    ----------
    directory
        The study.
    runs
        The contents of its journals: ``study.read_runs(directory)``. Runs may be incomplete.
    failed
        Units that failed, with the reasons.

    Examples
    --------
    >>> import tempfile
    >>> from homdp_ppl import study
    >>> with tempfile.TemporaryDirectory() as out:
    ...     done = study.compare(
    ...         "tiger", ["greedy"], episodes=5, seeds=1, out=out, workers=1, horizon=2
    ...     )
    ...     write_page(done.directory, done.runs, done.failed).name
    'report.html'
    """
    shown = [Shown(directory, runs, model) for model in directory.study.models]
    with x64():
        content = [
            _opening(directory),
            _warning(missing(directory, runs, failed or {})),
            _contents(shown),
            _results(shown),
            *(_model(k, one) for k, one in enumerate(shown)),
            _about(directory, runs),
        ]
    path = directory.path / "report.html"
    atomic_write(path, document(f"{TITLE}: {', '.join(directory.study.models)}", *content).encode())
    return path


def _opening(directory: StudyDirectory) -> Html:
    study = directory.study
    rules, models = (
        counted(len(study.explorers), "exploration rule"),
        counted(len(study.models), "decision problem"),
    )
    runs = f"{counted(study.seeds, 'run')} per rule, {counted(study.episodes, 'episode')} per run"
    lead = (
        f"This report compares {rules} on {models} whose latent states are revealed after "
        f"each episode: {runs}."
    )
    paired = (
        "For the same seed, all rules use the same random numbers, so that differences "
        "between rules vary less. Values of policies are computed exactly "
        "in the true world, except where a table says “estimated”."
    )
    return Html(tag("h1", text(TITLE)) + paragraph(lead, class_="lead") + paragraph(paired))


def _warning(units: list[str]) -> Html:
    if not units:
        return Html("")
    return tag(
        "div",
        paragraph(
            "This study is not complete. Tables contain only complete runs. The following runs "
            "are missing or incomplete:"
        ),
        tag("ul", *(tag("li", text(unit)) for unit in units)),
        class_="warning",
        id="missing",
    )


def _contents(shown: list[Shown]) -> Html:
    links = [
        ("results", "Results"),
        *((f"model-{k}", one.model) for k, one in enumerate(shown)),
        ("about", "Settings and data"),
    ]
    return tag(
        "nav",
        tag("ul", *(tag("li", tag("a", text(name), href=f"#{place}")) for place, name in links)),
        aria_label="Contents",
    )


def _results(shown: list[Shown]) -> Html:
    return tag("section", tag("h2", text("Results")), *_result_parts(shown), id="results")


def _result_parts(shown: list[Shown]) -> Iterator[Html]:
    for one in shown:
        yield tag("h3", text(one.model))
        if not one.ended:
            yield paragraph("No run is complete yet.", class_="note")
            continue
        study, run = one.directory.study, next(iter(one.ended.values()))[0]
        best = number(run.optimum)
        if run.inexact:
            best = f"at most {best} ({run.inexact})"
        caption = (
            f"{counted(study.episodes, 'episode')}, horizon {run.horizon}, optimal value {best}"
        )
        yield paragraph(_finding(one))
        yield results_table(one.ended, study.epsilon, caption)
        if len(one.ended) > 1:
            yield differences_table(one.ended)
    guaranteed = {rule: several for one in shown for rule, several in one.declared.items()}
    if guaranteed:
        yield tag("h3", text("Columns of the tables"))
        yield tag(
            "dl",
            *(tag("dt", text(head)) + tag("dd", text(words)) for head, words in READING.items()),
        )
        yield tag("h3", text("Guarantees"))
        yield guarantee_table(guaranteed)


def _finding(one: Shown) -> str:
    """The main result of the table in words."""
    rows = sorted(summarise(one.ended), key=lambda row: row.regret)
    best, first = rows[0], next(iter(one.ended))
    error = "" if np.isnan(best.error) else f" ± {best.error:.2g}"
    lowest = f"{best.rule} has the lowest regret: {number(best.regret)}{error}."
    if len(rows) == 1:
        return ""
    if best.rule == first or np.isnan(best.interval[0]):
        return lowest
    sure = "does not contain 0" if best.interval[1] < 0 else "contains 0"
    return f"{lowest} Its difference from {first} is {number(best.less)}; the 95% interval {sure}."


def _model(k: int, one: Shown) -> Html:
    head = tag("h2", text(one.model))
    if not one.declared:
        return tag(
            "section", head, paragraph("No run has started yet.", class_="note"), id=f"model-{k}"
        )
    parts = [
        section("The problem", lambda: story_section(one)),
        section("Regret", lambda: regret_section(one)),
        *(
            [section("Value of hindsight", lambda: hindsight_section(one))]
            if shares_of(one)
            else []
        ),
        section("Optimism", lambda: optimism_section(one)),
        section("Certificates", lambda: certificate_section(one)),
        section("Prior sensitivity", lambda: prior_section(one)),
        section("Confidence radii", lambda: radius_section(one)),
        section("Final policy", lambda: policy_section(one)),
        section("Posterior", lambda: forest_section(one)),
        section("Bounds and measurements", lambda: theory_section(one)),
    ]
    return tag("section", head, *parts, id=f"model-{k}")


def _about(directory: StudyDirectory, runs: Runs) -> Html:
    study, about = directory.study, directory.about
    name = directory.path.resolve().name
    facts = {
        "command": about.get("command", ""),
        "models": ", ".join(study.models),
        "rules": ", ".join(study.explorers),
        "priors": ", ".join(study.priors),
        "planner": study.planner,
        "episodes": f"{study.episodes:,}",
        "seeds": f"0 to {study.seeds - 1}" if study.seeds > 1 else "0",
        "horizon": "default of each model" if study.horizon is None else str(study.horizon),
        "versions": ", ".join(
            f"{key} {value}" for key, value in about.items() if key not in ("command", "system")
        ),
        "system": about.get("system", ""),
        "digest": digest_of(directory, runs),
    }
    listed = tag(
        "dl", *(tag("dt", text(key)) + tag("dd", text(value)) for key, value in facts.items())
    )
    place = shlex.quote(name)
    commands = (
        f"homdp resume {place}   # resumes the study\n"
        f"homdp report {place}   # generates this page again"
    )
    model, rule = study.models[0], study.explorers[0]
    reading = (
        "import xarray\n\n"
        f"results = xarray.open_dataset({f'{name}/results.nc'!r})   # axes: model, prior, "
        f"rule, seed, round\n"
        f"results.regret.sel(model={model!r}, prior='declared', rule={rule!r}).isel(round=-1)"
    )
    return tag(
        "section",
        tag("h2", text("Settings and data")),
        paragraph(
            "This page is generated from the journals of the study, one per run. The digest is a "
            "checksum of all results: it changes if any step of any episode changes."
        ),
        listed,
        tag("h3", text("Resume the study, or generate this page again")),
        tag("pre", tag("code", text(commands))),
        tag("h3", text("Load the results")),
        tag(
            "p",
            text("All rounds of all runs are in "),
            tag("a", text("results.nc"), href="results.nc"),
            text(", next to this page."),
        ),
        tag("pre", tag("code", text(reading))),
        id="about",
    )

"""The page of a study, ``report.html``.

One file to show, made from the journals at any time again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.precision import x64
from homdp_ppl.report.look import counted
from homdp_ppl.report.page.html import Html, document, number, paragraph, tag, text
from homdp_ppl.report.page.last import forest_section, policy_section, radius_section
from homdp_ppl.report.page.model import (
    Shown,
    optimism_section,
    prior_section,
    regret_section,
    section,
    theory_section,
)
from homdp_ppl.report.page.progress import missing
from homdp_ppl.report.page.tables import guarantee_table, results_table
from homdp_ppl.storage.atomic import atomic_write
from homdp_ppl.study import StudyDirectory, summarise
from homdp_ppl.study.reading import Runs
from homdp_ppl.study.results import digest_of
from homdp_ppl.study.specification import Unit

TITLE = "Exploration rules, compared"


@checked
def write_page(
    directory: StudyDirectory, runs: Runs, failed: Mapping[Unit, str] | None = None
) -> Path:
    """Write ``report.html``, whole or not at all.

    It is drawn from the journals and the data that the study recorded. User files are imported only
    if the directory trusts them; without that, pictures that nobody has recorded are left out.

    Parameters
    ----------
    directory
        The study.
    runs
        What its journals hold: ``study.read_runs(directory)``. They need not be at their end.
    failed
        Units that could not be done, and why.

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
    runs = f"{counted(study.seeds, 'run')} a rule, {counted(study.episodes, 'episode')} a run"
    lead = (
        f"You are looking at {rules} learning {models} whose hidden states are revealed "
        f"after every episode, and at what "
        f"that learning cost: {runs}."
    )
    paired = (
        "In the runs of one seed the world's luck is the same for all rules, so that "
        "differences between rules are differences "
        "between rules. Values of policies are computed in the true world and not sampled, "
        "except where a table says estimated."
    )
    return Html(tag("h1", text(TITLE)) + paragraph(lead, class_="lead") + paragraph(paired))


def _warning(units: list[str]) -> Html:
    if not units:
        return Html("")
    told = paragraph(
        "This study is not at its end. Tables hold only runs that are; the following are "
        "missing or were cut short."
    )
    return tag(
        "div",
        told,
        tag("ul", *(tag("li", text(unit)) for unit in units)),
        class_="warning",
        id="missing",
    )


def _contents(shown: list[Shown]) -> Html:
    links = [
        ("results", "Results"),
        *((f"model-{k}", one.model) for k, one in enumerate(shown)),
        ("about", "What was run"),
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
            yield paragraph("No run is at its end yet.", class_="note")
            continue
        study, run = one.directory.study, next(iter(one.ended.values()))[0]
        best = (
            f"at most {number(run.optimum)} ({run.inexact})" if run.inexact else number(run.optimum)
        )
        caption = (
            f"{counted(study.episodes, 'episode')}, horizon {run.horizon}, optimal value {best}"
        )
        yield paragraph(_finding(one))
        yield results_table(one.ended, study.epsilon, caption)
    guaranteed = {rule: several for one in shown for rule, several in one.declared.items()}
    if guaranteed:
        yield tag("h3", text("What the rules guarantee"))
        yield guarantee_table(guaranteed)
        yield tag("h3", text("How to read the tables"))
        yield paragraph(
            "Regret is what was lost against the optimal policy, added up over all "
            "episodes; the difference is paired by seed, "
            "and its 95% interval (Student's) speaks of that difference alone. The last "
            "gap is what the last round's policy "
            "loses in an episode. Optimistic is the share of rounds whose planned value "
            "covered the optimum, width the mean "
            "distance of the planned value above it. Episodes to epsilon is when the "
            "average regret fell below epsilon for "
            "good, median of the seeds."
        )


def _finding(one: Shown) -> str:
    """The table in a sentence."""
    rows = sorted(summarise(one.ended), key=lambda row: row.regret)
    best, first = rows[0], next(iter(one.ended))
    error = "" if np.isnan(best.error) else f" ± {best.error:.2g}"
    told = f"{best.rule} lost least: {number(best.regret)}{error}." if len(rows) > 1 else ""
    if best.rule == first or np.isnan(best.interval[0]):
        return told
    sure = "excludes 0" if best.interval[1] < 0 else "includes 0"
    return (
        f"{told} Its difference to {first} is {number(best.less)}, and the 95% interval "
        f"of that {sure}."
    )


def _model(k: int, one: Shown) -> Html:
    head = tag("h2", text(one.model))
    if not one.declared:
        return tag(
            "section", head, paragraph("No run has begun yet.", class_="note"), id=f"model-{k}"
        )
    parts = [
        section("Regret", lambda: regret_section(one)),
        section("Optimism against width", lambda: optimism_section(one)),
        section("Prior sensitivity", lambda: prior_section(one)),
        section("Radius against visits", lambda: radius_section(one)),
        section("The final policy", lambda: policy_section(one)),
        section("What was learned", lambda: forest_section(one)),
        section("The theory beside the measured", lambda: theory_section(one)),
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
        "horizon": "the models' own" if study.horizon is None else str(study.horizon),
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
        f"homdp resume {place}   # continues where it stopped\nhomdp report {place}   "
        f"# makes this page again"
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
        tag("h2", text("What was run")),
        paragraph(
            "Everything here is made from the journals, one a run; the digest is another "
            "if any step of any episode is."
        ),
        listed,
        tag("h3", text("To go on, or to make this page again")),
        tag("pre", tag("code", text(commands))),
        tag("h3", text("To read the results")),
        tag("pre", tag("code", text(reading))),
        id="about",
    )

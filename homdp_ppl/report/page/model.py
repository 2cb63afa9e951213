"""Sections of the page about one model: figures and tables of its runs, with short captions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import matplotlib.pyplot as plt
import numpy as np

from homdp_ppl.errors import HOMDPError
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.report.formatting import COLOURS
from homdp_ppl.report.learning import draw_regret
from homdp_ppl.report.page.chart import regret_data, with_data
from homdp_ppl.report.page.exhibits import Exhibit, read_exhibit, write_exhibit
from homdp_ppl.report.page.gather import NO_BOUNDS, gather, not_shown
from homdp_ppl.report.page.html import Html, number, paragraph, picture, tag, text
from homdp_ppl.report.page.progress import complete_runs, drawable, of_model
from homdp_ppl.report.page.tables import certificates_table, prior_table, theory_tables
from homdp_ppl.report.priors import draw_priors
from homdp_ppl.report.studies import draw_optimism
from homdp_ppl.study import StudyDirectory
from homdp_ppl.study.directory import slug
from homdp_ppl.study.reading import Runs
from homdp_ppl.study.reveals import OBSERVATION, split_reveal
from homdp_ppl.study.sources import takes_world
from homdp_ppl.study.specification import Unit


@dataclass(frozen=True, eq=False)
class Shown:
    """A model of a study with its runs."""

    directory: StudyDirectory
    runs: Runs
    model: str

    @cached_property
    def declared(self) -> dict[str, list[Saved]]:
        """Runs under the declared prior, by rule, that can be plotted."""
        return drawable(of_model(self.runs, self.model))

    @cached_property
    def ended(self) -> dict[str, list[Saved]]:
        """Complete runs under the declared prior, by rule."""
        return complete_runs(of_model(self.runs, self.model))

    @cached_property
    def by_prior(self) -> dict[str, dict[str, list[Saved]]]:
        """Complete runs by rule and prior, for rules with runs under more than one prior."""
        others = [prior for prior in self.directory.study.priors if prior != "declared"]
        ended = {
            prior: complete_runs(of_model(self.runs, self.model, prior))
            for prior in ("declared", *others)
        }
        found = {
            rule: {prior: ended[prior][rule] for prior in ended if rule in ended[prior]}
            for rule in ended["declared"]
        }
        return {rule: several for rule, several in found.items() if len(several) > 1}

    @cached_property
    def exhibit(self) -> Exhibit:
        """The data recorded for exactly these runs. If there is none, compute and record it.

        User files are imported only if the directory trusts them.
        """
        found = read_exhibit(self.directory, self.runs, self.model)
        if found is not None:
            return found
        rule, run = self.chosen
        study = self.directory.study
        firsts = {name: several[0] for name, several in self.ended.items()} | {rule: run}
        try:
            for name in firsts:
                self.directory.check_imports(self.model, name, study.planner)
            world = self.directory.world(self.model)
        except HOMDPError as error:
            return Exhibit.without(not_shown(error))
        found = gather(study, world, Unit(self.model, "declared", rule, ()), firsts)
        write_exhibit(self.directory, self.runs, self.model, found)
        return found

    @cached_property
    def chosen(self) -> tuple[str, Saved]:
        """The rule with the lowest regret, except rules that know the true world; and its first
        run.
        """
        pool = self.ended or self.declared
        learned = {rule: several for rule, several in pool.items() if not takes_world(rule)} or pool
        learned = {rule: v for rule, v in learned.items() if not sees_more(rule)} or learned
        rule = min(
            learned, key=lambda name: float(np.mean([run.lost[-1] for run in learned[name]]))
        )
        return rule, learned[rule][0]

    @property
    def run_name(self) -> str:
        """The chosen run in words."""
        rule, run = self.chosen
        return f"{rule}, seed {run.about['seed']}"


def sees_more(rule: str) -> bool:
    """Whether a rule learns from more observations than the declaration has."""
    return split_reveal(rule).reveal == OBSERVATION


def section(title: str, make: Callable[[], Html]) -> Html:
    """A section, or the reason why it could not be made."""
    try:
        content = make()
    except HOMDPError as error:
        content = paragraph(not_shown(error), class_="note")
    return tag("section", tag("h3", text(title)), content)


def regret_section(shown: Shown) -> Html:
    """Regret curves with bands."""
    runs = shown.declared
    several = max(len(group) for group in runs.values())
    band = (
        f"Lines are means over up to {several} seeds; bands contain the central 90% of the seeds."
        if several > 1
        else "Each line is one seed."
    )
    unfinished = [name for name in runs if name not in shown.ended]
    cut = (
        f"Incomplete, and drawn up to the shortest run: {', '.join(unfinished)}."
        if unfinished
        else ""
    )
    ends = "; ".join(
        f"{name} {number(float(np.mean([run.lost[-1] for run in group])))}"
        for name, group in runs.items()
    )
    figure = picture(
        lambda: draw_regret(runs, plt.subplots(figsize=(6.6, 3.8), layout="constrained")[1]),
        f"Regret against episodes. Final mean regret: {ends}.",
        f"Regret: the loss against the optimal policy, summed over the episodes. {band} "
        f"Where a curve is flat, the policies are optimal. {cut}",
    )
    return with_data(figure, regret_data(shown.model, runs, f"{slug(shown.model)}-regret.csv"))


def optimism_section(shown: Shown) -> Html:
    """Share of optimistic rounds against excess, with nominal shares where they are known."""
    every = shown.declared
    runs = {
        name: group
        for name, group in every.items()
        if all(np.isfinite(run.optimistic).all() for run in group)
    }
    silent = [name for name in every if name not in runs]
    omitted = f"Rules without optimistic values are omitted: {', '.join(silent)}." if silent else ""
    if not runs:
        return paragraph("No rule of this study has optimistic values.")
    lines = calibration(shown)
    levels = "; ".join(f"{name} at {level:.3g}" for name, level in lines.items())
    exact = (
        f"Dashed lines: the nominal share ({levels}). It is exact on average over worlds drawn "
        "from the prior, and exceeded if optimal values tie. In a fixed world such as this one, "
        "markers need not be on their line."
        if lines
        else ""
    )
    shares = "; ".join(
        f"{name} {np.mean([run.was_optimistic.mean() for run in group]):.0%}"
        for name, group in runs.items()
    )
    return picture(
        lambda: draw_optimism(
            runs, plt.subplots(figsize=(6.6, 3.4), layout="constrained")[1], lines
        ),
        f"Share of optimistic rounds against excess. Shares: {shares}.",
        "The share of rounds whose optimistic value is at least the optimum, against the mean "
        "excess of the optimistic value over the optimum. Small markers are runs, large markers "
        "are their means. The ideal is a share of 100% with an excess close to 0. "
        f"{exact} {omitted}",
    )


def calibration(shown: Shown) -> dict[str, float]:
    """The nominal share of optimistic rounds, for rules that state one.

    It is exact if worlds come from the prior: then posterior draws and the true world are
    exchangeable.
    """
    manifest = shown.directory.manifest
    if manifest.spaces(shown.model) is None:
        return {}
    levels = {name: manifest.rules[name]["coverage"] for name in shown.declared}
    return {name: level for name, level in levels.items() if level is not None}


def story_section(shown: Shown) -> Html:
    """The model in words, as it is printed, and as code."""
    described = shown.exhibit.model
    if isinstance(described, str):
        return paragraph(described, class_="note")
    story = Html("".join(map(_passage, described.story.split("\n\n"))))
    summary = tag("pre", tag("code", text(described.summary)))
    source = tag(
        "details",
        tag("summary", text("The declaration as code")),
        tag("pre", tag("code", text(described.source))),
    )
    return Html(story + summary + (source if described.source else ""))


def _passage(passage: str) -> Html:
    """A paragraph, or a drawing whose lines are indented."""
    if passage.startswith(" "):
        return tag("pre", tag("code", text(passage)))
    words = re.sub(r"`([^`]+)`", r"<code>\1</code>", text(" ".join(passage.split())))
    return tag("p", words)


def certificate_section(shown: Shown) -> Html:
    """What the data prove about the last policies, beside the truth."""
    certificates = shown.exhibit.certificates
    if isinstance(certificates, str):
        return paragraph(certificates, class_="note")
    rest = [rule for rule in shown.ended if rule not in {one.rule for one in certificates}]
    explanation = paragraph(
        "What the episodes of the first run of each rule prove about its last policy, without "
        "knowledge of the true world. The bounds hold for every rule, also for rules without a "
        "guarantee of optimism. The certified gap is what the policy may still lose; the true "
        "values are known only because the world is simulated.",
        f"Rules without a certificate: {', '.join(rest)}." if rest else "",
    )
    return Html(explanation + certificates_table(certificates))


def prior_section(shown: Shown) -> Html:
    """The same rules under other priors."""
    if not shown.by_prior:
        return paragraph(
            "No rule has complete runs under both the declared prior and another prior.",
            class_="note",
        )
    means = "; ".join(
        f"{rule}, {prior} {number(float(np.mean([run.lost[-1] for run in group])))}"
        for rule, several in shown.by_prior.items()
        for prior, group in several.items()
    )
    colours = {rule: COLOURS[k % len(COLOURS)] for k, rule in enumerate(shown.declared)}
    drawn = picture(
        lambda: draw_priors(shown.by_prior, colours=colours)[0],
        f"Regret and share of optimistic rounds by prior. Mean regret: {means}.",
        "The same rules under different priors. Declared: the prior of the model, with its "
        "structure. Flat: independent rows with Dirichlet(1) priors. Sparse: independent rows "
        "of n outcomes with Dirichlet(1/n) priors, which favour few outcomes per row. The "
        "difference from the declared prior shows how much the structure helps in this model.",
    )
    return Html(drawn + prior_table(shown.by_prior, shown.directory.study.epsilon))


def theory_section(shown: Shown) -> Html:
    """Bounds of the paper, compared with the measured regret."""
    spaces = shown.directory.manifest.spaces(shown.model)
    if spaces is None:
        return paragraph(NO_BOUNDS, class_="note")
    if not shown.ended:
        return paragraph(
            "No run is complete yet, so there is no regret to compare with the bounds.",
            class_="note",
        )
    if shown.exhibit.bounds:
        return paragraph(shown.exhibit.bounds, class_="note")
    explanation = paragraph(
        "The bounds hold with high probability in every model of these sizes. The measured regret "
        "is that of this model and these seeds.",
        "The bound of HOP-B is proved for HOP-B with unscaled bonuses; for other rules it is only "
        "a reference.",
        "A bound is informative if it is better than the trivial bound.",
    )
    return Html(explanation + theory_tables(spaces, shown.ended, shown.directory.study.episodes))

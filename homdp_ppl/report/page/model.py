"""One model on the page: what its runs show, in pictures with a sentence or two each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import matplotlib.pyplot as plt
import numpy as np

from homdp_ppl.errors import HOMDPError
from homdp_ppl.learning.metrics import Saved
from homdp_ppl.report.learning import draw_regret
from homdp_ppl.report.look import COLOURS
from homdp_ppl.report.page.exhibits import Exhibit, read_exhibit, write_exhibit
from homdp_ppl.report.page.gather import gather, not_shown
from homdp_ppl.report.page.html import Html, number, paragraph, picture, tag, text
from homdp_ppl.report.page.progress import drawable, of_model, whole
from homdp_ppl.report.page.tables import prior_table, theory_tables
from homdp_ppl.report.priors import draw_priors
from homdp_ppl.report.studies import draw_optimism
from homdp_ppl.study import StudyDirectory
from homdp_ppl.study.reading import Runs
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
        """Runs under the declared prior, by rule, that can be drawn."""
        return drawable(of_model(self.runs, self.model))

    @cached_property
    def ended(self) -> dict[str, list[Saved]]:
        """Those that are at their end."""
        return whole(of_model(self.runs, self.model))

    @cached_property
    def by_prior(self) -> dict[str, dict[str, list[Saved]]]:
        """For each rule that ran under the declared prior and others, for each of them its runs
        that are at their end.
        """
        others = [prior for prior in self.directory.study.priors if prior != "declared"]
        ended = {
            prior: whole(of_model(self.runs, self.model, prior)) for prior in ("declared", *others)
        }
        found = {
            rule: {prior: ended[prior][rule] for prior in ended if rule in ended[prior]}
            for rule in ended["declared"]
        }
        return {rule: several for rule, several in found.items() if len(several) > 1}

    @cached_property
    def exhibit(self) -> Exhibit:
        """What was recorded for exactly these runs; else it is computed now, and recorded.

        Computing it imports no user files unless the directory trusts them.
        """
        found = read_exhibit(self.directory, self.runs, self.model)
        if found is not None:
            return found
        rule, run = self.chosen
        try:
            self.directory.check_imports(self.model, rule, self.directory.study.planner)
            world = self.directory.world(self.model)
        except HOMDPError as error:
            return Exhibit.without(not_shown(error))
        found = gather(self.directory.study, world, Unit(self.model, "declared", rule, ()), run)
        write_exhibit(self.directory, self.runs, self.model, found)
        return found

    @cached_property
    def chosen(self) -> tuple[str, Saved]:
        """The rule with the least regret among those that do not know the truth, and its first
        run.
        """
        pool = self.ended or self.declared
        learned = {rule: several for rule, several in pool.items() if not takes_world(rule)} or pool
        rule = min(
            learned, key=lambda name: float(np.mean([run.regret[-1] for run in learned[name]]))
        )
        return rule, learned[rule][0]

    @property
    def whose(self) -> str:
        """Whose run was chosen, in words."""
        rule, run = self.chosen
        return f"{rule}, seed {run.about['seed']}"


def section(title: str, make: Callable[[], Html]) -> Html:
    """A section, or why there is none."""
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
        f"Each line is the mean of up to {several} seeds, each band holds 90% of them."
        if several > 1
        else "One seed each."
    )
    unfinished = [name for name in runs if name not in shown.ended]
    cut = (
        f"Not at their end, and drawn as far as all their runs go: {', '.join(unfinished)}."
        if unfinished
        else ""
    )
    ends = "; ".join(
        f"{name} {number(float(np.mean([run.regret[-1] for run in group])))}"
        for name, group in runs.items()
    )
    return picture(
        lambda: draw_regret(runs, plt.subplots(figsize=(6.6, 3.8), layout="constrained")[1]),
        f"Curves of regret against episodes. Mean regret at their ends: {ends}.",
        f"Regret: what was lost against the optimal policy, added up over the episodes. "
        f"{band} A curve that turns flat has "
        f"learned. {cut}",
    )


def optimism_section(shown: Shown) -> Html:
    """Optimism against width, with the shares that are exact on average."""
    every = shown.declared
    runs = {
        name: group
        for name, group in every.items()
        if all(np.isfinite(run.optimistic).all() for run in group)
    }
    silent = [name for name in every if name not in runs]
    said = f"Rules that promise nothing are left out: {', '.join(silent)}." if silent else ""
    if not runs:
        return paragraph("No rule of this study promises a value.", said)
    lines = calibration(shown)
    levels = "; ".join(f"{name} at {level:.3g}" for name, level in lines.items())
    exact = (
        f"Dashed: the share that is exact, {levels}. It holds on average over worlds drawn "
        f"from the prior (and is exceeded "
        "where optimal values tie), not in a fixed world such as this one, so marks may "
        "lie off their line."
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
        f"Marks of the share of optimistic rounds against width. Shares: {shares}.",
        "How often the planned value covered the optimum, against how far it lay above it. "
        "Small marks are runs, large ones "
        f"their means; the best place is high and near 0. {exact} {said}",
    )


def calibration(shown: Shown) -> dict[str, float]:
    """The exact share of optimistic rounds, for rules that state it and plan in every episode.

    Draws of the posterior and the truth are exchangeable if worlds come from the prior.
    """
    manifest = shown.directory.manifest
    if manifest.spaces(shown.model) is None:
        return {}
    levels = {name: manifest.rules[name]["coverage"] for name in shown.declared}
    return {name: level for name, level in levels.items() if level is not None}


def prior_section(shown: Shown) -> Html:
    """The same rules under other priors."""
    if not shown.by_prior:
        return paragraph(
            "No rule has runs at their end under the declared prior and another.", class_="note"
        )
    means = "; ".join(
        f"{rule}, {prior} {number(float(np.mean([run.regret[-1] for run in group])))}"
        for rule, several in shown.by_prior.items()
        for prior, group in several.items()
    )
    colours = {rule: COLOURS[k % len(COLOURS)] for k, rule in enumerate(shown.declared)}
    drawn = picture(
        lambda: draw_priors(shown.by_prior, colours=colours)[0],
        f"Two panels of regret and share of optimistic rounds by prior. Mean regret: {means}.",
        "The same rules, told less: declared is the model's own prior with all its "
        "structure; flat has independent Dirichlet "
        "rows in which every outcome counts 1; sparse expects few of the outcomes. How "
        "much worse the others are than "
        "declared is what the structure is worth here.",
    )
    return Html(drawn + prior_table(shown.by_prior, shown.directory.study.epsilon))


def theory_section(shown: Shown) -> Html:
    """The paper's bounds beside what was measured."""
    spaces = shown.directory.manifest.spaces(shown.model)
    if spaces is None:
        return paragraph("The paper's bounds are for tables; this model has none.", class_="note")
    if not shown.ended:
        return paragraph(
            "No run is at its end yet, so there is nothing to put beside the bounds.", class_="note"
        )
    told = paragraph(
        (
            "Bounds hold for every model of these sizes with high probability; what was "
            "measured is this model with these seeds."
        ),
        (
            "HOP-B's bound is proved for HOP-B with its own bonuses; other rules are only put "
            "beside it."
        ),
        "A bound above the trivial one says nothing yet at this number of episodes.",
    )
    return Html(told + theory_tables(spaces, shown.ended, shown.directory.study.episodes))

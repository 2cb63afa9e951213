"""Valid calls of ``report``: tables and pictures."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

from homdp_ppl import report, study, theory
from homdp_ppl.models import lower_bound
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, recipe

KEY = things.KEY


def tables() -> Iterator[Recipe]:
    """Tables."""
    tiger, check, episode = things.tiger(), things.check(), things.episodes()[0]
    radii = report.compare_radii(KEY, tiger, things.policy(), 16)
    done = things.finished()
    yield recipe("report.check_table", report.check_table, check=check, rows=2)
    yield recipe(
        "report.compare_radii",
        report.compare_radii,
        key=KEY,
        world=tiger,
        policy=things.policy(),
        episodes=16,
        delta=0.1,
    )
    yield recipe(
        "report.comparison_table",
        report.comparison_table,
        rows=study.summarise(things.runs()),
        title="Rules",
        epsilon=0.1,
        width=80,
        without=["gap"],
    )
    yield recipe(
        "report.differences_table",
        report.differences_table,
        differences=study.pairwise_differences(things.runs()),
        title="Pairs",
    )
    yield recipe("report.decisions_table", report.decisions_table, plan=things.plan(), rows=3)
    yield recipe("report.models_table", report.models_table, worlds={"tiger": tiger})
    yield recipe("report.radius_table", report.radius_table, comparison=radii, part="emission")
    yield recipe(
        "report.draw_radii", report.draw_radii, comparison=radii, part="emission", axes=None
    )
    yield recipe(
        "report.revealed_table",
        report.revealed_table,
        model=tiger.homdp,
        episode=episode,
        title="One",
    )
    yield recipe(
        "report.seen_table", report.seen_table, model=tiger.homdp, episode=episode, title="One"
    )
    yield recipe(
        "report.theory_table", report.theory_table, statements=theory.report(tiger, 100)[:2]
    )
    yield recipe("report.use_style", report.use_style)
    yield recipe("report.versions_of", report.versions_of, run=things.epochs())
    yield recipe(
        "report.write_page", report.write_page, directory=done.directory, runs=done.runs, failed={}
    )


def pictures() -> Iterator[Recipe]:
    """Pictures."""
    runs, plan, check = things.runs(), things.plan(), things.check()
    at, low, high = np.array([1.0, 10.0]), np.array([0.1, 0.4]), np.array([0.9, 0.6])
    colours = {"oracle": "black", "uniform": "#0072B2"}
    yield recipe(
        "report.draw_bands", report.draw_bands, at=at, bands={"rate": (low, high)}, truth=0.5
    )
    yield recipe("report.draw_beliefs", report.draw_beliefs, plan=plan, state=0)
    yield recipe(
        "report.draw_bounds", report.draw_bounds, bounds={"tiger": {"blind": 3.6, "optimum": 3.7}}
    )
    yield recipe("report.draw_bracket", report.draw_bracket, at=at, value=low, upper=high)
    yield recipe(
        "report.draw_cells",
        report.draw_cells,
        line=np.array([-1.0, 0.0, 1.0]),
        decided=np.array([0, 0, 1]),
        actions=["wait", "go"],
        edges=np.array([0.5]),
        densities={"calm": np.array([0.2, 0.4, 0.2])},
    )
    yield recipe("report.draw_check", report.draw_check, check=check, axes=None)
    yield recipe(
        "report.draw_curves",
        report.draw_curves,
        curves={"square": (at, high)},
        levels={"five": 5.0},
        styles="-",
        colours=["black", "red"],
        named="ends",
        steps=None,
        width=2.0,
    )
    yield recipe(
        "report.draw_densities",
        report.draw_densities,
        draws={"before": np.array([0.1, 0.5, 0.9]), "after": np.array([0.4, 0.5])},
        truth=0.5,
        bins=10,
        colours=["black", "red"],
    )
    yield recipe(
        "report.draw_envelope",
        report.draw_envelope,
        vectors=np.eye(2),
        chosen=[0, 1],
        actions=["left", "right"],
    )
    yield recipe(
        "report.draw_episodes_to",
        report.draw_episodes_to,
        runs=runs,
        epsilons=np.array([1.0, 0.5]),
        colours=colours,
    )
    draws = xr.Dataset({"accuracy": (("chain", "draw"), [[0.7, 0.8, 0.9]])})
    yield recipe(
        "report.draw_forest", report.draw_forest, dataset=draws, truth={"accuracy": 0.85}, most=5
    )
    yield recipe(
        "report.draw_instance",
        report.draw_instance,
        world=lower_bound.tree(depth=2, observations=4),
    )
    yield recipe(
        "report.draw_intervals",
        report.draw_intervals,
        draws={"nurse": np.array([[0.1, 0.5], [0.3, 0.9]])},
        names=["onset", "cure"],
        truth=np.array([0.2, 0.7]),
    )
    yield recipe(
        "report.draw_ladder",
        report.draw_ladder,
        values={"blind": 3.0, "history": 3.4},
        highlight="history",
    )
    yield recipe(
        "report.draw_losses",
        report.draw_losses,
        at=np.array([0.1, 0.2]),
        losses=np.array([[0.0, 0.5], [1.0, 0.0]]),
        most=1.0,
    )
    yield recipe(
        "report.draw_optimism",
        report.draw_optimism,
        runs=runs,
        calibration={"oracle": 0.9},
        colours=colours,
    )
    yield recipe(
        "report.draw_priors",
        report.draw_priors,
        runs={"rule": {"flat": runs["uniform"], "declared": runs["oracle"]}},
        colours={"rule": "red"},
    )
    yield recipe(
        "report.draw_program", report.draw_program, model=things.tiger().homdp, steps=1, policy=None
    )
    yield recipe(
        "report.draw_optimistic_values",
        report.draw_optimistic_values,
        runs=runs,
        colours=colours,
    )
    yield recipe("report.draw_regret", report.draw_regret, runs=runs, colours=colours)
    yield recipe("report.draw_savings", report.draw_savings, sizes={"lock": (17476.0, 908.0)})
    yield recipe(
        "report.draw_scaling",
        report.draw_scaling,
        sizes=np.array([1, 2]),
        needed=np.array([10.0, 20.0]),
        draws=np.array([[9.0, 11.0], [19.0, 21.0]]),
        least=np.array([5.0, 10.0]),
    )
    yield recipe(
        "report.draw_shares",
        report.draw_shares,
        hits={"coin": np.array([[True, False], [True, True]])},
        groups=["first", "second"],
        guaranteed={"coin": 0.5},
        colours={"coin": "red"},
    )
    yield recipe(
        "report.draw_versions",
        report.draw_versions,
        alive=np.array([[True, True], [False, True]]),
        names=["wrong", "right"],
        truth=1,
    )
    yield recipe(
        "report.label_ends", _label, ends=[(1.0, 1.0, "one", "C0"), (1.0, 1.01, "two", "C1")]
    )
    yield recipe(
        "report.label_ends",
        report.label_ends,
        axes=plt.figure().add_subplot(),
        ends=[(1.0, 1.0, "one", "C0")],
    )


def _label(ends):
    report.label_ends(plt.figure().add_subplot(), ends)

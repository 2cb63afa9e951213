"""The commands ``models``, ``play``, ``plan``, ``learn`` and ``theory``.

The commands for studies are in study_commands.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from homdp_ppl import models, planners, study, theory
from homdp_ppl.cli.console import say
from homdp_ppl.continuous.quantised_policy import QuantisedPolicy
from homdp_ppl.core.blind_policy import uniform_policy
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.rollout import rollout_many
from homdp_ppl.core.sensors import ENDED, Sensors
from homdp_ppl.core.spaces import Real, Space
from homdp_ppl.declare.model import World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.evaluation.simulation import estimate
from homdp_ppl.learning.checks import check_plan
from homdp_ppl.learning.learn import learn
from homdp_ppl.learning.metrics import Measured
from homdp_ppl.learning.planning import Planner, plan_allowed
from homdp_ppl.report import (
    comparison_table,
    decisions_table,
    models_table,
    revealed_table,
    seen_table,
    theory_table,
)
from homdp_ppl.report.comparisons import LEGEND, MARKED
from homdp_ppl.report.formatting import counted
from homdp_ppl.storage.atomic import atomic_write
from homdp_ppl.study.reveals import FORESIGHT, OBSERVATION, split_reveal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SIMULATED = 200  # episodes used to estimate a value
ONLINE = "a policy that plans during the episode"
QUANTISED = (
    "For finitely many states and real-valued observations, `--planner quantised` makes a policy "
    "that can be saved."
)


def show_models(options: argparse.Namespace, console: Console) -> None:
    """``homdp models``: list the model zoo, describe one model, or compare several."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    if not options.models:
        table = Table("model", "story", box=box.SIMPLE_HEAD)
        for name in models.MODELS:
            table.add_row(name, escape(models.story(name)))
        console.print(table)
        say(
            console,
            (
                "To describe one model:    homdp models NAME\n"
                "To compare several:       homdp models NAME NAME\n"
                "To simulate an episode:   homdp play NAME"
            ),
        )
        return
    worlds = {text: study.find_world(text) for text in options.models}
    if len(worlds) > 1:
        console.print(models_table(worlds))
        return
    (world,) = worlds.values()
    say(console, repr(world.homdp))
    for word, space in zip(("states", "observations", "actions"), world.spaces[:3], strict=True):
        say(
            console,
            (f"  {word}: {_listed(space)}"),
        )
    say(console, f"  {world!r}")


def _listed(space: Space) -> str:
    """The names of a space; those of each sensor if there are several."""
    if isinstance(space, Real):
        return f"real-valued, {space}"
    if isinstance(space, Sensors):
        parts = [f"{sensor} ({'; '.join(names)})" for sensor, names in space.sensors.items()]
        return ", ".join([*parts, *[ENDED] * space.ended])
    return "; ".join(space)


def play(options: argparse.Namespace, console: Console) -> None:
    """``homdp play``: simulate the uniform policy and reveal the latent states."""
    world: Any = study.find_world(options.model, options.horizon, options.seed)
    keys = jax.random.split(jax.random.key(options.seed), options.episodes)
    episodes = rollout_many(keys, world, uniform_policy(world, world.homdp.allowed))
    say(console, f"{world!r}, uniform policy\n")
    for k, episode in enumerate(episodes, 1):
        console.print(seen_table(world.homdp, episode, f"Episode {k}, as seen by the policy"))
        console.print(revealed_table(world.homdp, episode, f"Episode {k}, in hindsight"))
        console.print()


def plan(options: argparse.Namespace, console: Console) -> None:
    """``homdp plan``: the value of the plan, its bounds, and the first decisions."""
    _check_places("plan", options)
    world = study.find_world(options.model, options.horizon, options.seed)
    automatic = options.planner == "auto" and world.spaces.finite
    chosen = planners.auto() if automatic else study.find_planner(options.planner, world)
    say(console, f"{world!r}, horizon {world.spaces.horizon}")
    _explain_units(console, world)
    if not world.spaces.finite:
        _plan_continuous(options, console, world, chosen)
        return
    found = check_plan(plan_allowed(chosen, world.pomdp, world.homdp.allowed), "plan").named(world)
    say(console, f"planner   {found.planner}")
    say(
        console,
        f"value     {found.value:.9g}  (certified: the optimum is at most {found.upper:.9g})",
    )
    if "seconds" in found.statistics:  # custom planners need not measure them
        say(console, _seconds(found.statistics["seconds"]))
    console.print(decisions_table(found))
    _keep(options, console, found, found.policy)


def _explain_units(console: Console, world: World) -> None:
    """Say what values are, if costs or random rewards were declared."""
    if world.homdp.rewards.costs:
        say(console, "units     values are minus expected costs")
    if world.homdp.rewards.law is not None:
        say(console, "rewards   random; values are sums of mean rewards")


def _plan_continuous(
    options: argparse.Namespace, console: Console, world: World, planner: Planner
) -> None:
    found = planner(world)
    say(console, f"planner   {found.planner}")
    if not found.certified:
        if options.draw or options.save:
            raise ParameterError(
                "plan", [Problem("--draw, --save", ONLINE, "a policy that can be saved", QUANTISED)]
            )
        valued = estimate(found.policy, world, jax.random.key(options.seed), SIMULATED)
        say(console, f"value     {valued} (estimated by simulation, not certified)")
        return
    say(
        console,
        f"value     {found.value:.9g}  (certified: the optimum is at most {found.upper:.9g})",
    )
    say(console, _seconds(found.statistics["seconds"]))
    console.print(decisions_table(found))
    _keep(options, console, found, found.policy)


def _seconds(number: float) -> str:
    return f"seconds   {number:.3g} (may include compilation)"


def _check_places(command: str, options: argparse.Namespace) -> None:
    """Raise ParameterError for files that cannot be written, before anything runs."""
    places = [
        (f"--{name}", Path(place))
        for name in ("draw", "save", "out")
        if (place := getattr(options, name, None))
    ]
    problems = [
        Problem(name, f"the directory {place}", "a file")
        for name, place in places
        if place.is_dir()
    ]
    problems += [
        Problem(name, str(place), "a file in an existing directory")
        for name, place in places
        if not place.resolve().parent.is_dir()
    ]
    if getattr(options, "save", None) and Path(options.save).suffix != ".npz":
        problems.append(Problem("--save", options.save, "a file name that ends in .npz"))
    if getattr(options, "draw", None):
        from matplotlib.backend_bases import FigureCanvasBase

        kinds = sorted(FigureCanvasBase.get_supported_filetypes())
        if Path(options.draw).suffix.removeprefix(".").lower() not in kinds:
            expected = f"a file name that ends in one of {', '.join(kinds)}"
            problems.append(Problem("--draw", options.draw, expected))
    if getattr(options, "out", None) and Path(options.out).suffix != ".nc":
        problems.append(Problem("--out", options.out, "a file name that ends in .nc (netCDF)"))
    if problems:
        raise ParameterError(command, problems)


def _keep(options: argparse.Namespace, console: Console, found: Any, policy: Any) -> None:
    if options.draw:
        import matplotlib.pyplot as plt

        found.draw()
        plt.savefig(options.draw, dpi=120)
        say(console, f"picture   {options.draw}")
    if options.save:
        policy.save(options.save)
        say(console, f"policy    {options.save}")


def learn_once(options: argparse.Namespace, console: Console) -> None:
    """``homdp learn``: run one rule in one model with one seed."""
    _check_places("learn", options)
    world: Any = study.find_world(options.model, options.horizon)
    text, reveal = split_reveal(options.explorer)
    rule, planner = study.find_rule(text, world), study.find_planner(options.planner, world)
    choices: dict[str, Any] = {"stop_when": options.stop_when, "foresight": reveal == FORESIGHT}
    if reveal == OBSERVATION:
        expected = "a share, or foresight; compare accepts observation, too"
        raise ParameterError("learn", [Problem("reveal", OBSERVATION, expected)])
    choices["reveal"] = None if isinstance(reveal, str) else reveal
    run = learn(world, rule, planner, options.episodes, options.seed, **choices)
    say(console, repr(run))
    if options.stop_when is not None and run.certificate.gap[-1] > options.stop_when > 0:
        gap = f"{run.certificate.gap[-1]:.3g} after {counted(options.episodes, 'episode')}"
        say(console, f"  The certified gap is still {gap}: use more --episodes.")
    _explain_units(console, world)
    rows = study.summarise({rule.name: [run]})
    table = comparison_table(rows, best(run), width=console.width)
    console.print(table)
    explain_columns(console, [table], left_out(rows, table))
    explain_mark(console, rows)
    if options.save:
        policy = run.policy
        if not isinstance(policy, GraphPolicy | QuantisedPolicy):
            raise ParameterError(
                "learn", [Problem("--save", ONLINE, "a policy that can be saved", QUANTISED)]
            )
        policy.save(options.save)
        say(console, f"policy of the last round: {options.save}")
    if options.out:
        dataset = run.to_dataset()
        atomic_write(options.out, lambda temporary: dataset.to_netcdf(temporary, engine="scipy"))
        say(console, f"rounds and episodes:      {options.out} (read with xarray.open_dataset)")


def show_theory(options: argparse.Namespace, console: Console) -> None:
    """``homdp theory``: the paper's bounds for a model of this size."""
    world = study.find_world(options.model, options.horizon)
    if not world.spaces.finite:
        remedy = "In Python, theory.hop_v_bound computes the bound of HOP-V from class sizes."
        got, expected = "real-valued states or observations", "a finite model"
        raise ParameterError("theory", [Problem("model", got, expected, remedy)])
    X, Y, A, H = world.spaces.sizes
    K, delta = options.episodes, options.delta
    statements = theory.report(world, K, delta, options.accuracy)
    sizes = (
        f"{counted(X, 'state')}, {counted(Y, 'observation')}, {counted(A, 'action')}, horizon {H}"
    )
    say(console, f"{world.homdp.name}: {sizes}; {counted(K, 'episode')}, delta {delta:g}")
    console.print(theory_table(statements))


def explain_columns(
    console: Console, tables: Sequence[Table], without: Collection[str], epsilon: float = 0.1
) -> None:
    """Explain the columns of comparison tables, one per line, and list those that did not fit."""
    legend = {head.format(epsilon=epsilon): meaning for head, meaning in LEGEND.items()}
    heads = {column.header for table in tables for column in table.columns}
    shown = {head: meaning for head, meaning in legend.items() if head in heads}
    margin = max(map(len, shown), default=0) + 2
    for head, meaning in shown.items():
        say(console, f"  {head:<{margin}}{meaning}")
    missing = [head for head in legend if head in without]
    if missing:
        say(console, f"  Hidden columns: {', '.join(missing)} (use a wider terminal).")
    say(console, "")


def explain_mark(console: Console, rows: Iterable[study.Row]) -> None:
    """Explain the mark of rules with a guarantee, if a table has one."""
    if any(row.guaranteed for row in rows):
        say(console, f"  {MARKED}\n")


def left_out(rows: Sequence[study.Row], table: Table, epsilon: float = 0.1) -> set[str]:
    """The columns of a comparison of these rules that do not fit into its table."""
    wide, narrow = (
        {str(column.header) for column in one.columns}
        for one in (comparison_table(rows, "", epsilon), table)
    )
    return wide - narrow


def best(run: Measured) -> str:
    """The optimal value in words, with a remark if it is not exact."""
    return (
        f"optimal value at most {run.optimum:.4g} ({run.inexact})"
        if run.inexact
        else f"optimal value {run.optimum:.4g}"
    )

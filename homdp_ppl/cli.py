"""The homdp command."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import jax
import matplotlib.pyplot as plt
from rich.console import Console

from homdp_ppl import __version__, models, planners, study, theory
from homdp_ppl.declare import HOMDP, World
from homdp_ppl.episode import rollout
from homdp_ppl.errors import HOMDPError, Problem
from homdp_ppl.formats import read_pomdp
from homdp_ppl.policy import uniform_policy
from homdp_ppl.report import comparison_table, decisions_table, models_table, revealed_table, seen_table, theory_table

FILE_HORIZON = 10  # of a .POMDP file, which has none

PAGE = 120  # columns where there is no terminal


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options, _console())
        sys.stdout.flush()
    except HOMDPError as error:
        print(f"homdp: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def find_world(text: str, seed: int = 0) -> World:
    """A world from a zoo name, from a ``.POMDP`` file or from ``path/to/file.py:name``.

    A ``.POMDP`` file has no horizon, so this gives it ``FILE_HORIZON``, which ``--horizon`` replaces. The file's numbers are the
    truth, unknown to a learner under flat Dirichlet priors on their support.

    Parameters
    ----------
    text
        What the person typed.
    seed
        A file may hold a HOMDP without a truth; its parameters are then drawn from the prior with this seed.
    """
    if text.lower().endswith(".pomdp"):
        return read_pomdp(text, FILE_HORIZON, prior=1.0)
    path, colon, name = text.rpartition(":")
    if not colon and not text.endswith(".py"):
        return models.load(text)
    module = _import(Path(path if colon else text))
    found = getattr(module, name, None)
    if callable(found) and not isinstance(found, HOMDP | World | type):
        found = found()  # as the zoo's own: a function that returns a world
    if not isinstance(found, HOMDP | World):
        there = [k for k, v in vars(module).items() if isinstance(v, HOMDP | World)]
        got = f"{name} is a {type(found).__name__}" if hasattr(module, name) else f"nothing called {name!r}"
        remedy = f"The file has: {', '.join(there) or 'none'}. Write path/to/file.py:name."
        raise HOMDPError(text, [Problem("name", got, "a HOMDP, a World, or a function that returns one", remedy)])
    return found.draw(jax.random.key(seed)) if isinstance(found, HOMDP) else found


def _import(path: Path) -> ModuleType:
    if not path.is_file():
        raise HOMDPError(str(path), [Problem("file", f"no file {path}", "path/to/file.py:name")])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise HOMDPError(str(path), [Problem("file", path.name, "a Python file, ending in .py")])
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except HOMDPError:
        raise
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == path.name]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else "?"
        got = f"{type(error).__name__}: {error}"
        raise HOMDPError(str(path), [Problem(f"line {line}", got, "a file that can be imported")]) from error
    return module


def _models(options: argparse.Namespace, console: Console) -> None:
    if options.model:
        world = find_world(options.model)
        _say(console, repr(world.homdp))
        for word, names in zip(("states", "observations", "actions"), world.spaces[:3], strict=True):
            _say(console, f"  {word}: {'; '.join(names)}")
        _say(console, f"  {world!r}")
        return
    with console.status("Declaring the models ..."):
        worlds = {name: models.load(name) for name in models.MODELS}
    console.print(models_table(worlds))


def _play(options: argparse.Namespace, console: Console) -> None:
    world = find_world(options.model, options.seed)
    keys = jax.random.split(jax.random.key(options.seed), options.episodes)
    episodes = rollout(keys, world, uniform_policy(world))
    _say(console, f"{world!r}, played by the uniform policy.\n")
    for k, episode in enumerate(episodes, 1):
        console.print(seen_table(world.homdp, episode, f"Episode {k}, as the policy saw it"))
        console.print(revealed_table(world.homdp, episode, "... and in hindsight"))
        console.print()


def _plan(options: argparse.Namespace, console: Console) -> None:
    world = find_world(options.model, options.seed)
    if options.horizon is not None:
        world = world.with_horizon(options.horizon)
    plan = planners.PLANNERS[options.planner]()(world.pomdp).named(world)
    _say(console, f"{world!r}, horizon {world.spaces.horizon}")
    _say(console, f"planner   {plan.planner}")
    _say(console, f"value     {plan.value:.9g}  (certified: the optimum is at most {plan.upper:.9g})")
    _say(console, f"seconds   {plan.statistics['seconds']:.3g}")
    console.print(decisions_table(plan))
    if options.draw:
        plan.draw()
        plt.savefig(options.draw, dpi=120)
        _say(console, f"drawn to  {options.draw}")
    if options.save:
        plan.policy.save(options.save)
        _say(console, f"policy in {options.save}")


def _compare(options: argparse.Namespace, console: Console) -> None:
    for name in options.models:
        world = find_world(name)
        if options.horizon is not None:
            world = world.with_horizon(options.horizon)
        rules = [study.make_explorer(text, world) for text in options.explorers]
        planner = study.choose_planner(world) if options.planner == "auto" else planners.PLANNERS[options.planner]()
        runs = study.compare(world, rules, planner, options.episodes, range(options.seeds))
        optimum = next(iter(runs.values()))[0].optimum
        title = f"{world.homdp.name}: {options.episodes:,} episodes, {options.seeds} seeds, optimal value {optimum:.4g}"
        console.print(comparison_table(study.summarise(runs), title))


def _theory(options: argparse.Namespace, console: Console) -> None:
    world = find_world(options.model)
    if options.horizon is not None:
        world = world.with_horizon(options.horizon)
    X, Y, A, H = world.spaces.sizes
    K, delta = options.episodes, options.delta
    statements = theory.report(world, K, delta, options.accuracy)
    _say(console, f"{world.homdp.name}: {X} states, {Y} observations, {A} actions, horizon {H}; {K} episodes, delta {delta:g}")
    console.print(theory_table(statements))


def _console() -> Console:
    """Tables keep all their columns in a pipe or a file, where there is no width to fit into."""
    return Console() if sys.stdout.isatty() or "COLUMNS" in os.environ else Console(width=PAGE)


def _say(console: Console, text: str) -> None:
    """A line as it is: no wrapping, no markup."""
    console.out(text, highlight=False)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive whole number")
    return int(text)


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^32 - 1")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="homdp", description="Decision problems whose hidden states are revealed in hindsight.")
    parser.add_argument("--version", action="version", version=f"homdp_ppl {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    model_help = f"a name of the zoo (see `homdp models`), a .POMDP file (horizon {FILE_HORIZON}), or path/to/file.py:name"
    listed = commands.add_parser("models", help="list the zoo, or show one model")
    listed.add_argument("model", metavar="MODEL", nargs="?", help=model_help)
    listed.set_defaults(run=_models)
    play = commands.add_parser("play", help="play a model with the uniform policy and reveal its latent states")
    play.add_argument("model", metavar="MODEL", help=model_help)
    play.add_argument("--episodes", type=_positive, default=1, help="how many episodes (default 1)")
    play.add_argument("--seed", type=_seed, default=0, help="the same seed plays the same episodes (default 0)")
    play.set_defaults(run=_play)
    plan = commands.add_parser("plan", help="plan a model: value, bounds, first decisions")
    plan.add_argument("model", metavar="MODEL", help=model_help)
    plan.add_argument("--planner", choices=sorted(planners.PLANNERS), default="auto", help="which planner (default auto)")
    plan.add_argument("--horizon", type=_positive, help="another horizon than the model's own")
    plan.add_argument("--draw", metavar="FILE.png", help="draw the first decisions as a tree")
    plan.add_argument("--save", metavar="FILE.npz", help="save the policy")
    plan.add_argument("--seed", type=_seed, default=0, help="draws the parameters of a model from a file without a truth")
    plan.set_defaults(run=_plan)
    compared = commands.add_parser("compare", help="let several rules learn in a model, and compare their exact regret")
    compared.add_argument("models", metavar="MODEL", nargs="+", help=model_help)
    compared.add_argument(
        "--explorers",
        metavar="A,B",
        nargs="+",
        default=["greedy", "tight", "quantile_backup"],
        help="rules, with options as in hop_b:scale=0.1 (default greedy tight quantile_backup)",
    )
    compared.add_argument("--episodes", type=_positive, default=500, help="episodes of each run (default 500)")
    compared.add_argument("--seeds", type=_positive, default=10, help="runs of each rule (default 10)")
    compared.add_argument("--planner", choices=sorted(planners.PLANNERS), default="auto", help="which planner (default auto)")
    compared.add_argument("--horizon", type=_positive, help="another horizon than the model's own")
    compared.set_defaults(run=_compare)
    bounds = commands.add_parser("theory", help="the paper's bounds for a model's sizes, beside the trivial ones")
    bounds.add_argument("model", metavar="MODEL", help=model_help)
    bounds.add_argument("--episodes", type=_positive, default=1000, help="how many episodes (default 1000)")
    bounds.add_argument("--delta", type=float, default=0.1, help="that of the algorithms (default 0.1)")
    bounds.add_argument("--accuracy", type=float, help="the gap to ask sample sizes for (default a tenth of the horizon)")
    bounds.add_argument("--horizon", type=_positive, help="another horizon than the model's own")
    bounds.set_defaults(run=_theory)
    return parser

"""The homdp command."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

import jax
from rich.console import Console

from homdp_ppl import models
from homdp_ppl.declare import HOMDP, World
from homdp_ppl.episode import rollout
from homdp_ppl.errors import HOMDPError, Problem
from homdp_ppl.policy import uniform_policy
from homdp_ppl.report import models_table, revealed_table, seen_table


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options, Console())
    except HOMDPError as error:
        print(f"homdp: {error}", file=sys.stderr)
        return 2
    return 0


def find_world(text: str, seed: int = 0) -> World:
    """A world from a zoo name or from ``path/to/file.py:name``.

    Parameters
    ----------
    text
        What the person typed.
    seed
        A file may hold a HOMDP without a truth; its parameters are then drawn from the prior with this seed.
    """
    if ":" not in text:
        return models.load(text)
    path, _, name = text.rpartition(":")
    found = _from_file(Path(path), name)
    return found.draw(jax.random.key(seed)) if isinstance(found, HOMDP) else found


def _from_file(path: Path, name: str) -> HOMDP | World:
    where = f"{path}:{name}"
    if not path.is_file():
        raise HOMDPError(where, [Problem("file", f"no file {path}", "path/to/file.py:name")])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise HOMDPError(where, [Problem("file", path.name, "a Python file, ending in .py")])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if not isinstance(found, HOMDP | World):
        there = [k for k, v in vars(module).items() if isinstance(v, HOMDP | World)]
        got = f"{name} is a {type(found).__name__}" if hasattr(module, name) else f"nothing called {name}"
        raise HOMDPError(where, [Problem("name", got, "a HOMDP or a World", f"The file has: {', '.join(there) or 'none'}.")])
    return found


def _models(options: argparse.Namespace, console: Console) -> None:
    if options.model:
        world = find_world(options.model)
        console.print(repr(world.homdp), highlight=False, soft_wrap=True)
        for word, names in zip(("states", "observations", "actions"), world.spaces[:3], strict=True):
            console.print(f"  {word}: {'; '.join(names)}", highlight=False, soft_wrap=True)
        console.print(f"  truth: {world!r}", highlight=False, soft_wrap=True)
        return
    with console.status("Declaring the models ..."):
        worlds = {name: models.load(name) for name in models.MODELS}
    console.print(models_table(worlds))


def _play(options: argparse.Namespace, console: Console) -> None:
    world = find_world(options.model, options.seed)
    keys = jax.random.split(jax.random.key(options.seed), options.episodes)
    episodes = rollout(keys, world, uniform_policy(world))
    console.print(f"{world!r}, played by the uniform policy.\n", highlight=False)
    for k, episode in enumerate(episodes, 1):
        console.print(seen_table(world.homdp, episode, f"Episode {k}, as the policy saw it"))
        console.print(revealed_table(world.homdp, episode, "... and in hindsight"))
        console.print()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="homdp", description="Decision problems whose hidden states are revealed in hindsight.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    model_help = "a name of the zoo (see `homdp models`), or path/to/file.py:name"
    listed = commands.add_parser("models", help="list the zoo, or show one model")
    listed.add_argument("model", metavar="MODEL", nargs="?", help=model_help)
    listed.set_defaults(run=_models)
    play = commands.add_parser("play", help="play a model with the uniform policy and reveal its latent states")
    play.add_argument("model", metavar="MODEL", help=model_help)
    play.add_argument("--episodes", type=_positive, default=1, help="how many episodes (default 1)")
    play.add_argument("--seed", type=int, default=0, help="the same seed plays the same episodes (default 0)")
    play.set_defaults(run=_play)
    return parser

"""The speed of posteriors: conjugate updates in a compiled loop, quantile radii, and NUTS.

    python benchmarks/posteriors.py [--repeat 5] [--models checkup maze] [--episodes 200 2000]
        [--out posteriors.json]

Times are medians of repeated runs after a first one. The additional time of the first run, mostly
compilation, is reported separately. Ratios are of processor time, which is less affected by other
processes.

`posterior.update` runs NUTS on the likelihood of the counts, starting from the current chains. It
is compared with `MCMC.run` of NumPyro on `homdp.hindsight(episodes)`, the program conditioned on
all episodes, with the same chains, warm-up and draws. A new episode changes the shapes of the
latter, so in a learning loop it is compiled every time, while `posterior.update` is compiled once.
The comparison takes many minutes for hallway and rocksample.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS
from rich.console import Console
from rich.table import Table

from homdp_ppl import HOMDP, Counts, models, posterior, rollout, tabular, uniform_policy, x64
from homdp_ppl.confidence import moment_backup, moments, quantile_radii
from homdp_ppl.posteriors import Sampling

MODELS = ("checkup", "maze", "hallway", "rocksample")
EPISODES = (200, 2000)
SAMPLING = Sampling()


class Cost(NamedTuple):
    """The cost of a run."""

    seconds: float
    processor: float  # seconds of all threads
    first: float  # additional processor seconds of the first run


def measure(run: Callable[[int], Any], repeat: int) -> Cost:
    """Medians of repeated runs after a first one; ``run`` receives the number of the run."""
    wall, processor = [], []
    for number in range(repeat + 1):
        start = time.perf_counter(), time.process_time()
        jax.block_until_ready(run(number))
        wall.append(time.perf_counter() - start[0])
        processor.append(time.process_time() - start[1])
    median = statistics.median(processor[1:])
    return Cost(statistics.median(wall[1:]), median, max(processor[0] - median, 0.0))


def table_model() -> HOMDP:
    """A model with X = 10, A = 3, Y = 5, H = 5, and flat Dirichlet priors on all rows."""
    T, O = dist.Dirichlet(np.ones((10, 3, 10))), dist.Dirichlet(np.ones((10, 5)))  # noqa: E741
    return tabular(T=T, O=O, initial=np.full(10, 0.1), reward=np.zeros((10, 3)), horizon=5)


def compiled_update(model: HOMDP, repeat: int, rounds: int = 2000) -> dict[str, Any]:
    """Measure a compiled loop: count an episode, compute posterior moments, and do one backup."""
    episodes = rollout(
        jax.random.split(jax.random.key(0), rounds),
        model.draw(jax.random.key(1)),
        uniform_policy(model),
    )
    alpha = np.random.default_rng(0).uniform(size=(3, 5, 10))
    with x64():
        backup = moment_backup(model, 1.645)
        zero = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=float), Counts.zero(model))

        def step(counts: Counts, episode: Any) -> tuple[Counts, Any]:
            before, after = episode.states[:-1], episode.states[1:]
            counts = Counts(
                counts.transition.at[before, episode.actions, after].add(1.0),
                counts.emission.at[before, episode.observations].add(1.0),
                counts.names,
            )
            return counts, backup(moments(model, counts), 1, alpha)

        compiled = jax.jit(lambda played: jax.lax.scan(step, zero, played))
        played = jax.tree.map(jnp.asarray, episodes)
        cost = measure(lambda _: compiled(played), repeat)
    cost = Cost(cost.seconds / rounds, cost.processor / rounds, cost.first)
    return row("count, moments, backup, in a compiled loop", "X = 10, A = 3, Y = 5", cost)


def radii(model: HOMDP, repeat: int) -> list[dict[str, Any]]:
    """Measure quantile radii after few and many episodes."""
    world, rows = model.draw(jax.random.key(1)), []
    for episodes in (100, 100_000):
        counts = model.counts(
            rollout(jax.random.split(jax.random.key(2), episodes), world, uniform_policy(world))
        )
        belief = posterior(model, counts)
        cost = measure(
            lambda k, belief=belief: quantile_radii(belief, jax.random.key(k)), 5 * repeat
        )
        rows.append(row("quantile_radii", f"X = 10, A = 3, Y = 5; {episodes:,} episodes", cost))
    rows[1]["ratio"] = rows[1]["processor"] / rows[0]["processor"]
    return rows


def refresh(name: str, episodes: int, repeat: int) -> list[dict[str, Any]]:
    """Compare the update of a sampled posterior with MCMC on all episodes."""
    world = models.load(name)
    keys = jax.random.split(jax.random.key(3), episodes + 1)
    data = rollout(keys, world, uniform_policy(world))
    start = time.process_time()
    belief = posterior(world.homdp, data[:episodes])
    cold = time.process_time() - start
    new = world.homdp.counts(data[episodes:])
    cost = measure(lambda k: belief.update(new, jax.random.key(k)).atoms.values, repeat)
    ours = row("posterior.update", f"{name}, {episodes:,} episodes", cost._replace(first=cold))
    with x64():
        kernel = NUTS(world.homdp.hindsight(data))
        sampler = MCMC(
            kernel,
            num_warmup=SAMPLING.warmup,
            num_samples=SAMPLING.draws,
            num_chains=SAMPLING.chains,
            chain_method="vectorized",
            progress_bar=False,
        )

        def run(k: int) -> Any:
            sampler.run(jax.random.key(k))
            return sampler.get_samples()

        cost = measure(run, max(1, repeat // 2))
    peer = row("MCMC.run on the episodes", f"{name}, {episodes:,} episodes", cost)
    peer["ratio"] = peer["processor"] / ours["processor"]
    peer["ratio with first"] = (peer["processor"] + peer["first"]) / ours["processor"]
    return [ours, peer]


def row(what: str, problem: str, cost: Cost) -> dict[str, Any]:
    """One row of the table."""
    print(
        (
            f"{what}, {problem}: {cost.seconds:.3g} s, processor {cost.processor:.3g} s, first run "
            f"+{cost.first:.3g} s"
        ),
        file=sys.stderr,
    )
    return {"what": what, "problem": problem, **cost._asdict()}


def main() -> None:
    """Measure, print a table, and optionally write JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--repeat", type=int, default=5, help="repeated runs after the first (default: 5)"
    )
    parser.add_argument(
        "--episodes", type=int, nargs="+", default=EPISODES, help="numbers of episodes for NUTS"
    )
    parser.add_argument("--models", nargs="*", default=MODELS, help="models for NUTS")
    parser.add_argument("--out", type=Path, help="write the results to this JSON file")
    options = parser.parse_args()
    numpyro.enable_validation(False)
    model = table_model()
    rows = [compiled_update(model, options.repeat), *radii(model, options.repeat)]
    for name in options.models:
        for episodes in options.episodes:
            rows += refresh(name, episodes, options.repeat)
    show(rows)
    if options.out:
        about = {
            "python": platform.python_version(),
            "jax": jax.__version__,
            "numpyro": numpyro.__version__,
            "repeat": options.repeat,
            "sampling": SAMPLING._asdict(),
        }
        options.out.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table(
        "what",
        "problem",
        "time",
        "processor",
        "first run",
        "ratio to the row above",
        "ratio with first run",
    )
    for line in rows:
        times = (line[name] for name in ("seconds", "processor", "first"))
        ratios = (line.get(name) for name in ("ratio", "ratio with first"))
        table.add_row(
            line["what"],
            line["problem"],
            *(f"{value * 1e6:.3g} us" if value < 1e-3 else f"{value:.3g} s" for value in times),
            *("" if ratio is None else f"{ratio:.3g}" for ratio in ratios),
        )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()

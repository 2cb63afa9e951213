"""The particle planner against POUCT of pomdp-py, and against the optimum of small finite models.

    python benchmarks/particles.py [--episodes 40] [--simulations 200 1000] [--out particles.json]

The first comparison uses light-dark of the model zoo (models/light_dark.py), with all parameters
known and ten steps.

POUCT plans with the same number of simulations from the same particles, and its episodes use the
same random numbers. Real-valued observations never repeat, so its tree is almost blind after the
first step. With observations rounded to multiples of 0.5 they do repeat. POMCP of pomdp-py is POUCT
with a belief from the particles of its tree; with real-valued observations these run out after one
step. Values are means over the same episodes with standard errors. Times are per simulation,
without compilation.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

from homdp_ppl import Policy, World, evaluate, models
from homdp_ppl.evaluation.simulation import estimate
from homdp_ppl.models import light_dark
from homdp_ppl.models.light_dark import (
    ACTIONS,
    AWAY,
    DECLARE,
    FARTHEST,
    GOAL,
    MOVES,
    SHARPEST,
    UNSTEADY,
)
from homdp_ppl.planners import OnlinePolicy, history_tree, particle_tree

HORIZON, LIGHT, BLUR = 10, 5.0, 0.5


class PouctPolicy:
    """POUCT of pomdp-py, run before every action with the particles of another policy's belief."""

    def __init__(self, beliefs: OnlinePolicy, simulations: int, grid: float | None) -> None:
        import pomdp_py

        self.module, self.beliefs, self.simulations = pomdp_py, beliefs, simulations
        self.seconds, self.searches = 0.0, 0

        # The state is a place and a step. Trees are one step deeper than rollouts, so the step is
        # needed to return no reward after the last one.
        class State(pomdp_py.SimpleState): ...

        class Action(pomdp_py.SimpleAction): ...

        class Observation(pomdp_py.SimpleObservation): ...

        actions, moves = (
            [Action(name) for name in ACTIONS],
            dict(zip(ACTIONS, MOVES.tolist(), strict=True)),
        )

        class Transition(pomdp_py.TransitionModel):  # type: ignore[misc]
            def sample(self, state: Any, action: Any) -> Any:
                x, step = state.data
                gone = action.name == ACTIONS[DECLARE] or x > AWAY / 2
                return State(
                    (random.gauss(AWAY if gone else x + moves[action.name], UNSTEADY), step + 1)
                )

        class Emission(pomdp_py.ObservationModel):  # type: ignore[misc]
            def sample(self, following: Any, action: Any) -> Any:
                x, _ = following.data
                y = random.gauss(x, SHARPEST + BLUR * min(abs(x - LIGHT), FARTHEST))
                return Observation(y if grid is None else round(y / grid))

        class Reward(pomdp_py.RewardModel):  # type: ignore[misc]
            def sample(self, state: Any, action: Any, following: Any) -> float:
                x, step = state.data
                return float(action.name == ACTIONS[DECLARE] and abs(x) < GOAL and step < HORIZON)

        class Uniform(pomdp_py.RolloutPolicy):  # type: ignore[misc]
            def rollout(self, state: Any, history: Any = None) -> Any:
                return random.choice(actions)

            def get_all_actions(self, *_: Any, **__: Any) -> Any:
                return actions

        self.State, self.uniform = State, Uniform()
        self.models = self.uniform, Transition(), Emission(), Reward()

    def act(self, observations: Any, actions: Any) -> Any:
        """Return one action with probability 1."""
        belief = self.beliefs.belief(observations, actions)
        random.seed(np.asarray(observations).tobytes())
        states = random.choices(belief.particles.tolist(), belief.weights.tolist(), k=500)
        begun = time.perf_counter()
        agent = self.module.Agent(
            self.module.Particles([self.State((x, len(actions))) for x in states]), *self.models
        )
        planner = self.module.POUCT(
            max_depth=HORIZON - len(actions),
            discount_factor=1.0,
            num_sims=self.simulations,
            exploration_const=1.0,
            rollout_policy=self.uniform,
        )
        chosen = ACTIONS.index(planner.plan(agent).name)
        self.seconds += time.perf_counter() - begun
        self.searches += 1
        return np.eye(len(ACTIONS))[chosen]


def measured(
    who: str, simulations: int, policy: Policy, world: World, episodes: int
) -> dict[str, Any]:
    """Estimate the value of a policy, and the time per simulation."""
    policy.act([1.0], [])  # compiles
    spent = statistics(policy)
    found = estimate(policy, world, jax.random.key(0), episodes)
    seconds, searches = (
        after - before for after, before in zip(statistics(policy), spent, strict=True)
    )
    print(f"{who}, {simulations} simulations: {found}", file=sys.stderr)
    return {
        "who": who,
        "simulations": simulations,
        "value": found.mean,
        "standard_error": found.standard_error,
        "microseconds": 1e6 * seconds / (searches * simulations),
        "seconds per search": seconds / searches,
    }


def statistics(policy: Any) -> tuple[float, float]:
    """Seconds and searches so far."""
    if isinstance(policy, OnlinePolicy):
        return policy.statistics["seconds"], policy.statistics["searches"]
    return policy.seconds, policy.searches


def against_pouct(budgets: list[int], episodes: int) -> list[dict[str, Any]]:
    """Compare both planners on light-dark."""
    world, rows = light_dark.structured(HORIZON, LIGHT, gain=1.0, blur=BLUR), []
    for simulations in budgets:
        ours = particle_tree(simulations)(world).policy
        rows.append(measured("particle_tree", simulations, ours, world, episodes))
        try:
            for grid in (None, 0.5):
                peer = PouctPolicy(ours, simulations, grid)
                name = "pomdp-py POUCT" + (f", observations rounded to {grid}" if grid else "")
                rows.append(measured(name, simulations, peer, world, episodes))
        except ImportError:
            print(
                "pomdp-py is not installed (pip install pomdp-py): its rows are left out",
                file=sys.stderr,
            )
    return rows


def against_the_optimum(seeds: int = 3) -> list[dict[str, Any]]:
    """Measure how far the exact value of the planner is below the optimum as its budget grows.

    The number of particles grows with the budget.
    """
    tasks = {
        "tiger, H = 4": models.load("tiger").pomdp,
        "random, X = 4, Y = A = 3, H = 4": models.load(
            "random", states=4, observations=3, actions=3, horizon=4, seed=1
        ).pomdp,
    }
    rows = []
    for name, model in tasks.items():
        optimum = history_tree()(model).value
        for simulations in (16, 64, 256, 1024):
            options = {"particles": 4 * simulations, "tree_particles": max(16, simulations // 4)}
            policies = [
                particle_tree(simulations, seed=seed, **options)(model).policy
                for seed in range(seeds)
            ]
            losses = [optimum - evaluate(policy, model) for policy in policies]
            spent = sum(policy.statistics["seconds"] for policy in policies)
            each = 1e6 * spent / sum(policy.statistics["simulations"] for policy in policies)
            rows.append(
                {
                    "model": name,
                    "optimum": optimum,
                    "simulations": simulations,
                    "loss": float(np.mean(losses)),
                    "worst": max(losses),
                    "microseconds": each,
                }
            )
            print(rows[-1], file=sys.stderr)
    return rows


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Print a table."""
    table = Table(*rows[0], title=title)
    for row in rows:
        table.add_row(
            *(value if isinstance(value, str) else f"{value:.4g}" for value in row.values())
        )
    Console(width=130).print(table)


def main() -> None:
    """Measure, print tables, and optionally write JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--episodes", type=int, default=40, help="episodes of light-dark per value (default: 40)"
    )
    parser.add_argument(
        "--simulations",
        type=int,
        nargs="+",
        default=[200, 1000],
        help="simulations per action (default: 200 1000)",
    )
    parser.add_argument("--out", type=Path, help="write the results to this JSON file")
    options = parser.parse_args()
    peers, exact = against_pouct(options.simulations, options.episodes), against_the_optimum()
    show(f"light-dark, horizon {HORIZON}", peers)
    show("below the optimum", exact)
    if options.out:
        about = {
            "python": platform.python_version(),
            "jax": jax.__version__,
            "episodes": options.episodes,
        }
        options.out.write_text(
            json.dumps({"about": about, "light-dark": peers, "optimum": exact}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()

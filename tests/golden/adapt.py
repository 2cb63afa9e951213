"""Adapters between the golden cases and the shapes, names and modules of the package.

The cases use the functions of this file, which return fixed shapes. When array ranks, types or
modules change, edit only this file, so that it still returns the same values.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from itertools import product
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
from homdp_ppl import POMDP, Counts, evaluate, models, posterior, x64
from homdp_ppl.cli.main import main
from homdp_ppl.confidence import (
    backup_moments,
    centred_bonus,
    dirichlet_radii,
    draw_backup,
    empirical,
    hop_b_bonus,
    hop_b_class_bonus,
    hop_b_class_radii,
    hop_b_radii,
    moment_backup,
    moments,
    one_step,
    quantile_radii,
    start_bonus,
    start_variance,
    weissman_radii,
)
from homdp_ppl.evaluation import (
    best_blind,
    best_memoryless,
    fast_informed_bound,
    occupancy,
    qmdp,
    simulation_lemma,
    trajectory_distance,
)
from homdp_ppl.explorers.transforms import replanning as replanned
from homdp_ppl.gym import HOMDPEnv
from homdp_ppl.planners import root_bounds
from homdp_ppl.posteriors import Sampling, predictive_check
from numpyro.infer.util import log_density

Arrays = dict[str, Any]

# models of the zoo with real-valued spaces
CONTINUOUS = ("gaussian_tiger", "gaussian_screening", "low_rank", "light_dark", "camera")
FINITE = tuple(name for name in models.MODELS if name not in CONTINUOUS)

__all__ = ["HOMDPEnv", "Sampling"]  # used by the cases unchanged

# Tables of models


def initial_table(pomdp: Any) -> np.ndarray:
    """Probabilities of the first state, (X,)."""
    return np.asarray(pomdp.initial)


def transition_table(pomdp: Any) -> np.ndarray:
    """Probabilities of the next state, (X, A, X)."""
    return np.asarray(pomdp.transition)[..., 0, :, :, :]


def emission_table(pomdp: Any) -> np.ndarray:
    """Probabilities of the observations, (X, Y), or (A + 1, X, Y) by the previous action."""
    emission = np.asarray(pomdp.emission)[..., 0, :, :, :]
    return emission if emission.shape[-3] > 1 else emission[..., 0, :, :]


def reward_table(pomdp: Any) -> np.ndarray:
    """Rewards by step, (H, X, A)."""
    return np.asarray(pomdp.reward)[..., :, :, 0, :]


def tables(pomdp: Any) -> Arrays:
    """All four tables of a finite model."""
    return {
        "initial": initial_table(pomdp),
        "transition": transition_table(pomdp),
        "emission": emission_table(pomdp),
        "reward": reward_table(pomdp),
    }


def numbers(world: Any) -> Any:
    """The arrays of a finite world, as an argument for planners."""
    return world.pomdp


def make_pomdp(initial: Any, transition: Any, emission: Any, reward: Any) -> Any:
    """A model from tables with the shapes above."""
    return POMDP.of(initial, transition, emission, reward)


def sizes(world: Any) -> tuple[int, int, int, int]:
    """Numbers of states, observations, actions and steps of a finite world."""
    X, Y, A, H = world.spaces.sizes
    return X, Y, A, H


def shortened(world: Any, horizon: int) -> Any:
    """The same world with another horizon."""
    return world.with_horizon(horizon)


# Policies and their values


def policy_arrays(policy: Any) -> Arrays:
    """The arrays of a graph policy: (Y,), (N, A) and (N, A, Y)."""
    return {
        "start": np.asarray(policy.start),
        "probabilities": np.asarray(policy.probabilities),
        "successor": np.asarray(policy.successor),
    }


def acts(policy: Any, observations: Any, actions: Any, steps: int) -> np.ndarray:
    """Action probabilities after every history of at most ``steps`` steps, (N, A)."""
    rows = []
    for h in range(1, steps + 1):
        for seen in product(observations, repeat=h):
            for done in product(actions, repeat=h - 1):
                rows.append(policy.act(np.array(seen), np.array(done, dtype=int)))
    return np.array(rows)


def edges(plan: Any) -> np.ndarray:
    """The edges between the cells of a plan on cells."""
    return np.asarray(plan.policy.edges)


def standard_error(plan: Any) -> float:
    """The standard error of a plan's simulated value."""
    return float(plan.statistics["standard error"])


def value_of(policy: Any, world: Any) -> float:
    """The exact value of a policy in a finite world."""
    return evaluate(policy, numbers(world))


def visits_of(policy: Any, world: Any) -> np.ndarray:
    """Probabilities of state and action at each step, (H, X, A)."""
    return np.asarray(occupancy(policy, numbers(world)))


def lemma(policy: Any, world: Any, other: Any) -> Arrays:
    """Both sides of the simulation lemma for two models, and the distance of trajectories."""
    sides = simulation_lemma(policy, numbers(world), other)
    return {
        "difference": sides.difference,
        "distance": sides.distance,
        "bound": sides.bound,
        "trajectory_distance": trajectory_distance(policy, numbers(world), other),
    }


def plan_of(planner: Any, world: Any) -> Any:
    """A plan for the tables of a world, with its allowed actions."""
    allowed = world.homdp.allowed
    return planner(numbers(world)) if allowed is None else planner(numbers(world), allowed=allowed)


def bounds_of(world: Any) -> Arrays:
    """Bounds at the root, and the tables of the two relaxations, (H, X, A)."""
    found = root_bounds(numbers(world))
    return {
        "root": np.array([found.blind, found.fast_informed, found.qmdp, found.mdp]),
        "qmdp": np.asarray(qmdp(numbers(world))),
        "fast_informed": np.asarray(fast_informed_bound(numbers(world))),
    }


def restricted_values(world: Any) -> Arrays:
    """The values of the best blind and memoryless policies."""
    return {
        "blind": best_blind(numbers(world)).value,
        "memoryless": best_memoryless(numbers(world)).value,
    }


# Episodes and runs


def batch(episodes: Any) -> Arrays:
    """Observations and actions, (N, H, ...), and states, (N, H + 1, ...)."""
    return {
        "observations": np.asarray(episodes.observations),
        "actions": np.asarray(episodes.actions),
        "states": np.asarray(episodes.states),
    }


def record_of(run: Any) -> Arrays:
    """The record of a run."""
    return {
        "optimum": run.optimum,
        "values": run.values,
        "optimistic": run.optimistic,
        "planned": np.asarray(run.record.planned).astype(np.int64),
        "plans": run.record.plans,
        "played": run.played,
        "impossible": np.asarray(run.impossible).astype(np.int64),
        **batch(run.episodes),
        "returns": run.returns,
        "regret": run.regret,
    }


def replanning(made: Any, when: Any) -> Any:
    """A rule with the given replanning schedule."""
    return replanned(made(), when)


def counted(homdp: Any, episodes: Any) -> Any:
    """Counts of episodes, as an argument for posteriors and confidence sets."""
    return homdp.counts(episodes)


def no_counts(homdp: Any) -> Any:
    """Counts without data."""
    return Counts.zero(homdp)


def count_arrays(counts: Any) -> Arrays:
    """The counts of transitions, (X, A, X), and of emissions, (X, Y), and their sums."""
    return {
        "transition": np.asarray(counts.transition),
        "emission": np.asarray(counts.emission),
        "state_action": np.asarray(counts.state_action),
        "visits": np.asarray(counts.visits),
    }


# Posteriors


def draws_of(belief: Any, key: Any, n: int) -> Arrays:
    """Tables of n models drawn from the posterior of a finite model, each with a leading axis."""
    return tables(belief.draws(key, n))


def mean_and_variance(belief: Any) -> Arrays:
    """Mean and variance of every entry of the tables."""
    mean, variance = belief.mean, belief.variance
    return {
        "mean.transition": transition_table(mean),
        "mean.emission": emission_table(mean),
        "variance.transition": np.asarray(variance.transition),
        "variance.emission": np.asarray(variance.emission),
    }


def believed(belief: Any, key: Any, n: int = 5) -> Arrays:
    """Method, concentration, moments and draws of the posterior of a finite model."""
    found = {"method": belief.method, "concentration": np.asarray(belief.closed)}
    found |= mean_and_variance(belief)
    found |= {f"draws.{name}": array for name, array in draws_of(belief, key, n).items()}
    for name, values in belief.parameters(key, n).items():
        found[f"parameters.{name}"] = np.asarray(values)
    return found


def calibration_of(belief: Any) -> np.ndarray:
    """The numbers of the calibration check of a Laplace approximation."""
    return np.array(tuple(belief.calibration), dtype=float)


def atoms_of(belief: Any) -> Arrays:
    """The values of enumerated sites, and their probabilities."""
    found = {f"atoms.{name}": np.asarray(v) for name, v in belief.atoms.values.items()}
    return found | {"atoms.probabilities": np.asarray(belief.atoms.probabilities)}


def continuous_belief(belief: Any, key: Any, n: int = 5) -> Arrays:
    """Method, means and draws of the posterior of a continuous model."""
    found: Arrays = {"method": belief.method}
    found |= {f"mean.{name}": np.asarray(value) for name, value in belief.site_means.items()}
    drawn = belief.parameters(key, n)
    return found | {f"parameters.{name}": np.asarray(value) for name, value in drawn.items()}


def check_of(key: Any, belief: Any, episodes: Any, policy: Any) -> Arrays:
    """The numbers of a predictive check."""
    check = predictive_check(key, belief, episodes, policy)
    found: Arrays = {}
    for kind, rows in (("findings", check.findings), ("frequencies", check.frequencies)):
        found[f"{kind}.what"] = "; ".join(row[0] for row in rows)
        found[kind] = np.array([tuple(row)[1:] for row in rows], dtype=float)
    return found


def hindsight_density(homdp: Any, episodes: Any, parameters: Any) -> float:
    """NumPyro's log density of the program, conditioned on episodes, at given parameters."""
    with x64():
        point = {site: jnp.asarray(value) for site, value in parameters.items()}
        conditioned = homdp.hindsight(episodes)
        return float(jax.jit(lambda values: log_density(conditioned, (), {}, values)[0])(point))


def from_prior(homdp: Any, key: Any) -> Arrays:
    """Parameters drawn from the prior."""
    with x64():
        return {site: np.asarray(value) for site, value in homdp.sample_prior(key).items()}


# Confidence sets


def radii_arrays(radii: Any) -> Arrays:
    """Radii of the rows of T, (X, A), and of O, (X,)."""
    return {"transition": np.asarray(radii.transition), "emission": np.asarray(radii.emission)}


def radii_of(homdp: Any, episodes: Any, key: Any) -> dict[str, Any]:
    """Radii of every kind from the same episodes; the last needs Dirichlet rows."""
    counts = counted(homdp, episodes)
    return {
        "hop_b": hop_b_radii(homdp, counts, 50),
        "hop_b_unknown": hop_b_radii(homdp, counts, 50, known=False),
        "hop_b_scaled": hop_b_radii(homdp, counts, 50, scale=0.1),
        "hop_b_class": hop_b_class_radii(homdp, counts, 50, 4),
        "weissman": weissman_radii(homdp, counts, 50),
        "weissman_unknown": weissman_radii(homdp, counts, 50, known=False),
        "quantile": quantile_radii(posterior(homdp, counts), key),
        "dirichlet": dirichlet_radii(homdp, counts),
    }


def bonuses_of(homdp: Any, episodes: Any, radii: Any) -> Arrays:
    """Bonuses of every kind from given radii, and the empirical model."""
    H = homdp.horizon
    model = empirical(homdp, counted(homdp, episodes))
    return {
        "hop_b": np.asarray(hop_b_bonus(radii, H)),
        "hop_b_class": np.asarray(hop_b_class_bonus(radii, H)),
        "centred": np.asarray(centred_bonus(radii, transition_table(model), H)),
        "start": np.asarray(start_bonus(radii, initial_table(model), H)),
        **{f"empirical.{name}": table for name, table in tables(model).items()},
    }


def backups_of(homdp: Any, belief: Any, alpha: np.ndarray, key: Any) -> Arrays:
    """Optimistic backups of alpha-vectors (A, Y, X): by moments and by draws, each (X, A)."""
    moved = moments(homdp, belief.counts)
    mean, variance = backup_moments(homdp)(moved, alpha)
    step = one_step(belief, alpha)
    return {
        "mean": np.asarray(mean),
        "variance": np.asarray(variance),
        "start_variance": np.asarray(start_variance(homdp)(moved, alpha[0])),
        "moment_backup": np.asarray(moment_backup(homdp, 1.645)(moved, 1, alpha)),
        "draw_backup": np.asarray(draw_backup(1.0)(belief.draws(key, 64), 1, alpha)),
        "one_step.mean": np.asarray(step[0]),
        "one_step.deviation": np.asarray(step[1]),
    }


# The command line


@contextlib.contextmanager
def _wide() -> Iterator[io.StringIO]:
    """Capture printed text, formatted as for a file."""
    plain = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    into = contextlib.redirect_stdout(io.StringIO())
    with mock.patch.dict(os.environ, plain, clear=True), into as out:
        yield out


def printed(*words: str) -> np.ndarray:
    """All numbers that a command prints, except running times."""
    with _wide() as out:
        assert main(list(words)) == 0
    lines = [line for line in out.getvalue().splitlines() if not line.startswith("seconds")]
    return all_numbers("\n".join(_without_seconds(lines)))


def _without_seconds(lines: list[str]) -> list[str]:
    """Lines of a table without the right-aligned column ``seconds``."""
    heads = [k for k, line in enumerate(lines) if re.search(r"\bseconds\s", line)]
    for k in heads[:1]:
        end = lines[k].index(" seconds ") + 8
        begin = len(lines[k][: end - 8].rstrip())
        for below in range(k + 1, len(lines)):
            if not lines[below].strip():
                break
            lines[below] = lines[below][:begin] + " " + lines[below][end:]
    return lines


def all_numbers(text: str) -> np.ndarray:
    """All numbers in a text, in order."""
    found = re.findall(r"(?<![\w.])-?\d[\d,]*\.?\d*(?:e[+-]?\d+)?", text)
    return np.array([float(number.replace(",", "")) for number in found])


# Random numbers


def key(seed: int) -> Any:
    """A random key."""
    return jax.random.key(seed)


def keys(seed: int, n: int) -> Any:
    """Several random keys."""
    return jax.random.split(jax.random.key(seed), n)

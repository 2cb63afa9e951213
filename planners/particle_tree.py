"""particle_tree: an online planner on particle beliefs, for states and observations of any kind.

It plans as it goes (online_policy.py): particles that explain what has been seen
(particle_belief.py) are the root of a tree that is grown before each action (particle_search.py).
What it finds is as good as its budget; nothing is certified.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import validated
from homdp_ppl.core.spaces import Real
from homdp_ppl.declare.decorator import tabular
from homdp_ppl.declare.dynamics import Dynamics, Numbers, table_dynamics
from homdp_ppl.declare.model import World
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.evaluation.simulation import Estimate, estimate, summary
from homdp_ppl.planners._checking import count_problems, number_problems, refuse
from homdp_ppl.planners._online_policy import Budget, OnlinePolicy, belief_bytes
from homdp_ppl.planners._particle_rows import Constants, Sizes, tree_bytes
from homdp_ppl.precision import Array, x64

SIMULATIONS = 1000  # where no budget is given
MANY = 20_000  # the largest tree where the budget is in seconds
ROWS = (
    1024  # trees have at least so many rows, and then powers of two, so that few sizes are compiled
)
MEMORY = 4_000_000_000  # bytes


class EstimatedPlan(NamedTuple):
    """A policy that plans as it goes; what it is worth is known by simulation only.

    There is no certificate: neither is the optimum bounded, nor does the interval contain the
    policy's value for sure.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> plan = particle_tree(simulations=50, episodes=4)(models.load("tiger", horizon=2))
    >>> plan
    Plan by particle_tree: value 1.875 ± 0.025 in 4 episodes (1.795 to 1.955), not certified
    >>> plan.estimated, round(plan.value, 4)
    (True, 1.875)
    """

    policy: OnlinePolicy
    estimate: Estimate
    planner: str = "particle_tree"

    @property
    def estimated(self) -> bool:
        """True: ``value`` is a mean of simulated returns."""
        return True

    @property
    def value(self) -> float:
        """The mean return of simulated episodes; nan if there were none."""
        return self.estimate.mean

    @property
    def standard_error(self) -> float:
        """Of ``value``."""
        return self.estimate.standard_error

    @property
    def interval(self) -> tuple[float, float]:
        """For the value of the policy, at a level of 95 %."""
        return self.estimate.interval

    @property
    def statistics(self) -> Mapping[str, float]:
        """What the policy has spent and met until now, in simulated episodes and elsewhere."""
        return self.policy.statistics

    def __repr__(self) -> str:
        known = f"value {self.estimate}" if self.estimate.episodes else "value not estimated"
        return f"Plan by {self.planner}: {known}, not certified"


def particle_tree(
    simulations: int | None = None,
    seconds: float | None = None,
    *,
    seed: int = 0,
    particles: int = 1000,
    tree_particles: int = 128,
    exploration: float = 0.5,
    widening: tuple[float, float] = (4.0, 0.35),
    rollouts: int = 8,
    heuristic: Callable[[Array, Array], Array] | None = None,
    episodes: int = 0,
) -> Callable[[World | POMDP], EstimatedPlan]:
    """A planner for any declared program: it grows a tree of particle beliefs before every action.

    This is not a certificate: the policy is as good as its budget allows, and what it is worth is
    known by simulation only. It approaches the optimum as simulations, ``particles`` and
    ``tree_particles`` grow together.

    Parameters
    ----------
    simulations
        The budget before each action; by default 1000, or 20,000 when ``seconds`` are given.
    seconds
        The time before each action, compilation apart. Only without it are actions a function of
        seed and history alone.
    seed
        A whole number: all that is random comes from it and from the history.
    particles
        Of the belief that is carried from step to step.
    tree_particles
        Of every belief in the tree.
    exploration
        The weight of the upper confidence bounds, in units of the remaining steps.
    widening
        (k, alpha): an action that was tried n times branches into at most ceil(k n^alpha)
        observations.
    rollouts
        How many simulations of uniform actions value a belief that is new.
    heuristic
        In their place: a function of (h, x) that JAX can trace, which returns the value of what
        remains from step h on; the first step is 0. It is averaged over the belief.
    episodes
        How many episodes are simulated to estimate the policy's value; with 0 it is nan.

    Examples
    --------
    >>> from homdp_ppl import evaluate, models
    >>> world = models.load("tiger", horizon=2)
    >>> plan = particle_tree(simulations=50)(world)
    >>> plan
    Plan by particle_tree: value not estimated, not certified
    >>> (
    ...     plan.policy.act([0], []),
    ...     plan.policy.act([0, 0], [0]),
    ... )  # listen after one growl, open the other door after two
    (array([1., 0., 0.]), array([0., 0., 1.]))
    >>> round(evaluate(plan.policy, world.pomdp), 4)  # here it found the optimum
    1.852
    """
    problems = [
        *count_problems(
            1,
            simulations=1 if simulations is None else simulations,
            particles=particles,
            tree_particles=tree_particles,
            rollouts=rollouts,
        ),
        *count_problems(0, seed=seed, episodes=episodes),
        *number_problems(seconds=seconds or 0.0, exploration=exploration),
        *_widening_problems(widening),
    ]
    if heuristic is not None and not callable(heuristic):
        problems.append(Problem("heuristic", repr(heuristic), "a function of (h, x), or None"))
    refuse("particle_tree", problems)
    budget = Budget(simulations or (SIMULATIONS if seconds is None else MANY), seconds)
    rows = max(ROWS, 2 ** math.ceil(math.log2(budget.simulations)))
    k, alpha = map(float, widening)
    observations = max(1, math.ceil(k * rows**alpha))

    def planner(world: World | POMDP) -> EstimatedPlan:
        dynamics, numbers = _dynamics(world)
        domain = dynamics.spaces
        Y = domain.observations
        most = observations if isinstance(Y, Real) else min(observations, len(Y))
        sizes = Sizes(rows, most, tree_particles, rollouts, heuristic)
        _check_memory(tree_bytes(domain, sizes) + domain.horizon * belief_bytes(domain, particles))
        policy = OnlinePolicy(
            dynamics,
            numbers,
            sizes,
            Constants(float(exploration), k, alpha),
            budget,
            particles,
            seed,
        )
        if episodes == 0:
            return EstimatedPlan(policy, summary(np.zeros(0), domain.horizon))
        with x64():
            key = jax.random.key(seed)
        return EstimatedPlan(policy, estimate(policy, _as_world(world), key, episodes))

    return planner


def _dynamics(world: World | POMDP) -> tuple[Dynamics, Numbers]:
    """What the search simulates: of a finite model its tables."""
    if isinstance(world, POMDP):
        pomdp = validated(world, "particle_tree")
        pomdp.stationary("particle_tree")  # raises where tables depend on the step or the action
        return table_dynamics(*world.spaces.sizes), pomdp
    if isinstance(world, World):
        return world.dynamics, world.numbers
    remedy = "Fix a declaration's parameters with .at(...), or draw them with .draw(key)."
    raise PlanningError(
        "particle_tree", [Problem("world", f"a {type(world).__name__}", "a World", remedy)]
    )


def _as_world(world: World | POMDP) -> World:
    """Something to simulate in."""
    if not isinstance(world, POMDP):
        return world
    initial, T, O, reward = world.stationary("particle_tree")  # noqa: E741
    return tabular(T=T, O=O, initial=initial, reward=reward, horizon=world.horizon).at()


def _widening_problems(widening: Any) -> list[Problem]:
    if isinstance(widening, tuple) and len(widening) == 2:
        return number_problems(k=widening[0], alpha=widening[1])
    return [Problem("widening", repr(widening), "(k, alpha)")]


def _check_memory(needed: int) -> None:
    if needed > MEMORY:
        got = f"a tree and beliefs of about {needed / 1e9:,.1f} GB"
        remedy = (
            "Ask for fewer simulations, particles or tree_particles, or for a smaller widening."
        )
        raise PlanningError(
            "particle_tree", [Problem("simulations", got, f"at most {MEMORY / 1e9:g} GB", remedy)]
        )

"""particle_tree: an online planner on particle beliefs, for states and observations of any kind.

It plans as it goes (online_policy.py): particles that explain what has been seen
(particle_belief.py) are the root of a tree that is grown before each action (particle_search.py).
What it finds is as good as its budget; nothing is certified.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from homdp_ppl.core.arguments import count_problems, number_problems, refuse, size_problems
from homdp_ppl.core.checked import checked
from homdp_ppl.core.plan import Plan
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import validated
from homdp_ppl.core.spaces import Real
from homdp_ppl.declare.decorator import tabular
from homdp_ppl.declare.dynamics import Dynamics, Numbers, table_dynamics
from homdp_ppl.declare.model import World
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.evaluation.simulation import estimate, summary
from homdp_ppl.memory import require_memory
from homdp_ppl.planners._online_policy import Budget, OnlinePolicy, belief_bytes
from homdp_ppl.planners._particle_rows import Constants, Sizes, tree_bytes
from homdp_ppl.precision import Array, x64

SIMULATIONS = 1000  # where no budget is given
MANY = 20_000  # the largest tree where the budget is in seconds
ROWS = (
    1024  # trees have at least so many rows, and then powers of two, so that few sizes are compiled
)


@dataclass(frozen=True)
class ParticleTree:
    """The planner that :func:`particle_tree` makes."""

    budget: Budget
    seed: int
    particles: int
    tree_particles: int
    exploration: float
    widening: tuple[float, float]
    rollouts: int
    heuristic: Callable[[Array, Array], Array] | None
    episodes: int

    def __call__(self, world: World | POMDP) -> Plan:
        """Plan for a world, or for the arrays of a finite one."""
        dynamics, numbers = _dynamics(world)
        domain = dynamics.spaces
        k, alpha = self.widening
        rows = max(ROWS, 2 ** math.ceil(math.log2(self.budget.simulations)))
        most, Y = max(1, math.ceil(k * rows**alpha)), domain.observations
        most = most if isinstance(Y, Real) else min(most, len(Y))
        sizes = Sizes(rows, most, self.tree_particles, self.rollouts, self.heuristic)
        needed = domain.horizon * belief_bytes(domain, self.particles)
        _check_memory(tree_bytes(domain, sizes) + needed)
        constants = Constants(self.exploration, k, alpha)
        policy = OnlinePolicy(
            dynamics, numbers, sizes, constants, self.budget, self.particles, self.seed
        )
        valued = summary(np.zeros(0), domain.horizon)
        if self.episodes:
            with x64():
                key = jax.random.key(self.seed)
            valued = estimate(policy, _as_world(world), key, self.episodes)
        low, high = valued.interval
        found = {"standard error": valued.standard_error, "low": low, "high": high}
        statistics = {**policy.statistics, "episodes": valued.episodes, **found}
        return Plan(policy, valued.mean, math.inf, False, "particle_tree", statistics, domain)

    def plan_tables(self, world: World, latent: tuple[Array, Array, Array]) -> Plan:
        """Raise an error: tables with bonuses are no world that can be simulated."""
        got = "a planner that cannot add bonuses to rewards"
        raise PlanningError(
            "particle_tree", [Problem("planner", got, "planner=planners.quantised()")]
        )


@checked
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
) -> ParticleTree:
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
        *size_problems(
            1,
            simulations=1 if simulations is None else simulations,
            particles=particles,
            tree_particles=tree_particles,
            rollouts=rollouts,
        ),
        *count_problems(0, seed=seed),
        *size_problems(0, episodes=episodes),
        *number_problems(seconds=seconds or 0.0, exploration=exploration),
        *_widening_problems(widening),
    ]
    if heuristic is not None and not callable(heuristic):
        problems.append(Problem("heuristic", repr(heuristic), "a function of (h, x), or None"))
    refuse(PlanningError, "particle_tree", problems)
    budget = Budget(simulations or (SIMULATIONS if seconds is None else MANY), seconds)
    k, alpha = map(float, widening)
    return ParticleTree(
        budget,
        seed,
        particles,
        tree_particles,
        float(exploration),
        (k, alpha),
        rollouts,
        heuristic,
        episodes,
    )


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
    remedy = "Ask for fewer simulations, particles or tree_particles, or for a smaller widening."
    got = "a tree and beliefs"
    require_memory(PlanningError, "particle_tree", "simulations", got, needed, remedy)

"""particle_tree: an online planner with particle beliefs, for all kinds of states and observations.

Before each action (_online_policy.py), it updates a particle belief (_particle_belief.py) and
searches a tree from this belief (_particle_search.py). The quality of the policy depends on the
budget; plans are not certified.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from homdp_ppl.core.allowed import Allowed, refuse_allowed
from homdp_ppl.core.arguments import count_problems, number_problems, refuse, size_problems
from homdp_ppl.core.checked import checked
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.plan import Plan
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import validated
from homdp_ppl.core.rollout import play_tables
from homdp_ppl.core.spaces import Real, Spaces
from homdp_ppl.declare.dynamics import Dynamics, Numbers, table_dynamics
from homdp_ppl.declare.model import World
from homdp_ppl.errors import PlanningError, Problem, with_article
from homdp_ppl.evaluation.simulation import estimate, summary
from homdp_ppl.memory import require_memory
from homdp_ppl.planners._online_policy import Budget, OnlinePolicy, belief_bytes
from homdp_ppl.planners._particle_rows import Constants, Sizes, tree_bytes
from homdp_ppl.precision import Array, x64

SIMULATIONS = 1000  # default budget
MANY = 20_000  # largest number of simulations if the budget is in seconds
# Smallest number of rows of a tree; larger ones are powers of two, so that few sizes are compiled.
ROWS = 1024


@dataclass(frozen=True)
class ParticleTree:
    """The planner returned by :func:`particle_tree`."""

    budget: Budget
    seed: int
    particles: int
    tree_particles: int
    exploration: float
    widening: tuple[float, float]
    rollouts: int
    heuristic: Callable[[Array, Array], Array] | None
    episodes: int

    def __call__(self, world: World | POMDP, *, allowed: Allowed | None = None) -> Plan:
        """Plan for a world or a POMDP; a restriction of the actions raises PlanningError."""
        refuse_allowed("particle_tree", allowed)
        if isinstance(world, POMDP):
            world = validated(world, "particle_tree")
        dynamics, numbers = _dynamics(world)
        domain = dynamics.spaces
        k, alpha = self.widening
        rows = max(ROWS, 2 ** math.ceil(math.log2(self.budget.simulations)))
        most, Y = max(1, math.ceil(k * rows**alpha)), domain.observations
        most = most if isinstance(Y, Real) else min(most, len(Y))
        given: Any = self.heuristic
        heuristic: Any = None if given is None else InsideHeuristic(given, *_units(world))
        sizes = Sizes(rows, most, self.tree_particles, self.rollouts, heuristic)
        needed = domain.horizon * belief_bytes(domain, self.particles)
        _check_memory(tree_bytes(domain, sizes) + needed)
        constants = Constants(self.exploration, k, alpha)
        policy = OnlinePolicy(
            dynamics, numbers, sizes, constants, self.budget, self.particles, self.seed
        )
        valued = summary(np.zeros(0), (0.0, float(domain.horizon)))
        if self.episodes:
            with x64():
                key = jax.random.key(self.seed)
            simulator = _Simulator(world) if isinstance(world, POMDP) else world
            valued = estimate(policy, simulator, key, self.episodes)
        low, high = valued.interval
        found = {"standard error": valued.standard_error, "low": low, "high": high}
        statistics = {**policy.statistics, "episodes": valued.episodes, **found}
        return Plan(policy, valued.mean, math.inf, False, "particle_tree", statistics, domain)

    def plan_tables(self, world: World, latent: tuple[Array, Array, Array]) -> Plan:
        """Raise PlanningError: tables with bonuses are not a world that can be simulated."""
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
    """A planner for any declaration: before every action it searches a tree of particle beliefs.

    Plans are not certified. The quality of the policy depends on the budget, and its value is known
    from simulation only. It approaches the optimum as the simulations, ``particles`` and
    ``tree_particles`` increase together.

    Parameters
    ----------
    simulations
        The largest number of simulations before each action. Default: 1000, or 20,000 if
        ``seconds`` is given.
    seconds
        The largest time before each action, without compilation. With a time limit, actions are not
        reproducible; otherwise they are a function of seed and history.
    seed
        A non-negative integer, the seed of all random numbers.
    particles
        Number of particles of the belief that is updated from step to step.
    tree_particles
        Number of particles of each belief in the tree.
    exploration
        The weight of the upper confidence bounds, in units of the remaining steps.
    widening
        (k, alpha): an action that was tried n times has at most ceil(k n^alpha) observations in the
        tree.
    rollouts
        Number of simulations with uniform actions to evaluate a new belief.
    heuristic
        Replaces the rollouts: a function of (h, x) that JAX can trace. It returns the remaining
        value from step h on in the user's units, where the first step is 0, and is averaged over
        the belief.
    episodes
        Number of simulated episodes to estimate the value of the policy. With 0, the value is NaN.

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
    ... )  # listen after one growl; after two open the other door
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
    """The dynamics that the search simulates, and their parameters."""
    if isinstance(world, POMDP):
        return table_dynamics(*world.spaces.sizes), world
    if isinstance(world, World):
        return world.dynamics, world.numbers
    remedy = "Fix the parameters of a declaration with .at(...), or draw them with .draw(key)."
    raise PlanningError(
        "particle_tree",
        [Problem("world", with_article(type(world).__name__), "a World or a POMDP", remedy)],
    )


class _Simulator(NamedTuple):
    """A POMDP in which episodes can be simulated."""

    pomdp: POMDP

    @property
    def spaces(self) -> Spaces:
        """Generated names."""
        return self.pomdp.spaces

    @property
    def return_range(self) -> tuple[float, float]:
        """The smallest and the largest possible return, in the user's units."""
        low, high = (float(self.pomdp.to_user(bound)) for bound in (0.0, self.pomdp.horizon))
        return low, high

    def play(self, keys: Array, policy: Policy, actions: Array | None = None) -> Episodes:
        """Simulate one episode per key."""
        return play_tables(keys, self.pomdp, policy, self.spaces, actions)

    def returns(self, episodes: Episodes) -> Array:
        """The sum of rewards of each episode up to its end, in the user's units."""
        pomdp, steps = self.pomdp, np.arange(self.pomdp.horizon)
        seen = episodes.observations if pomdp.rewards_by_observation else 0
        rewards = pomdp.reward[steps, episodes.states[:, :-1], seen, episodes.actions]
        inside = np.where(episodes.steps, rewards, 0.0).sum(-1)
        return pomdp.scale * inside + episodes.length * pomdp.shift


def _units(world: World | POMDP) -> tuple[float, float, int]:
    """Scale, shift and horizon."""
    if isinstance(world, POMDP):
        return float(world.scale), float(world.shift), world.horizon
    rewards = world.homdp.rewards
    return rewards.scale, rewards.shift, world.spaces.horizon


class InsideHeuristic(NamedTuple):
    """A heuristic in the user's units, for rewards in [0, 1]."""

    heuristic: Callable[[Array, Array], Array]
    scale: float
    shift: float
    horizon: int

    def __call__(self, h: Array, x: Array) -> Array:
        """The remaining value from step h on, for rewards in [0, 1]."""
        return (self.heuristic(h, x) - (self.horizon - h) * self.shift) / self.scale


def _widening_problems(widening: Any) -> list[Problem]:
    if isinstance(widening, tuple) and len(widening) == 2:
        return number_problems(k=widening[0], alpha=widening[1])
    return [Problem("widening", repr(widening), "two numbers, (k, alpha)")]


def _check_memory(needed: int) -> None:
    remedy = "Use fewer simulations, particles or tree_particles, or a smaller widening."
    got = "a tree and beliefs"
    require_memory(PlanningError, "particle_tree", "simulations", got, needed, remedy)

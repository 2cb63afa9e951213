"""One round of learning, seen from outside.

Keys and noise, planning a proposal, and what its policy is worth.

The readable loop and its compiled twin share what is here: how randomness is derived, what counts
as an impossible history, how a candidate is chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

import jax
import numpy as np

from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.plan import Plan, Solution, TreePlanner, planner_name
from homdp_ppl.core.policy import Trajectory
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.probabilities import FLOAT32
from homdp_ppl.core.randomness import Noise, noise
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError, PlanningError, Problem
from homdp_ppl.explorers.explorer import Explorer, Pairs, Proposal, State
from homdp_ppl.learning.pairs import PairSearch, TableBounds
from homdp_ppl.precision import Array, namespace

Planner: TypeAlias = Callable[..., Plan]

INEXACT = 1e-6  # a larger gap is not exact planning


class Luck(NamedTuple):
    """Everything random about one episode."""

    proposal: Array  # the explorer's key
    noise: Noise  # the world's, and that of random actions


class Decision(NamedTuple):
    """What a round has decided."""

    policy: GraphPolicy
    optimistic: Array  # ()  the optimistic value of the optimum
    model: POMDP  # planned for
    visits: Array  # (X, A)  n(x, a) when it was planned
    value: Array  # ()  exact, in the true world


@partial(
    jax.jit, static_argnums=(3, 4)
)  # serves all loops: it takes as long to compile as a twin does
def lucks(seed: Array, rule: Array, first: Array, n: int, horizon: int) -> Luck:
    """The luck of n episodes in a row.

    The world's comes from (seed, episode, step), the explorer's from (seed, rule, episode).

    Parameters
    ----------
    seed
        A JAX key made from the seed.
    rule
        crc32 of the rule's name.
    first
        The number of the first episode.
    n, horizon
        How many episodes, and their length.
    """

    def one(episode: Array) -> Luck:
        world = jax.random.fold_in(jax.random.fold_in(seed, 0), episode)
        own = jax.random.fold_in(explorer_key(seed, 1, rule), episode)
        return Luck(jax.random.fold_in(own, 0), noise(world, jax.random.fold_in(own, 1), horizon))

    return jax.vmap(one)(first + np.arange(n))


def explorer_key(seed: Array, purpose: int, rule: Array) -> Array:
    """The key of a rule under a seed.

    Purpose 1 is for what it proposes and plays, 2 for inference by sampling.
    """
    return jax.random.fold_in(jax.random.fold_in(seed, purpose), rule)


def rule_number(explorer: Explorer) -> np.uint32:
    """crc32 of the rule's name."""
    return np.uint32(crc32(explorer.rule.encode()))


def out_of_date(explorer: Explorer, visits: Array, then: Array) -> Array:
    """Whether a decision made at n(x, a) = ``then`` is to be made again at ``visits``."""
    xp = namespace(visits)
    if explorer.replan == "doubled":
        return (visits >= xp.maximum(1, 2 * then)).any()
    return xp.asarray(explorer.replan == "every episode")


def choose_candidate(explorer: Explorer, values: Array) -> Array:
    """Which candidate is deployed.

    The first of the best, or the one with the k-th smallest value.
    """
    xp = namespace(values)
    if explorer.pick is None:
        return xp.argmax(values)
    return xp.argsort(values, stable=True)[explorer.pick - 1]


def explore(explorer: Explorer, policy: GraphPolicy) -> GraphPolicy:
    """The policy with its share of uniform actions."""
    if explorer.explore == 0.0:
        return policy
    start, chances, successor = policy.tree_flatten()[0]
    mixed = (1 - explorer.explore) * chances + explorer.explore / chances.shape[1]
    return GraphPolicy.tree_unflatten(policy.names, (start, mixed, successor))


def impossible_steps(model: POMDP, trajectory: Trajectory) -> Array:
    """How many observations of an episode had probability zero under the planned model.

    The predicted belief is kept then.
    """
    xp = namespace(model, trajectory)
    predicted = model.initial
    total = xp.zeros((), dtype=int)
    for h in range(model.horizon):
        previous = trajectory.actions[h - 1] if h else None
        joint = predicted * model.likelihood(trajectory.observations[h], previous, h)
        chance = joint.sum()
        total = total + (chance <= 0)
        belief = xp.where(chance > 0, joint / xp.where(chance > 0, chance, 1.0), predicted)
        predicted = model.predict(belief, trajectory.actions[h], h)
    return total


def check_proposal(explorer: Explorer, proposal: Any) -> None:
    """Refuse what is no proposal, from a rule that somebody has just written."""
    if isinstance(proposal, Pairs):
        return
    if not isinstance(proposal, Proposal):
        problem = Problem(
            "propose", f"a {type(proposal).__name__}", "a Proposal", "Return Proposal(models)."
        )
    elif not isinstance(proposal.models, POMDP) or np.ndim(proposal.models.initial) != 2:
        remedy = (
            "Put an axis of candidates in front: Proposal(POMDP(*(part[None] for part in model)))."
        )
        problem = Problem(
            "propose",
            "models without an axis of candidates",
            "a POMDP of arrays with one more axis",
            remedy,
        )
    elif len(proposal.models.initial) != explorer.candidates:
        many = len(proposal.models.initial)
        problem = Problem(
            "propose",
            f"{many} models",
            f"{explorer.candidates}",
            f"Or say so: Explorer(..., candidates={many}).",
        )
    else:
        return
    raise ParameterError(explorer.name, [problem])


def check_numbers(explorer: Explorer, models: POMDP) -> None:
    """Refuse proposed models whose rows are no probabilities or whose rewards are no numbers."""
    rows = (np.asarray(part) for part in models[:3])
    if (
        all((row >= 0).all() and (np.abs(row.sum(-1) - 1) <= FLOAT32).all() for row in rows)
        and np.isfinite(models.reward).all()
    ):
        return
    problem = Problem(
        "propose", "numbers that make no model", "rows that are probabilities, and finite rewards"
    )
    raise ParameterError(explorer.name, [problem])


class Planning:
    """A rule's planner: what the user chose, made optimistic in the way that the rule asks for.

    Parameters
    ----------
    explorer
        The rule.
    planner
        The planner.
    homdp
        The learner's declaration.
    """

    def __init__(self, explorer: Explorer, planner: Planner, homdp: HOMDP) -> None:
        self.explorer = explorer
        self.support: Tables = explorer.support(homdp)
        self.root = explorer.root(homdp)
        if explorer.backup is not None and not isinstance(planner, TreePlanner):
            got = f"{planner_name(planner)}, which has no optimistic backups"
            remedy = (
                f"{explorer.rule} is not convex in the belief: only the history tree can plan it."
            )
            raise PlanningError(
                explorer.rule, [Problem("planner", got, "planner=history_tree()", remedy)]
            )
        backup = explorer.backup(homdp) if explorer.backup else None
        self.tree: TreePlanner | None = None
        if isinstance(planner, TreePlanner):
            self.tree = planner.optimistic(backup, explorer.clip)
        self._planner = planner
        self._pairs: PairSearch[Pairs, Solution] = PairSearch(
            lambda model: self._solve(model, None), TableBounds()
        )

    def decide(self, proposal: Proposal | Pairs, state: State) -> tuple[Decision, int]:
        """Plan for all candidates and choose; also how many plans that took.

        What the policy is worth in the true world is for others to say.
        """
        check_proposal(self.explorer, proposal)
        if isinstance(proposal, Proposal):
            check_numbers(self.explorer, proposal.models)
        visits, unknown = state.counts.state_action, np.array(np.nan)
        if isinstance(proposal, Pairs):
            solution, pair, plans = self._pairs.best(proposal)
            model = proposal.model(*pair)
            return Decision(
                explore(self.explorer, solution.policy), solution.upper, model, visits, unknown
            ), plans
        candidates = [
            jax.tree.map(lambda leaf, c=c: leaf[c], proposal)
            for c in range(len(proposal.models.initial))
        ]
        solutions = [
            self._solve(candidate.models, candidate.parameters) for candidate in candidates
        ]
        values = np.array(
            [self.root(c.parameters, s) for c, s in zip(candidates, solutions, strict=True)]
        )
        chosen = choose_candidate(self.explorer, values)
        policy = explore(self.explorer, solutions[chosen].policy)
        return Decision(policy, values[chosen], candidates[chosen].models, visits, unknown), len(
            candidates
        )

    def _solve(self, model: POMDP, parameters: Any) -> Solution:
        if self.tree is not None:
            return self.tree.solve(model, parameters, self.support)
        plan = self._planner(model)
        if self.explorer.exact and plan.gap > INEXACT:
            remedy = "Use planner=history_tree() or alpha_vectors()."
            problem = Problem(
                "planner",
                f"a gap of {plan.gap:.2g}",
                "an exact planner: its coverage needs one",
                remedy,
            )
            raise PlanningError(self.explorer.rule, [problem])
        policy: Any = plan.policy  # a custom planner's may be any policy
        return Solution(np.float64(plan.value), np.float64(plan.upper), np.zeros(0), policy)

"""Planning for proposals in finite spaces: plan all candidates, choose one, add random actions.

There is one version in NumPy for any planner, and one that JAX can trace for tree planners. Both
make the same choices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.allowed import Allowed
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.plan import Plan, Solution, TreePlanner, planner_name
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.probabilities import FLOAT32
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.core.sparse import Sparse, as_dense, row_sums
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.rewards import Rewards
from homdp_ppl.errors import ParameterError, PlanningError, Problem, with_article
from homdp_ppl.evaluation.exact import uniform_rows
from homdp_ppl.explorers.explorer import Explorer, Root
from homdp_ppl.explorers.state import Pairs, Proposal
from homdp_ppl.learning.pairs import PairSearch, TableBounds
from homdp_ppl.memory import NUMBER, require_memory
from homdp_ppl.precision import Array, namespace

Planner: TypeAlias = Callable[..., Plan]

MANY = 1000  # with more candidates, check first that all plans fit in memory
COPIES = 2  # copies of each plan while candidates are compared
INEXACT = 1e-6  # a plan with a larger gap is not exact


class Planned(NamedTuple):
    """The chosen plan of a proposal."""

    policy: Policy
    optimistic: Array | np.float64  # ()  the optimistic value, in the user's units
    model: POMDP | None  # the model that was planned for; None without tables
    plans: Array | np.int64  # ()  number of models that were planned for
    allowed: Array | None = None  # (N, A)  which actions are allowed at each node; None: all


class TablePlanning:
    """The user's planner, with the optimism that the rule requires.

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
        self.explorer, self._planner, self.spaces = explorer, planner, homdp.spaces
        self.support, self.allowed = _support(explorer, planner, homdp), homdp.allowed
        self.rewards = homdp.rewards
        self.root = explorer.objective.root(homdp)
        self.tree = _tree(explorer, planner, homdp)
        self._pairs: PairSearch = PairSearch(self._solve_pair, TableBounds())
        if self.tree is not None and explorer.objective.candidates > MANY:
            self._require_room(homdp)

    def _require_room(self, homdp: HOMDP) -> None:
        """Raise an error before planning if the plans of all candidates do not fit in memory."""
        explorer, tree = self.explorer, cast(TreePlanner, self.tree)
        if explorer.objective.backup is not None:  # its parameters are not known yet
            return
        model = homdp.model_of(homdp.structure.reference)
        # much faster than tracing
        solution = tree.solve(model, None, self.support, allowed=self.allowed)
        numbers = sum(np.size(leaf) for leaf in jax.tree.leaves(solution))
        candidates = explorer.objective.candidates
        got = f"plans of {numbers:,} numbers for {candidates:,} candidates"
        needed, remedy = COPIES * NUMBER * numbers * candidates, "Draw fewer models."
        require_memory(ParameterError, explorer.name, "candidates", got, needed, remedy)

    def plan(self, proposal: Proposal | Pairs) -> Planned:
        """Plan for all candidates, and choose one."""
        check_proposal(self.explorer, proposal, self.spaces)
        if isinstance(proposal, Pairs):
            solution, pair, plans = self._pairs.best(proposal)
            policy, value = self._deployed(solution), solution.upper
            if proposal.offset:
                value = np.minimum(value + proposal.offset, float(self.spaces.horizon))
            value = self.rewards.to_user(value, self.spaces.horizon)
            model = proposal.model(*pair)
            return Planned(policy, value, model, np.int64(plans), solution.allowed)
        proposed: Any = proposal
        check_numbers(self.explorer, proposed.models, None if self.tree is None else self.support)
        candidates = [
            jax.tree.map(lambda leaf, c=c: leaf[c], proposed)
            for c in range(self.explorer.objective.candidates)
        ]
        solutions = [self._solve(each.models, each.parameters) for each in candidates]
        values = np.array(
            [
                self.root(each.parameters, solution)
                for each, solution in zip(candidates, solutions, strict=True)
            ]
        )
        chosen = choose_candidate(self.explorer, values)
        policy, count = self._deployed(solutions[chosen]), np.int64(len(candidates))
        model, masks = candidates[chosen].models, solutions[chosen].allowed
        value = self.rewards.to_user(values[chosen], self.spaces.horizon)
        return Planned(policy, value, model, count, masks)

    def _deployed(self, solution: Solution) -> GraphPolicy:
        """The policy with the random actions of the rule."""
        share = self.explorer.deployment.random_actions
        return with_uniform(solution.policy, share, solution.allowed)

    def traced(self) -> Callable[[Proposal], Planned]:
        """The same as a pure function that JAX can trace; requires a tree planner."""
        if self.tree is None:
            expected = "a planner that JAX can trace: planner=history_tree()"
            problem = Problem("planner", planner_name(self._planner), expected)
            raise PlanningError(self.explorer.about.name, [problem])
        solve = self.tree.compile(self.support, allowed=self.allowed)
        return TracedPlanning(self.explorer, solve, self.root, self.spaces, self.rewards).plan

    def _solve_pair(self, model: POMDP) -> Solution:
        return self._solve(model, None)

    def _solve(self, model: POMDP, parameters: Any) -> Solution:
        """The plan of a model, with values for rewards in [0, 1]."""
        if self.tree is not None:
            return self.tree.solve(model, parameters, self.support, allowed=self.allowed)
        plan = plan_allowed(self._planner, model, self.allowed)
        if self.explorer.objective.exact and plan.gap > INEXACT * float(model.scale):
            expected = "an exact planner, which the coverage of the rule requires"
            remedy = "Use planner=history_tree() or alpha_vectors()."
            problem = Problem("planner", f"a gap of {plan.gap:.2g}", expected, remedy)
            raise PlanningError(self.explorer.about.name, [problem])
        policy: Any = plan.policy  # a custom planner may return any policy
        value, upper = (np.float64(model.from_user(v)) for v in (plan.value, plan.upper))
        return Solution(value, upper, np.zeros(0), policy, plan.allowed)


class TracedPlanning(NamedTuple):
    """Planning as a pure function of arrays."""

    explorer: Explorer
    solve: Callable[..., Solution]
    root: Root
    spaces: Spaces
    rewards: Rewards

    def plan(self, proposal: Proposal) -> Planned:
        """Plan for all candidates, and choose one."""
        check_proposal(self.explorer, proposal, self.spaces)
        proposal = jax.tree.map(jnp.asarray, proposal)
        count = self.explorer.objective.candidates
        if count == 1:
            model, parameters = jax.tree.map(lambda leaf: leaf[0], tuple(proposal))
            solution = self.solve(model, parameters)
            value = self.root(parameters, solution)
        else:
            solutions = jax.vmap(self.solve)(*proposal)
            values = cast(Array, jax.vmap(self.root)(proposal.parameters, solutions))
            chosen = choose_candidate(self.explorer, values)
            every = (values, solutions, proposal.models)
            value, solution, model = jax.tree.map(lambda leaf: leaf[chosen], every)
        share = self.explorer.deployment.random_actions
        policy = with_uniform(solution.policy, share, solution.allowed)
        value = self.rewards.to_user(value, self.spaces.horizon)
        plans = jnp.asarray(count, dtype=jnp.int64)
        return Planned(policy, value, model, plans, solution.allowed)


def _support(explorer: Explorer, planner: Planner, homdp: HOMDP) -> Tables:
    """The support of the models to plan for; dense for tree planners."""
    tables = explorer.objective.support(homdp)
    if homdp.structure.pattern is None or not isinstance(planner, TreePlanner):
        return tables
    moves = as_dense(homdp.form.table(tables), "learn")
    return tables._replace(transition=moves if homdp.form.moves_by_step else moves[0])


def _tree(explorer: Explorer, planner: Planner, homdp: HOMDP) -> TreePlanner | None:
    """The planner with the rule's backup and caps; None if it is not a tree planner."""
    objective = explorer.objective
    if objective.backup is not None and not isinstance(planner, TreePlanner):
        remedy = (
            f"The values of {explorer.about.name} are not convex in the belief: only the history "
            "tree can plan for them."
        )
        problem = Problem(
            "planner",
            f"{planner_name(planner)}, which has no optimistic backups",
            "planner=history_tree()",
            remedy,
        )
        raise PlanningError(explorer.about.name, [problem])
    if objective.backup is not None and homdp.structure.pattern is not None:
        remedy = "Declare dense transitions, or use a rule such as posterior_sampling()."
        problem = Problem("transition", "a sparse table", "a dense table", remedy)
        raise PlanningError(explorer.about.name, [problem])
    if not isinstance(planner, TreePlanner):
        return None
    backup = objective.backup(homdp) if objective.backup else None
    return planner.optimistic(backup, objective.caps)


def choose_candidate(explorer: Explorer, values: Array) -> Array:
    """The index of the deployed candidate: the first of the best, or the k-th smallest value."""
    xp, pick = namespace(values), explorer.objective.pick
    if pick is None:
        return xp.argmax(values)
    return xp.argsort(values, stable=True)[pick - 1]


def plan_allowed(planner: Planner, model: POMDP, allowed: Allowed | None) -> Plan:
    """Plan for a model; planners need not know of restrictions unless there is one."""
    plan = planner(model) if allowed is None else planner(model, allowed=allowed)
    if isinstance(plan, Plan) and plan.statistics.get("interrupted"):
        raise KeyboardInterrupt  # the plan is valid, but a run would depend on when it was stopped
    return plan


def with_uniform(policy: GraphPolicy, share: float, allowed: Array | None = None) -> GraphPolicy:
    """The policy with a share of uniform allowed actions at every step; can be traced.

    ``allowed`` are the allowed actions of each node, (N, A); by default all.
    """
    if share == 0.0:
        return policy
    start, chances, successor = policy.tree_flatten()[0]
    A = chances.shape[1]
    random = share / A if allowed is None else share * uniform_rows(chances, allowed)
    mixed = (1 - share) * chances + random
    return GraphPolicy.tree_unflatten(policy.names, (start, mixed, successor))


def check_proposal(explorer: Explorer, proposal: Any, spaces: Spaces) -> None:
    """Raise an error for a proposal of the wrong type or shape."""
    if isinstance(proposal, Pairs):
        return
    expected = explorer.objective.candidates
    if not isinstance(proposal, Proposal):
        got, remedy = with_article(type(proposal).__name__), "Return Proposal(models)."
        problem = Problem("propose", got, "a Proposal", remedy)
    elif not isinstance(proposal.models, POMDP):
        problem = Problem("propose", f"a {type(proposal.models).__name__}", "a POMDP of arrays")
    elif np.ndim(proposal.models.initial) != 2:
        problem = Problem(
            "propose",
            "models without an axis of candidates",
            "a POMDP of arrays with a leading axis of candidates",
            "Add it: Proposal(POMDP(*(part[None] for part in model))).",
        )
    elif len(proposal.models.initial) != expected:
        many = len(proposal.models.initial)
        remedy = f"Or declare the number of models in the rule: Objective(candidates={many})."
        problem = Problem("propose", f"{many} models", str(expected), remedy)
    elif (*proposal.models.sizes, proposal.models.horizon) != spaces.sizes:
        got = f"models with sizes {(*proposal.models.sizes, proposal.models.horizon)}"
        problem = Problem(
            "propose", got, f"sizes {spaces.sizes}: states, observations, actions, steps"
        )
    else:
        return
    raise ParameterError(explorer.name, [problem])


def check_numbers(explorer: Explorer, models: POMDP, support: Tables | None = None) -> None:
    """Raise an error for rows that are not probabilities and for rewards that are not finite.

    With a support, also raise one for positive probabilities outside it.
    """
    if all(map(_are_probabilities, models[:3])) and np.isfinite(models.reward).all():
        _check_support(explorer, models, support)
        return
    expected = "rows that are probabilities, and finite rewards"
    problem = Problem("propose", "a model with invalid numbers", expected)
    raise ParameterError(explorer.name, [problem])


def _are_probabilities(table: Any) -> bool:
    rows = table.values if isinstance(table, Sparse) else np.asarray(table)
    sums = row_sums(table) if isinstance(table, Sparse) else rows.sum(-1)
    return bool((rows >= 0).all() and (np.abs(sums - 1) <= FLOAT32).all())


def _check_support(explorer: Explorer, models: POMDP, support: Tables | None) -> None:
    for where in () if support is None else Tables._fields:
        table, allowed = np.asarray(getattr(models, where)), np.asarray(getattr(support, where)) > 0
        outside = float(np.where(allowed, 0.0, table).max())
        if outside > FLOAT32:
            got = f"probability {outside:.3g} outside the support"
            remedy = "Declare a larger support: Objective(support=...)."
            problem = Problem("propose", got, f"{where}s within the support", remedy)
            raise ParameterError(explorer.name, [problem])

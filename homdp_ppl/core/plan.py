"""Plans, and the protocols of planners: Planner, TreePlanner and WorldPlanner."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import networkx as nx
import numpy as np

from homdp_ppl.core.allowed import Allowed, are_masks
from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.bound import Bound
from homdp_ppl.core.checked import check_fields, checked
from homdp_ppl.core.graph_policy import GraphPolicy, check_policy
from homdp_ppl.core.numbers import is_number
from homdp_ppl.core.optimism import Backup, Caps
from homdp_ppl.core.plan_html import plan_html
from homdp_ppl.core.plan_tree import MAX_GRAPH, Planned, policy_tree
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.policy_card import Carded, PolicyCard, finite
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import check_pomdp
from homdp_ppl.core.spaces import HasSpaces, Spaces
from homdp_ppl.core.tree_picture import draw_tree
from homdp_ppl.errors import PlanningError, Problem, shown, with_article
from homdp_ppl.precision import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

READABLE = 24  # the largest number of new histories per step in a readable picture
ROUNDING = 1e-7  # rounding error of a value, relative to the horizon or to the value itself


class Solution(NamedTuple):
    """The numbers of a plan; contains only arrays, so that it is a JAX pytree."""

    # ()  of the policy; with a backup or caps, the optimistic value at the root
    value: Array | np.float64
    upper: Array | np.float64  # ()  upper bound on the optimum
    # (Y, X)  alpha-vectors after each first observation; constant without a backup
    first: Array
    policy: GraphPolicy
    # (N, A)  which actions are allowed at each node of the policy; None: all of them
    allowed: Array | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """A policy for a model, with its value and an upper bound on the optimum.

    If the plan is ``certified``, ``value <= optimum <= upper``; both are equal if the planner is
    exact. With an optimistic backup or caps, both are the optimistic value at the root.
    If the plan is not certified, ``value`` is the mean return of simulated episodes (NaN if there
    were none), ``statistics`` contains "episodes", "standard error", "low" and "high" (a 95 %
    interval), and ``upper`` is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP
    >>> from homdp_ppl.planners import history_tree
    >>> guess = POMDP.of(
    ...     [0.5, 0.5], np.full((2, 2, 2), 0.5), [[0.9, 0.1], [0.1, 0.9]], np.eye(2), horizon=1
    ... )
    >>> plan = history_tree()(guess)
    >>> plan
    Plan by history_tree: value 0.9 (exact), GraphPolicy(2 nodes, 2 observations, 2 actions)
    >>> dict(plan.tree().nodes(data="action"))  # at the start, and after each first observation
    {0: '', 1: 'a0', 2: 'a1'}
    """

    policy: Policy
    value: float  # the policy's value in the model, in the user's units
    upper: float  # upper bound on the optimum, in the user's units
    certified: bool
    planner: str  # the name of the planner, and why it was chosen if there were several
    statistics: Mapping[str, float]  # numbers of nodes, seconds and so on
    spaces: Spaces
    model: POMDP | None = None  # the model, if it is finite
    cells: Plan | None = None  # for a policy on cells: the plan for the model with finite cells
    allowed: Array | None = None  # (N, A)  which actions are allowed at each node; None: all

    def __post_init__(self) -> None:
        """Raise an error for an invalid model, or if a certified plan violates value <= upper."""
        check_fields(self, "Plan")
        if self.model is not None:
            check_pomdp(self.model, self.planner, sparse=True)
        object.__setattr__(self, "value", float(self.value))
        object.__setattr__(self, "upper", float(self.upper))
        finite = math.isfinite(self.value) and math.isfinite(self.upper)
        certain = finite and self.value <= self.upper + self.rounding
        if self.certified and not certain:
            got = f"value {self.value:.6g} and upper {self.upper:.6g}"
            remedy = (
                "Pass value=evaluate(policy, model), and a proved bound on the optimum as upper "
                "(the same number if the planner is exact)."
            )
            problem = Problem("certificate", got, "finite numbers with value <= upper", remedy)
            raise PlanningError(self.planner, [problem])
        if self.allowed is not None:
            self._check_allowed(self.allowed)
        if isinstance(self.policy, Carded):
            described = self.policy.with_card(self._card(self.policy.card))
            object.__setattr__(self, "policy", described)

    def _card(self, card: PolicyCard) -> PolicyCard:
        value, upper = finite(self.value), finite(self.upper)
        return card._replace(horizon=self.spaces.horizon, value=value, upper=upper)

    def _check_allowed(self, allowed: Array) -> None:
        """Raise an error unless there is a mask for each node, which its policy respects."""
        chances = self.policy.probabilities if isinstance(self.policy, GraphPolicy) else np.zeros(0)
        if not are_masks(allowed, np.shape(chances)):
            got, expected = shown(allowed, 80), f"booleans of shape {np.shape(chances)}"
        elif bool((np.asarray(chances)[~np.asarray(allowed)] > 0).any()):
            got, expected = "a policy that takes forbidden actions", "allowed actions only"
        else:
            return
        raise PlanningError(self.planner, [Problem("allowed", got, expected)])

    @property
    def gap(self) -> float:
        """The largest possible difference between the optimum and the policy's value.

        It is in the user's units.
        """
        return self.upper - self.value

    @property
    def rounding(self) -> float:
        """The size of rounding errors of ``value`` and ``upper``."""
        scale = 1.0 if self.model is None else float(self.model.scale)
        return ROUNDING * max(self.spaces.horizon * scale, abs(self.upper))

    @property
    def finite(self) -> tuple[GraphPolicy, POMDP]:
        """The policy's graph and the model it was planned for.

        Raises
        ------
        PlanningError
            If the policy is not a graph, or the plan was not made for a finite model.
        """
        if not isinstance(self.policy, GraphPolicy) or self.model is None:
            expected = "a plan for a finite model, with a GraphPolicy"
            raise PlanningError("plan", [Problem("plan", repr(self), expected)])
        return self.policy, self.model

    @checked
    def named(self, model: HasSpaces) -> Plan:
        """The same plan with the names of a declaration or world."""
        policy, _ = self.finite
        return replace(self, policy=policy.named(model), spaces=model.spaces)

    @checked
    def tree(self, steps: int | None = None, max_nodes: int = MAX_GRAPH) -> nx.DiGraph:
        """The histories that the policy can reach, as a networkx graph.

        Nodes are integers with the attributes ``step``, ``history`` (in names), ``action`` (the
        choice of the policy), ``value`` (expected remaining return) and ``probability``. They also
        have the belief and the values of all allowed actions: ``belief in left`` is the probability
        of the state "left" after the history, without states that are impossible, and ``value of
        listen`` is the expected remaining return of the action "listen", followed by the policy.
        If the planner is history_tree, this is the best return after that action. Values are in the
        units of the declared reward. All attributes are numbers and text.

        Edges have the ``action`` and the ``observation`` that lead to the next history. Node 0 is
        the time before the first observation. For a policy on cells, observations are cells.

        Parameters
        ----------
        steps
            The number of steps to include; all by default.
        max_nodes
            The largest number of nodes; raises PlanningError if the graph is larger.
        """
        if self.cells is not None:
            return self.cells.tree(steps, max_nodes)
        graph = nx.DiGraph(planner=self.planner, value=float(self.value), upper=float(self.upper))
        graph.add_node(0, step=0, history="", action="", value=float(self.value), probability=1.0)
        shown = self.spaces.horizon if steps is None else min(steps, self.spaces.horizon)
        planned = Planned(*self.finite, self.spaces, self.allowed)
        return policy_tree(graph, planned, shown, max_nodes)

    @checked
    def first_steps(self, histories: int) -> nx.DiGraph:
        """The tree of the first steps, as long as each step adds at most ``histories`` nodes.

        It has at least one step.
        """
        tree = self.tree(1)
        for steps in range(2, self.spaces.horizon + 1):
            try:
                longer = self.tree(steps, max_nodes=len(tree) + histories)
            except PlanningError:
                break
            tree = longer
        return tree

    @checked
    def draw(self, steps: int | None = None, axes: Axes | None = None) -> Axes:
        """Draw the first decisions as a tree; by default as many steps as are readable."""
        tree = self.first_steps(READABLE) if steps is None else self.tree(steps)
        shown, horizon = max(step for _, step in tree.nodes(data="step")), self.spaces.horizon
        title = "The decisions" if shown == horizon else f"The first {shown} of {horizon} decisions"
        return draw_tree(tree, f"{title}, with expected remaining returns", axes)

    def __repr__(self) -> str:
        if not self.certified:
            return f"Plan by {self.planner}: {self._estimate()}, not certified"
        bound = "exact" if self.gap == 0 else f"at most {self.gap:.2g} below the optimum"
        return f"Plan by {self.planner}: value {self.value:.6g} ({bound}), {self.policy!r}"

    def _repr_html_(self) -> str:
        return plan_html(self)

    def _estimate(self) -> str:
        if math.isnan(self.value):
            return "value not estimated"
        error, low, high, episodes = (
            self.statistics.get(name, math.nan)
            for name in ("standard error", "low", "high", "episodes")
        )
        return (
            f"value {self.value:.4g} ± {error:.2g} in {episodes:.0f} episodes "
            f"({low:.4g} to {high:.4g})"
        )


@runtime_checkable
class Planner(Protocol):
    """A function from a finite model to a plan; unsupported models raise PlanningError."""

    def __call__(self, pomdp: POMDP, /, *, allowed: Allowed | None = None) -> Plan:
        """Plan for a model.

        ``allowed`` restricts the actions by the history; see :mod:`homdp_ppl.core.allowed`. A
        planner that does not support it raises PlanningError.
        """


@runtime_checkable
class TreePlanner(Planner, Protocol):
    """A planner on the tree of histories that supports optimistic backups and JAX tracing.

    A support is a POMDP or tables of booleans; outcomes that are zero in it are pruned.
    """

    def optimistic(self, backup: Backup | None, caps: Caps | None) -> TreePlanner:
        """The same planner with an optimistic backup, or with caps on the values of histories."""

    def solve(
        self,
        pomdp: POMDP,
        parameters: Any = None,
        support: Any = None,
        *,
        allowed: Allowed | None = None,
    ) -> Solution:
        """Plan for a model; ``parameters`` are those of the backup or of the caps."""

    def compile(self, support: Any, *, allowed: Allowed | None = None) -> Callable[..., Solution]:
        """Return a pure function of (POMDP, parameters) for models with this support."""

    def scorer(
        self, support: Any, world: POMDP, *, allowed: Allowed | None = None
    ) -> Callable[[GraphPolicy], Array] | None:
        """Return a pure function that evaluates the policies of :meth:`compile` in a world.

        None if the world can produce observations that the support excludes.
        """


@runtime_checkable
class WorldPlanner(Protocol):
    """A function from a world to a plan; supports real-valued spaces."""

    def __call__(self, world: Any, /, *, allowed: Allowed | None = None) -> Plan:
        """Plan for a world; ``allowed`` is that of :class:`Planner`."""

    def plan_tables(self, world: Any, latent: tuple[Array, Array, Array]) -> Plan:
        """Plan for other latent tables with the observation densities of a world.

        ``latent`` is the initial distribution (X,), transitions (X, A, X) and rewards (H, X, A),
        which may be outside [0, 1]. A planner that does not support this raises PlanningError.
        """


def planner_name(planner: Any) -> str:
    """The name of a planner in error messages: that of its function, or its ``repr``."""
    function = planner.function if isinstance(planner, Bound) else planner
    name = function.__qualname__ if isinstance(function, type(planner_name)) else repr(planner)
    return str(name).split(".<locals>")[0]


def make_plan(
    policy: GraphPolicy,
    value: Array | float,
    upper: Array | float,
    model: POMDP,
    planner: str,
    **statistics: float,
) -> Plan:
    """Create a certified plan for a finite model, with the generated names x0, y0, a0, ...

    Parameters
    ----------
    policy
        The policy.
    value
        Its value in the model, in the units of :func:`evaluate`.
    upper
        A proved bound on the optimum; the same number if the planner is exact.
    model
        The model.
    planner
        The name of the planner.
    statistics
        Numbers to report, for example ``seconds``.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import POMDP, evaluate, make_plan, uniform_policy
    >>> model = POMDP.of([1], np.ones((1, 2, 1)), np.ones((1, 1)), [[0, 1]], horizon=1)
    >>> policy = uniform_policy(model)
    >>> plan = make_plan(policy, evaluate(policy, model), 1.0, model, "a coin")
    >>> plan.planner, plan.value, plan.upper
    ('a coin', 0.5, 1.0)
    """
    if not isinstance(planner, str):
        problem = Problem("planner", shown(planner), "the planner's name")
        raise PlanningError("make_plan", [problem])
    problems = []
    if not isinstance(policy, GraphPolicy):
        remedy = "Convert it: GraphPolicy.from_policy(policy, model)."
        problems = [Problem("policy", with_article(type(policy).__name__), "a GraphPolicy", remedy)]
    for name, number in (("value", value), ("upper", upper)):
        if not is_number(number):
            problems.append(Problem(name, shown(number), "a number"))
    refuse(PlanningError, planner, problems)
    model = check_pomdp(model, planner, sparse=True)
    check_policy(policy, model.spaces)
    return Plan(policy, float(value), float(upper), True, planner, statistics, model.spaces, model)

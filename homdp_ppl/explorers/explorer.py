"""The interface of exploration rules: three pure functions and three small records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, Literal, TypeAlias

import numpy as np

from homdp_ppl.core.arguments import count_problems, is_count, refuse, share_problems
from homdp_ppl.core.bound import Options
from homdp_ppl.core.checked import check_fields, checked
from homdp_ppl.core.optimism import Caps
from homdp_ppl.core.plan import Solution
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers._supports import declared
from homdp_ppl.explorers.state import Pairs, Proposal, State, Update, count, init_counts
from homdp_ppl.precision import Array

Guarantee: TypeAlias = Literal["frequentist", "Bayesian", "none"]
Replan: TypeAlias = Literal["every episode", "doubled", "once"]
Backup: TypeAlias = Callable[[Any, int, Array], Array]
Root: TypeAlias = Callable[[Any, Solution], Array | np.float64]

PROVED = "optimistic, "  # the start of `soundness` for rules with a guarantee


@dataclass(frozen=True)
class About:
    """The name, guarantee and requirements of a rule.

    Attributes
    ----------
    name
        The name of the rule. Its random numbers depend on the name.
    options
        Options that differ from their defaults.
    guarantee
        What guarantees that the optimistic value is at least the optimum: a frequentist bound, the
        posterior ("Bayesian"), or nothing ("none").
    uses_prior
        Whether the rule depends on the prior. Studies run such rules under several priors.
    needs_episodes
        Whether the rule depends on K, the number of episodes of the whole run.
    note
        Why there is no guarantee, for example "scaled bonuses".
    coverage
        The exact probability, under the prior, that the optimistic value of a round is at least the
        optimum; None if unknown.

    Examples
    --------
    >>> about = About("mine", {"weight": 0.5})
    >>> about.label, about.soundness
    ('mine(weight=0.5)', 'none')
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=Options)
    guarantee: Guarantee = "none"
    uses_prior: bool = False
    needs_episodes: bool = False
    note: str = ""
    coverage: float | None = None

    def __post_init__(self) -> None:
        check_fields(self, "About")
        if not self.name:
            refuse(ParameterError, "About", [Problem("name", "''", "a non-empty name")])
        if self.coverage is not None:
            refuse(ParameterError, "About", share_problems(coverage=self.coverage))
        object.__setattr__(self, "options", Options(self.options))

    @property
    def label(self) -> str:
        """The name with the options, as in ``hop_b(scale=0.1)``."""
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.name}({options})" if options else self.name

    @property
    def soundness(self) -> str:
        """The guarantee as text: "none", with a note, or "optimistic" with its kind."""
        if self.guarantee == "none":
            return f"none ({self.note})" if self.note else "none"
        return f"{PROVED}{self.guarantee}"


def upper_value(homdp: HOMDP) -> Root:
    """The root value of rules that do not change it: the planner's upper bound."""
    return _upper


def _upper(parameters: Any, solution: Solution) -> Array | np.float64:
    return solution.upper


@dataclass(frozen=True)
class Objective:
    """How to plan for proposed models, and which plan to deploy.

    Attributes
    ----------
    backup
        A function from a declaration to an optimistic one-step backup; None for the expected
        backup. Requires a planner with optimistic backups.
    root
        A function from a declaration to a function that computes the optimistic root value of a
        solution.
    support
        A function from a declaration to the table entries that may be positive in a proposed model.
        They determine the histories of the plan.
    caps
        A function of the parameters of a proposal and H that returns upper bounds on values,
        :class:`homdp_ppl.core.optimism.Limits`; for planners that can use them.
    candidates
        The number of models in a proposal.
    pick
        Which candidate to deploy: the best (None), or the one with the k-th smallest value.
    exact
        Whether the guarantee requires an exact planner.

    Examples
    --------
    >>> Objective(candidates=3, pick=2).pick  # the median of three
    2
    """

    backup: Callable[[HOMDP], Backup] | None = None
    root: Callable[[HOMDP], Root] = upper_value
    support: Callable[[HOMDP], Tables] = declared
    caps: Caps | None = None
    candidates: int = 1
    pick: int | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        check_fields(self, "Objective")
        problems = count_problems(candidates=self.candidates)
        if not problems and self.pick is not None and not is_count(self.pick):
            problems += count_problems(pick=self.pick)
        elif not problems and self.pick is not None and self.pick > self.candidates:
            expected = f"None, or one of the candidates 1..{self.candidates}"
            remedy = "Set the number of models in a proposal: Objective(candidates=...)."
            problems.append(Problem("pick", repr(self.pick), expected, remedy))
        refuse(ParameterError, "Objective", problems)


@dataclass(frozen=True)
class Deployment:
    """How to deploy a decision.

    Attributes
    ----------
    replan
        When to plan again: in every episode, when some n(x, a) has doubled, or only once.
    random_actions
        The probability of a uniform action at every step.
    uniform_at_each_step
        Whether to deploy each policy H times, with a uniform action at step h in the h-th episode
        (Algorithm 2).

    Examples
    --------
    >>> Deployment(replan="doubled").replan
    'doubled'
    """

    replan: Replan = "every episode"
    random_actions: float = 0.0
    uniform_at_each_step: bool = False

    def __post_init__(self) -> None:
        check_fields(self, "Deployment")
        problems = share_problems(random_actions=self.random_actions)
        refuse(ParameterError, "Deployment", problems)

    @checked
    def episodes_per_round(self, horizon: int) -> int:
        """H if each policy is deployed once per step, else 1."""
        return horizon if self.uniform_at_each_step else 1


@dataclass(frozen=True, repr=False)
class Explorer:
    """An exploration rule.

    Use module-level functions, with options bound by :class:`homdp_ppl.core.bound.Bound`. Then
    rules with equal options are equal and share compiled code.

    Attributes
    ----------
    about
        Name, options and guarantee.
    init
        ``(homdp, episodes) -> State``: the state before the first episode. Raises an error if the
        rule does not support the declaration.
    propose
        ``(key, state) -> Proposal``: the models to plan for.
    update
        ``(state, episode) -> State``: the state after one more episode.
    objective
        How to plan for the models.
    deployment
        How to deploy the plan.

    Examples
    --------
    >>> from homdp_ppl import explorers, learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> explorers.hop_b(scale=0.1)
    Explorer hop_b(scale=0.1): no guarantee (scaled bonuses)
    >>> explorers.hop_b(scale=0.1) == explorers.hop_b(scale=0.1)
    True

    A custom rule that plans like ``greedy`` and acts at random half of the time:

    >>> coin = explorers.Explorer(
    ...     explorers.About("coin"),
    ...     propose=explorers.greedy().propose,
    ...     deployment=explorers.Deployment(random_actions=0.5),
    ... )
    >>> run = learn(models.load("tiger", horizon=2), coin, history_tree(), episodes=1)
    >>> run.values.round(4)  # at each step 0.9 for listening or, at random, 1.9 / 3 on average
    array([1.5333])
    """

    about: About
    init: Callable[[HOMDP, int | None], State] = field(default=init_counts, kw_only=True)
    propose: Callable[[Array, State], Proposal | Pairs] = field(kw_only=True)
    update: Update = field(default=count, kw_only=True)
    objective: Objective = field(default_factory=Objective, kw_only=True)
    deployment: Deployment = field(default_factory=Deployment, kw_only=True)

    def __post_init__(self) -> None:
        check_fields(self, "Explorer")

    @property
    def name(self) -> str:
        """The rule with its options, as in ``hop_b(scale=0.1)``."""
        return self.about.label

    @property
    def soundness(self) -> str:
        """The guarantee as text."""
        return self.about.soundness

    def __repr__(self) -> str:
        about = self.about
        guarantee = about.soundness
        if about.guarantee == "none":
            guarantee = f"no guarantee ({about.note})" if about.note else "no guarantee"
        return f"Explorer {self.name}: {guarantee}"


def changed(factory: Callable[..., Explorer], **given: Any) -> dict[str, Any]:
    """The options of a factory that differ from their defaults."""
    defaults = signature(factory).parameters
    return {name: value for name, value in given.items() if value != defaults[name].default}


def with_bonus_scale(name: str, options: Mapping[str, Any], scale: float) -> About:
    """``About`` of a frequentist rule with bonuses; there is no guarantee unless the scale is 1."""
    if scale == 1.0:
        return About(name, options, guarantee="frequentist", needs_episodes=True)
    return About(name, options, needs_episodes=True, note="scaled bonuses")


def with_deployment(rule: Explorer, **changes: Any) -> Explorer:
    """The rule with another deployment."""
    return replace(rule, deployment=replace(rule.deployment, **changes))

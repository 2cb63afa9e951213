"""The contract of exploration rules: three pure functions and three small records."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, Literal, TypeAlias

import numpy as np

from homdp_ppl.core.arguments import count_problems, is_count, refuse, share_problems
from homdp_ppl.core.bound import Options
from homdp_ppl.core.checked import check_fields, checked
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


@dataclass(frozen=True)
class About:
    """What a rule is called, what it guarantees and what it needs.

    Attributes
    ----------
    name
        The rule's name. Its random numbers depend on it.
    options
        Options that are not at their defaults.
    guarantee
        What guarantees that the planned value is at least the optimum: a frequentist bound, the
        posterior, or nothing.
    uses_prior
        Whether the rule depends on the prior; studies compare such rules under several priors.
    needs_episodes
        Whether K, the number of episodes of the whole run, enters the rule.
    note
        Why there is no guarantee, such as "scaled bonuses".
    coverage
        The exact probability, under the prior, that the planned value of a round is at least the
        optimum; None where it is not known.

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
            refuse(ParameterError, "About", [Problem("name", "''", "the name of a rule, a text")])
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
        """The guarantee in words."""
        if self.guarantee == "none":
            return f"none ({self.note})" if self.note else "none"
        return f"optimistic, {self.guarantee}"


def upper_value(homdp: HOMDP) -> Root:
    """The root value of rules that add nothing to it: the planner's upper bound."""
    return _upper


def _upper(parameters: Any, solution: Solution) -> Array | np.float64:
    return solution.upper


@dataclass(frozen=True)
class Objective:
    """How proposed models are planned, and which plan is deployed.

    Attributes
    ----------
    backup
        From a declaration to an optimistic one-step backup; None for the expected one. Needs a
        planner with optimistic backups.
    root
        From a declaration to the optimistic root value of a solution.
    support
        From a declaration to the entries that a proposed model may have: the histories that are
        planned for.
    clip
        Whether the value of a history is at most H - h + 1, on planners that can clip.
    candidates
        Number of models in a proposal.
    pick
        Which candidate is deployed: the best (None), or the one with the k-th smallest value.
    exact
        Whether the guarantee needs an exact planner.

    Examples
    --------
    >>> Objective(candidates=3, pick=2).pick  # the median of three
    2
    """

    backup: Callable[[HOMDP], Backup] | None = None
    root: Callable[[HOMDP], Root] = upper_value
    support: Callable[[HOMDP], Tables] = declared
    clip: bool = False
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
    """How a decision is played.

    Attributes
    ----------
    replan
        When to plan again: in every episode, when some n(x, a) has doubled, or only once.
    random_actions
        The probability of a uniform action at every step.
    uniform_at_each_step
        Whether each policy is deployed H times, uniform at step h in the h-th (Algorithm 2).

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
        """H if each policy is deployed once for every step, else 1."""
        return horizon if self.uniform_at_each_step else 1


@dataclass(frozen=True, repr=False)
class Explorer:
    """An exploration rule.

    Its functions are plain functions of a module, or :class:`homdp_ppl.core.bound.Bound` ones with
    options, so that rules with equal options are equal and share compiled code.

    Attributes
    ----------
    about
        Name, options and guarantee.
    init
        ``(homdp, episodes) -> State``: before the first episode. Raises an error if the rule cannot
        serve the declaration.
    propose
        ``(key, state) -> Proposal``: the models to plan for.
    update
        ``(state, episode) -> State``: after one more episode.
    objective
        How the models are planned.
    deployment
        How the plan is played.

    Examples
    --------
    >>> from homdp_ppl import explorers, learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> explorers.hop_b(scale=0.1)
    Explorer hop_b(scale=0.1): none (scaled bonuses)
    >>> explorers.hop_b(scale=0.1) == explorers.hop_b(scale=0.1)
    True

    A custom rule, which plans as greedy does and acts at random half of the time:

    >>> coin = explorers.Explorer(
    ...     explorers.About("coin"),
    ...     propose=explorers.greedy().propose,
    ...     deployment=explorers.Deployment(random_actions=0.5),
    ... )
    >>> run = learn(models.load("tiger", horizon=2), coin, history_tree(), episodes=1)
    >>> run.values.round(4)  # at both steps 0.9 for listening, or 1.9 / 3 on average
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
        """The guarantee in words."""
        return self.about.soundness

    def __repr__(self) -> str:
        return f"Explorer {self.name}: {self.soundness}"


def changed(factory: Callable[..., Explorer], **given: Any) -> dict[str, Any]:
    """The options of a factory that are not at its defaults."""
    defaults = signature(factory).parameters
    return {name: value for name, value in given.items() if value != defaults[name].default}


def with_bonus_scale(name: str, options: Mapping[str, Any], scale: float) -> About:
    """About a frequentist rule with bonuses; any scale but 1 voids the guarantee."""
    if scale == 1.0:
        return About(name, options, guarantee="frequentist", needs_episodes=True)
    return About(name, options, needs_episodes=True, note="scaled bonuses")


def with_deployment(rule: Explorer, **changes: Any) -> Explorer:
    """The rule with another deployment."""
    return replace(rule, deployment=replace(rule.deployment, **changes))

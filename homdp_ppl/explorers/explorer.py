"""The contract of exploration rules.

Pure functions of a state, and facts about how a proposal is planned and played.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import jax
import numpy as np

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.plan import Solution
from homdp_ppl.core.pomdp import POMDP, Stationary
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers._rules import Rule
from homdp_ppl.precision import Array

Optimism: TypeAlias = Literal["frequentist", "Bayesian", "none"]
Replan: TypeAlias = Literal["every episode", "doubled", "once"]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["counts", "played", "memory", "luck"],
    meta_fields=["homdp", "episodes"],
)
@dataclass(frozen=True, eq=False)
class State:
    """What a rule knows before a round: the counts, and what it keeps besides.

    Examples
    --------
    >>> from homdp_ppl import explorers, learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> run = learn(models.load("tiger", horizon=2), explorers.greedy(), history_tree(), episodes=3)
    >>> int(run.state.played), int(run.state.counts.visits.sum())  # three episodes of two steps
    (3, 6)
    """

    counts: Counts
    played: Array  # ()  episodes so far
    memory: Any
    homdp: HOMDP
    episodes: int  # K, which enters the bonuses
    luck: Array = field(
        default_factory=lambda: np.zeros(2, dtype=np.uint32)
    )  # data of a key, for inference by sampling


class Proposal(NamedTuple):
    """What to plan for; arrays only. Every array has a leading axis of candidates.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import explorers, models
    >>> rule, tiger = explorers.value_quantile(draws=3), models.load("tiger", horizon=2).homdp
    >>> proposal = rule.propose(jax.random.key(0), rule.init(tiger, episodes=100))
    >>> proposal.models.shows(0).shape  # three tables, with a row for each of two states
    (3, 2, 2)
    """

    models: POMDP
    parameters: Any = None  # of the backup, or of the root value


class Pairs(NamedTuple):
    """Candidates as all pairs of a transition and an emission table: HOP-V's version spaces.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import explorers, models
    >>> world = models.load("tiger", horizon=2)
    >>> rule = explorers.hop_v([world], [world, models.load("tiger", horizon=2, accuracy=0.6)])
    >>> pairs = rule.propose(jax.random.key(0), rule.init(world.homdp, episodes=100))
    >>> pairs.alive_emissions, pairs.model(0, 1).shows(0)[0]
    (array([ True,  True]), array([0.6, 0.4]))
    """

    transitions: Array  # (N, X, A, X)
    emissions: Array  # (M, X, Y)
    alive_transitions: Array  # (N,)
    alive_emissions: Array  # (M,)
    initial: Array  # (X,)
    reward: Array  # (H, X, A)

    def model(self, t: int, o: int) -> POMDP:
        """The model of a pair."""
        return Stationary(self.initial, self.transitions[t], self.emissions[o], self.reward).pomdp


def start(homdp: HOMDP, episodes: int, memory: Any = None) -> State:
    """No data yet."""
    return State(Counts.zero(homdp), np.zeros((), dtype=np.int64), memory, homdp, episodes)


def count(state: State, episode: Episode) -> State:
    """Count one more episode (Algorithm 1, "update models")."""
    return replace(state, counts=state.counts.add(episode), played=state.played + 1)


def one(model: POMDP, parameters: Any = None) -> Proposal:
    """A proposal with a single candidate."""
    proposal: Proposal = jax.tree.map(lambda leaf: leaf[None], Proposal(model, parameters))
    return proposal


def declared(homdp: HOMDP) -> Tables:
    """What the declaration allows."""
    return homdp.structure.support


def anything(homdp: HOMDP) -> Tables:
    """Every transition and emission: for rules that take nothing as known but rho and r."""
    support = homdp.structure.support
    return Tables(support.initial, np.ones_like(support.transition), np.ones_like(support.emission))


def always(homdp: HOMDP) -> bool:
    """For rules that the compiled loop can run on every declaration."""
    return True


def upper_value(homdp: HOMDP) -> Callable[[Any, Solution], Array]:
    """The root value of rules that add nothing to it: what the planner certifies."""

    def root(parameters: Any, solution: Solution) -> Array:
        return solution.upper

    return root


@dataclass(frozen=True, eq=False)
class Explorer:
    """An exploration rule.

    Attributes
    ----------
    rule
        Its name.
    propose
        From a key and a state to what to plan for.
    init, update
        The state before the first episode, and after one more.
    optimism
        Who guarantees that the planned value is no less than the optimum: a frequentist bound, the
        posterior, or nobody.
    options
        Those that are not at their defaults.
    backup, root
        Made for a declaration: the optimistic one-step backup, and the optimistic root value from a
        solution.
    support
        Which histories the tree must hold: all that a proposed model may allow.
    clip
        Whether values are clipped at H - h + 1, where the planner can.
    candidates
        How many models a proposal holds.
    pick
        Which candidate is deployed: the best (None), or the one with the k-th smallest value.
    explore
        The probability of a uniform action at every step.
    each_step
        Whether a round deploys the policy H times, uniform at step h in the h-th (Algorithm 2).
    replan
        In every episode, when some n(x, a) has doubled, or once.
    compilable
        Whether the compiled loop can run the rule on a declaration.
    exact
        Whether the rule's guarantee needs an exact planner.
    scaled
        Whether its bonuses are scaled, which voids the guarantee.
    continuous
        How the rule learns in continuous worlds, if it can.

    Examples
    --------
    >>> from homdp_ppl import explorers, learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> explorers.hop_b(scale=0.1)
    Explorer hop_b(scale=0.1): none (scaled bonuses)

    A rule of one's own, which plans as greedy does and acts at random half of the time:

    >>> coin = explorers.Explorer("coin", explorers.greedy().propose, "none", explore=0.5)
    >>> run = learn(models.load("tiger", horizon=2), coin, history_tree(), episodes=1)
    >>> run.values.round(4)  # at both steps 0.9 for listening, or 1.9 / 3 on average
    array([1.5333])
    """

    rule: str
    propose: Callable[[Array, State], Proposal | Pairs]
    optimism: Optimism
    options: Mapping[str, Any] = field(default_factory=dict)
    init: Callable[[HOMDP, int], State] = start
    update: Callable[[State, Episode], State] = count
    backup: Callable[[HOMDP], Callable[[Any, int, Array], Array]] | None = None
    root: Callable[[HOMDP], Callable[[Any, Solution], Array]] = upper_value
    support: Callable[[HOMDP], Tables] = declared
    clip: bool = False
    candidates: int = 1
    pick: int | None = None
    explore: float = 0.0
    each_step: bool = False
    replan: Replan = "every episode"
    compilable: Callable[[HOMDP], bool] = always
    exact: bool = False
    scaled: bool = False
    continuous: Rule | None = None

    def __post_init__(self) -> None:
        problems = [
            Problem(name, repr(value), " or ".join(f'"{choice}"' for choice in get_args(kind)))
            for name, value, kind in (
                ("optimism", self.optimism, Optimism),
                ("replan", self.replan, Replan),
            )
            if value not in get_args(kind)
        ]
        if not 0 <= self.explore <= 1:
            problems.append(Problem("explore", repr(self.explore), "a probability"))
        if self.candidates < 1:
            problems.append(Problem("candidates", repr(self.candidates), "at least 1"))
        elif self.pick is not None and not 1 <= self.pick <= self.candidates:
            remedy = "Say how many models a proposal holds: candidates=..."
            problems.append(
                Problem(
                    "pick",
                    repr(self.pick),
                    f"None, or one of the candidates 1..{self.candidates}",
                    remedy,
                )
            )
        if problems:
            raise ParameterError(str(self.rule), problems)

    @property
    def name(self) -> str:
        """The rule with its options, as in ``hop_b(scale=0.1)``."""
        told = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.rule}({told})" if told else self.rule

    @property
    def soundness(self) -> str:
        """What is guaranteed, in words."""
        if self.scaled:
            return "none (scaled bonuses)"
        return "none" if self.optimism == "none" else f"optimistic, {self.optimism}"

    def __repr__(self) -> str:
        return f"Explorer {self.name}: {self.soundness}"


def changed(factory: Callable[..., Explorer], **given: Any) -> dict[str, Any]:
    """The options of a factory that are not at its defaults."""
    defaults = signature(factory).parameters
    return {name: value for name, value in given.items() if value != defaults[name].default}

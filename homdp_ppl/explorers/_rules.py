"""How a rule learns where there are no tables.

Pure functions of what it knows, and what it may ask to be planned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.policy import Policy
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.declare.paired import paired
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers._densities import DensityClass
from homdp_ppl.precision import Array


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What a rule knows before a round in a continuous world."""

    homdp: HOMDP
    episodes: int  # K, which enters the bonuses
    memory: Any
    played: int = 0  # episodes so far
    luck: Array = field(
        default_factory=lambda: np.zeros(2, dtype=np.uint32)
    )  # data of a key, for inference by sampling


class WorldPairs(NamedTuple):
    """Candidates as all pairs of a transition and an emission law: HOP-V's version spaces."""

    transitions: DensityClass
    emissions: DensityClass
    alive_transitions: Array  # (N,)
    alive_emissions: Array  # (M,)

    def model(self, t: int, o: int) -> World:
        """The world of a pair."""
        return paired(self.transitions.members[t], self.emissions.members[o])


class Tabled(NamedTuple):
    """A model with tables for what is latent, and the emission densities of a world.

    Rewards may include bonuses.
    """

    initial: Array  # (X,)
    transition: Array  # (X, A, X)
    reward: Array  # (H, X, A)
    world: World


Candidate: TypeAlias = "World | WorldPairs | Tabled | Policy"


def one_more(state: Knowledge, episode: Episode) -> Knowledge:
    """An episode that teaches nothing."""
    return replace(state, played=state.played + 1)


def episodes_played(state: Knowledge) -> Array:
    """What doubles where no states are counted."""
    return np.array([state.played])


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule in continuous worlds.

    Attributes
    ----------
    propose
        From a key and what is known to what to plan for; a policy is deployed as it is.
    init, update
        What is known before the first episode, and after one more.
    visits
        n(x, a), or the number of episodes where states cannot be counted: with ``replan="doubled"``
        it decides about planning.
    """

    propose: Callable[[Array, Knowledge], Candidate]
    init: Callable[[HOMDP, int], Knowledge] = lambda homdp, episodes: Knowledge(homdp, episodes, ())
    update: Callable[[Knowledge, Episode], Knowledge] = one_more
    visits: Callable[[Knowledge], Array] = episodes_played


def tables_only(rule: str, where: str) -> Callable[..., Any]:
    """What a rule that was given continuous worlds answers to a finite one."""

    def refuse(*given: Any) -> Any:
        remedy = "The world that is acted in is finite."
        raise ParameterError(
            rule, [Problem(where, "continuous worlds", "tables, or finite worlds", remedy)]
        )

    return refuse

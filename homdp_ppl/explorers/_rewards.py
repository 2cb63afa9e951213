"""The reward laws of a finite class of worlds: their means, and their log-likelihoods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from homdp_ppl.core.reward_counts import RewardCounts
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.declare.reward_density import log_rewards_at
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.precision import Array


@dataclass(frozen=True)
class RewardClass:
    """The reward laws of worlds. Each law belongs to the transitions of the same world."""

    members: tuple[World, ...]

    @cached_property
    def means(self) -> Array:
        """The mean rewards in [0, 1], (N, H, X, Y|1, A)."""
        return np.stack([world.pomdp.reward for world in self.members])

    @cached_property
    def _tables(self) -> Array:
        rows: list[Any] = [world.homdp.short_tables(world.parameters) for world in self.members]
        return np.stack([np.asarray(each.reward) for each in rows])

    def log_likelihoods(self, counts: RewardCounts) -> Array:
        """The log-likelihood of the recorded rewards under every member, (N,)."""
        if counts.outcomes is not None:
            seen = np.asarray(counts.outcomes) > 0
            with np.errstate(divide="ignore"):
                logs = np.log(self._tables[:, seen])
            return logs @ np.asarray(counts.outcomes)[seen]
        single = np.asarray(counts.single)
        return np.array(
            [float(log_rewards_at(world.homdp, _one(world), single)[0]) for world in self.members]
        )


def _one(world: World) -> dict[str, Array]:
    return {name: np.asarray(value)[None] for name, value in world.parameters.items()}


def reward_class(members: Any) -> RewardClass | None:
    """The reward laws of a class of finite worlds; None if it has tables, or known rewards."""
    if not isinstance(members, Sequence) or not all(isinstance(m, World) for m in members):
        return None
    random = [m.spaces.finite and m.homdp.rewards.law is not None for m in members]
    return RewardClass(tuple(members)) if members and all(random) else None


def check_rewards(subject: str, homdp: HOMDP, rewards: RewardClass | None) -> None:
    """Raise an error if a class has no reward laws that fit a declaration with random rewards."""
    law = homdp.rewards.law
    if law is None:
        return
    laws = [] if rewards is None else [world.homdp.rewards.law for world in rewards.members]
    if laws and all(each is not None and each.form == law.form for each in laws):
        return
    got = "tables, or worlds with other rewards"
    expected = "worlds with random rewards that have the outcomes of this model"
    remedy = "The reward law of each world is compared with the data: pass homdp.at(...)."
    raise ParameterError(subject, [Problem("transitions", got, expected, remedy)])

"""Finite classes of models with real-valued spaces.

Members are drawn from a prior or listed, separately for T and O. One call computes the
log-likelihoods of all members.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.checked import checked_but
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.randomness import as_key
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.declare.sizes import draw_problems
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.precision import Array, in_x64, to_numpy


@checked_but("homdp", "n")
@in_x64
def candidates(homdp: HOMDP, n: int, key: Array) -> list[World]:
    """Draw a finite class of models: n worlds from the prior of a declaration.

    Parameters
    ----------
    homdp
        The declaration.
    n
        The number of worlds.
    key
        A JAX random key.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import explorers, models
    >>> worlds = candidates(models.load("gaussian_tiger", horizon=2).homdp, 3, jax.random.key(0))
    >>> explorers.hop_v(
    ...     transitions=worlds[:1], emissions=worlds
    ... )  # the transitions are known, so one member is enough
    Explorer hop_v(transitions=1, emissions=3): optimistic, frequentist
    """
    if not isinstance(homdp, HOMDP) or homdp.spaces.finite:
        remedy = "For a finite declaration, use [homdp.draw(k) for k in jax.random.split(key, n)]."
        raise ParameterError(
            "candidates",
            [Problem("homdp", type(homdp).__name__, "a HOMDP with real-valued spaces", remedy)],
        )
    refuse(ParameterError, "candidates", count_problems(n=n) or draw_problems("n", n, homdp.sites))
    draw = homdp.cache.get("priors", lambda: jax.jit(jax.vmap(homdp.sample_prior)))
    values = to_numpy(draw(jax.random.split(as_key(key, "candidates"), n)))
    return [World(homdp, {name: v[k] for name, v in values.items()}) for k in range(n)]


def previous_actions(episode: Episode, actions: int) -> Array:
    """The action before each observation, (H,); at first the number of actions."""
    return np.concatenate([[actions], episode.actions[:-1]])


def of_densities(members: Any) -> bool:
    """Whether a class contains worlds with real-valued spaces, which have no tables."""
    return isinstance(members, Sequence) and any(
        isinstance(member, World) and not member.spaces.finite for member in members
    )


@dataclass(frozen=True)
class DensityClass:
    """A class of densities; members of the same declaration are evaluated together.

    Attributes
    ----------
    where
        "transitions" or "emissions".
    members
        The worlds.
    """

    where: str
    members: tuple[World, ...]

    @classmethod
    def of(cls, subject: str, where: str, members: Any) -> DensityClass:
        """A class of worlds that share real-valued spaces."""
        worlds = tuple(members)
        if not worlds or not all(
            isinstance(member, World) and not member.spaces.finite for member in worlds
        ):
            expected = "at least one world, all with real-valued spaces"
            got = f"{len(worlds)} members"
            problem = Problem(where, got, expected, "Draw them: candidates(homdp, n, key).")
            raise ParameterError(subject, [problem])
        if len({member.spaces._replace(horizon=0) for member in worlds}) > 1:
            got = "members with different spaces"
            raise ParameterError(subject, [Problem(where, got, "worlds with the same spaces")])
        return cls(where, worlds)

    def __len__(self) -> int:
        return len(self.members)

    def problems(self, homdp: HOMDP) -> list[Problem]:
        """Problems of using the class with a declaration."""
        mine = self.members[0].spaces
        if mine == homdp.spaces:
            return []
        if homdp.spaces.finite:
            remedy = "The declaration of the learner is finite."
            return [Problem(self.where, str(mine), "tables, or finite worlds", remedy)]
        expected = f"worlds with the spaces and the horizon {homdp.spaces}"
        return [Problem(self.where, str(mine), expected)]

    @in_x64
    def log_likelihoods(self, *points: Array) -> Array:
        """The log density of every point under every member, (N, points).

        Parameters
        ----------
        points
            (x, a, h, x') for transitions, (x, a, h, y) with the previous action for emissions; one
            row per point. Steps count from 0, and the first observation has a = A.
        """
        table = np.empty((len(self), len(points[0])))
        for evaluate, stacked, places in self._groups:
            table[places] = np.asarray(evaluate(stacked, *(jnp.asarray(part) for part in points)))
        return np.where(np.isnan(table), -np.inf, table)  # NaN outside a support: zero density

    @cached_property
    def _groups(self) -> list[tuple[Any, Any, Array]]:
        """For each declaration: a compiled function, the members' parameters and their indices."""
        by_model: dict[HOMDP, list[int]] = {}
        for k, member in enumerate(self.members):
            by_model.setdefault(member.homdp, []).append(k)
        groups: list[tuple[Any, Any, Array]] = []
        for homdp, places in by_model.items():
            evaluate = homdp.cache.get(
                f"log densities of {self.where}", partial(self._compile, homdp)
            )
            chosen = [self.members[k].parameters for k in places]
            stacked = {
                site.name: np.stack([values[site.name] for values in chosen])
                for site in homdp.sites
            }
            if not stacked:  # no unknown parameters: vmap still needs an axis
                stacked = {"": np.zeros(len(places))}
            groups.append((evaluate, stacked, np.array(places)))
        return groups

    def _compile(self, homdp: HOMDP) -> Any:
        """The log densities of one declaration as a function of stacked parameters and points."""
        moves = self.where == "transitions"

        log = homdp.dynamics.log_transition if moves else homdp.dynamics.log_emission
        each = jax.vmap(log, in_axes=(None, 0, 0, 0, 0))
        return jax.jit(jax.vmap(each, in_axes=(0, None, None, None, None)))

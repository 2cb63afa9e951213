"""The likelihood of clues under the kernels of a program, and the evidence of a declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.clues import Clues, likelihoods
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.forward import Rows, first_impossible
from homdp_ppl.core.hindsight_form import HINDSIGHT
from homdp_ppl.core.spaces import Spaces, entry_place
from homdp_ppl.declare.kernels import Kernels, tabulators
from homdp_ppl.declare.reward_law import RewardLaw, reward_distribution
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.precision import Array

if TYPE_CHECKING:
    from homdp_ppl.declare.model import HOMDP

REPORTED = 8  # impossible gaps that are reported
CHECK = (
    "No hidden states explain what was seen and revealed there. Check the data, and that the "
    "program allows it."
)
EXACT = (
    " Recorded rewards are evidence too: leave them out if they are not those of the declaration."
)


def clue_likelihoods(kernels: Kernels, homdp: HOMDP, clues: Clues) -> Array:
    """The likelihood of clues under a program's kernels, (E, X); can be traced."""
    make, law = tabulators(kernels, homdp.spaces), homdp.rewards.law
    names = [*HINDSIGHT, *(["reward"] if law is not None and law.finite else [])]
    tables = {name: make[name]() for name in names if name in make}
    return likelihoods(clues, homdp.form, tables, densities(kernels, homdp.spaces, law, clues))


def densities(kernels: Kernels, spaces: Spaces, law: RewardLaw | None, clues: Clues) -> Any:
    """The densities of recorded rewards given the state, (E, X); None without such a law."""
    if law is None or law.finite:
        return None
    at = reward_distribution(kernels.reward, spaces)

    def one(paid: Array, place: Array, reward: Array, x: Array) -> Array:
        density = jnp.exp(at(place[0], x, place[1], place[2]).log_prob(reward))
        return jnp.where(paid > 0, density, 1.0)

    # rewards of clues without one are not inside the support of the law
    inside = 0.5 * sum(law_range(clues))
    rewards = jnp.where(clues.paid > 0, clues.reward, inside)
    states = jnp.arange(len(spaces.states))
    over: Any = jax.vmap(jax.vmap(one, in_axes=(None, None, None, 0)), in_axes=(0, 0, 0, None))
    return over(*map(jnp.asarray, (clues.paid, clues.place)), rewards, states)


def law_range(clues: Clues) -> tuple[Array, Array]:
    """The smallest and the largest recorded reward."""
    paid = clues.paid > 0
    low = jnp.where(paid, clues.reward, jnp.inf).min()
    high = jnp.where(paid, clues.reward, -jnp.inf).max()
    some = paid.any()
    return jnp.where(some, low, 0.5), jnp.where(some, high, 0.5)


def evidence_of(homdp: HOMDP, episodes: Episodes) -> Evidence:
    """The evidence of validated episodes with missing states, labels or a mechanism.

    Raises :class:`DataError` with the episode and the step for gaps that are impossible at all
    parameters.
    """
    evidence = Evidence.of(episodes, homdp, known_rewards(homdp))
    problems = _impossible(homdp, evidence, episodes)
    if problems:
        raise DataError(f"data for {homdp.name}", problems)
    return evidence


def known_rewards(homdp: HOMDP) -> Array | None:
    """The rewards in the user's units, (H, X, Y|1, A); None if they are random."""
    table = homdp.rewards.table
    return None if table is None else np.asarray(homdp.rewards.to_user(table, 1))


def _impossible(homdp: HOMDP, evidence: Evidence, episodes: Episodes) -> list[Problem]:
    """Problems of gaps that no hidden states explain."""
    gaps, origin = evidence.gaps, evidence.origin
    if not len(gaps.number) or origin is None:
        return []
    possible = {name: table.support.astype(float) for name, table in homdp.structure.tables.items()}
    law = homdp.rewards.law
    given: Any = None
    if law is not None and not law.finite:
        given = np.ones((len(gaps.clues.label), len(homdp.states)))
    clues = likelihoods(gaps.clues, homdp.form, possible, given)
    starts, moves, shows = (possible[name] for name in ("initial", "transition", "emission"))
    step = first_impossible(Rows(starts, moves, shows, homdp.form, clues), gaps)
    return [
        Problem(
            "data",
            "evidence that is impossible in every state",
            "states that explain it",
            CHECK + EXACT * (episodes.rewards is not None),
            entry_place((int(origin[s, 0]), int(origin[s, 1] + step[s])), episodes.ids),
        )
        for s in np.flatnonzero(step >= 0)[:REPORTED]
    ]

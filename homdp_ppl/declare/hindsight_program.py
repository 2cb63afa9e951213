"""The program conditioned on episodes with gaps, labels or a mechanism, by factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpyro

from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.forward import Rows, log_likelihood_of_gaps, log_probability_of_counts
from homdp_ppl.declare.clue_likelihood import clue_likelihoods
from homdp_ppl.declare.kernels import Tables, tabulate, tabulators
from homdp_ppl.declare.reward_density import has_single, log_rewards, padded

if TYPE_CHECKING:
    from homdp_ppl.declare.model import HOMDP


def hindsight_with_gaps(homdp: HOMDP, evidence: Evidence) -> Callable[[], None]:
    """A program conditioned on evidence; hidden states are summed over.

    Only the sites of the user's program remain latent.

    Parameters
    ----------
    homdp
        The declaration.
    evidence
        The counts of the revealed part, and the gaps.
    """

    def conditioned() -> None:
        kernels = homdp.function()
        make, tables = tabulators(kernels, homdp.spaces), tabulate(kernels, homdp.spaces)
        counts, tree = evidence.data
        seen = {name: getattr(counts, name) for name in Tables._fields}
        seen |= {"reward": counts.reward} if counts.reward is not None else {}
        seen |= counts.hindsight or {}
        for name, number in seen.items():
            numpyro.factor(f"counts of {name}", log_probability_of_counts(number, make[name]()))
        if counts.rewards is not None and has_single(counts.rewards):
            single = padded(evidence.counts.rewards.single)  # type: ignore[union-attr, arg-type]
            numpyro.factor("single rewards", log_rewards(kernels.reward, homdp, single))
        clues = clue_likelihoods(kernels, homdp, tree.gaps.clues)
        rows = Rows(tables.initial, tables.transition, tables.emission, homdp.form, clues)
        numpyro.factor("gaps", log_likelihood_of_gaps(rows, tree))

    return conditioned

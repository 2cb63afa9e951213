"""Which rules can learn from episodes with missing states, and how."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

import numpy as np

from homdp_ppl.confidence.rows import unknown_start
from homdp_ppl.core.bound import Bound
from homdp_ppl.core.hindsight_form import REVEALED
from homdp_ppl.core.reveal import Reveal
from homdp_ppl.declare.hindsight_validation import declares_coin, unrevealed_problems
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import InferenceError, Problem
from homdp_ppl.explorers._believing import update_belief, with_gaps
from homdp_ppl.explorers._pair_versions import with_pairs
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.explorers.hop_v import update_versions
from homdp_ppl.explorers.state import State, count
from homdp_ppl.learning.declared import Declared
from homdp_ppl.posteriors.symmetries import label_symmetries

# complete: every state is revealed. coin: a coin hides states, independently of everything.
# partial: states are missing for other reasons, which the declaration says if they depend on hidden
# states; there may be labels instead of states.
Hindsight: TypeAlias = Literal["complete", "coin", "partial"]
Protocol: TypeAlias = Reveal | Declared | None  # what is revealed in a run; None for all states

SUMMED = "missing states are summed over"
COUNTED = "only revealed steps and pairs are counted, which a coin makes a fair sample"
PAIRED = "pairs of a class are compared by their marginal likelihood"
UNUSED = "the rule does not learn from episodes"
BIAS = (
    "Counts of the revealed steps alone are biased if what is revealed depends on what happened. "
    "Use a Bayesian rule such as posterior_sampling(), or reveals by a coin per step or per "
    "episode."
)


def hindsight_problems(explorer: Explorer, homdp: HOMDP, hindsight: Hindsight) -> list[Problem]:
    """Why a rule cannot learn from what is revealed of a declaration; empty if it can.

    Rules with a posterior sum over missing states, and so does HOP-V. Rules that count use the
    revealed steps and pairs, if a coin decides what is revealed. Rules that plan once need no data.
    Declared labels, and declared mechanisms other than a coin, need a posterior or no data.

    Parameters
    ----------
    explorer
        The rule.
    homdp
        The learner's declaration.
    hindsight
        What decides which states are revealed.
    """
    learns_by = how(explorer)
    needs_states = hindsight == "complete" or learns_by not in (SUMMED, UNUSED)
    problems = unrevealed_problems(homdp, hindsight == "coin") if needs_states else []
    if hindsight == "complete" or problems:
        return problems
    if not homdp.spaces.finite:
        got, expected = "missing states in real-valued spaces", "finite spaces, or all states"
        return [Problem("reveal", got, expected)]
    if homdp.rewards.law is not None:
        expected = "all states revealed, because recorded rewards are evidence of hidden states"
        return [Problem("reveal", "missing states, and random rewards", expected)]
    if learns_by == PAIRED and unknown_start(homdp):
        got = f"{explorer.name} with missing states, and an initial distribution with sites"
        return [Problem("reveal", got, "all states revealed, or a known initial distribution")]
    if learns_by in (SUMMED, PAIRED, UNUSED) or (learns_by == COUNTED and hindsight == "coin"):
        return []
    got = f"{explorer.name} with missing states"
    if learns_by == COUNTED:
        return [Problem("reveal", got, "a Bayesian rule, or reveals by a coin", BIAS)]
    return [Problem("reveal", got, "a rule that does not need every state of an episode", BIAS)]


def hindsight_of(protocol: Protocol) -> Hindsight:
    """What decides which states are revealed."""
    if protocol is None or protocol.complete:
        return "complete"
    return "coin" if protocol.coin else "partial"


def declared_reveal(world: World) -> Protocol:
    """The protocol that the declaration of a world says; None if all states are revealed."""
    homdp = world.homdp
    if homdp.hindsight_form is None or not homdp.spaces.finite:
        return None
    if not declares_coin(homdp):
        return Declared(world)
    chance = float(np.ravel(homdp.counted_tables(world.parameters)[REVEALED])[1])
    return Reveal(chance, homdp.reveal_unit)


def how(explorer: Explorer) -> str:
    """How a rule learns from episodes with missing states; empty if it cannot."""
    if explorer.update is update_belief:
        return SUMMED
    if isinstance(explorer.update, Bound) and explorer.update.function is update_versions:
        return PAIRED
    if explorer.update is not count:
        return ""
    return UNUSED if explorer.deployment.replan == "once" else COUNTED


def unnamed(homdp: HOMDP, reveal: Reveal | Declared) -> list[str]:
    """A note for runs in which nothing is revealed and states cannot be distinguished."""
    if isinstance(reveal, Declared) or (reveal.share > 0 and reveal.episodes != 0):
        return []
    try:
        found = [symmetry for symmetry in label_symmetries(homdp) if symmetry.matters]
    except InferenceError:  # a declaration whose symmetries cannot be determined
        return []
    if not found:
        return []
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    return [f"without reveals, no data can distinguish these labels: {found[0]}{more}"]


def prepared(explorer: Explorer, state: State, hindsight: Hindsight) -> State:
    """The initial state of a rule for episodes with missing states."""
    if hindsight == "complete":
        return state
    learns_by = how(explorer)
    if learns_by == PAIRED:
        return with_pairs(state)
    return with_gaps(state) if learns_by == SUMMED else replace(state, coin=True)

"""Local search on the certified lower bound of a policy."""

from __future__ import annotations

from typing import NamedTuple

from homdp_ppl.confidence.sets import Sets
from homdp_ppl.offline.tree import Rule, Worst, best_response, mixed, worst_models
from homdp_ppl.precision import Array

SHARES = (1.0, 0.5, 0.25, 0.1)  # of the better rule, in every round
ROUNDS = 20
GAIN = 1e-6  # the smallest gain, for rewards in [0, 1]


class Found(NamedTuple):
    """The result of a search."""

    rule: Rule
    lower: float  # its certified lower bound, for rewards in [0, 1]
    rounds: int  # how often it was improved


def improve(
    sets: Sets, rule: Rule, masks: list[Array] | None = None, rounds: int = ROUNDS
) -> Found:
    """Improve a rule against the models that minimise its value, while the lower bound grows.

    In every round, the rule is mixed with a best response to these models, with several shares.
    The first mixture whose lower bound is larger is accepted. Since the lower bound is a minimum
    over models, a best response alone can be worse: other models then become the worst.

    Parameters
    ----------
    sets
        The confidence sets.
    rule
        The first policy.
    masks
        The allowed actions after every history.
    rounds
        The largest number of rounds.
    """
    worst = worst_models(sets, rule)
    for done in range(rounds):
        better = _better(sets, rule, worst, masks)
        if better is None:
            return Found(rule, worst.lower, done)
        rule, worst = better
    return Found(rule, worst.lower, rounds)


def _better(
    sets: Sets, rule: Rule, worst: Worst, masks: list[Array] | None
) -> tuple[Rule, Worst] | None:
    responses = best_response(sets, rule, worst, masks)
    for share in SHARES:
        for response in responses:
            candidate = mixed(rule, response, share)
            found = worst_models(sets, candidate)
            if found.lower > worst.lower + GAIN:
                return candidate, found
    return None

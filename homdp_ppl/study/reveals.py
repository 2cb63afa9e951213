"""What is revealed to a rule, as an option of the rule: ``greedy:reveal=0.2``.

Besides shares of the states, there are two references: "foresight", where a collector that sees the
state gathers the episodes, and "observation", where one more observation of each visited state is
revealed and no state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.reveal import Reveal
from homdp_ppl.declare.model import World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.learning.hindsight import declared_reveal, hindsight_of, hindsight_problems
from homdp_ppl.study.defaults import REFERENCES
from homdp_ppl.study.observing import extra_problems
from homdp_ppl.study.sources import find_rule

OPTION = re.compile(r"(?<=[:,])\s*reveal\s*=\s*([^,]*),?")
FORESIGHT, OBSERVATION = REFERENCES
Runs = TypeVar("Runs")


class Revealed(NamedTuple):
    """A rule as text, and what is revealed to it."""

    rule: str
    reveal: Reveal | str | None  # one of REFERENCES; None: all states


def split_reveal(text: str) -> Revealed:
    """Split the option ``reveal`` from a rule; None if all states are revealed.

    Examples
    --------
    >>> split_reveal("posterior_sampling:reveal=0.2").rule
    'posterior_sampling'
    >>> split_reveal("value_quantile:reveal=0.2,draws=5").reveal.share
    0.2
    >>> split_reveal("posterior_sampling:reveal=foresight").reveal
    'foresight'
    """
    found = OPTION.search(text)
    if found is None:
        return Revealed(text, None)
    rule = (text[: found.start()] + text[found.end() :]).rstrip(":,")
    given = found[1].strip()
    if given in REFERENCES:
        return Revealed(rule, given)
    try:
        share = float(given)
    except ValueError:
        expected = f"a share from 0 to 1, {FORESIGHT} or {OBSERVATION}"
        problem = Problem("reveal", repr(given), expected)
        raise ParameterError(rule, [problem]) from None
    reveal = Reveal(share)
    return Revealed(rule, None if reveal.complete else reveal)


def with_share(rule: str, share: float | str) -> str:
    """A rule to which a share of the states, or a reference, is revealed.

    It is unchanged for a share of 1.

    Examples
    --------
    >>> with_share("posterior_sampling", 0.2), with_share("greedy:known=False", 0.05)
    ('posterior_sampling:reveal=0.2', 'greedy:known=False,reveal=0.05')
    >>> with_share("greedy", 1.0), with_share("greedy", "foresight")
    ('greedy', 'greedy:reveal=foresight')
    """
    if share == 1:
        return rule
    name = rule.partition(".py:")[2] or rule
    given = share if isinstance(share, str) else f"{share:.12g}"
    return f"{rule}{',' if ':' in name else ':'}reveal={given}"


def by_share(runs: Mapping[str, Runs]) -> dict[str, dict[float | str, Runs]]:
    """Runs by rule and by what is revealed, for rules with at least two shares.

    Shares are in increasing order, and references come last.

    Examples
    --------
    >>> by_share({"greedy": 1, "greedy:reveal=foresight": 2, "greedy:reveal=0.2": 3, "uniform": 4})
    {'greedy': {0.2: 3, 1.0: 1, 'foresight': 2}}
    """
    found: dict[str, dict[float | str, Runs]] = {}
    for text, several in runs.items():
        rule, reveal = split_reveal(text)
        share = 1.0 if reveal is None else reveal.share if isinstance(reveal, Reveal) else reveal
        found.setdefault(rule, {})[share] = several
    listed: dict[str, dict[float | str, Runs]] = {}
    for rule, each in found.items():
        shares = sorted(share for share in each if not isinstance(share, str))
        order: list[float | str] = [*shares, *(kind for kind in REFERENCES if kind in each)]
        if len(shares) > 1:
            listed[rule] = {kind: each[kind] for kind in order}
    return listed


def check_rule(text: str, world: World) -> None:
    """Raise an error if a rule is unknown or cannot learn in the world."""
    rule, reveal = split_reveal(text)
    found, declared = find_rule(rule, world), declared_reveal(world)
    if isinstance(reveal, Reveal) and declared is not None:
        expected = "no share: the declaration says what is revealed"
        raise ParameterError(rule, [Problem("reveal", str(reveal), expected)])
    if reveal is None or isinstance(reveal, Reveal):
        hindsight = hindsight_of(declared if reveal is None else reveal)
        refuse(ParameterError, rule, hindsight_problems(found, world.homdp, hindsight))
    elif reveal == OBSERVATION:
        refuse(ParameterError, rule, extra_problems(world.homdp, found, 1))

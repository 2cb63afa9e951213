"""The share of revealed states as an option of a rule, as in ``greedy:reveal=0.2``."""

from __future__ import annotations

import re
from typing import NamedTuple

from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.reveal import Reveal
from homdp_ppl.declare.model import World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.learning.hindsight import hindsight_problems
from homdp_ppl.study.sources import find_rule

OPTION = re.compile(r"(?<=[:,])\s*reveal\s*=\s*([^,]*),?")


class Revealed(NamedTuple):
    """A rule as text, and which states are revealed to it."""

    rule: str
    reveal: Reveal | None


def split_reveal(text: str) -> Revealed:
    """Split the option ``reveal`` from a rule; None if all states are revealed.

    Examples
    --------
    >>> split_reveal("posterior_sampling:reveal=0.2").rule
    'posterior_sampling'
    >>> split_reveal("value_quantile:reveal=0.2,draws=5").reveal.share
    0.2
    """
    found = OPTION.search(text)
    if found is None:
        return Revealed(text, None)
    rule = (text[: found.start()] + text[found.end() :]).rstrip(":,")
    given = found[1].strip()
    try:
        share = float(given)
    except ValueError:
        problem = Problem("reveal", repr(given), "a share from 0 to 1")
        raise ParameterError(rule, [problem]) from None
    reveal = Reveal(share)
    return Revealed(rule, None if reveal.complete else reveal)


def with_share(rule: str, share: float) -> str:
    """A rule to which a share of the states is revealed; unchanged for a share of 1.

    Examples
    --------
    >>> with_share("posterior_sampling", 0.2), with_share("greedy:known=False", 0.05)
    ('posterior_sampling:reveal=0.2', 'greedy:known=False,reveal=0.05')
    >>> with_share("greedy", 1.0)
    'greedy'
    """
    if share == 1:
        return rule
    name = rule.partition(".py:")[2] or rule
    return f"{rule}{',' if ':' in name else ':'}reveal={share:.12g}"


def check_rule(text: str, world: World) -> None:
    """Raise an error if a rule is unknown or cannot learn in the world."""
    rule, reveal = split_reveal(text)
    found = find_rule(rule, world)
    if reveal is not None:
        refuse(ParameterError, rule, hindsight_problems(found, world.homdp, "coin"))

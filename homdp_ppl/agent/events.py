"""Events: everything that happens to an agent, and how it is written to the journal.

The state of an agent is a function of its events. Episodes are numbered in the order in which they
begin or are added; this number is the *ordinal*. Reading an event validates it and never executes
code.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from homdp_ppl.agent.values import Value, is_value
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.precision import Array
from homdp_ppl.storage.blocks import Block

LONGEST = 500  # characters of an id or a reason
LARGEST = sys.float_info.max
DIGEST = re.compile("[0-9a-f]{64}")


class Made(NamedTuple):
    """A decision that was made for an episode, in addition to its policy."""

    policy: str | None  # digest of the saved policy; None if it can only be planned again
    visits: Array  # State.visits at planning time
    optimistic: float | None  # the optimistic value, in the user's units; None if unknown


class Begin(NamedTuple):
    """An episode begins."""

    id: str
    decision: (
        int | None
    )  # number of the decision whose policy it plays; None: made before a migration
    slot: int | None = None  # of an epoch, for rules that play every policy once per step
    made: Made | None = None  # the decision, if it was made for this episode


class Act(NamedTuple):
    """An action is given after an observation."""

    ordinal: int
    step: int  # from 1
    observation: Value
    action: int


class End(NamedTuple):
    """An episode ends before the horizon."""

    ordinal: int
    ended: str  # "terminal" or "truncated"


class Abandon(NamedTuple):
    """The states of an episode will never be revealed."""

    ordinal: int
    reason: str


class Reveal(NamedTuple):
    """States of an episode are revealed, or corrected."""

    ordinal: int
    states: dict[int, Value | None]  # by step, from 1; None: never revealed
    rewards: list[float] | None = None
    labels: list[float] | None = None


class Refuse(NamedTuple):
    """States that the declaration excludes were refused; a later reveal settles this."""

    ordinal: int
    problem: str  # the first problem, as text


class Add(NamedTuple):
    """An episode that others played is added."""

    id: str
    observations: list[Value]
    actions: list[int]
    states: list[Value | None]  # None: never revealed
    ended: str
    rewards: list[float | None] | None = None  # None: not recorded


class Gap(NamedTuple):
    """The place of an episode that was forgotten."""

    decision: int | None = None
    slot: int | None = None
    made: Made | None = None


Event: TypeAlias = Begin | Act | End | Abandon | Reveal | Refuse | Add | Gap

KINDS: dict[str, type[Any]] = {
    kind.__name__.lower(): kind for kind in (Begin, Act, End, Abandon, Reveal, Refuse, Add, Gap)
}


def to_block(event: Event) -> Block:
    """The block of the journal for an event."""
    facts: dict[str, Any] = {"event": type(event).__name__.lower()}
    optional = set(event._field_defaults)
    named = event._asdict().items()
    facts |= {name: value for name, value in named if value is not None or name not in optional}
    if isinstance(event, Reveal):
        facts["states"] = [[step, value] for step, value in sorted(event.states.items())]
    made = getattr(event, "made", None)
    if made is None:
        return Block({}, facts)
    facts["made"] = {"policy": made.policy, "optimistic": made.optimistic}
    return Block({"visits": np.asarray(made.visits)}, facts)


def from_block(block: Block, spaces: Spaces) -> Event:
    """The event of a block; raises ValueError for anything else."""
    facts = dict(block.facts)
    name = facts.pop("event", None)
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None or not set(facts) <= set(kind._fields):
        raise ValueError(f"an unknown event {str(name)[:40]!r}")
    if "made" in facts:
        facts["made"] = _made(facts["made"], block.arrays)
    if kind is Reveal:
        facts["states"] = _states(facts.get("states"))
    try:
        event: Event = kind(**facts)
    except TypeError:  # a field is missing
        raise ValueError(f"an incomplete event {name!r}") from None
    if not _is_valid(event, spaces):
        raise ValueError(f"an invalid event {name!r}")
    return event


def _made(facts: Any, arrays: dict[str, Any]) -> Made:
    match facts:
        case {"policy": None | str() as policy, "optimistic": value} if (
            set(arrays) == {"visits"}
            and _are_counts(arrays["visits"])
            and (policy is None or DIGEST.fullmatch(policy))
            and (value is None or (type(value) is float and math.isfinite(value)))
        ):
            return Made(policy, arrays["visits"], value)
    raise ValueError("an invalid decision")


def _states(pairs: Any) -> dict[int, Any]:
    if not isinstance(pairs, list):
        raise ValueError("no revealed states")
    states = {}
    for pair in pairs:
        match pair:
            case [int(step), value]:
                states[step] = value
            case _:
                raise ValueError("invalid revealed states")
    return states


def _is_valid(event: Event, spaces: Spaces) -> bool:
    """Whether all entries have the right types and are inside the spaces."""
    H = spaces.horizon
    match event:
        case Begin(id=name, decision=decision, slot=slot):
            return is_text(name) and all(n is None or _is_whole(n) for n in (decision, slot))
        case Act(ordinal=n, step=h, observation=y, action=a):
            whole = _is_whole(n) and _is_whole(h) and 1 <= h <= H
            return whole and is_value(y, spaces.observations) and is_value(a, spaces.actions)
        case End(ordinal=n, ended=ended):
            return _is_whole(n) and ended in ("terminal", "truncated")
        case Abandon(ordinal=n, reason=reason):
            return _is_whole(n) and isinstance(reason, str) and len(reason) <= LONGEST
        case Refuse(ordinal=n, problem=problem):
            return _is_whole(n) and isinstance(problem, str) and len(problem) <= LONGEST
        case Reveal(ordinal=n, states=states, rewards=rewards, labels=labels):
            inside = all(
                _is_whole(h) and 1 <= h <= H + 1 and (x is None or is_value(x, spaces.states))
                for h, x in states.items()
            )
            return _is_whole(n) and inside and _are_numbers(rewards) and _are_numbers(labels)
        case Add(id=name, observations=seen, actions=done, states=hidden, ended=ended):
            lists = all(isinstance(part, list) for part in (seen, done, hidden))
            return (
                is_text(name)
                and lists
                and (event.rewards is None or isinstance(event.rewards, list))
                and _are_numbers([r for r in event.rewards or [] if r is not None])
                and (event.rewards is None or len(event.rewards) == len(done))
                and len(seen) == len(done) == len(hidden) - 1
                and len(done) <= H
                and ended in ("horizon", "terminal", "truncated")
                and all(is_value(y, spaces.observations) for y in seen)
                and all(is_value(a, spaces.actions) for a in done)
                and all(x is None or is_value(x, spaces.states) for x in hidden)
            )
        case Gap(decision=decision, slot=slot):
            return all(part is None or _is_whole(part) for part in (decision, slot))


def is_text(value: Any) -> bool:
    """Whether a value is a valid id: a short text that is not empty and can be encoded."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


def _is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31


def _are_counts(values: Array) -> bool:
    return values.dtype.kind in "iuf" and bool((np.isfinite(values) & (values >= 0)).all())


def _are_numbers(values: Any) -> bool:
    if values is None:
        return True
    return isinstance(values, list) and all(
        type(value) in (int, float) and -LARGEST <= value <= LARGEST for value in values
    )

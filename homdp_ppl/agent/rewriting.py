"""Events of an agent after an episode was forgotten, or under a changed declaration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homdp_ppl.agent.events import Abandon, Act, Add, Begin, End, Event, Gap, Refuse, Reveal
from homdp_ppl.agent.ledger import Ledger, episodes_of
from homdp_ppl.agent.values import Value
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.spaces import Space, Spaces, is_real
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import DataError, ParameterError, Problem
from homdp_ppl.posteriors.data import check_episodes


def without(events: Iterable[Event], ordinal: int) -> list[Event]:
    """The events without those of an episode, whose place is kept."""
    kept: list[Event] = []
    begun = -1
    for event in events:
        if isinstance(event, Begin | Add | Gap):
            begun += 1
            if begun == ordinal:
                kept.append(
                    Gap(event.decision, event.slot, event.made)
                    if isinstance(event, Begin)
                    else Gap()
                )
                continue
        elif event.ordinal == ordinal:
            continue
        kept.append(event)
    return kept


def migrated(events: Iterable[Event], ledger: Ledger, homdp: HOMDP) -> list[Event]:
    """The events in the spaces of another declaration; its values are matched by name.

    Decisions are dropped: the next episode plans again.
    """
    opened = [session.id for session in ledger.sessions if session.is_open]
    if opened:
        remedy = "End or abandon them first: their policies are those of the old declaration."
        many = "s" * (len(opened) > 1)
        got = f"{len(opened)} open episode{many}, such as {opened[0]!r}"
        raise ParameterError("migrate", [Problem("homdp", got, "no open episode", remedy)])
    change = _Change(ledger.spaces, homdp.spaces)
    new = Ledger(homdp.spaces)
    result = [change.event(event) for event in events if not isinstance(event, Refuse)]
    for event in result:
        try:
            new.apply(event)
        except ValueError as error:
            raise DataError(
                "migrate", [Problem("homdp", str(error), "a declaration of the same episodes")]
            ) from None
    if new.revealed:
        data = episodes_of(new.revealed, homdp.spaces)
        if homdp.spaces.finite:
            check_episodes(homdp, data)
        else:
            Episodes.of(data, homdp)
    return result


class _Change:
    """Translates indices by name from one declaration to another."""

    def __init__(self, old: Spaces, new: Spaces) -> None:
        problems: list[Problem] = []
        if old.horizon != new.horizon:
            remedy = "Keep the horizon of the recorded episodes (--horizon)."
            problems.append(Problem("horizon", str(new.horizon), str(old.horizon), remedy))
        self._maps = {
            name: _index_map(name, getattr(old, name), getattr(new, name), problems)
            for name in ("states", "observations", "actions")
        }
        if problems:
            raise ParameterError("migrate", problems)

    def _to(self, name: str, value: Value | None) -> Any:
        table = self._maps[name]
        return value if table is None or value is None else table[int(value)]  # type: ignore[arg-type]

    def event(self, event: Event) -> Event:
        """The event under the new declaration."""
        match event:
            case Begin(id=name, slot=slot):
                return Begin(name, None, slot)
            case Act(observation=y, action=a):
                seen = self._to("observations", y)
                return event._replace(observation=seen, action=self._to("actions", a))
            case Reveal(states=states):
                return event._replace(states={h: self._to("states", x) for h, x in states.items()})
            case Add():
                return event._replace(
                    observations=[self._to("observations", y) for y in event.observations],
                    actions=[self._to("actions", a) for a in event.actions],
                    states=[self._to("states", x) for x in event.states],
                )
            case End() | Abandon() | Refuse():
                return event
            case Gap(slot=slot):
                return Gap(None, slot)


def _index_map(name: str, old: Space, new: Space, problems: list[Problem]) -> list[int] | None:
    """The new index of each old name; None for real numbers."""
    if is_real(old, new):
        if old != new:
            problems.append(Problem(name, str(new), str(old)))
        return None
    names: tuple[str, ...] = tuple(new)  # type: ignore[arg-type]
    missing = [each for each in old if each not in names]
    if missing:
        problems.append(Problem(name, f"no {missing[0]!r}", "all names of the old declaration"))
        return None
    return [names.index(each) for each in old]

"""Declarations and worlds as tables for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from homdp_ppl.core import html
from homdp_ppl.core.spaces import Real, Space
from homdp_ppl.declare.parameters import short

if TYPE_CHECKING:
    from homdp_ppl.declare.model import HOMDP
    from homdp_ppl.declare.world import World

LISTED = 8  # names that are shown


def homdp_html(homdp: HOMDP) -> str:
    """The spaces of a declaration, and what is known and unknown."""
    X, Y, A, H, terminal = homdp.spaces
    rows: list[tuple[str, Any]] = [
        ("states", _names(X)),
        ("observations", _names(Y)),
        ("actions", _names(A)),
        ("horizon", H),
        ("rewards", repr(homdp.rewards)),
    ]
    if terminal:
        rows.append(("terminal states", ", ".join(terminal)))
    if not homdp.spaces.finite:
        rows.append(("unknown", ", ".join(site.name for site in homdp.sites) or "nothing"))
        return html.facts(f"HOMDP {homdp.name}", rows)
    rows += list(homdp.structure.summary().items())
    reasons = homdp.structure.reasons(homdp.spaces)
    return html.block(html.facts(f"HOMDP {homdp.name}", rows), html.listing(reasons))


def world_html(world: World) -> str:
    """The parameters of a world."""
    values = [(name, short(value)) for name, value in world.parameters.items()]
    if not values:
        return html.paragraph(repr(world))
    return html.table(f"World {world.homdp.name}", ("parameter", "value"), values)


def _names(space: Space) -> str:
    if isinstance(space, Real):
        return str(space)
    more = f" and {len(space) - LISTED:,} more" if len(space) > LISTED else ""
    return ", ".join(space[:LISTED]) + more

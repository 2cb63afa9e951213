"""Tables of a world by names, to compare them with numbers from its story."""

from typing import Any

import numpy as np
import pytest

from homdp_ppl import World
from homdp_ppl.precision import Array


def row(world: World, state: str, action: str) -> dict[str, Any]:
    """T(. | state, action), without impossible outcomes."""
    spaces = world.spaces
    return _named(
        spaces.names[0],
        world.pomdp.moves(0)[spaces.names[0].index(state), spaces.actions.index(action)],
    )


def shown(world: World, state: str, after: str | None = None) -> dict[str, Any]:
    """O(. | state) after an action, or at first, without impossible outcomes."""
    spaces = world.spaces
    previous = len(spaces.actions) if after is None else spaces.actions.index(after)
    return _named(spaces.names[1], world.pomdp.shows(0, previous)[spaces.names[0].index(state)])


def begins(world: World) -> dict[str, Any]:
    """The initial distribution, without impossible states."""
    return _named(world.spaces.names[0], world.pomdp.initial)


def paid(world: World, state: str, action: str) -> float:
    """r(state, action) at the first step."""
    return float(
        world.homdp.reward[
            0, world.spaces.names[0].index(state), world.spaces.actions.index(action)
        ]
    )


def _named(names: tuple[str, ...], chances: Array) -> dict[str, Any]:
    return {
        names[k]: pytest.approx(float(chances[k]), rel=0, abs=1e-12)
        for k in np.flatnonzero(chances)
    }

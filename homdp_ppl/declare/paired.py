"""A world whose transitions come from one model and whose emissions come from another.

All pairs of worlds of two declarations are worlds of one declaration, and share compiled functions.
"""

from __future__ import annotations

from numpyro import handlers

from homdp_ppl.declare.fingerprint import fingerprint
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.precision import Array


def paired(transition: World, emission: World) -> World:
    """The world with the initial distribution, transitions and rewards of one world, and the
    emissions of another.

    This is for real-valued spaces. Combine finite worlds by their tables instead.
    """
    if transition.homdp is emission.homdp and transition.parameters is emission.parameters:
        return transition
    moves, shows = transition.homdp, emission.homdp
    if moves.spaces.finite or moves.spaces != shows.spaces:
        got, expected = f"{moves.spaces} and {shows.spaces}", "the same real-valued spaces"
        raise ParameterError("paired", [Problem("spaces", got, expected)])
    model = moves.cache.get(("paired", shows.fingerprint), lambda: _pair(moves, shows))
    return World(model, {**_under("T", transition), **_under("O", emission)})


def _pair(moves: HOMDP, shows: HOMDP) -> HOMDP:
    """Make one declaration from two programs; their sites are called "T/..." and "O/..."."""

    def program() -> Kernels:
        with handlers.scope(prefix="T"):
            start, transition, *_ = moves.function()
        with handlers.scope(prefix="O"):
            _, _, emission, first, *_ = shows.function()
        return Kernels(start, transition, emission, first)

    parts = (("T", moves), ("O", shows))
    sites = (site._replace(name=f"{p}/{site.name}") for p, part in parts for site in part.sites)
    name = f"{moves.name} with {shows.name}"
    both = fingerprint(moves.fingerprint, shows.fingerprint)
    return HOMDP(name, moves.spaces, moves.rewards, program, tuple(sites), _probe=both)


def _under(prefix: str, world: World) -> dict[str, Array]:
    return {f"{prefix}/{name}": value for name, value in world.parameters.items()}

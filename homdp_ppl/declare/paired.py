"""A world whose transitions come from one model and whose emissions from another.

All pairs of a class share what is compiled.
"""

from __future__ import annotations

from typing import Any

from homdp_ppl.declare.conditional import Laws
from homdp_ppl.declare.densities import ContinuousHOMDP, ContinuousWorld
from homdp_ppl.declare.mechanics import Mechanics, Parameters
from homdp_ppl.errors import DeclarationError, Problem


class PairedMechanics(Mechanics):
    """Parameters are those of both models, under "T" and "O"."""

    def __init__(self, moves: Mechanics, shows: Mechanics) -> None:
        super().__init__(moves.function, moves.domain, moves.reward)
        self._moves, self._shows = moves, shows

    def laws(self, parameters: Parameters) -> Laws:
        """The start and the transitions of the one, the emissions of the other."""
        both: Any = parameters
        return self._moves.laws(both["T"])._replace(emission=self._shows.laws(both["O"]).emission)


class PairedModel(ContinuousHOMDP):
    """Two declarations with the same spaces, as one model without sites of its own."""

    @classmethod
    def of(cls, moves: ContinuousHOMDP, shows: ContinuousHOMDP) -> PairedModel:
        """The pair, made once for the same declarations."""
        name = ("paired", shows)
        if name not in moves.compiled:
            pair = cls(
                f"{moves.name} with {shows.name}", moves.spaces, moves.function, moves.reward, ()
            )
            pair.__dict__["mechanics"] = PairedMechanics(
                moves.mechanics, shows.mechanics
            )  # in place of the cached property
            moves.compiled[name] = pair
        made: PairedModel = moves.compiled[name]
        return made

    def with_horizon(self, horizon: int) -> ContinuousHOMDP:
        """Refused: a pair has the horizon of its parts."""
        remedy = "Pair worlds that have it: paired(t.with_horizon(h), o.with_horizon(h))."
        raise DeclarationError(
            self.name, [Problem("horizon", str(horizon), str(self.horizon), remedy)]
        )


def paired(transition: ContinuousWorld, emission: ContinuousWorld) -> ContinuousWorld:
    """The world with the transitions, the start and the rewards of one world, and the emissions of
    another.
    """
    if transition.homdp is emission.homdp and transition.parameters is emission.parameters:
        return transition
    model = PairedModel.of(transition.homdp, emission.homdp)
    both: Any = {"T": dict(transition.parameters), "O": dict(emission.parameters)}
    return ContinuousWorld(model, both)

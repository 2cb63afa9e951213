"""The form of a table of random rewards: its rows, and the values of its outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from homdp_ppl.precision import Array, namespace


@dataclass(frozen=True, eq=False)
class RewardForm:
    """The rows of a reward law and, if they are finitely many, the values of its outcomes.

    Examples
    --------
    >>> values = np.broadcast_to([-1.0, 5.0], (1, 2, 1, 1, 2))  # two states, one action
    >>> form = RewardForm((1, 2, 1, 1), values)
    >>> form.index(h=3, x=1, y=0, a=0)
    (0, 1, 0, 0)
    >>> form.outcome(form.places(np.array([0, 1]), np.array([0]), np.array([0])), np.array([5.0]))
    array([1])
    """

    shape: tuple[int, ...]  # (H|1, X, Y|1, A)
    outcomes: Array | None = None  # (H|1, X, Y|1, A, R), in the user's units; None: a density

    def index(self, h: Any, x: Any, y: Any, a: Any) -> tuple[Any, ...]:
        """The index of a row; axes of size 1 broadcast."""
        return (h if self.shape[0] > 1 else 0, x, y if self.shape[2] > 1 else 0, a)

    def places(self, states: Array, observations: Array, actions: Array) -> tuple[Array, ...]:
        """The indices of all rows of episodes, from (..., H + 1), (..., H) and (..., H)."""
        xp = namespace(states, actions)
        h = xp.broadcast_to(xp.arange(actions.shape[-1]), actions.shape)
        parts = self.index(h, states[..., :-1], observations, actions)
        return tuple(xp.broadcast_to(part, actions.shape) for part in parts)

    def outcome(self, places: tuple[Array, ...], rewards: Array) -> Array:
        """The number of the outcome that is nearest to each reward."""
        xp = namespace(rewards)
        values = xp.asarray(self.outcomes)[places]
        return xp.argmin(xp.abs(values - rewards[..., None]), axis=-1)

    def steps(self, horizon: int) -> Array:
        """The number of steps of an episode at which each row can be used."""
        return np.full(self.shape, 1 if self.shape[0] > 1 else horizon)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RewardForm) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @property
    def _content(self) -> tuple[Any, ...]:
        values = None if self.outcomes is None else np.asarray(self.outcomes).tobytes()
        return self.shape, values

"""The form of declared hindsight: labels instead of states, and why something is not revealed.

What is revealed after an episode is an item per state: its label if the declaration has labels,
otherwise the state itself. The mechanism gives the probability that an item is revealed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from homdp_ppl.precision import Array

if TYPE_CHECKING:
    from homdp_ppl.core.episodes import Episodes

LABEL, REVEALED, LAST = "label", "revealed", "revealed_last"  # names of tables
HINDSIGHT = (LABEL, REVEALED, LAST)


class HindsightForm(NamedTuple):
    """The shapes of the tables of labels and of the mechanism.

    An axis of the mechanism on which it does not depend has size 1, also that of the state. The
    last axis has the probabilities that an item is missing and that it is revealed.
    """

    label: tuple[int, ...] | None = None  # (X, Z)
    revealed: tuple[int, ...] | None = None  # (H|1, X|1, Y|1, A|1, 2)
    revealed_last: tuple[int, ...] | None = None  # (H + 1|1, X|1, 2)  of the last state
    by_episode: bool = False  # one coin per episode
    ignorable: bool = False  # the mechanism is known and does not depend on the state

    @property
    def tables(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the tables that exist, by name."""
        shapes = self._asdict()
        return {name: shapes[name] for name in HINDSIGHT if shapes[name] is not None}

    @property
    def matters(self) -> bool:
        """Whether the likelihood of an episode has factors for labels or for the mechanism."""
        return self.label is not None or self.weighs

    @property
    def weighs(self) -> bool:
        """Whether the likelihood has a factor for the mechanism."""
        return self.revealed is not None and not self.ignorable

    @property
    def by_state(self) -> bool:
        """Whether the mechanism is evidence of hidden states."""
        if self.revealed is None or self.revealed_last is None or self.ignorable:
            return False
        return max(self.revealed[1], self.revealed_last[1]) > 1

    @property
    def by_step(self) -> bool:
        """Whether the mechanism depends on the step."""
        return self.revealed is not None and self.revealed[0] > 1

    @property
    def is_coin(self) -> bool:
        """Whether a coin decides what is revealed, whatever happens in the episode."""
        return self.revealed is not None and self.revealed[:4] == (1, 1, 1, 1)

    @property
    def labels(self) -> int:
        """The number of labels; 0 if states are revealed."""
        return 0 if self.label is None else self.label[1]

    def items(self, episodes: Episodes) -> Array:
        """Which items of episodes are revealed, (N, H + 1)."""
        if self.label is None:
            return episodes.revealed
        known = episodes.labels_known
        return np.zeros_like(episodes.revealed) if known is None else known

    def place(self, h: Any, x: Any, y: Any, a: Any) -> tuple[Any, ...]:
        """The index of a row of the mechanism at step h, from 0; axes of size 1 broadcast."""
        assert self.revealed is not None
        return tuple(
            part if size > 1 else np.zeros_like(part)
            for part, size in zip((h, x, y, a), self.revealed, strict=False)
        )

    def last_place(self, h: Any, x: Any) -> tuple[Any, ...]:
        """The index of a row of the mechanism for the last state of an episode of h steps."""
        assert self.revealed_last is not None
        return tuple(
            part if size > 1 else np.zeros_like(part)
            for part, size in zip((h, x), self.revealed_last, strict=False)
        )

    def mark(self, h: Any, y: Any, a: Any, shown: Any) -> Array:
        """The row of :meth:`marks` of an item at a step, from its step, observation and action."""
        assert self.revealed is not None
        Y, A = self.revealed[2:4]
        h, _, y, a = self.place(h, 0, y, a)
        return ((h * Y + y) * A + a) * 2 + shown

    def last_mark(self, h: Any, shown: Any) -> Array:
        """The same for the last state of an episode of h steps."""
        assert self.revealed is not None
        (h, _), (H, _, Y, A, _) = self.last_place(h, 0), self.revealed
        return H * Y * A * 2 + h * 2 + shown

    @property
    def no_mark(self) -> int:
        """The row of :meth:`marks` for an item without a mechanism, which is 1 everywhere."""
        if self.revealed is None or self.revealed_last is None:
            return 0
        H, _, Y, A, _ = self.revealed
        return 2 * (H * Y * A + self.revealed_last[0])

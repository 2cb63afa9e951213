"""The gaps of episodes, and the tree of their beginnings.

Given the state after it, a hidden state depends only on the beginning of its gap. Gaps that begin
equally therefore share the hidden states of this beginning: the forward recursion and backward
sampling visit each distinct beginning once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.core.clues import Clues
from homdp_ppl.precision import Array


class Gaps(NamedTuple):
    """The distinct gaps of episodes: S gaps of at most G hidden states each.

    The numbers X, Y and A mean that there is no such state, observation or action. Entries after
    the end of a gap are 0 and are never used.

    Examples
    --------
    >>> from homdp_ppl import Episodes, models
    >>> from homdp_ppl.core.evidence import Evidence
    >>> tiger = models.load("tiger", horizon=2).homdp
    >>> twice = Episodes([[0, 1]] * 2, [[0, 0]] * 2, [[0, None, 0]] * 2)
    >>> gaps = Evidence.of(twice, tiger).gaps
    >>> gaps.number.tolist(), gaps.before.tolist(), gaps.seen.tolist(), gaps.after.tolist()
    ([2], [0], [[1]], [0])
    """

    number: Array  # (S,)         how often the gap occurs
    length: Array  # (S,)         number of hidden states
    step: Array  # (S,)         step of the first hidden state, from 0; 0 if no table has steps
    before: Array  # (S,)         the revealed state before the gap
    after: Array  # (S,)         the revealed state after the gap
    actions: Array  # (S, G + 1)   the action before each hidden state, and after the last one
    seen: Array  # (S, G)       the observation of each hidden state
    clue: Array  # (S, G)       what else is known of each hidden state: a row of ``clues``
    clues: Clues  # E            the distinct clues

    @property
    def hidden(self) -> int:
        """The number of hidden states, those of equal gaps included."""
        return int((self.number * self.length).sum())

    def take(self, index: Array) -> Gaps:
        """Some of the gaps."""
        return Gaps._make([*(column[index] for column in self[:-1]), self.clues])

    def padded(self) -> Gaps:
        """The same gaps with sizes that are powers of two; added gaps occur 0 times.

        Compiled functions are then compiled again only when a size doubles.
        """
        S, G = self.seen.shape
        rows, steps = (_power_of_two(n) - n for n in (S, G))
        parts = {
            name: np.pad(value, [(0, rows), (0, steps)][: value.ndim])
            for name, value in self._asdict().items()
            if name != "clues"
        }
        clues = self.clues.padded(_power_of_two(len(self.clues.label)))
        return Gaps(**parts, clues=clues)


class GapTree(NamedTuple):
    """S gaps of at most G hidden states, with at most N distinct beginnings of each length.

    Examples
    --------
    >>> from homdp_ppl import Episodes, models
    >>> from homdp_ppl.core.evidence import Evidence
    >>> tiger = models.load("tiger", horizon=2).homdp
    >>> seen = [[0, 1], [0, 0], [0, 1]]
    >>> log = Episodes(seen, [[0, 0]] * 3, [[None, None, 0], [None, None, 0], [None, 0, 0]])
    >>> tree = GapTree.of(Evidence.of(log, tiger).gaps)
    >>> tree.size.tolist(), tree.gaps.length.tolist(), tree.leaf.tolist()
    ([1, 2], [1, 2, 2], [0, 0, 1])
    """

    gaps: Gaps
    row: Array  # (G, N)  a gap with this beginning
    parent: Array  # (G, N)  the node of the beginning without its last hidden state
    size: Array  # (G,)    the number of nodes; later entries are 0
    leaf: Array  # (S,)    the node of the whole gap, in the level of its length

    @classmethod
    def of(cls, gaps: Gaps) -> GapTree:
        """The tree of some gaps."""
        G = gaps.seen.shape[1]
        node, levels = _pairs(gaps.before, gaps.step), []
        for g in range(G):
            s = np.flatnonzero(gaps.length > g)
            new = _pairs(_pairs(gaps.actions[s, g], gaps.seen[s, g]), gaps.clue[s, g])
            own = _pairs(node[s], new)
            index = np.unique(own, return_index=True)[1]
            levels.append((s[index], node[s[index]] if g else np.zeros_like(index)))
            node[s] = own
        size = np.array([len(row) for row, _ in levels], dtype=np.int64)
        row, parent = np.zeros((2, G, size.max(initial=0)), dtype=np.int64)
        for g, level in enumerate(levels):
            row[g, : size[g]], parent[g, : size[g]] = level
        return cls(gaps, row, parent, size, node)

    def level(self, g: int) -> tuple[Gaps, Array]:
        """A gap for each beginning of g + 1 hidden states, and the parents."""
        n = self.size[g]
        return self.gaps.take(self.row[g, :n]), self.parent[g, :n]

    def padded(self) -> GapTree:
        """The same tree with sizes that are powers of two, for compiled functions."""
        gaps = self.gaps.padded()
        G, N = self.row.shape
        more = gaps.seen.shape[1] - G, _power_of_two(N) - N
        wide: Any = ((0, more[0]), (0, more[1]))
        row, parent = np.pad(self.row, wide), np.pad(self.parent, wide)
        leaf = np.pad(self.leaf, (0, len(gaps.number) - len(self.leaf)))
        return GapTree(gaps, row, parent, np.pad(self.size, wide[0]), leaf)


def _pairs(one: Array, other: Array) -> Array:
    """Numbers from 0 of pairs of natural numbers; equal pairs have equal numbers."""
    code = one * (int(other.max(initial=0)) + 1) + other
    number: Array = np.unique(code, return_inverse=True)[1]
    return number


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()

"""Nested Dirichlet rows: closed forms for outcomes that some table rows show only as a sum.

A Dirichlet row p has one probability per outcome. A table row may show sums of outcomes: next to a
wall, moving and staying lead to the same cell. If all sums that occur are disjoint or nested, they
form a tree. Its leaves are the outcomes, its inner nodes are the sums, and each branching divides
the probability of a node among its children. Under a Dirichlet prior, the branchings are
independent Dirichlet rows, and a count of a node is one draw in each branching on the path to it.
So the posterior has independent Dirichlet branchings too. This is the Dirichlet-tree distribution:
Minka, "The Dirichlet-tree distribution" (1999).

One vector of length M has all nodes except the roots: first the outcomes of all sites, then the
sums. A row without sums is a tree with one branching.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from homdp_ppl.precision import Array


class Conjugate(NamedTuple):
    """The Dirichlet rows with a closed-form posterior.

    The posterior concentration of a node is ``concentration`` plus the counts of all table entries
    that refer to the node or to a node below it.
    """

    sites: tuple[str, ...]
    # number of outcomes of each site; a Beta has two for each of its values
    lengths: tuple[int, ...]
    concentration: Array  # (M,)  prior
    row: Array  # (M,)  the branching that a node belongs to
    parent: Array  # (M,)  the node that the branching divides, -1 for the whole row
    # the node of each entry of the named tables, -1 for none
    sources: Mapping[str, Array]

    @property
    def nested(self) -> bool:
        """Whether table entries are sums of outcomes."""
        return len(self.parent) > sum(self.lengths)

    def rows_of(self, name: str) -> set[int]:
        """The branchings that a table uses."""
        source = self.sources[name]
        used = np.append(self.row, -1)[self.paths[source[source >= 0]]]
        return set(used[used >= 0].tolist())

    @property
    def top(self) -> Array:
        """The first branching of the Dirichlet row that each node belongs to, (M,)."""
        paths = self.paths
        ends = (paths < len(paths)).sum(-1) - 1
        return self.row[paths[np.arange(len(paths)), ends]]

    @property
    def paths(self) -> Array:
        """The nodes from each node up to the root, (M, depth), padded with M."""
        M = len(self.parent)
        above = np.append(np.where(self.parent < 0, M, self.parent), M)
        levels = [np.arange(M)]
        while len(levels[-1]) and (above[levels[-1]] < M).any():
            levels.append(above[levels[-1]])
        return np.stack(levels, -1)

    def probabilities(self, outcomes: Array) -> Array:
        """The probabilities of all nodes, (..., M), from those of the outcomes."""
        n = sum(self.lengths)
        paths = self.paths[:n]
        below = [(paths == node).any(-1) for node in range(n, len(self.parent))]
        sums = [outcomes[..., leaves].sum(-1, keepdims=True) for leaves in below]
        return np.concatenate([outcomes, *sums], axis=-1)

    def log_density(self, concentration: Array, outcomes: Array) -> Array:
        """The log density of outcomes (..., n) under nested Dirichlet rows."""
        log = np.log(self.probabilities(outcomes))
        log_parent = np.where(self.parent < 0, 0.0, log[..., self.parent])
        branching = ((concentration - 1) * (log - log_parent)).sum(-1)
        # the change of variables from a branching to the probabilities of its children
        children = np.bincount(self.parent[self.parent >= 0], minlength=len(self.parent))
        jacobian = (np.maximum(children - 1, 0) * log).sum(-1)
        constant = gammaln(np.bincount(self.row, weights=concentration)).sum()
        return branching - jacobian + constant - gammaln(concentration).sum()


class Tree(NamedTuple):
    """Outcomes and sums as nodes; see :class:`Conjugate`."""

    row: Array  # (M,)
    parent: Array  # (M,)
    node: Mapping[frozenset[int], int]  # of each sum


def is_nested(sums: Collection[frozenset[int]]) -> bool:
    """Whether any two of these sets are disjoint or one contains the other."""
    larger_first = sorted(sums, key=len, reverse=True)
    return all(
        small <= large or not small & large
        for k, large in enumerate(larger_first)
        for small in larger_first[k + 1 :]
    )


def nest(row: Array, sums: Iterable[frozenset[int]]) -> Tree:
    """The tree of Dirichlet rows with these nested sums of their outcomes.

    Parameters
    ----------
    row
        The Dirichlet row of each outcome.
    sums
        Sets of at least two outcomes of one row, none of them a whole row.
    """
    rows, parents = row.tolist(), [-1] * len(row)
    branchings = max(rows, default=-1) + 1
    node: dict[frozenset[int], int] = {}
    for some in sorted(sums, key=lambda some: (-len(some), min(some))):
        first = min(some)  # larger sets come first, so all its outcomes have the same parent
        node[some] = len(rows)
        rows.append(rows[first])
        parents.append(parents[first])
        for outcome in some:
            rows[outcome], parents[outcome] = branchings, node[some]
        branchings += 1
    return Tree(np.array(rows, dtype=int), np.array(parents, dtype=int), node)

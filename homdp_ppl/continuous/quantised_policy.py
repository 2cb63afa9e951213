"""QuantisedPolicy, which maps real-valued observations to cells and acts on them by a graph."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.continuous.tabulation import as_edges, quantised_pomdp
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.policy_card import CARD, PolicyCard, card_of
from homdp_ppl.declare.model import World
from homdp_ppl.errors import PolicyError, Problem
from homdp_ppl.evaluation.exact import evaluate
from homdp_ppl.precision import Array
from homdp_ppl.storage.npz import names_in, read_arrays, write_arrays

FORMAT = "homdp_ppl quantised policy 2"
OLDER = ("homdp_ppl quantised policy 1",)  # formats without a card, which can be loaded
PARTS = ("edges", "start", "probabilities", "successor", "actions")


class QuantisedPolicy:
    """A :class:`GraphPolicy` on cells of the line: cell k contains edges[k - 1] <= y < edges[k].

    Parameters
    ----------
    edges
        Increasing numbers; the first and the last cell are unbounded.
    graph
        The policy on cells.

    Examples
    --------
    >>> guess = GraphPolicy([0, 1], [[1.0, 0.0], [0.0, 1.0]], np.zeros((2, 1, 2), int))
    >>> QuantisedPolicy([0.5], guess).act([0.7], [])
    array([0., 1.])
    """

    def __init__(self, edges: ArrayLike, graph: GraphPolicy) -> None:
        self.edges = as_edges(edges)
        self.graph = graph
        if len(graph.start) != len(self.edges) + 1:
            got = f"{len(self.edges)} edges and a graph for {len(graph.start)} cells"
            raise PolicyError(
                "QuantisedPolicy", [Problem("edges", got, "one cell more than edges")]
            )

    def cells(self, observations: ArrayLike) -> Array:
        """The cell of each observation."""
        seen = np.asarray(observations, dtype=np.float64)
        if np.isnan(seen).any():
            raise PolicyError("QuantisedPolicy", [Problem("observations", "nan", "numbers")])
        return np.searchsorted(self.edges, seen, side="right")

    @property
    def card(self) -> PolicyCard:
        """What is known about the policy."""
        return self.graph.card

    def with_card(self, card: PolicyCard) -> QuantisedPolicy:
        """The same policy with another card."""
        return QuantisedPolicy(self.edges, self.graph.with_card(card))

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}.

        Actions are indices, or names if the policy has them. If the horizon is known from the card,
        longer histories raise PolicyError.
        """
        return self.graph.act(self.cells(observations), actions)

    def value(self, world: World) -> float:
        """The exact value in a world with the same actions, finitely many states and observations
        in ``Real(1)``.
        """
        return evaluate(self.graph, quantised_pomdp(world, self.edges))

    def save(self, path: str | Path) -> None:
        """Write the policy and its card to an ``.npz`` file of NumPy arrays, without code."""
        names = self.graph.names[1] if self.graph.names else ()
        values = (
            self.edges,
            self.graph.start,
            self.graph.probabilities,
            self.graph.successor,
            np.array(names, dtype=np.str_),
        )
        parts = dict(zip(PARTS, values, strict=True))
        write_arrays(path, FORMAT, **parts, **self.card.arrays())

    @classmethod
    def load(cls, path: str | Path) -> QuantisedPolicy:
        """Read a policy from a file written by :meth:`save`; no code in it is executed."""
        parts = read_arrays(path, FORMAT, PARTS, optional=CARD, older=OLDER)
        start, probabilities, successor = (parts[name] for name in PARTS[1:4])
        edges, actions = as_edges(parts["edges"]), names_in(path, parts, "actions")
        names = (cell_names(edges), actions) if actions else None
        card = card_of(str(path), parts)
        return cls(edges, GraphPolicy(start, probabilities, successor, names, card))

    def __repr__(self) -> str:
        nodes, actions = self.graph.probabilities.shape
        return f"QuantisedPolicy({len(self.graph.start)} cells, {nodes} nodes, {actions} actions)"


def cell_names(edges: Array) -> tuple[str, ...]:
    """The names of cells, such as ``y < 0.5`` and ``0.5 <= y``."""
    text = [f"{round(float(edge), 6) + 0.0:.6g}" for edge in edges]
    if not text:
        return ("y",)
    return (f"y < {text[0]}", *(f"{a} <= y < {b}" for a, b in pairwise(text)), f"{text[-1]} <= y")

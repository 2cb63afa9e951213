"""Joint emission rows of several sensors: exact moments of products of Dirichlet rows.

A joint probability is a product of one entry per sensor. Sensors may use the same Dirichlet row,
for example two microphones with one unknown accuracy. The mean of a product of entries is then that
of Polya's urn: each factor sees the outcomes of the factors before it as further counts. Rows may
be nested (see :mod:`homdp_ppl.declare.nesting`): an entry is then a product of shares, one per
branching on its path.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from homdp_ppl.core.sensors import Sensors
from homdp_ppl.core.spaces import sensor_table
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.precision import Array, namespace


class Step(NamedTuple):
    """One node on the paths to the entries of a sensor; all arrays have the joint shape."""

    node: Array  # M, the number of nodes, for none
    same_node: Array  # number of earlier steps, also of other sensors, at the same node
    same_row: Array  # the same for the branching


class Factor(NamedTuple):
    """One sensor's factor of every joint probability; all arrays have the joint shape."""

    source: Array  # node of the entry, -1 for none
    fixed: Array  # the factor of entries without a source
    mass: Array  # the constant that the probability of the node is multiplied with
    path: tuple[Step, ...]  # shares whose product is the probability of the node


class SensorProduct:
    """The joint emission table of a declaration with several sensors.

    Parameters
    ----------
    homdp
        The declaration.
    """

    def __init__(self, homdp: HOMDP) -> None:
        space, structure = homdp.spaces.observations, homdp.structure
        assert isinstance(space, Sensors)
        self._joint = structure.tables["emission"]
        self._ended = space.ended
        conjugate, shape = structure.conjugate, self._joint.reference.shape
        row, M = np.append(conjugate.row, -1), len(conjugate.row)
        nowhere = np.full((1, conjugate.paths.shape[-1]), M)
        paths = np.concatenate([np.asarray(conjugate.paths), nowhere])
        self.factors: list[Factor] = []
        earlier: list[Array] = []
        closed, open_rows = np.zeros(shape[:-1], bool), np.zeros(shape[:-1], bool)
        self.shared = np.zeros(shape[:-1], bool)  # rows in which sensors share a Dirichlet row
        for sensor in space.sensors:
            name = sensor_table(sensor)
            own, reference = conjugate.sources[name], structure.tables[name].reference
            unknown = (own < 0).all(-1) & ~structure.tables[name].known
            mass = np.where(own >= 0, reference, 0.0).sum(-1, keepdims=True)
            source, fixed, masses, left = (
                space.to_joint(sensor, np.broadcast_to(part, own.shape), shape)
                for part in (own, reference, mass, unknown[..., None])
            )
            nodes = [paths[source][..., depth] for depth in range(paths.shape[-1])]
            steps = tuple(Step(node, *_repeats(node, earlier, row)) for node in nodes)
            self.factors.append(Factor(source, fixed, masses, steps))
            earlier += nodes
            closed |= (source >= 0).any(-1)
            open_rows |= left.any(-1)
            for step in steps:
                self.shared |= ((step.same_row > 0) & (step.node < M)).any(-1)
        self.rows = closed & ~open_rows & ~self._joint.known  # rows that have a closed form

    def fill(self, entries: Array) -> Array:
        """The table at given probabilities of all nodes, (..., M)."""
        xp, product = namespace(entries), np.ones(())
        for source, fixed, mass, _ in self.factors:
            product = product * xp.where(source >= 0, mass * entries[..., source], fixed)
        return self._completed(product)

    def moment(self, concentration: Array, totals: Array, order: int) -> Array:
        """The mean of every joint probability (order 1) or of its square (order 2).

        Entries without a closed form are those of the reference.
        """
        xp, product = namespace(concentration), np.ones(())
        for factor in self.factors:
            urn = factor.mass**order * _urn(factor, concentration, totals, order)
            product = product * xp.where(factor.source >= 0, urn, factor.fixed**order)
        return self._completed(product, order)

    def ratio(self, concentration: Array, totals: Array, entries: Array, order: int) -> Array:
        """The same moment of the closed factors alone, divided by their values at ``entries``.

        Closed forms are independent of all other sites. So an average over the other sites, with
        the closed forms at fixed entries, times this ratio is the posterior moment.
        """
        product = np.ones(())
        for factor in self.factors:
            urn = _urn(factor, concentration, totals, order) / entries[factor.source] ** order
            product = product * np.where(factor.source >= 0, urn, 1.0)
        return np.append(product, np.ones((*product.shape[:-1], int(self._ended))), axis=-1)

    def _completed(self, product: Array, order: int = 1) -> Array:
        """The whole table: known rows, and "ended" if there are terminal states."""
        xp = namespace(product)
        if self._ended:
            nothing = xp.zeros((*product.shape[:-1], 1))
            product = xp.concatenate([product, nothing], axis=-1)
        return xp.where(self._joint.known[..., None], self._joint.reference**order, product)


def _repeats(node: Array, earlier: list[Array], row: Array) -> tuple[Array, Array]:
    """How often the nodes, and their branchings, occurred in earlier steps."""
    none = np.zeros(node.shape, dtype=int)
    same_node = sum((other == node for other in earlier), none)
    return same_node, sum((row[other] == row[node] for other in earlier), none)


def _urn(factor: Factor, concentration: Array, totals: Array, order: int) -> Array:
    """The mean of a probability to a power, given the factors before it."""
    xp, product = namespace(concentration), np.ones(())
    alpha, total = (xp.append(part, 1.0) for part in (concentration, totals))
    for node, same_node, same_row in factor.path:
        share = np.ones(())
        for k in range(order):
            drawn = alpha[node] + order * same_node + k
            share = share * drawn / (total[node] + order * same_row + k)
        product = product * xp.where(node < len(concentration), share, 1.0)
    return product

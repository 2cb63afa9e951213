"""Label symmetries: permutations of states that the data cannot distinguish without hindsight."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from homdp_ppl.core.checked import checked
from homdp_ppl.core.spaces import names_of, require_finite
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import InferenceError, Problem
from homdp_ppl.posteriors.dirichlet import ClosedForm, closed_form
from homdp_ppl.precision import Array

ALL = 7  # with more states, only exchanges of two states are tried
AXES = {"initial": (0,), "transition": (-3, -1)}  # of states; emissions have states second to last


class Symmetry(NamedTuple):
    """A permutation of states that leaves the prior and all known rows unchanged.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> (swap,) = label_symmetries(models.load("tiger_table", horizon=2).homdp)
    >>> swap.moves, swap.matters
    ({'left': 'right', 'right': 'left'}, True)
    """

    permutation: tuple[int, ...]  # state x becomes permutation[x]
    moves: dict[str, str]  # names of the states that move
    matters: bool  # whether rewards or the end of episodes tell the states apart

    def __str__(self) -> str:
        return ", ".join(f"{here} -> {there}" for here, there in self.moves.items())


@checked
def label_symmetries(homdp: HOMDP) -> list[Symmetry]:
    """Permutations of states that leave the first states, known rows and priors unchanged.

    Without hindsight, a model and the same model with exchanged states then explain all data
    equally well, for ever: the posterior gives both the same probability. If rewards tell the
    states apart, the learner cannot know which plan is right, unless a few states are revealed.

    All permutations are tried for at most seven states, else exchanges of two states.

    Parameters
    ----------
    homdp
        A declaration whose unknown rows all have closed forms.

    Returns
    -------
    list of Symmetry
        Without the identity; empty if hindsight is not needed to name the states.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> label_symmetries(models.load("tiger", horizon=2).homdp)  # growls point to the tiger
    []
    >>> [str(s) for s in label_symmetries(models.load("tiger_table", horizon=2).homdp)]
    ['left -> right, right -> left']
    """
    require_finite(homdp.spaces, homdp.name, "label_symmetries")
    form = closed_form(homdp)
    if len(form.conjugate.sites) < len(homdp.sites):
        others = [site.name for site in homdp.sites if site.name not in form.conjugate.sites]
        expected = "unknown rows with closed forms"
        problem = Problem("homdp", f"other sites: {', '.join(others)}", expected)
        raise InferenceError("label_symmetries", [problem])
    names = names_of(homdp.spaces.states)
    found = []
    for chosen in _candidates(len(names)):
        order = np.array(chosen)
        if _unchanged(form, order):
            moves = {names[x]: names[y] for x, y in enumerate(chosen) if x != y}
            found.append(Symmetry(chosen, moves, _matters(homdp, order)))
    return found


def _candidates(states: int) -> Iterator[tuple[int, ...]]:
    """All permutations but the identity, or all exchanges of two states if there are many."""
    same = tuple(range(states))
    if states <= ALL:
        yield from (order for order in permutations(same) if order != same)
        return
    for one, other in combinations(same, 2):
        swapped = list(same)
        swapped[one], swapped[other] = other, one
        yield tuple(swapped)


def _unchanged(form: ClosedForm, order: Array) -> bool:
    """Whether known entries stay the same, and unknown rows are exchanged for equal ones."""
    tables, nodes = form.homdp.structure.tables, len(form.conjugate.concentration)
    image = np.full(nodes, -1)
    for name, source in form.conjugate.sources.items():
        if name == "reward":
            return False
        table = tables[name].reference
        moved, table_moved = (_permuted(part, name, order) for part in (source, table))
        known = source < 0
        if not np.array_equal(known, moved < 0) or not np.allclose(
            table[known], table_moved[known], rtol=0, atol=1e-12
        ):
            return False
        mass = form.mass(name)
        if not np.allclose(mass, _permuted(mass[..., None], name, order)[..., 0]):
            return False
        image[source[~known]] = moved[~known]
        if not np.array_equal(image[source[~known]], moved[~known]):
            return False  # one unknown number would become two
    used = image >= 0
    image[~used] = np.flatnonzero(~used)
    if len(np.unique(image)) < nodes:
        return False
    conjugate, row = form.conjugate, form.conjugate.row
    rows: Array = np.full(row.max(initial=-1) + 1, -1)
    rows[row] = row[image]
    return (
        np.array_equal(rows[row], row[image])
        and np.allclose(conjugate.concentration, conjugate.concentration[image])
        and np.array_equal(_above(form, image), np.sort(form.paths[image], axis=1))
    )


def _above(form: ClosedForm, image: Array) -> Array:
    """The images of the nodes on each path, sorted."""
    return np.sort(np.append(image, -1)[form.paths], axis=1)


def _permuted(table: Array, name: str, order: Array) -> Array:
    """A table, or an array with one number per row, after relabelling its states."""
    for axis in AXES.get(name, (-2,)):
        if table.shape[axis] == len(order):  # arrays of one number per row have no next states
            table = np.take(table, order, axis=axis)
    return table


def _matters(homdp: HOMDP, order: Array) -> bool:
    """Whether rewards or terminal states tell the relabelled states apart."""
    reward = np.asarray(homdp.model_of(homdp.structure.reference).reward)  # (H, X, Y|1, A)
    ends = np.asarray(homdp.spaces.ends)
    return not (np.allclose(reward, reward[:, order]) and np.array_equal(ends, ends[order]))

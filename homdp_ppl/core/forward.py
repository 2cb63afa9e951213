"""The probability of a gap: a sum over its hidden states by the forward recursion.

With f_1 = P(x_1 | before) O(y_1 | x_1) e_1(x_1), each step is f' = e' O(y' | .) sum_x f(x) T(. | x,
a), where e is the likelihood of a clue. The forward messages are normalised at every step, so that
long gaps do not underflow. Policies cancel, because they depend on observations and actions only.
Gaps that begin equally share their messages (:class:`GapTree`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.clues import likelihoods
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.form import Form
from homdp_ppl.core.gaps import Gaps, GapTree
from homdp_ppl.core.sparse import Sparse
from homdp_ppl.precision import Array, namespace


class Messages(NamedTuple):
    """The forward messages of S gaps; extra axes before the last are candidate models."""

    log_probability: Array  # (S, ...)  of each gap; minus infinity if it is impossible
    forward: Any  # G arrays (N, ..., X) by node  P(x | everything up to this hidden state)
    final: Array  # (S, ..., X)  P(x | the whole gap) of the last hidden state


class Rows:
    """The probabilities that gaps need, from tables in their declared form.

    Parameters
    ----------
    initial, transition, emission
        Tables; extra leading axes are candidates.
    form
        Their form without candidates.
    clues
        The likelihood of each clue given the state, (E, ..., X). By default, the part of it that
        depends on no parameter.
    """

    def __init__(
        self,
        initial: Array,
        transition: Array,
        emission: Array,
        form: Form,
        clues: Array | None = None,
    ) -> None:
        xp = self._xp = namespace(initial, transition, emission)
        full_T, full_O = form.full(transition, emission)
        full_T = full_T.dense("gaps") if isinstance(full_T, Sparse) else full_T
        self.form = form
        self.clues = None if clues is None else xp.asarray(clues)
        self.initial = initial  # (..., X)
        self.moves = xp.moveaxis(full_T, (-4, -2), (0, 1))  # (H, A, ..., X, X)
        self.into = xp.moveaxis(self.moves, -1, 2)  # (H, A, X', ..., X)
        self.out = xp.moveaxis(self.moves, -2, 2)  # (H, A, X, ..., X')
        self.shows = xp.moveaxis(full_O, (-4, -3, -1), (0, 1, 2))  # (H, A + 1, Y, ..., X)

    def start(self, gaps: Gaps) -> Array:
        """P(first hidden state), (S, ..., X)."""
        X = self.initial.shape[-1]
        begins = _column(gaps.before == X, self.initial.ndim)
        place = self._move(gaps.step - 1, gaps.actions[:, 0])
        rows = self.out[(*place, self._xp.minimum(gaps.before, X - 1))]
        return self._xp.where(begins, self.initial, rows)

    def advance(self, gaps: Gaps, g: Array | int, before: Array) -> Array:
        """Forward messages after the transition into hidden state g, (S, ..., X)."""
        h, a = self._move(gaps.step + g - 1, gaps.actions[:, g])
        if self._xp is not np:
            return self._xp.einsum("s...x,s...xz->s...z", before, self.moves[h, a])
        after = np.empty_like(before)
        A = self.moves.shape[1]
        kind = h * A + a
        for each in np.unique(kind):  # one matrix product for each step and action
            here = kind == each
            part: Any = before[here]
            moved = np.moveaxis(part, 0, -2) @ self.moves[each // A, each % A]
            after[here] = np.moveaxis(moved, -2, 0)
        return after

    def backward(self, gaps: Gaps, g: int, s: Array, place: tuple[Array, ...]) -> Array:
        """T(x' | .) into hidden state g of the gaps ``s``, (K, X).

        ``place`` has the state x' and the candidate of each.
        """
        after, *candidate = place
        move = self._move(gaps.step[s] + g - 1, gaps.actions[s, g])
        rows: Array = self.into[(*move, after, *candidate)]
        return rows

    def likelihood(self, gaps: Gaps, g: Array | int) -> Array:
        """The likelihood of the observation and the clue of hidden state g, (S, ..., X)."""
        xp, Y = self._xp, self.shows.shape[2]
        given = gaps.clues.known if self.clues is None else self.clues
        y, clue = gaps.seen[:, g], given[gaps.clue[:, g]]
        h = xp.minimum(gaps.step + g, len(self.shows) - 1)
        a = gaps.actions[:, g] if self.form.answers_action else xp.zeros_like(gaps.step)
        shows = self.shows[h, a, xp.minimum(y, Y - 1)]
        if clue.ndim == 2:  # the same for all candidates
            clue = clue.reshape(len(clue), *(1,) * (shows.ndim - 2), clue.shape[-1])
        return xp.where(_column(y == Y, shows.ndim - 1), 1.0, shows) * clue

    def end(self, gaps: Gaps) -> Array:
        """P(the state after the gap | last hidden state), (S, ..., X)."""
        xp, X = self._xp, self.initial.shape[-1]
        last = xp.take_along_axis(gaps.actions, gaps.length[:, None], axis=1)[:, 0]
        place = self._move(gaps.step + gaps.length - 1, last)
        rows = self.into[(*place, xp.minimum(gaps.after, X - 1))]
        return xp.where(_column(gaps.after == X, rows.ndim - 1), 1.0, rows)

    def _move(self, h: Array, a: Array) -> tuple[Array, Array]:
        """The place of the transitions after an action at step h, within the table."""
        xp, (H, A) = self._xp, self.moves.shape[:2]
        return xp.clip(h, 0, H - 1), xp.minimum(a, A - 1)


def _column(mask: Array, axes: int) -> Array:
    return mask.reshape(len(mask), *(1,) * axes)


def messages(rows: Rows, tree: GapTree) -> Messages:
    """Run the forward recursion over all gaps at once; can be traced."""
    xp = namespace(rows.moves, tree.gaps.number)
    tree = jax.tree.map(xp.asarray, tree)
    find = _in_numpy if xp is np else _in_jax
    forward, last, log = find(rows, tree)
    final, scale = _normalised(last * rows.end(tree.gaps))
    return Messages(log + scale, forward, final)


def _in_numpy(rows: Rows, tree: GapTree) -> tuple[list[Array], Array, Array]:
    """The forward messages by level, and those of whole gaps with their log probabilities."""
    gaps, listed = tree.gaps, list[Array]()
    last = np.empty((len(gaps.number), *rows.initial.shape))
    logs, log = np.zeros((2, *last.shape[:-1]))
    for g in range(len(tree.size)):
        part, parent = tree.level(g)
        before = rows.advance(part, g, listed[-1][parent]) if g else rows.start(part)
        after, scale = _normalised(before * rows.likelihood(part, g))
        log = log[parent] + scale if g else scale
        listed.append(after)
        done = np.flatnonzero(gaps.length == g + 1)
        last[done], logs[done] = after[tree.leaf[done]], log[tree.leaf[done]]
    return listed, last, logs


def _in_jax(rows: Rows, tree: GapTree) -> tuple[Array, Array, Array]:
    """As :func:`_in_numpy`, traced, for padded trees."""

    def advance(carry: Any, level: Any) -> tuple[Any, Any]:
        before, log = carry
        g, row, parent = level
        part = tree.gaps.take(row)
        moved = rows.advance(part, g, before[parent])
        moved = jnp.where(g == 0, rows.start(part), moved)
        after, scale = _normalised(moved * rows.likelihood(part, g))
        made = after, log[parent] + scale
        return made, made

    G, N = tree.row.shape
    nothing = jnp.zeros((N, *rows.initial.shape))
    carry = nothing, jnp.zeros(nothing.shape[:-1])
    _, (forward, logs) = jax.lax.scan(advance, carry, (jnp.arange(G), tree.row, tree.parent))
    place = jnp.maximum(tree.gaps.length - 1, 0), tree.leaf
    return forward, forward[place], logs[place]


def log_likelihood_of_gaps(rows: Rows, gaps: Gaps | GapTree) -> Array:
    """The log probability of all gaps given their revealed ends; can be traced given a tree.

    The gradient at minus infinity is zero.
    """
    tree = gaps if isinstance(gaps, GapTree) else GapTree.of(gaps)
    number = tree.gaps.number
    xp = namespace(rows.moves, number)
    log = messages(rows, tree).log_probability
    often = _column(number, log.ndim - 1)
    return xp.where(often > 0, often * xp.where(often > 0, log, 0.0), 0.0).sum(0)


def log_likelihood_of_evidence(
    tables: Any, form: Form, evidence: Evidence, hindsight: Mapping[str, Array] | None = None
) -> Array:
    """The log probability of counts and gaps under each of several models.

    Parameters
    ----------
    tables
        The initial distribution, transitions and emissions, with a leading axis of models.
    form
        Their form without this axis.
    evidence
        The counts and gaps.
    hindsight
        The tables of labels and of the mechanism, with the same leading axis. Without them, what
        they say of hidden states is not used.
    """
    counts, named = evidence.counts, hindsight or {}
    pairs = [
        (getattr(counts, name), getattr(tables, name))
        for name in ("initial", "transition", "emission")
    ]
    if named and counts.hindsight is not None:
        pairs += [(seen, named[name]) for name, seen in counts.hindsight.items()]
    total = np.zeros(len(tables.initial))
    with np.errstate(divide="ignore"):
        for given, table in pairs:
            seen = np.asarray(given)
            places = np.nonzero(seen)
            index: Any = (slice(None), *places)
            total = total + np.log(np.asarray(table)[index]) @ seen[places]
    if len(evidence.gaps.number):
        clues = likelihoods(evidence.gaps.clues, form, named) if named else None
        rows = Rows(tables.initial, tables.transition, tables.emission, form, clues)
        total = total + log_likelihood_of_gaps(rows, evidence.tree)
    return total


def first_impossible(rows: Rows, gaps: Gaps) -> Array:
    """The first hidden state of each gap that has no possible value, (S,); -1 if there is none.

    If the state after a gap is impossible, this is the number of hidden states of the gap.
    """
    tree = GapTree.of(gaps)
    found = messages(rows, tree)
    step = np.zeros(len(gaps.number), dtype=int)
    first = np.full(0, -1)
    for g, forward in enumerate(found.forward):
        before = first[tree.level(g)[1]] if g else np.full(len(forward), -1)
        first = np.where((before < 0) & (forward.sum(-1) <= 0), g, before)
        done = np.flatnonzero(gaps.length == g + 1)
        step[done] = first[tree.leaf[done]]
    return np.where((step < 0) & (found.final.sum(-1) <= 0), gaps.length, step)


def log_probability_of_counts(seen: Array, chance: Array) -> Array:
    """The log probability of counts; can be traced.

    The gradient at minus infinity is zero, so that a sum over discrete sites keeps the gradients of
    the other terms.
    """
    matters, possible = seen > 0, chance > 0
    logs = jnp.log(jnp.where(matters & possible, chance, 1.0))
    return jnp.sum(jnp.where(matters & ~possible, -jnp.inf, seen * logs))


def _normalised(weights: Array) -> tuple[Array, Array]:
    """Weights divided by their sum, and the log of the sum."""
    xp = namespace(weights)
    total = weights.sum(-1)
    possible = total > 0
    safe = xp.where(possible, total, 1.0)
    return weights / safe[..., None], xp.where(possible, xp.log(safe), -xp.inf)

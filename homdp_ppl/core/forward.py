"""The probability of a gap: a sum over its hidden states by the forward recursion.

With f_1 = P(x_1 | before) O(y_1 | x_1) e_1(x_1), each step is f' = e' O(y' | .) sum_x f(x) T(. | x,
a), where e is the likelihood of a clue. The forward messages are normalised at every step, so that
long gaps do not underflow. Policies cancel, because they depend on observations and actions only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.evidence import Evidence, Gaps
from homdp_ppl.core.form import Form
from homdp_ppl.core.sparse import Sparse
from homdp_ppl.precision import Array, namespace


class Messages(NamedTuple):
    """The forward messages of S gaps; extra axes before the last are candidate models."""

    log_probability: Array  # (S, ...)  of each gap; minus infinity if it is impossible
    forward: Array  # (G, S, ..., X)  P(x | everything up to this hidden state)
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
            moves = self.moves[each // A, each % A]
            after[here] = np.einsum("s...x,...xz->s...z", before[here], moves, optimize=True)
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


def messages(rows: Rows, gaps: Gaps) -> Messages:
    """Run the forward recursion over all gaps at once; can be traced."""
    xp = namespace(rows.moves, gaps.number)
    gaps = jax.tree.map(xp.asarray, gaps)

    def advance(carry: tuple[Array, Array], g: Any) -> tuple[tuple[Array, Array], Any]:
        before, log = carry
        after = xp.where(g == 0, start, rows.advance(gaps, g, before))
        after = after * rows.likelihood(gaps, g)
        after, scale = _normalised(after)
        inside = g < gaps.length
        axes = before.ndim - 1
        log = log + xp.where(_column(inside, axes)[..., 0], scale, 0.0)
        after = xp.where(_column(inside, axes), after, before)
        return (after, log), after

    start = rows.start(gaps)
    carry = start, xp.zeros(start.shape[:-1])
    G = gaps.seen.shape[1]
    if xp is np:
        listed = []
        for g in range(G):
            carry, kept = advance(carry, g)
            listed.append(kept)
        forward = np.stack(listed)
    else:
        carry, forward = jax.lax.scan(advance, carry, xp.arange(G))
    last, log = carry
    final, scale = _normalised(last * rows.end(gaps))
    return Messages(log + scale, forward, final)


def log_likelihood_of_gaps(rows: Rows, gaps: Gaps) -> Array:
    """The log probability of all gaps given their revealed ends; can be traced.

    The gradient at minus infinity is zero.
    """
    xp = namespace(rows.moves, gaps.number)
    log = messages(rows, gaps).log_probability
    often = _column(gaps.number, log.ndim - 1)
    return xp.where(often > 0, often * xp.where(often > 0, log, 0.0), 0.0).sum(0)


def log_likelihood_of_evidence(tables: Any, form: Form, evidence: Evidence) -> Array:
    """The log probability of counts and gaps under each of several models.

    Parameters
    ----------
    tables
        The initial distribution, transitions and emissions, with a leading axis of models.
    form
        Their form without this axis.
    evidence
        The counts and gaps.
    """
    total = np.zeros(len(tables.initial))
    with np.errstate(divide="ignore"):
        for name in ("initial", "transition", "emission"):
            seen = np.asarray(getattr(evidence.counts, name))
            places = np.nonzero(seen)
            index: Any = (slice(None), *places)
            chances = np.asarray(getattr(tables, name))[index]
            total = total + np.log(chances) @ seen[places]
    if len(evidence.gaps.number):
        rows = Rows(tables.initial, tables.transition, tables.emission, form)
        total = total + log_likelihood_of_gaps(rows, evidence.gaps)
    return total


def first_impossible(rows: Rows, gaps: Gaps) -> Array:
    """The first hidden state of each gap that has no possible value, (S,); -1 if there is none.

    If the state after a gap is impossible, this is the number of hidden states of the gap.
    """
    found = messages(rows, gaps)
    G = gaps.seen.shape[1]
    inside = np.arange(G) < gaps.length[:, None]
    empty = (found.forward.sum(-1).T <= 0) & inside  # (S, G)
    after = np.where(found.final.sum(-1) <= 0, gaps.length, -1)
    step: Array = np.where(empty.any(1), empty.argmax(1), after)
    return step


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

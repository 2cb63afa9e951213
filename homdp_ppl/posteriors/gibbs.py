"""Gibbs sampling for closed forms with gaps: hidden states given rows, then rows given all states.

The hidden states of equal gaps are drawn together as counts, by forward filtering and backward
sampling with multinomials, and so are those of equal beginnings of gaps. A sweep therefore costs
the same for one gap and for a thousand equal ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
from numpyro import handlers

from homdp_ppl.core.clue_building import occupied_tables
from homdp_ppl.core.clues import Clues, likelihoods
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.form import Form
from homdp_ppl.core.forward import Rows, messages
from homdp_ppl.core.gaps import Gaps, GapTree
from homdp_ppl.core.hindsight_form import HINDSIGHT
from homdp_ppl.core.reward_counts import RewardCounts
from homdp_ppl.declare.clue_likelihood import densities
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import InferenceError
from homdp_ppl.posteriors.belief import Settings
from homdp_ppl.posteriors.data import impossible
from homdp_ppl.posteriors.diagnostics import Diagnostics, diagnose
from homdp_ppl.posteriors.dirichlet import ClosedForm, closed_form
from homdp_ppl.precision import Array

FEW = 4  # units that are drawn one by one
ROUNDS = 3  # each round doubles the number of sweeps per draw, until the gate passes


class GibbsFit(NamedTuple):
    """Draws of the sites, with diagnostics."""

    samples: dict[str, Array]  # (chains, draws, ...)
    diagnostics: Diagnostics
    entries: Array  # (chains, M)  where the chains ended
    forced: bool  # kept although it did not pass the gate


def gibbs(
    homdp: HOMDP,
    evidence: Evidence,
    key: Array,
    settings: Settings,
    start: Array | None,
) -> GibbsFit:
    """Sample the sites of a declaration whose rows all have closed forms.

    Parameters
    ----------
    homdp
        The declaration.
    evidence
        Counts and gaps.
    key
        A JAX random key.
    settings
        The chains and their lengths, thresholds for R-hat and ESS, and whether to keep a fit that
        does not pass them.
    start
        Entries of all rows at which the chains start, (chains, M); by default, prior draws.

    Raises
    ------
    InferenceError
        If the gate does not pass after the last round.
    DataError
        If the gaps are impossible under the declaration.
    """
    sweeps = _Sweeps(homdp, evidence, key)
    sampling = settings.sampling
    entries = sweeps.prior(sampling.chains) if start is None else start
    problems = []
    for _ in range(sampling.warmup):
        entries = sweeps.next(entries)
    for turn in range(ROUNDS):  # all sweeps so far are the warm-up of the next round
        thin = 2**turn
        kept = np.empty((sampling.draws, *entries.shape))
        for k in range(sampling.draws):
            for _ in range(thin):
                entries = sweeps.next(entries)
            kept[k] = entries
        samples = sweeps.sites(np.moveaxis(kept, 0, 1))
        diagnostics = diagnose(samples, np.zeros(kept.shape[1::-1], dtype=bool))
        problems = diagnostics.problems(settings.gate)
        if not problems:
            return GibbsFit(samples, diagnostics, entries, forced=False)
    if not settings.force:
        subject = f"Gibbs sampling for {homdp.name} (to keep the fit anyway, use force=True)"
        raise InferenceError(subject, problems)
    return GibbsFit(samples, diagnostics, entries, forced=True)


class _Sweeps:
    """The sweeps of all chains of one fit."""

    def __init__(self, homdp: HOMDP, evidence: Evidence, key: Array) -> None:
        self._homdp, self._evidence = homdp, evidence
        self._form: ClosedForm = closed_form(homdp)
        seed = np.asarray(jax.random.key_data(jax.random.fold_in(key, 0)))
        self._generator = np.random.default_rng(seed)
        self._densities = None
        if homdp.rewards.law is not None and not homdp.rewards.law.finite:  # a known law
            with handlers.block(), handlers.seed(rng_seed=0):
                kernels = homdp.function()
            clues = evidence.gaps.clues
            found = densities(kernels, homdp.spaces, homdp.rewards.law, clues)
            self._densities = np.asarray(found)

    def prior(self, chains: int) -> Array:
        """Draws from the prior, one for each chain, (chains, M)."""
        concentration = self._form.conjugate.concentration
        return self._form.rows_given(self._generator, np.tile(concentration, (chains, 1)))

    def next(self, entries: Array) -> Array:
        """One sweep: draw the hidden states of all gaps, then all rows."""
        tables = self._form.tables(entries)
        tree, clues = self._evidence.tree, self._clues(entries)
        counts = hidden_counts(self._generator, tables, self._homdp, tree, clues)
        known = self._evidence.counts
        each = np.stack([self._form.concentration(known + one) for one in counts])
        return self._form.rows_given(self._generator, each)

    def _clues(self, entries: Array) -> Array:
        """The likelihoods of all clues at the rows of every chain."""
        named = self._form.further(entries)
        return likelihoods(self._evidence.gaps.clues, self._homdp.form, named, self._densities)

    def sites(self, entries: Array) -> dict[str, Array]:
        """The sites of a declaration from the entries of all rows, (chains, draws, M)."""
        flat = self._form.parameters(entries.reshape(-1, entries.shape[-1]))
        return {
            name: np.asarray(value).reshape(*entries.shape[:2], *np.shape(value)[1:])
            for name, value in flat.items()
        }


def hidden_counts(
    generator: np.random.Generator,
    tables: Any,
    homdp: HOMDP,
    gaps: Gaps | GapTree,
    clues: Array | None = None,
) -> list[Counts]:
    """Draw the hidden states of all gaps given tables, and count their steps.

    Parameters
    ----------
    generator
        Random numbers.
    tables
        Tables with a leading axis of chains.
    homdp
        The declaration.
    gaps
        The distinct gaps.
    clues
        The likelihood of each clue given the state, (E, chains, X); by default, the part of it that
        depends on no parameter.

    Returns
    -------
    list of Counts
        One for each chain.
    """
    tree = gaps if isinstance(gaps, GapTree) else GapTree.of(gaps)
    hidden = hidden_tables(generator, tables, homdp, tree, clues)
    listed: list[Counts] = []
    for k in range(len(hidden["initial"])):
        own: dict[str, Any] = {name: table[k] for name, table in hidden.items()}
        listed.append(as_counts(own, homdp.form))
    return listed


def hidden_tables(
    generator: np.random.Generator,
    tables: Any,
    homdp: HOMDP,
    tree: GapTree,
    clues: Array | None = None,
) -> dict[str, Array]:
    """As :func:`hidden_counts`, as tables with a leading axis of chains."""
    counted = _Counted(homdp.form, len(tables.initial), tree.gaps.clues)
    if len(tree.gaps.number):
        rows = Rows(tables.initial, tables.transition, tables.emission, homdp.form, clues)
        _backward(generator, rows, tree, counted, homdp.name)
    return {**counted.tables, **counted.further()}


def as_counts(tables: dict[str, Array], form: Form) -> Counts:
    """Counts by table as :class:`Counts`."""
    named: dict[str, Any] = {name: tables[name] for name in ("transition", "emission", "initial")}
    hindsight = {name: tables[name] for name in HINDSIGHT if name in tables}
    rewards = None if form.reward is None else RewardCounts.zero(form.reward)
    if rewards is not None and "reward" in tables:
        rewards = replace(rewards, number=tables["reward"].sum(-1), outcomes=tables["reward"])
    return Counts(**named, rewards=rewards, hindsight=hindsight or None)


def _backward(
    generator: np.random.Generator, rows: Rows, tree: GapTree, counted: _Counted, name: str
) -> None:
    """Sample backwards through all gaps: ``at`` has the number of gaps in each hidden state."""
    found, gaps = messages(rows, tree), tree.gaps
    if not np.isfinite(found.log_probability).all():
        raise impossible(name)
    chains, X = found.final.shape[1:]
    drawn = _drawn(generator, np.repeat(gaps.number, chains), found.final.reshape(-1, X))
    (s, c), x, number = np.divmod(drawn.row, chains), drawn.category, drawn.number
    counted.last(gaps, s, c, x, number)
    leaf, length = tree.leaf[s], gaps.length[s]
    moved: Array = np.zeros((tree.size[-1], chains, X), dtype=np.int64)
    for g in reversed(range(len(tree.size))):
        part, parent = tree.level(g)
        end = length == g + 1
        at = moved + _summed(moved.shape, (leaf[end], c[end], x[end]), number[end])
        counted.observation(part, g, at)
        counted.clue(part, g, at)
        if g == 0:
            counted.first(part, at)
            return
        node, chain, after = np.nonzero(at)
        up = parent[node], chain
        weights = found.forward[g - 1][up] * rows.backward(part, g, node, (after, chain))
        k, before, often = _drawn(generator, at[node, chain, after], weights)
        counted.transition(part, g, (node[k], chain[k], before, after[k]), often)
        shape = int(tree.size[g - 1]), chains, X
        moved = _summed(shape, (up[0][k], chain[k], before), often)


class _Drawn(NamedTuple):
    """How many of the units of each row were drawn in which category."""

    row: Array
    category: Array
    number: Array


def _drawn(generator: np.random.Generator, number: Array, weights: Array) -> _Drawn:
    """Divide the units of each row, (K,), at random among categories with weights (K, X).

    A few units are drawn one by one, which is faster than multinomials.
    """
    few = number <= FEW
    each = np.repeat(np.arange(len(number)), np.where(few, number, 0))
    running, chances = np.zeros(len(each)), weights[each].T
    points = chances.sum(0) * (1 - generator.random(len(each)))  # above 0, at most the sum
    single = np.zeros(len(each), dtype=np.int64)
    for chance in chances[:-1]:
        running += chance
        single += running < points
    many = np.flatnonzero(~few)
    shares = weights[many] / weights[many].sum(-1, keepdims=True)
    counts = generator.multinomial(number[many], shares)
    k, category = np.nonzero(counts)
    parts = (each, many[k]), (single, category), (np.ones_like(each), counts[k, category])
    return _Drawn(*map(np.concatenate, parts))


def _summed(shape: tuple[int, ...], place: tuple[Array, ...], number: Array) -> Array:
    """A table of whole numbers: the sum of those at each place."""
    flat = np.ravel_multi_index(place, shape)
    sums = np.bincount(flat, weights=number, minlength=int(np.prod(shape)))
    return sums.astype(np.int64).reshape(shape)


class _Counted:
    """Counts of hidden steps for each chain."""

    def __init__(self, form: Form, chains: int, clues: Clues) -> None:
        self._form, self._clues = form, clues
        self._occupied = np.zeros((chains, *clues.known.shape), dtype=np.int64)
        self.tables: dict[str, Array] = {
            name: np.zeros((chains, *getattr(form, name)), dtype=np.int64)
            for name in ("transition", "emission", "initial")
        }

    def further(self) -> dict[str, Array]:
        """The counts of labels, of the mechanism and of rewards, with a leading axis of chains."""
        each = [occupied_tables(self._clues, part, self._form) for part in self._occupied]
        return {name: np.stack([part[name] for part in each]) for name in each[0]}

    def first(self, gaps: Gaps, at: Array) -> None:
        """Count the first hidden states: as first states of episodes, or as transitions."""
        s, c, x = np.nonzero(at)
        number, before = at[s, c, x], gaps.before[s]
        begins = before == self._form.sizes[0]
        self._add("initial", (c[begins], x[begins]), number[begins])
        go = ~begins
        place = self._form.transition_index(
            gaps.step[s][go] - 1, before[go], gaps.actions[s, 0][go], x[go]
        )
        self._add("transition", (c[go], *place), number[go])

    def last(self, gaps: Gaps, s: Array, c: Array, x: Array, number: Array) -> None:
        """Count the transitions from the last hidden states to the states after the gaps."""
        known = gaps.after[s] < self._form.sizes[0]
        s, c, x, number = s[known], c[known], x[known], number[known]
        length = gaps.length[s]
        place = self._form.transition_index(
            gaps.step[s] + length - 1, x, gaps.actions[s, length], gaps.after[s]
        )
        self._add("transition", (c, *place), number)

    def observation(self, gaps: Gaps, g: int, at: Array) -> None:
        """Count the observations of hidden state g."""
        s, c, x = np.nonzero(at * (gaps.seen[:, g] < self._form.sizes[1])[:, None, None])
        place = self._form.emission_index(gaps.step[s] + g, gaps.actions[s, g], x, gaps.seen[s, g])
        self._add("emission", (c, *place), at[s, c, x])

    def clue(self, gaps: Gaps, g: int, at: Array) -> None:
        """Count the states of the clues of hidden state g."""
        s, c, x = np.nonzero(at)
        np.add.at(self._occupied, (c, gaps.clue[s, g], x), at[s, c, x])

    def transition(self, gaps: Gaps, g: int, at: tuple[Array, ...], number: Array) -> None:
        """Count the transitions into hidden state g, by gap, chain, state before and after."""
        s, c, before, after = at
        place = self._form.transition_index(gaps.step[s] + g - 1, before, gaps.actions[s, g], after)
        self._add("transition", (c, *place), number)

    def _add(self, name: str, place: tuple[Array, ...], number: Array) -> None:
        table: Any = self.tables[name]
        place = tuple(np.broadcast_to(part, number.shape) for part in place)
        table += _summed(table.shape, place, number)

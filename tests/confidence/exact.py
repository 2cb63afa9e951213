"""One-step backups under Dirichlet rows in rational arithmetic, as polynomials in the entries."""

from fractions import Fraction
from functools import cache
from itertools import chain, groupby, product
from math import prod
from typing import NamedTuple, TypeAlias

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl import HOMDP, Counts, Kernels, homdp
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.belief import Posterior
from homdp_ppl.precision import Array
from tests.worlds import world


class Cell(NamedTuple):
    """An unknown table entry: mass times an entry of a Dirichlet row."""

    mass: Fraction
    row: str
    entry: int


Row: TypeAlias = list[Cell | Fraction]
Polynomial: TypeAlias = dict[tuple[tuple[str, int], ...], Fraction]


class Written(NamedTuple):
    """A model written down entry by entry."""

    prior: dict[str, list[int]]  # concentrations of each Dirichlet row
    transition: list[list[Row]]  # (X, A, X)
    emission: list[Row]  # (X, Y)
    initial: list[Fraction]

    @property
    def cells(self) -> list[Cell | Fraction]:
        """All entries of T, then of O, in one list."""
        return [*chain(*chain(*self.transition)), *chain(*self.emission)]


def row(name: str, *entries: int | Fraction) -> Row:
    """A row of a table: an int refers to an entry of the Dirichlet row, a Fraction is known.

    The mass is one minus the known entries.
    """
    mass = 1 - sum((e for e in entries if isinstance(e, Fraction)), Fraction(0))
    return [e if isinstance(e, Fraction) else Cell(mass, name, e) for e in entries]


F = Fraction
WRITTEN = {
    "independent": Written(  # every row is independent
        {**{f"t{k}": [1, 1] for k in range(4)}, "o0": [3, 1], "o1": [1, 3]},
        [[row(f"t{2 * x + a}", 0, 1) for a in range(2)] for x in range(2)],
        [row("o0", 0, 1), row("o1", 0, 1)],
        [F(1, 2), F(1, 2)],
    ),
    "single": Written(  # some known and partly known rows, no pooled rows
        {
            "t0": [1, 2, 1],
            "t1": [2, 1, 1],
            "t2": [1, 3],
            "t3": [1, 1],
            "o0": [1, 1, 2],
            "o1": [2, 1],
        },
        [
            [row("t0", 0, 1, 2), row("", F(1, 2), F(0), F(1, 2))],
            [row("t1", 2, 0, 1), row("t2", 1, F(1, 4), 0)],
            [row("", F(0), F(0), F(1)), row("t3", F(5, 8), 0, 1)],
        ],
        [row("o0", 0, 1, 2), row("", F(1, 4), F(3, 4), F(0)), row("o1", 1, F(1, 3), 0)],
        [F(1, 2), F(1, 8), F(3, 8)],
    ),
    # two groups of permuted pooled rows in O, one of unequal masses, and a known row; three groups
    # in T
    "pooled": Written(
        {"t0": [1, 2], "t1": [2, 1, 3], "t2": [1, 1, 1, 1], "o0": [1, 4, 2], "o1": [3, 1]},
        [
            [row("t2", 0, 1, 2, 3, F(0)), row("t2", 3, 1, F(0), 0, 2)],
            [row("t0", 0, F(1, 4), F(0), 1, F(0)), row("", F(0), F(0), F(1), F(0), F(0))],
            [row("t1", 2, F(1, 2), 0, 1, F(0)), row("t1", F(1, 8), 0, 1, F(1, 8), 2)],
            [row("", F(1, 4), F(1, 4), F(1, 4), F(0), F(1, 4)), row("t0", 1, 0, F(0), F(0), F(0))],
            [row("t2", F(1, 2), 1, 0, 2, 3), row("", F(1, 4), F(0), F(1, 2), F(1, 4), F(0))],
        ],
        [
            row("o0", 0, 1, 2),
            row("o1", 1, F(1, 3), 0),
            row("o0", 2, 0, 1),
            row("o1", F(1, 5), 0, 1),
            row("", *[F(1, 3)] * 3),
        ],
        [F(1, 2), F(1, 8), F(1, 8), F(1, 4), F(0)],
    ),
    "known transition": Written(
        {"flat": [1, 1, 1], "half": [2, 3]},
        [[row("", F(1, 4), F(3, 4))], [row("", F(1), F(0))]],
        [row("flat", 0, 1, 2), row("half", 1, 0, F(1, 2))],
        [F(1, 2), F(1, 2)],
    ),
    "known emission": Written(
        {"t0": [1, 2], "t1": [2, 2]},
        [[row("t0", 0, 1)], [row("t1", 1, 0)]],
        [row("", F(1, 4), F(3, 4)), row("", F(1, 2), F(1, 2))],
        [F(1, 4), F(3, 4)],
    ),
    "tiger": Written(  # as in the model zoo
        {"accuracy": [8, 2]},
        [[row("", *map(F, stay)), *[row("", F(1, 2), F(1, 2))] * 2] for stay in ((1, 0), (0, 1))],
        [row("accuracy", 0, 1), row("accuracy", 1, 0)],
        [F(1, 2), F(1, 2)],
    ),
}

STORED = 4000  # draws of a site without a closed form
CLOSED_FORM = Written(  # `mixed` with closed forms only
    {"stay": [1, 1], "accuracy": [2, 1]},
    [[row("stay", 0, 1)], [row("stay", 1, 0)]],
    [row("accuracy", 0, 1), row("accuracy", 1, 0)],
    [F(1, 2), F(1, 2)],
)


@cache
def declared(name: str) -> HOMDP:
    """The declaration of a model above, with horizon 3; the tiger is the zoo's, with horizon 4."""
    return world("tiger").homdp if name == "tiger" else declare(WRITTEN[name])


def declare(written: Written) -> HOMDP:
    """The NumPyro program of a model above.

    The library has to find out which rows are known, pooled or partly known. r(x, a) is 1 if x = a,
    else x / 2X.
    """
    X, A, Y = len(written.emission), len(written.transition[0]), len(written.emission[0])
    names = sorted(written.prior, key=lambda name: len(written.prior[name]))
    offset = dict(
        zip(names, np.cumsum([0, *(len(written.prior[name]) for name in names)]), strict=False)
    )
    by_width = {
        d: np.array(list(rows), float)
        for d, rows in groupby((written.prior[name] for name in names), len)
    }
    place = np.array(
        [offset[c.row] + c.entry if isinstance(c, Cell) else -1 for c in written.cells]
    )
    factor = np.array([float(c.mass) if isinstance(c, Cell) else float(c) for c in written.cells])

    @homdp(
        states=X,
        observations=Y,
        actions=A,
        horizon=3,
        reward=lambda x, a: 1.0 if x == a else x / (2 * X),
    )
    def model():
        drawn = [
            numpyro.sample(f"rows of {d}", dist.Dirichlet(alpha).to_event(1)).ravel()
            for d, alpha in by_width.items()
        ]
        entries = jnp.where(place >= 0, jnp.concatenate(drawn)[place], 1.0) * factor
        initial = np.array([float(p) for p in written.initial])
        return Kernels(
            initial, entries[: X * A * X].reshape(X, A, X), entries[X * A * X :].reshape(X, Y)
        )

    return model


def sides(p: Array) -> Array:
    """Two mirrored rows."""
    return jnp.array([[p, 1 - p], [1 - p, p]])


@cache
def mixed() -> tuple[HOMDP, Posterior]:
    """CLOSED_FORM with a uniform site for `stay`, and its posterior without data.

    The posterior is constructed by hand, because compiling a sampler is slow.
    """

    @homdp(states=2, observations=2, actions=1, horizon=3, reward=np.array([[0.0], [1.0]]))
    def half_conjugate():
        stay = numpyro.sample("stay", dist.Uniform(0, 1))
        accuracy = numpyro.sample("accuracy", dist.Beta(2, 1))
        return Kernels(np.array([0.5, 0.5]), sides(stay)[:, None], sides(accuracy))

    drawn = Atoms({"stay": np.random.default_rng(0).uniform(size=STORED)}, chains=4)
    counts, concentration = (
        Counts.zero(half_conjugate),
        np.array(CLOSED_FORM.prior["accuracy"], float),
    )
    return half_conjugate, Posterior(half_conjugate, counts, "mixed", "", concentration, drawn)


def some_counts(written: Written, generator: np.random.Generator) -> Counts:
    """Random counts of possible outcomes."""
    X, A, Y = len(written.emission), len(written.transition[0]), len(written.emission[0])
    flat = generator.integers(0, 7, len(written.cells)) * np.array([c != 0 for c in written.cells])
    return Counts(flat[: X * A * X].reshape(X, A, X), flat[X * A * X :].reshape(X, Y))


def concentrations(written: Written, counts: Counts) -> dict[str, list[int]]:
    """The posterior: each Dirichlet entry adds the counts of all table entries that use it."""
    posterior = {name: list(alpha) for name, alpha in written.prior.items()}
    for cell, n in zip(written.cells, np.append(counts.transition, counts.emission), strict=True):
        if isinstance(cell, Cell):
            posterior[cell.row][cell.entry] += int(n)
    return posterior


def backup_polynomial(written: Written, alpha: np.ndarray, x: int, a: int) -> Polynomial:
    """Sum over x', y' of T(x'|x,a) O(y'|x') alpha(a, y', x')."""
    total: Polynomial = {}
    for z, observed in enumerate(written.emission):
        total = _plus(
            total,
            times(_polynomial(written.transition[x][a][z]), _mean_value(observed, alpha[a, :, z])),
        )
    return total


def start_polynomial(written: Written, first: np.ndarray) -> Polynomial:
    """Sum over x, y of rho(x) O(y|x) alpha(y, x)."""
    total: Polynomial = {}
    for z, observed in enumerate(written.emission):
        total = _plus(total, times({(): written.initial[z]}, _mean_value(observed, first[:, z])))
    return total


def mean_and_variance(
    polynomial: Polynomial, alpha: dict[str, list[int]]
) -> tuple[Fraction, Fraction]:
    """Mean and variance of a polynomial in the entries of independent Dirichlet rows."""
    mean = _expectation(polynomial, alpha)
    return mean, _expectation(times(polynomial, polynomial), alpha) - mean**2


def times(one: Polynomial, other: Polynomial) -> Polynomial:
    """The product of two polynomials."""
    result: Polynomial = {}
    for (left, u), (right, v) in product(one.items(), other.items()):
        key = tuple(sorted(left + right))
        result[key] = result.get(key, Fraction(0)) + u * v
    return result


def _polynomial(cell: Cell | Fraction) -> Polynomial:
    return {((cell.row, cell.entry),): cell.mass} if isinstance(cell, Cell) else {(): cell}


def _mean_value(observed: Row, values: np.ndarray) -> Polynomial:
    total: Polynomial = {}
    for cell, value in zip(observed, values, strict=True):
        total = _plus(total, times(_polynomial(cell), {(): Fraction(float(value))}))
    return total


def _plus(one: Polynomial, other: Polynomial) -> Polynomial:
    return {key: one.get(key, Fraction(0)) + other.get(key, Fraction(0)) for key in one | other}


def _expectation(polynomial: Polynomial, alpha: dict[str, list[int]]) -> Fraction:
    """E[prod p_i^k_i] = prod alpha_i^(k_i) / alpha_0^(k), rising factorials, row by row."""
    total = Fraction(0)
    for monomial, coefficient in polynomial.items():
        for name in {name for name, _ in monomial}:
            indices = [index for row, index in monomial if row == name]
            powers = {index: indices.count(index) for index in indices}
            coefficient *= prod(
                Fraction(_rising(alpha[name][index], k)) for index, k in powers.items()
            )
            coefficient /= _rising(sum(alpha[name]), len(indices))
        total += coefficient
    return total


def _rising(start: int, terms: int) -> int:
    return prod(range(start, start + terms))

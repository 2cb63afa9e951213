"""What the learner believes after revealed episodes.

A Posterior answers questions, however it was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import jax
import numpy as np

from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.pomdp import POMDP, Stationary
from homdp_ppl.core.randomness import as_key
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import InferenceError, Problem
from homdp_ppl.posteriors.data import as_counts
from homdp_ppl.posteriors.dataset import to_dataset
from homdp_ppl.posteriors.diagnostics import Diagnostics
from homdp_ppl.posteriors.dirichlet import ClosedForm, closed_form
from homdp_ppl.posteriors.laplace import Calibration
from homdp_ppl.precision import Array, in_x64, to_numpy

if TYPE_CHECKING:
    import xarray as xr

Data: TypeAlias = Episode | Iterable[Episode] | Counts

CHUNK = 2**22  # table entries held at once when draws are averaged


@dataclass(frozen=True, eq=False)
class Atoms:
    """Values of the sites without a closed form.

    Draws, or all that are possible, with their probabilities.
    """

    values: Mapping[str, Array]  # (N, ...)
    chains: int = 1
    weights: Array | None = None  # (N,)  probabilities, where they differ
    complete: bool = False  # whether these are all values that are possible

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    @property
    def probabilities(self) -> Array:
        """Of each value, (N,)."""
        return np.full(len(self), 1 / len(self)) if self.weights is None else self.weights

    def pick(self, generator: np.random.Generator, n: int) -> dict[str, Array]:
        """Values drawn at random; equally likely draws are not repeated while they last."""
        if self.weights is not None:
            chosen = generator.choice(len(self), n, p=self.weights)
        else:
            rounds = [generator.permutation(len(self)) for _ in range(-(-n // len(self)))]
            chosen = np.concatenate([*rounds, np.zeros(0, int)])[:n]
        return {name: values[chosen] for name, values in self.values.items()}


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """The posterior of a declaration given counts.

    Made by :func:`posterior`; printing it tells how.

    Attributes
    ----------
    homdp
        The declaration.
    counts
        The data.
    method
        How the sites are treated: "known", "conjugate", "prior", "enumerated", "nuts", "laplace",
        or "mixed" of closed forms and one of the others.
    explanation
        The same in a sentence, site by site.
    concentration
        Of the Dirichlet rows in closed form, (M,).
    atoms
        Values of the other sites.
    refit
        Computes the posterior anew from other counts and a key, chains going on from where they
        stand.
    diagnostics
        Of the chains, where there are some.
    calibration
        Of Laplace's approximation, where it was used.
    forced
        Whether a fit that did not pass the gate was kept.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, posterior, tabular
    >>> coin = tabular(
    ...     T=[[[1.0]]], O=dist.Dirichlet(np.ones((1, 2))), initial=[1], reward=[[1]], horizon=1
    ... )
    >>> belief = posterior(coin, Counts(np.array([[[8]]]), np.array([[6, 2]])))
    >>> belief.method, belief.concentration.tolist(), belief.mean.shows(0).round(3).tolist()
    ('conjugate', [7.0, 3.0], [[0.7, 0.3]])
    >>> belief.update(Counts(np.array([[[1]]]), np.array([[0, 1]]))).concentration.tolist()
    [7.0, 4.0]
    """

    homdp: HOMDP
    counts: Counts
    method: str
    explanation: str
    concentration: Array
    atoms: Atoms | None
    refit: Callable[[Counts, Array | None], Posterior]
    diagnostics: Diagnostics | None = None
    calibration: Calibration | None = None
    forced: bool = False

    @in_x64
    def draws(self, key: Array, n: int) -> POMDP:
        """Models drawn from the posterior, as a batch: every table has a leading axis of length n.

        Examples
        --------
        >>> import jax
        >>> from homdp_ppl import Counts, models, posterior
        >>> tiger = models.load("tiger").homdp
        >>> posterior(tiger, Counts.zero(tiger)).draws(jax.random.key(0), 10).shows(0).shape
        (10, 2, 2)
        """
        tables = self.tables(self.parameters(key, n), n)
        reward = np.broadcast_to(self.homdp.reward, (n, *self.homdp.reward.shape))
        return Stationary(*tables, reward).pomdp

    @in_x64
    def parameters(self, key: Array, n: int) -> dict[str, Array]:
        """Joint draws of the program's sites, each (n, ...).

        Closed forms afresh, the others from what was sampled.
        """
        if not (isinstance(n, int | np.integer) and n >= 0):
            raise InferenceError(
                "posterior", [Problem("draws", repr(n), "a whole number of at least 0")]
            )
        key = as_key(key, "posterior")
        values: dict[str, Array] = {}
        if len(self.concentration):
            draw = self._once("entries", lambda: jax.vmap(self._form.draw, in_axes=(0, None)))
            entries = draw(jax.random.split(jax.random.fold_in(key, 0), n), self.concentration)
            values |= self._form.parameters(np.asarray(entries))
        if self.atoms:
            generator = np.random.default_rng(
                np.asarray(jax.random.key_data(jax.random.fold_in(key, 1)))
            )
            values |= self.atoms.pick(generator, n)
        return {site.name: values[site.name] for site in self.homdp.sites}

    @in_x64
    def tables(self, parameters: Mapping[str, Array], n: int) -> Tables:
        """The tables at n values of the program's sites, each with a leading axis of length n."""
        if not parameters:
            return Tables(
                *(
                    np.broadcast_to(table, (n, *table.shape))
                    for table in self.homdp.structure.reference
                )
            )
        tables = self._once(
            "tables", lambda: jax.vmap(lambda values: self.homdp.tables(values).stationary()[:3])
        )(dict(parameters))
        return Tables(*to_numpy(tables))

    @property
    def mean(self) -> POMDP:
        """The posterior mean of every table entry.

        Exact for closed forms and finite sites, the draws' average otherwise.
        """
        return Stationary(*self._moments[0], self.homdp.reward).pomdp

    @property
    def variance(self) -> Tables:
        """The posterior variance of every table entry, exact where the mean is."""
        return self._moments[1]

    @property
    def dataset(self) -> xr.Dataset:
        """Draws of all sites as an xarray Dataset with (chain, draw) and the model's names, ready
        for ArviZ.

        Sampled sites keep their chains; closed forms are drawn independently, always alike, beside
        them.
        """
        chains, n = (
            (self.atoms.chains, len(self.atoms))
            if self.atoms and self.atoms.weights is None
            else (4, 2000)
        )
        values = self.parameters(jax.random.key(0), n)
        if self.atoms and self.atoms.weights is None:
            values |= self.atoms.values
        about = {
            "model": self.homdp.name,
            "method": self.method,
            "explanation": self.explanation,
            "forced": int(self.forced),
        }
        if self.diagnostics is not None:
            about["divergences"] = self.diagnostics.divergences
        return to_dataset(
            self.homdp,
            {name: v.reshape(chains, -1, *v.shape[1:]) for name, v in values.items()},
            about,
        )

    def update(self, data: Data, key: Array | None = None) -> Posterior:
        """The posterior after more data; costs the same however many came before.

        Parameters
        ----------
        data
            Further episodes, or their counts.
        key
            A JAX random key for what is sampled.
        """
        return self.refit(self.counts + as_counts(self.homdp, data), key)

    def require_quantiles(self) -> None:
        """Refuse to take quantiles from an approximation that is not calibrated."""
        if self.calibration is not None and not self.calibration.passed:
            share, lower, upper = self.calibration
            got = (
                f"true mass {lower:.3f} below and {upper:.3f} above its 90% intervals "
                f"(effective draws {share:.0%})"
            )
            remedy = 'Use method="nuts"; more data may also make the posterior normal enough.'
            problem = Problem("laplace", got, "0.05 on each side, within 0.02", remedy)
            raise InferenceError(f"quantiles for {self.homdp.name}", [problem])

    def __repr__(self) -> str:
        steps = int(np.sum(self.counts.emission))
        forced = "\n  kept by force: it did not pass the gate" if self.forced else ""
        return (
            f"Posterior of {self.homdp.name!r} after {steps:,} steps: {self.method}\n  "
            f"{self.explanation}{forced}"
        )

    @property
    def _form(self) -> ClosedForm:
        return closed_form(self.homdp)

    @cached_property
    def _moments(self) -> tuple[Tables, Tables]:
        """Mean and variance of the tables.

        Closed forms for the rows that have one, the atoms elsewhere.
        """
        exact = self._form.mean(self.concentration), self._form.variance(self.concentration)
        if self.atoms is None:
            return exact
        closed = self._form.rows if len(self.concentration) else Tables(False, False, False)
        settled = [
            rows | known[..., None]
            for rows, known in zip(closed, self.homdp.structure.known, strict=True)
        ]
        mean, variance = (
            Tables(
                *(
                    np.where(rows, ours, theirs)
                    for rows, ours, theirs in zip(settled, *pair, strict=True)
                )
            )
            for pair in zip(exact, self._averages(self.atoms), strict=True)
        )
        return mean, variance

    @in_x64
    def _averages(self, atoms: Atoms) -> tuple[Tables, Tables]:
        """Mean and variance of the tables over the atoms, in chunks that fit the memory."""
        N = len(atoms)
        weights = atoms.probabilities
        held = (
            self._form.middle() if len(self.concentration) else {}
        )  # closed forms stand still: their rows are not read
        size = max(1, min(N, CHUNK // sum(table.size for table in self.homdp.structure.reference)))
        first, second = Tables(0.0, 0.0, 0.0), Tables(0.0, 0.0, 0.0)
        for start in range(0, N, size):
            part = slice(start, min(start + size, N))
            values = {
                name: np.repeat(value[None], part.stop - start, axis=0)
                for name, value in held.items()
            }
            tables = self.tables(
                values | {name: value[part] for name, value in atoms.values.items()},
                part.stop - start,
            )
            first = Tables(
                *(
                    total + np.tensordot(weights[part], t, 1)
                    for total, t in zip(first, tables, strict=True)
                )
            )
            second = Tables(
                *(
                    total + np.tensordot(weights[part], t**2, 1)
                    for total, t in zip(second, tables, strict=True)
                )
            )
        return first, Tables(
            *(np.maximum(s - f**2, 0.0) for f, s in zip(first, second, strict=True))
        )

    def _once(self, name: str, function: Callable[[], Any]) -> Any:
        """A function compiled once for the declaration."""
        return self.homdp.cache.get(name, lambda: jax.jit(function()))

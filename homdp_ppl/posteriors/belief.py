"""``Posterior``: the posterior of a declaration given revealed episodes.

Its interface is the same for all methods of inference.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, final

import jax
import numpy as np

from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episode_validation import GAPS
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.evidence import Evidence
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.randomness import as_key, refuse_traced_key
from homdp_ppl.core.spaces import no_tables, require_finite
from homdp_ppl.declare.kernels import Planned
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.declare.sizes import draw_problems
from homdp_ppl.errors import DataError, InferenceError, Problem
from homdp_ppl.posteriors.atoms import Atoms
from homdp_ppl.posteriors.diagnostics import Diagnostics, Gate
from homdp_ppl.posteriors.dirichlet import ClosedForm, closed_form
from homdp_ppl.posteriors.gaussian import GaussianForm, gaussian_form
from homdp_ppl.posteriors.laplace import Calibration
from homdp_ppl.posteriors.notebook import posterior_html
from homdp_ppl.posteriors.nuts import Sampling, Warm
from homdp_ppl.posteriors.tables import table_moments, tables_at
from homdp_ppl.precision import Array, in_x64

if TYPE_CHECKING:
    import xarray as xr

Data: TypeAlias = Episode | Episodes | Iterable[Episode] | Counts
Method: TypeAlias = Literal["auto", "nuts", "laplace"]


class Settings(NamedTuple):
    """How to compute a posterior, now and after more data."""

    method: Method = "auto"
    sampling: Sampling = Sampling()
    gate: Gate = Gate()
    force: bool = False


DEFAULT = Settings()


@final
@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """The posterior of a declaration given revealed episodes.

    Create it with :func:`posterior`; its ``repr`` shows how it was computed. ``draws``, ``mean``
    and ``variance`` need finite tables and raise :class:`SpacesError` for real-valued spaces.

    Attributes
    ----------
    homdp
        The declaration.
    data
        Counts for finite spaces, with the gaps if states are missing; else the episodes.
    method
        The method of inference: "known", "conjugate", "prior", "enumerated", "gibbs", "nuts",
        "laplace", or "mixed" for closed forms combined with one of the others.
    explanation
        The method of each site as text.
    closed
        The parameters of the closed forms: concentrations of Dirichlet rows, (M,), with those of
        sums of outcomes at the end, or location, strength, shape and rate of Gaussian emissions,
        (groups, 4). Empty if there are none.
    atoms
        Values of the other sites.
    settings
        How to compute the posterior, also in :meth:`update`.
    warm
        The current positions of the chains, if there are any. An update starts from them.
    diagnostics
        Diagnostics of the chains, if there are any.
    calibration
        Calibration of Laplace's approximation, if it was used.
    forced
        Whether the fit was kept although it did not pass the gate.
    parts
        For finite spaces, the episodes behind the counts, one container per update. None if they
        are not known, because counts were given.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, posterior, tabular
    >>> coin = tabular(
    ...     T=[[[1.0]]], O=dist.Dirichlet(np.ones((1, 2))), initial=[1], reward=[[1]], horizon=1
    ... )
    >>> belief = posterior(coin, Counts(np.array([[[8]]]), np.array([[6, 2]])))
    >>> belief.method, belief.closed.tolist(), belief.mean.shows(0).round(3).tolist()
    ('conjugate', [7.0, 3.0], [[0.7, 0.3]])
    >>> belief.update(Counts(np.array([[[1]]]), np.array([[0, 1]]))).closed.tolist()
    [7.0, 4.0]
    """

    homdp: HOMDP
    data: Counts | Evidence | Episodes
    method: str
    explanation: str
    closed: Array
    atoms: Atoms | None = None
    settings: Settings = DEFAULT
    warm: Warm | Array | None = None
    diagnostics: Diagnostics | None = None
    calibration: Calibration | None = None
    forced: bool = False
    parts: tuple[Episodes, ...] | None = None

    @property
    def episodes(self) -> Episodes | None:
        """The episodes that the posterior is conditioned on; None if only counts are known."""
        if isinstance(self.data, Episodes):
            return self.data
        if self.parts is None:
            return None
        return Episodes.concatenate(self.parts) if self.parts else Episodes.of([], self.homdp)

    @property
    def counts(self) -> Counts:
        """The data as counts; raises an error if states are missing."""
        if isinstance(self.data, Evidence):
            got = f"{self.data.gaps.hidden:,} missing states"
            raise DataError("counts", [Problem("data", got, "all states revealed", GAPS)])
        if not isinstance(self.data, Counts):
            raise no_tables(self.homdp.spaces, self.homdp.name, "counts")
        return self.data

    @checked_but("n")
    @in_x64
    def draws(self, key: Array, n: int) -> POMDP:
        """Draw n models as a batch: every table has a leading axis of length n.

        Examples
        --------
        >>> import jax
        >>> from homdp_ppl import Counts, models, posterior
        >>> tiger = models.load("tiger").homdp
        >>> posterior(tiger, Counts.zero(tiger)).draws(jax.random.key(0), 10).shows(0).shape
        (10, 2, 2)
        """
        require_finite(self.homdp.spaces, self.homdp.name, "draws")
        self._require_room(n)
        tables = tables_at(self.homdp, self.parameters(key, n), n)
        return self.homdp.model_of(tables)

    @checked_but("n")
    @in_x64
    def parameters(self, key: Array, n: int) -> dict[str, Array]:
        """Joint draws of the sites, each (n, ...).

        Sites in closed form are drawn independently. The others are picked from the stored draws.
        """
        problems = count_problems(0, draws=n) or draw_problems("draws", n, self.homdp.sites)
        refuse(InferenceError, "posterior", problems)
        refuse_traced_key(key, "Posterior.parameters")
        key = as_key(key, "posterior")
        closed, sampled = (
            (jax.random.fold_in(key, 0), jax.random.fold_in(key, 1))
            if self.homdp.spaces.finite
            else (key, key)  # with real-valued spaces only one of them is used
        )
        values: dict[str, Array] = {}
        if self._form is not None:
            values |= self._form.draws(closed, self.closed, n)
        if self.atoms:
            generator = np.random.default_rng(np.asarray(jax.random.key_data(sampled)))
            values |= self.atoms.pick(generator, n)
        return {site.name: values[site.name] for site in self.homdp.sites}

    @checked_but("n")
    @in_x64
    def worlds(self, key: Array, n: int) -> list[World]:
        """Draw n worlds from the posterior."""
        self._require_room(n)
        values, finite = self.parameters(key, n), self.homdp.spaces.finite
        tables = tables_at(self.homdp, values, n) if finite else None
        return [
            World(
                self.homdp,
                {name: value[k] for name, value in values.items()},
                None if tables is None else self.homdp.model_of([t[k] for t in tables]),
            )
            for k in range(n)
        ]

    @property
    def mean(self) -> POMDP:
        """The posterior mean of every table entry.

        Exact for closed forms and enumerated sites, the average of the draws otherwise.
        """
        require_finite(self.homdp.spaces, self.homdp.name, "mean")
        return self.homdp.model_of(self._moments[0])

    @property
    def variance(self) -> Planned:
        """The posterior variance of every table entry; exact where the mean is exact."""
        require_finite(self.homdp.spaces, self.homdp.name, "variance")
        return self._moments[1]

    @property
    def site_means(self) -> dict[str, Array]:
        """The posterior mean of every site: exact in closed form, else the average of the draws."""
        means: dict[str, Array] = {}
        if self._form is not None:
            means |= self._form.site_means(self.closed)
        if self.atoms:
            means |= self.atoms.means()
        return {site.name: means[site.name] for site in self.homdp.sites}

    @property
    def dataset(self) -> xr.Dataset:
        """Draws of all sites as an xarray Dataset, the posterior group of :meth:`to_arviz`.

        Its dimensions are chain and draw, and its coordinates use the names of the model. Sampled
        sites keep their chains. Sites in closed form are drawn independently with a fixed key.
        """
        from homdp_ppl.posteriors.inference_data import posterior_group  # a circular import

        return posterior_group(self)

    @checked
    def to_arviz(self, episodes: Episodes | None = None) -> Any:
        """The posterior for ArviZ: an InferenceData (ArviZ 0.23) or a DataTree (1.x).

        All dimensions have coordinates: names of states, actions and observations, numbers of
        steps, and ids or numbers of episodes. Values are indices. The groups are:

        - ``posterior`` and ``prior``: draws of all sites, as in :attr:`dataset`. Sites in closed
          form are drawn independently.
        - ``sample_stats``: ``lp``, the log density of parameters and data, up to a constant if
          only counts are known; after NUTS also its statistics, such as ``diverging``.
        - ``observed_data``: ``observation`` and ``state`` of every episode. ``constant_data``: the
          actions.
        - ``log_likelihood``: one number per draw and episode, the unit that ``arviz.loo`` leaves
          out. Steps of an episode are dependent; episodes are independent given the parameters.
          The policy does not matter, because its probabilities do not depend on the parameters.
        - ``posterior_predictive``: replications of every state and observation, drawn given the
          recorded state and action before it. They are correct for any policy, also for one that
          was learning. :func:`homdp_ppl.posteriors.predictive_check` simulates whole episodes.
          Left out if states are missing; likelihoods are then sums over the hidden states.

        For random rewards, labels and mechanisms of reveals, ``lp`` and ``log_likelihood`` are left
        out: these are data too, and the densities do not contain them.

        Parameters
        ----------
        episodes
            All or some of the episodes that the posterior is conditioned on. Needed only if it was
            computed from counts; without them, the last four groups are left out.

        Examples
        --------
        >>> import jax
        >>> from homdp_ppl import models, posterior, rollout, uniform_policy
        >>> world = models.load("tiger")
        >>> log = rollout(jax.random.split(jax.random.key(0), 50), world, uniform_policy(world))
        >>> data = posterior(world.homdp, log).to_arviz()
        >>> dict(data["log_likelihood"].sizes)
        {'chain': 4, 'draw': 500, 'episode': 50}
        """
        from homdp_ppl.posteriors.inference_data import to_arviz  # a circular import

        return to_arviz(self, episodes)

    @checked_but("data")
    def update(self, data: Data, key: Array | None = None) -> Posterior:
        """The posterior after more data; chains start from their current positions.

        Parameters
        ----------
        data
            Further episodes or, for finite spaces, their counts.
        key
            A JAX random key for sampling.
        """
        from homdp_ppl.posteriors.inference import updated  # a circular import

        return updated(self, data, key)

    def require_rows(self) -> None:
        """Raise an error if the program's tables are not probabilities at some draw.

        This computes the moments of the tables, which are cached.
        """
        if self.atoms is not None:
            self._moments  # noqa: B018

    def require_quantiles(self) -> None:
        """Raise an error if the posterior is an approximation that is not calibrated."""
        if self.calibration is not None and not self.calibration.passed:
            share, lower, upper = self.calibration
            got = (
                f"true mass {lower:.3f} below and {upper:.3f} above its 90% intervals "
                f"(effective draws {share:.0%})"
            )
            remedy = 'Use method="nuts", or more data, which make the posterior closer to normal.'
            problem = Problem("laplace", got, "0.05 on each side, within 0.02", remedy)
            raise InferenceError(f"quantiles for {self.homdp.name}", [problem])

    def __repr__(self) -> str:
        if isinstance(self.data, Evidence):
            steps = self.data.steps
        elif isinstance(self.data, Counts):
            steps = int(np.sum(self.data.emission))
        else:
            steps = len(self.data) * self.homdp.horizon
        forced = "\n  kept by force=True: it did not pass the gate" if self.forced else ""
        sampled = self.atoms is not None and self.homdp.spaces.finite
        explain = sampled and self.settings.method != "nuts"  # not if NUTS was asked for
        reasons = self.homdp.structure.reasons(self.homdp.spaces) if explain else []
        return (
            f"Posterior of {self.homdp.name!r} after {steps:,} steps: {self.method}\n  "
            + "\n  ".join([self.explanation, *reasons])
            + forced
        )

    def _repr_html_(self) -> str:
        return posterior_html(self)

    def _require_room(self, n: int) -> None:
        """Raise an error if this many models do not fit in memory."""
        sites, spaces = self.homdp.sites, self.homdp.spaces
        problems = count_problems(0, draws=n) or draw_problems("draws", n, sites, spaces)
        refuse(InferenceError, "posterior", problems)

    @property
    def _form(self) -> ClosedForm | GaussianForm | None:
        if not len(self.closed):
            return None
        return closed_form(self.homdp) if self.homdp.spaces.finite else gaussian_form(self.homdp)

    @cached_property
    def _moments(self) -> tuple[Planned, Planned]:
        return table_moments(self.homdp, self.closed, self.atoms)

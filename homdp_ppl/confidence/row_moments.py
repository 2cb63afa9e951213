"""Mean and variance of one-step backups under a posterior, in closed form.

A backup takes the alpha-vectors of the next step, (A, Y, X), and returns the value after each
action in each state: sum over x', y' of T(x'|x,a) O(y'|x') alpha'(x'). If tables depend on the step
or on the previous action, the backup of step h uses T_h and O_{h+1}(y'|x', a).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from homdp_ppl.confidence.sensor_posteriors import (
    SensorSpread,
    have_own_rows,
    sensor_spreads,
    sensor_variances,
)
from homdp_ppl.core.checked import check_types, checked
from homdp_ppl.core.counts import Counts, check_counts
from homdp_ppl.core.form import Form
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import check_pomdp
from homdp_ppl.core.sensors import Sensors
from homdp_ppl.core.spaces import kernel_of
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import InferenceError, Problem
from homdp_ppl.posteriors.dirichlet import ClosedForm, Spread, closed_form
from homdp_ppl.precision import Array, namespace


class Moments(NamedTuple):
    """Mean tables and the spread of their rows, which determine a backup in closed form.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, tabular
    >>> lamp = tabular(
    ...     T=dist.Dirichlet(np.ones((2, 1, 2))),
    ...     O=np.eye(2),
    ...     initial=[0, 1],
    ...     reward=[[0], [1]],
    ...     horizon=2,
    ... )
    >>> believed = moments(lamp, Counts(np.array([[[0, 0]], [[2, 6]]]), np.array([[0, 0], [0, 8]])))
    >>> (
    ...     believed.model.moves(0)[1, 0].round(3),
    ...     believed.transition.shrink[1].round(4),
    ... )  # Dirichlet(3, 7); 1 / (10 + 1)
    (array([0.3, 0.7]), array([0.0909]))
    """

    model: POMDP
    transition: Spread
    emission: Spread | tuple[SensorSpread, ...]  # of each sensor if there are several
    initial: Spread


@checked
def has_moments(homdp: HOMDP) -> bool:
    """Whether backups have a mean and variance in closed form.

    This requires that all unknown rows are Dirichlet and not nested, and that O shares no Dirichlet
    row with T or with the initial distribution. If there are several sensors, all their rows must
    be different Dirichlet rows.

    Examples
    --------
    >>> import numpyro, numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, homdp
    >>> def coin(chance):
    ...     @homdp(states=1, observations=2, actions=1, horizon=1, reward=[[1]])
    ...     def coin():
    ...         heads = numpyro.sample("heads", chance)
    ...         return Kernels([1.0], [[[1.0]]], lambda x: dist.Bernoulli(heads))
    ...
    ...     return coin
    >>> has_moments(coin(dist.Beta(1, 1))), has_moments(coin(dist.Uniform(0.5, 1.0)))
    (True, False)
    """
    conjugate = homdp.structure.conjugate
    states = conjugate.rows_of("transition") | conjugate.rows_of("initial")
    shows = [name for name in conjugate.sources if kernel_of(name) == "emission"]
    shared = states & set().union(*(conjugate.rows_of(name) for name in shows))
    closed = len(conjugate.sites) == len(homdp.sites) and not (shared or conjugate.nested)
    return closed and (not homdp.spaces.sensors or have_own_rows(homdp))


@checked
def moments(homdp: HOMDP, counts: Counts) -> Moments:
    """The moments of a conjugate posterior, from counts; may be traced.

    Raises :class:`InferenceError` if :func:`has_moments` is false.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, tabular
    >>> coin = tabular(
    ...     T=[[[1.0]]], O=dist.Dirichlet(np.ones((1, 2))), initial=[1], reward=[[1]], horizon=1
    ... )
    >>> moments(coin, Counts(np.array([[[8]]]), np.array([[6, 2]]))).model.shows(0).round(
    ...     3
    ... )  # Beta(7, 3)
    array([[0.7, 0.3]])
    """
    check_counts(counts, homdp)
    if not has_moments(homdp):
        expected = (
            "Dirichlet rows only, none of them nested or shared by O and T or the initial "
            "distribution"
        )
        problem = Problem(
            "sites",
            ", ".join(site.name for site in homdp.sites),
            expected,
            "Use draw_backup, which accepts any posterior.",
        )
        raise InferenceError(f"moments of {homdp.name}", [problem])
    form = closed_form(homdp)
    concentration = form.concentration(counts)
    spread = form.spread(concentration)
    shows = sensor_spreads(form, concentration) if homdp.spaces.sensors else spread["emission"]
    model = homdp.model_of(form.mean(concentration))
    return Moments(model, spread["transition"], shows, spread["initial"])


@checked
def backup_moments(homdp: HOMDP) -> Callable[..., tuple[Array, Array]]:
    """A function of (moments, alpha_next, step) that computes the mean and the variance of the
    one-step backup, each (X, A), from alpha_next (A, Y, X), for independent Dirichlet rows.

    With g(x') = sum_y' O(y'|x') alpha(y', x'), and T independent of O, the variance is Var(sum T
    g-bar) + sum over x', x'' of E[T(x') T(x'')] Cov(g(x'), g(x'')). For x' != x'' the covariances
    are zero, unless the two rows of O use the same Dirichlet row. The step, from 1 (the default),
    matters only if tables depend on it: T is that of the step, and O that of the next step.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, tabular
    >>> lamp = tabular(
    ...     T=dist.Dirichlet(np.ones((2, 1, 2))),
    ...     O=np.eye(2),
    ...     initial=[0, 1],
    ...     reward=[[0], [1]],
    ...     horizon=2,
    ... )
    >>> lit = np.array([[[0, 1], [0, 1]]])  # alpha-vectors that are 1 in the second state
    >>> mean, variance = backup_moments(lamp)(moments(lamp, Counts.zero(lamp)), lit)
    >>> mean.ravel().tolist(), variance.ravel().round(4).tolist()  # of uniform rows: 1/2 and 1/12
    ([0.5, 0.5], [0.0833, 0.0833])
    """
    evaluate = moments_of_backups(homdp)

    def validated(believed: Moments, alpha_next: Array, step: int = 1) -> tuple[Array, Array]:
        return evaluate(_validated(believed, "backup_moments"), alpha_next, step)

    return validated


def moments_of_backups(homdp: HOMDP) -> Callable[..., tuple[Array, Array]]:
    """Like :func:`backup_moments`, for a model that is already validated."""
    covariance, form = _covariance(closed_form(homdp)), homdp.form

    def evaluate(believed: Moments, alpha_next: Array, step: int = 1) -> tuple[Array, Array]:
        xp = namespace(believed, alpha_next)
        T, row = believed.model.moves(step - 1), believed.transition
        if form.moves_by_step:
            row = Spread(*(part[step - 1] for part in row))
        # products and sums fuse in a compiled loop, einsum does not
        g = (xp.swapaxes(shown_after(believed.model, step), 1, 2) * alpha_next).sum(1)
        mean = (T * g).sum(-1)
        scale = row.mass**2 * row.shrink
        # centred before squaring, so that known rows have a variance of exactly zero
        centred = g - (row.mean * g).sum(-1, keepdims=True)
        first = (row.mean * centred**2).sum(-1)
        # (A, X) of single rows, or (A, X, X)
        C = covariance(believed.emission, alpha_next, _after(form, step))
        if C.ndim == 2:
            second = (T**2 * C).sum(-1) + scale * ((row.mean - row.mean**2) * C).sum(-1)
        else:
            single = xp.einsum("azz->az", C)
            second = xp.einsum("xaz,azw,xaw->xa", T, C, T) + scale * (
                xp.einsum("xaz,az->xa", row.mean, single)
                - xp.einsum("xaz,azw,xaw->xa", row.mean, C, row.mean)
            )
        return mean, xp.maximum(scale * first + second, 0.0)

    return evaluate


@checked
def start_variance(homdp: HOMDP) -> Callable[[Moments, Array], Array]:
    """A function that computes the variance of sum_x rho(x) g_1(x) from the alpha-vectors after
    each first observation, (Y, X).

    If rho is unknown, it is a Dirichlet row like those of T, and the variance is that of
    :func:`backup_moments` with rho in the place of T.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, tabular
    >>> coin = tabular(
    ...     T=[[[1.0]]], O=dist.Dirichlet(np.ones((1, 2))), initial=[1], reward=[[1]], horizon=1
    ... )
    >>> first = np.array([[0.0], [1.0]])  # value 0 after heads, 1 after tails
    >>> round(
    ...     float(start_variance(coin)(moments(coin, Counts.zero(coin)), first)), 4
    ... )  # uniform distribution: 1/12
    0.0833
    """
    covariance, form = _covariance(closed_form(homdp)), homdp.form
    known = bool(homdp.structure.known.initial)
    first_rows = form.emission_index(0, slice(-1, None), slice(None))[:-1]

    def evaluate(believed: Moments, first: Array) -> Array:
        believed = _validated(believed, "start_variance")
        C, rho = covariance(believed.emission, first[None], first_rows)[0], believed.model.initial
        second = rho**2 @ C if C.ndim == 1 else rho @ C @ rho
        if known:
            return second
        row = believed.initial
        scale = row.mass**2 * row.shrink
        g = (believed.model.shows(0).T * first).sum(0)  # (X,)
        centred = g - (row.mean * g).sum()
        single = C if C.ndim == 1 else namespace(C).diagonal(C)
        both = row.mean**2 @ C if C.ndim == 1 else row.mean @ C @ row.mean
        return scale * (row.mean * centred**2).sum() + second + scale * (row.mean @ single - both)

    return evaluate


def shown_after(model: POMDP, h: int) -> Array:
    """O_{h+1}(y|x', a) after the action of step h from 1, (..., A or 1, X, Y).

    After the last step nothing is observed. For a table without a step axis, h does not matter.
    """
    return model.shows_after(h if model.emission.shape[-4] > 1 else 0)


def _after(form: Form, step: int) -> tuple[Any, ...]:
    """The index of the emission rows after the action of a step from 1, (A or 1, X)."""
    actions = slice(-1) if form.answers_action else slice(None)
    return form.emission_index(step, actions, slice(None))[:-1]


def _validated(given: Any, subject: str) -> Moments:
    """Moments with a valid model; raises an error for anything else."""
    check_types(subject, parameters=(given, Moments))
    believed: Moments = given
    return believed._replace(model=check_pomdp(believed.model, subject))


def _covariance(form: ClosedForm) -> Callable[[Any, Array, tuple[Any, ...]], Array]:
    """A function that computes the covariances of g(x') = sum_y O(y|x') alpha(y, x').

    It returns variances (A, X) if no two rows that occur together share a Dirichlet row, else
    covariances (A, X, X). Its last argument is the index of the rows of O in their table, apart
    from the state.
    """
    if isinstance(form.homdp.spaces.observations, Sensors):
        return sensor_variances(form.homdp.spaces.observations)
    source = form.conjugate.sources["emission"]
    owner = np.where(
        (source >= 0).any(-1),
        form.conjugate.row[source.max(-1)] if source.size and source.max() >= 0 else -1,
        -1,
    )
    together = owner.reshape(-1, owner.shape[-1])  # rows of one step and one previous action
    if all(len(np.unique(some[some >= 0])) == (some >= 0).sum() for some in together):

        def variances(rows: Spread, alpha: Array, place: tuple[Any, ...]) -> Array:
            mean, mass, shrink = (part[place] for part in rows)
            weight = namespace(mean).swapaxes(mean, -1, -2)  # (Y, X), or (A or 1, Y, X)
            centred = alpha - (weight * alpha).sum(1, keepdims=True)
            return mass**2 * shrink * (weight * centred**2).sum(1)

        return variances
    same = (owner[..., :, None] == owner[..., None, :]) & (owner >= 0)[..., None]
    rank = np.argsort(
        np.where(source >= 0, source, np.iinfo(np.int64).max), axis=-1, kind="stable"
    )  # y of each coordinate

    def covariances(rows: Spread, alpha: Array, place: tuple[Any, ...]) -> Array:
        xp = namespace(rows, alpha)
        mean, mass, shrink = (part[place] for part in rows)
        # (A or 1, X, Y) by coordinate, so that rows of one Dirichlet are equal
        order = rank[place]
        p = xp.take_along_axis(mean, order, axis=-1)
        a = xp.swapaxes(alpha, 1, 2)  # (A, X, Y)
        a = xp.take_along_axis(a, np.broadcast_to(order, a.shape), axis=2)
        if p.ndim == 2:
            centred = a - xp.einsum("zk,azk->az", p, a)[..., None]
        else:
            centred = a - xp.einsum("azk,azk->az", xp.broadcast_to(p, a.shape), a)[..., None]
        products = xp.einsum("azk,awk->azw", p * centred, centred)
        masses = mass[..., :, None] * mass[..., None, :]
        return same[place] * masses * shrink[..., :, None] * products

    return covariances

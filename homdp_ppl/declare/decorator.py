"""Declarations: a decorated NumPyro program is a HOMDP.

With its parameters fixed it is a World to act in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import numpyro
from numpy.typing import ArrayLike
from numpyro.distributions import Distribution

from homdp_ppl.core.spaces import Real
from homdp_ppl.declare.density_validation import as_reward, trial_problems, trials, try_out
from homdp_ppl.declare.dynamics import RewardFunction
from homdp_ppl.declare.fingerprint import probe_digest
from homdp_ppl.declare.kernels import Kernels, tabulators
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.declare.probing import Prober
from homdp_ppl.declare.sizes import declared_size_problems
from homdp_ppl.declare.structure import analyse
from homdp_ppl.declare.validation import (
    check_program,
    check_reward,
    check_spaces,
    check_tables,
    look,
)
from homdp_ppl.errors import DeclarationError, Problem, TracedError, shown
from homdp_ppl.precision import Array, x64

__all__ = ["HOMDP", "Kernels", "World", "homdp", "tabular"]


def homdp(
    program: None = None,
    /,
    *,
    states: Sequence[str] | int | Real,
    observations: Sequence[str] | int | Real,
    actions: Sequence[str] | int,
    horizon: int,
    reward: ArrayLike | Callable[[Any, Any], Any],
) -> Callable[[Callable[[], Kernels]], HOMDP]:
    """Declare a HOMDP: decorate a NumPyro program that returns :class:`Kernels`.

    Parameters
    ----------
    program
        Nothing: the program stands below the decorator.
    states, observations, actions
        Names, or how many there are; states and observations may be :class:`Real` vectors.
    horizon
        Number of actions in an episode.
    reward
        r(x, a) in [0, 1] as an array (X, A), one a step (H, X, A), or a function of two indices.
        Where observations are continuous there is one for all steps; where states are, it is a
        function that JAX can trace.

    Returns
    -------
    callable
        A decorator that turns the program into a :class:`HOMDP`, or raises
        :class:`DeclarationError` with every problem.

    Examples
    --------
    >>> import numpyro, numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, homdp
    >>> @homdp(
    ...     states=("off", "on"),
    ...     observations=("dark", "light"),
    ...     actions=("wait",),
    ...     horizon=2,
    ...     reward=[[0.0], [1.0]],
    ... )
    ... def lamp():
    ...     breaks = numpyro.sample("breaks", dist.Beta(1, 9))
    ...     return Kernels(
    ...         initial=[0.0, 1.0],
    ...         transition=lambda x, a: dist.Bernoulli(x * (1 - breaks)),
    ...         emission=[[1.0, 0.0], [0.0, 1.0]],
    ...     )
    >>> lamp
    HOMDP 'lamp': 2 states, 2 observations, 1 action, horizon 2
      T: 1 of 2 rows known, 1 row Dirichlet, conjugate; O: known; initial: known
    """
    if program is not None:
        remedy = (
            "Write @homdp(states=..., ...) above the function, or homdp(states=..., ...)(function)."
        )
        raise DeclarationError(
            "homdp", [Problem("arguments", f"a {type(program).__name__}", "keywords alone", remedy)]
        )

    return lambda function: declare(function, states, observations, actions, horizon, reward)


def tabular(
    *,
    T: ArrayLike | Distribution,
    O: ArrayLike | Distribution,  # noqa: E741
    initial: ArrayLike,
    reward: ArrayLike | Callable[[int, int], float],
    horizon: int,
    states: Sequence[str] | int | None = None,
    observations: Sequence[str] | int | None = None,
    actions: Sequence[str] | int | None = None,
    name: str = "tabular",
) -> HOMDP:
    """Declare a HOMDP by tables: each of T and O an array when it is known, or a Dirichlet prior.

    Parameters
    ----------
    T
        T(x' | x, a), shape (X, A, X): an array, or a distribution over such tables; then its site
        is called "T".
    O
        O(y | x), shape (X, Y), in the same manner; its site is called "O".
    initial
        The distribution of the first state, (X,).
    reward, horizon, states, observations, actions
        As in :func:`homdp`; names default to x0, y0, a0 and so on.
    name
        What to call the model.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> flat = dist.Dirichlet(np.ones((2, 1, 2)))
    >>> tabular(T=flat, O=np.eye(2), initial=[1, 0], reward=np.eye(2)[:, :1], horizon=3)
    HOMDP 'tabular': 2 states, 2 observations, 1 action, horizon 3
      T: Dirichlet, conjugate; O: known; initial: known
    """
    tables = {"T": T, "O": O, "initial": initial, "reward": reward}
    traced = [name for name, given in tables.items() if isinstance(given, jax.core.Tracer)]
    if traced:
        remedy = "Declare the model outside of jit, vmap and grad."
        wrong = [Problem(n, "values that JAX is tracing", "numbers", remedy) for n in traced]
        raise TracedError("tabular", wrong)
    shapes = {"T": _shape(T), "O": _shape(O)}
    wanted = {"T": "shape (X, A, X)", "O": "shape (X, Y)"}
    bad = [
        Problem(n, f"shape {s}", wanted[n])
        for n, s in shapes.items()
        if len(s) != wanted[n].count(",") + 1
    ]
    bad += [
        Problem(n, "complex numbers", "probabilities")
        for n, given in {"T": T, "O": O, "initial": initial}.items()
        if isinstance(given, np.ndarray | jax.Array) and np.iscomplexobj(given)
    ]
    if bad:
        raise DeclarationError(name, bad)

    def table(site: str, given: ArrayLike | Distribution) -> ArrayLike:
        if not isinstance(given, Distribution):
            return given
        return numpyro.sample(site, given.to_event(len(given.batch_shape)))

    def program() -> Kernels:
        return Kernels(initial=initial, transition=table("T", T), emission=table("O", O))

    if not isinstance(name, str):
        raise DeclarationError("tabular", [Problem("name", shown(name), "a text")])
    program.__name__ = name
    X, A, _ = shapes["T"]
    Y = shapes["O"][-1]
    sizes = ((X, states), (Y, observations), (A, actions))
    states, observations, actions = (size if names is None else names for size, names in sizes)
    return declare(program, states, observations, actions, horizon, reward)


def declare(
    function: Callable[[], Kernels],
    states: Any,
    observations: Any,
    actions: Any,
    horizon: Any,
    reward: Any,
) -> HOMDP:
    """A HOMDP from what was declared; every problem is reported at once."""
    name = getattr(function, "__name__", "homdp")
    spaces, problems = check_spaces(states, observations, actions, horizon)
    misused = check_program(function)
    too_large = [] if spaces is None else declared_size_problems(spaces)
    if spaces is None or misused or too_large:
        raise DeclarationError(name, [*problems, *misused, *too_large])
    rewards: Array | RewardFunction
    rewards, wrong = (check_reward if spaces.finite else as_reward)(reward, spaces)
    sites, sound, misshapen = look(
        function,
        lambda kernels, key: (
            tabulators(kernels, spaces) if spaces.finite else trials(kernels, spaces, key)
        ),
    )
    model = HOMDP(name, spaces, rewards, function, sites)
    finish = _with_structure if spaces.finite else _tried_out
    return finish(model, [*problems, *wrong, *misshapen], sound)


def _with_structure(model: HOMDP, problems: list[Problem], sound: tuple[str, ...]) -> HOMDP:
    """A finite model with what its tables show; bad rows of sound kernels are problems too."""
    if not sound:
        raise DeclarationError(model.name, problems)
    with x64():
        prober = Prober(model.function, model.sites, model.spaces, sound)
        start = prober.start()
        problems = [*problems, *check_tables(start, model.spaces)]
        for probe in () if problems else prober.elsewhere():
            problems = problems or check_tables(probe, model.spaces)
        if problems:
            raise DeclarationError(model.name, problems)
        return replace(model, _structure=analyse(prober, start), _probe=probe_digest(start))


def _tried_out(model: HOMDP, problems: list[Problem], sound: tuple[str, ...]) -> HOMDP:
    """A model without tables, after some episodes of it were played."""
    if problems:
        raise DeclarationError(model.name, problems)
    trial = try_out(model.dynamics, model.function, model.sites)
    problems = trial_problems(trial, model.spaces)
    if problems:
        raise DeclarationError(model.name, problems)
    return replace(model, _probe=probe_digest(trial.probe))


def _shape(given: ArrayLike | Distribution) -> tuple[int, ...]:
    """The shape of a table; of one with rows of different lengths as far as it has one."""
    if isinstance(given, Distribution):
        return tuple(given.shape())
    if isinstance(given, tuple) and hasattr(given, "_fields"):  # a record, such as a POMDP
        return (len(given),)
    if not isinstance(given, list | tuple | np.ndarray | jax.Array | int | float):
        return np.shape(np.asarray(given, dtype=object))
    try:
        return np.shape(given)
    except ValueError:
        return np.array(given, dtype=object).shape

"""The functions that declare a HOMDP: the decorator :func:`homdp`, and :func:`tabular`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import numpyro
from numpy.typing import ArrayLike
from numpyro.distributions import Distribution

from homdp_ppl.core.allowed import Allowed
from homdp_ppl.core.pattern import Pattern
from homdp_ppl.core.spaces import Real
from homdp_ppl.core.sparse import Sparse
from homdp_ppl.declare.density_validation import play_trials, trial_problems, trials
from homdp_ppl.declare.fingerprint import fingerprint, probe_digest
from homdp_ppl.declare.hindsight_kernels import RevealUnit, refused_parts, unit_problems
from homdp_ppl.declare.kernels import Kernels, pattern_of, tabulators
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.declare.probing import Probe, Prober
from homdp_ppl.declare.restriction import restriction_of
from homdp_ppl.declare.reward_law import law_of, mean_problems
from homdp_ppl.declare.rewards import Given, Recorded, rewards_of
from homdp_ppl.declare.sizes import declared_size_problems
from homdp_ppl.declare.structure import analyse
from homdp_ppl.declare.validation import (
    check_program,
    check_spaces,
    check_tables,
    declared_pattern,
    further_reserved,
    inspect_program,
)
from homdp_ppl.errors import DeclarationError, Problem, TracedError, shown, with_article
from homdp_ppl.precision import x64

SHAPES = {
    "T": "shape (X, A, X) or (H, X, A, X)",
    "O": "shape (X, Y), (A + 1, X, Y) or (H, A + 1 or 1, X, Y)",
}
RANKS = {"T": (3, 4), "O": (2, 3, 4)}

__all__ = ["HOMDP", "Kernels", "World", "homdp", "tabular"]


def homdp(
    program: None = None,
    /,
    *,
    states: Sequence[str] | int | Real,
    observations: Sequence[str] | int | Real | Mapping[str, Sequence[str] | int],
    actions: Sequence[str] | int,
    horizon: int,
    reward: ArrayLike | Callable[..., Any] | None = None,
    cost: ArrayLike | Callable[..., Any] | None = None,
    reward_range: tuple[float, float] | None = None,
    rewards_recorded: Recorded = "always",
    terminal: Sequence[str] = (),
    allowed: Allowed | None = None,
    reveal_unit: RevealUnit = "step",
) -> Callable[[Callable[[], Kernels]], HOMDP]:
    """Declare a HOMDP: decorate a NumPyro program that returns :class:`Kernels`.

    Parameters
    ----------
    program
        Leave this out. Write the program below the decorator.
    states, observations, actions
        Names, or the number of names. States and observations may also be :class:`Real` vectors.
        Several sensors are a dict {sensor: names or their number}; the emission is then a dict too.
    horizon
        Number of actions in an episode.
    reward
        Known rewards, any bounded numbers: an array (X, A), (H, X, A) with one table per step, or
        (H, X, Y, A) with y the observation seen before the action; or a function whose arguments
        are recognised by name: x (state), a (action), and optionally h (step, from 1) and y. Names
        are passed as indices. If a space is real-valued, JAX must be able to trace the function.
    cost
        Costs instead of rewards, in the same forms. The reward is minus the cost.
    reward_range
        (low, high): the smallest and the largest possible reward or cost. Required for functions of
        real-valued spaces whose numbers are not in [0, 1], and for a reward kernel in
        :class:`Kernels`; otherwise found from the numbers.
    rewards_recorded
        "coin" if some random rewards are not recorded, and this depends on nothing in the episode.
        Then steps without a recorded reward are skipped. By default, they are an error.

    Inside, rewards are in [0, 1]: they are used as they are if all are in [0, 1], otherwise the
    range becomes [0, 1]. Values, gaps, regret and returns are reported in the units of the
    declaration.

    terminal
        The states that end the episode, by name or index. The end is seen. A terminal state emits
        nothing and earns 0; its rows of the kernels are not used. There is an additional, last
        observation, "ended".
    allowed
        Which actions are allowed after a history: a function of the observations y_1 to y_h and
        the actions a_1 to a_{h-1}, as indices, that returns one Boolean per action. Planners in
        :func:`learn`, the optimum and random actions follow it. By default, all are allowed.
    reveal_unit
        "episode" if one coin decides whether all states of an episode are revealed; ``revealed`` in
        :class:`Kernels` is then a constant. By default, it is a probability per state.

    Returns
    -------
    callable
        A decorator that turns the program into a :class:`HOMDP`. It raises
        :class:`DeclarationError` with all problems if the declaration is invalid.

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
            "homdp",
            [
                Problem(
                    "arguments",
                    with_article(type(program).__name__),
                    "keyword arguments only",
                    remedy,
                )
            ],
        )

    named = states, observations, actions
    given = Given(reward, cost, reward_range, rewards_recorded)

    def declared(function: Callable[[], Kernels]) -> HOMDP:
        try:
            model = declare(function, named, horizon, given, terminal, reveal_unit)
        except DeclarationError as error:
            spaces, _ = check_spaces(states, observations, actions, horizon, terminal)
            wrong = [] if allowed is None else restriction_of(allowed, spaces)[1]
            raise DeclarationError(error.args[0], [*error.problems, *wrong]) from None
        return model if allowed is None else restricted(model, allowed)

    return declared


def tabular(
    *,
    T: ArrayLike | Sparse | Distribution,
    O: ArrayLike | Distribution | Mapping[str, ArrayLike | Distribution],  # noqa: E741
    initial: ArrayLike,
    horizon: int,
    reward: ArrayLike | Callable[..., float] | None = None,
    cost: ArrayLike | Callable[..., float] | None = None,
    reward_range: tuple[float, float] | None = None,
    states: Sequence[str] | int | None = None,
    observations: Sequence[str] | int | Mapping[str, Sequence[str] | int] | None = None,
    actions: Sequence[str] | int | None = None,
    terminal: Sequence[str] = (),
    name: str = "tabular",
) -> HOMDP:
    """Declare a HOMDP by its tables. T and O are arrays if they are known, else Dirichlet priors.

    Parameters
    ----------
    T
        T(x' | x, a), shape (X, A, X), or (H, X, A, X) with one table per step: an array, a
        :class:`Sparse` table, or a distribution over tables. The site of a distribution is called
        "T".
    O
        O(y | x), shape (X, Y): an array or a distribution. The site of a distribution is called
        "O". If observations depend on the previous action, the shape is (A + 1, X, Y), and the
        last table is for the first observation; with one table per step, it is
        (H, A + 1 or 1, X, Y). Several sensors are a dict {sensor: array or distribution}; the sites
        are then called ``O_`` and the name of the sensor.
    initial
        The distribution of the first state, (X,).
    horizon, reward, cost, reward_range, states, observations, actions, terminal
        As in :func:`homdp`. Names default to x0, y0, a0 and so on.
    name
        The name of the model.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> flat = dist.Dirichlet(np.ones((2, 1, 2)))
    >>> tabular(T=flat, O=np.eye(2), initial=[1, 0], reward=np.eye(2)[:, :1], horizon=3)
    HOMDP 'tabular': 2 states, 2 observations, 1 action, horizon 3
      T: Dirichlet, conjugate; O: known; initial: known
    """
    given = Given(reward, cost, reward_range)
    shows = (
        {f"O_{sensor}": table for sensor, table in O.items()}
        if isinstance(O, Mapping)
        else {"O": O}
    )
    tables = {"T": T, **shows, "initial": initial, **given._asdict()}
    traced = [name for name, given in tables.items() if isinstance(given, jax.core.Tracer)]
    if traced:
        remedy = "Declare the model outside of jit, vmap and grad."
        wrong = [Problem(n, "traced JAX values", "numbers", remedy) for n in traced]
        raise TracedError("tabular", wrong)
    shapes = {name: _shape(table) for name, table in {"T": T, **shows}.items()}
    bad = [
        Problem(n, f"shape {shape}", SHAPES[n[0]])
        for n, shape in shapes.items()
        if len(shape) not in RANKS[n[0]]
    ]
    bad += [
        Problem(n, "complex numbers", "probabilities")
        for n, given in {"T": T, **shows, "initial": initial}.items()
        if isinstance(given, np.ndarray | jax.Array) and np.iscomplexobj(given)
    ]
    if bad:
        raise DeclarationError(name, bad)

    def table(site: str, given: Any) -> Any:
        if not isinstance(given, Distribution):
            return given
        return numpyro.sample(site, given.to_event(len(given.batch_shape)))

    def program() -> Kernels:
        transition = table("T", T)
        emission = (
            {sensor: table(f"O_{sensor}", part) for sensor, part in O.items()}
            if isinstance(O, Mapping)
            else table("O", O)
        )
        return Kernels(initial=initial, transition=transition, emission=emission)

    if not isinstance(name, str):
        raise DeclarationError("tabular", [Problem("name", shown(name), "a string")])
    program.__name__ = name
    X, A, _ = shapes["T"][-3:]
    Y = (
        {sensor: shapes[f"O_{sensor}"][-1] for sensor in O}
        if isinstance(O, Mapping)
        else shapes["O"][-1]
    )
    sizes = ((X, states), (Y, observations), (A, actions))
    named = [size if names is None else names for size, names in sizes]
    return declare(program, named, horizon, given, terminal)


def declare(
    function: Callable[[], Kernels],
    named: Sequence[Any],
    horizon: Any,
    given: Given,
    terminal: Any = (),
    reveal_unit: Any = "step",
) -> HOMDP:
    """Make a HOMDP from the arguments of a declaration; all problems are reported together.

    ``named`` has the names or numbers of states, observations and actions.
    """
    name = getattr(function, "__name__", "homdp")
    states, observations, actions = named
    spaces, problems = check_spaces(states, observations, actions, horizon, terminal)
    misused = check_program(function)
    too_large = [] if spaces is None else declared_size_problems(spaces)
    if spaces is not None and too_large and not misused:  # sparse transitions need less
        too_large = declared_size_problems(spaces, declared_pattern(function, spaces))
    if spaces is None or misused or too_large:
        raise DeclarationError(name, [*problems, *misused, *too_large])
    kernels_of_rewards: list[bool] = []
    asked: set[str] = set()

    patterns: set[Pattern | None] = set()

    def tried(kernels: Kernels, key: Any) -> dict[str, Callable[[], Any]]:
        patterns.add(pattern_of(kernels, spaces) if spaces.finite else None)
        kernels_of_rewards.append(kernels.reward is not None)
        asked.update(part for part in ("label", "revealed") if getattr(kernels, part) is not None)
        return tabulators(kernels, spaces) if spaces.finite else trials(kernels, spaces, key)

    sites, sound, misshapen = inspect_program(function, tried)
    rewards, wrong = rewards_of(given, spaces, any(kernels_of_rewards))
    model = HOMDP(name, spaces, rewards, function, sites, reveal_unit=reveal_unit)
    wrong += [] if spaces.finite else refused_parts(asked, reveal_unit)
    wrong += further_reserved(sites, asked)
    found = [*problems, *wrong, *misshapen]
    if not spaces.finite:
        return _with_trials(model, found)
    if len(patterns) > 1:
        got = "a sparse table with other next states in a second run"
        found.append(Problem("transition", got, "the same next states in every run"))
        sound = ()
    return _with_structure(model, found, sound, next(iter(patterns), None))


def _with_structure(
    model: HOMDP, problems: list[Problem], sound: tuple[str, ...], pattern: Pattern | None
) -> HOMDP:
    """Add the structure of a finite model. Invalid rows of well-formed kernels are problems too.

    ``pattern`` is that of sparse transitions.
    """
    if not sound:
        raise DeclarationError(model.name, problems)
    with x64():
        prober = Prober(model.function, model.sites, model.spaces, sound)
        start = prober.start()
        model, wrong = _with_law(model, sound)
        problems = [*problems, *wrong, *_probe_problems(start, model, pattern)]
        for probe in () if problems else prober.further_points():
            problems = problems or _probe_problems(probe, model, pattern)
        if problems:
            raise DeclarationError(model.name, problems)
        law = model.rewards.law
        densities = () if law is None or law.finite else ("reward",)
        structure = analyse(prober, start, densities)._replace(pattern=pattern)
        digest = probe_digest(start)
        digest = digest if pattern is None else fingerprint(digest, pattern.digest)
        model = replace(model, _structure=structure, _probe=digest)
        problems = unit_problems(model.reveal_unit, model.hindsight_form)
        if problems:
            raise DeclarationError(model.name, problems)
        return model


def _with_law(model: HOMDP, sound: tuple[str, ...]) -> tuple[HOMDP, list[Problem]]:
    """The model with the law of its reward kernel, and the problems of the law."""
    if "reward" not in sound:
        return model, []
    law, problems = law_of(model.function, model.spaces, model.rewards.bounds)
    takes = () if law is None else law.takes
    return replace(model, rewards=model.rewards._replace(law=law, takes=takes)), problems


def _probe_problems(probe: Probe, model: HOMDP, pattern: Pattern | None) -> list[Problem]:
    """Problems of the tables of a model at probe points."""
    law = model.rewards.law
    problems = check_tables(probe, model.spaces, law, pattern)
    if law is None or law.finite or problems:
        return problems
    means = law.mean(probe.tables["reward"])
    wrong = (mean_problems(part, model.rewards.bounds, model.spaces) for part in means)
    return next((found for found in wrong if found), [])


def _with_trials(model: HOMDP, problems: list[Problem]) -> HOMDP:
    """Validate a model without tables by playing some trial episodes."""
    if problems:
        raise DeclarationError(model.name, problems)
    trial = play_trials(model.dynamics, model.function, model.sites)
    problems = trial_problems(trial, model.rewards, model.spaces)
    if problems:
        raise DeclarationError(model.name, problems)
    # the probe has the rewards of the first step; other steps and observations may differ
    more = {"rewards": trial.rewards} if {"h", "y"} & set(model.rewards.takes) else {}
    return replace(model, _probe=probe_digest(trial.probe | more))


def restricted(model: HOMDP, allowed: Allowed) -> HOMDP:
    """The model with a restriction of its actions."""
    digest, problems = restriction_of(allowed, model.spaces)
    if problems:
        raise DeclarationError(model.name, problems)
    return replace(model, allowed=allowed, _probe=fingerprint(model.fingerprint, digest))


def _shape(given: ArrayLike | Distribution) -> tuple[int, ...]:
    """The shape of a table. If rows differ in length, only the leading axes are counted."""
    if isinstance(given, Distribution):
        return tuple(given.shape())
    if isinstance(given, tuple) and hasattr(given, "_fields"):  # a record, such as a POMDP
        return (len(given),)
    if not isinstance(given, list | tuple | np.ndarray | jax.Array | int | float | Sparse):
        return np.shape(np.asarray(given, dtype=object))
    try:
        return np.shape(given)
    except ValueError:
        return np.array(given, dtype=object).shape

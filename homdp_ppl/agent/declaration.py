"""The identity of a declaration, as JSON values that can be compared later.

A declaration is identified by its names, horizon, rewards and sites, and by the values of its
tables or log densities at 32 parameter points, which are compared to 1e-9. Neither source code nor
bytecode matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from homdp_ppl.core.spaces import Real, Space, shape_of
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.probing import Prober
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array, in_x64, to_numpy

RUNS = 2  # of the prober, with 16 points each
SUMS = 4  # weighted sums of each table
POINTS = 64  # at which densities are compared
TOLERANCE = 1e-9


def declaration_facts(homdp: HOMDP) -> dict[str, Any]:
    """The identity of a declaration."""
    found: dict[str, Any] = homdp.cache.get(
        ("agent identity", homdp.fingerprint), lambda: _declaration(homdp)
    )
    return found


@in_x64
def _declaration(homdp: HOMDP) -> dict[str, Any]:
    kernels: tuple[str, ...] = ()
    if homdp.spaces.finite:
        kernels = ("initial", "transition", "emission")
    kernels += ("reward",) if kernels and homdp.rewards.law is not None else ()
    prober = Prober(homdp.function, homdp.sites, homdp.spaces, kernels)
    numbers: dict[str, list[Array]] = {}
    for run in range(RUNS):
        shown = prober.start()
        values = {"prior": shown.log_prior, **{k: _sums(v) for k, v in shown.tables.items()}}
        if not homdp.spaces.finite:
            values |= _densities(homdp, shown.parameters, run)
        for name, value in values.items():
            numbers.setdefault(name, []).append(np.asarray(value, dtype=np.float64))
    if homdp.rewards.table is not None:
        numbers["reward"] = [_sums(np.asarray(homdp.rewards.table)[None])]
    numbers["units"] = [np.array([homdp.rewards.scale, homdp.rewards.shift])]
    if homdp.allowed is not None:
        numbers["allowed"] = [_masks(homdp)]
    return {
        "model": homdp.name,
        **{name: _space(getattr(homdp.spaces, name)) for name in ("states", "observations")},
        "actions": list(homdp.spaces.actions),
        "horizon": homdp.horizon,
        "terminal": list(homdp.spaces.terminal),
        "sites": [[s.name, list(s.shape), s.values] for s in homdp.sites],
        "numbers": {name: _plain(np.concatenate(parts)) for name, parts in numbers.items()},
    }


def _space(space: Space) -> Any:
    return space.dimension if isinstance(space, Real) else list(space)


def _sums(tables: Array) -> Array:
    """Weighted sums of each table, (points, SUMS): any change of an entry changes them."""
    rows = np.asarray(tables).reshape(len(tables), -1)
    weights = np.random.default_rng(rows.shape[1]).uniform(1, 2, (rows.shape[1], SUMS))
    return rows @ weights


def _values(generator: np.random.Generator, space: Space) -> Array:
    if isinstance(space, Real):
        return generator.normal(scale=2.0, size=(POINTS, *shape_of(space)))
    return generator.integers(len(space), size=POINTS)


def _densities(homdp: HOMDP, parameters: Mapping[str, Array], run: int) -> dict[str, Array]:
    """Log densities and rewards at fixed states, actions and observations, (points, POINTS)."""
    generator, spaces, law = np.random.default_rng(run), homdp.spaces, homdp.dynamics
    x, z, y = (_values(generator, s) for s in (spaces.states, spaces.states, spaces.observations))
    a, h = _values(generator, spaces.actions), generator.integers(spaces.horizon, size=POINTS)

    def at(values: dict[str, Array]) -> dict[str, Array]:
        return {
            "initial": jax.vmap(lambda x: law.log_initial(values, x))(x),
            "transition": jax.vmap(lambda x, a, h, z: law.log_transition(values, x, a, h, z))(
                x, a, h, z
            ),
            "emission": jax.vmap(lambda x, a, h, y: law.log_emission(values, x, a, h, y))(
                x, a, h, y
            ),
            "reward": jax.vmap(lambda h, x, y, a: law.reward(values, h, x, y, a))(h, x, y, a),
        }

    found = to_numpy(jax.jit(jax.vmap(at))(dict(parameters) or {"": np.zeros(1)}))
    return {name: np.asarray(part).reshape(len(part), -1) for name, part in found.items()}


def _masks(homdp: HOMDP) -> Array:
    """Which actions are allowed after fixed histories."""
    assert homdp.allowed is not None
    generator, spaces = np.random.default_rng(0), homdp.spaces
    masks = []
    for h in range(1, spaces.horizon + 1):
        for _ in range(SUMS):
            seen = generator.integers(len(spaces.observations), size=h)
            done = generator.integers(len(spaces.actions), size=h - 1)
            masks.append(np.asarray(homdp.allowed(seen, done), dtype=np.float64))
    return np.array(masks)


def _plain(array: Array) -> list[Any]:
    """Numbers as JSON values; numbers that are not finite as text."""
    flat = [x if np.isfinite(x) else repr(x) for x in np.asarray(array).ravel().tolist()]
    return [list(array.shape), flat]


def declaration_problems(then: Any, homdp: HOMDP) -> list[Problem]:
    """What has changed in a declaration since it was recorded."""
    now = declaration_facts(homdp)
    remedy = "Use the declaration with which the agent began, or agent.migrate(new_homdp)."
    if not isinstance(then, Mapping):
        return [Problem("homdp", "no recorded declaration", "a recorded declaration")]
    problems = [
        Problem("homdp", f"{name} {_short(value)}", f"{name} {_short(then.get(name))}", remedy)
        for name, value in now.items()
        if name != "numbers" and then.get(name) != value
    ]
    if problems:
        return problems
    before = then.get("numbers")
    recorded: Mapping[str, Any] = before if isinstance(before, Mapping) else {}
    return [
        Problem("homdp", f"a changed {_WORDS.get(name, name)}", "the recorded one", remedy)
        for name in dict.fromkeys((*now["numbers"], *recorded))
        if not _close(now["numbers"].get(name), recorded.get(name))
    ]


_WORDS = {
    "initial": "initial distribution",
    "units": "unit of rewards",
    "allowed": "function of allowed actions",
}


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _close(one: Any, other: Any) -> bool:
    try:
        mine, theirs = (np.array([float(x) for x in flat]).reshape(s) for s, flat in (one, other))
    except (TypeError, ValueError, OverflowError):
        return False
    return mine.shape == theirs.shape and bool(
        np.isclose(mine, theirs, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True).all()
    )

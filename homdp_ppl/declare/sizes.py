"""Estimates of the memory that a declaration needs, made before anything is allocated."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from homdp_ppl.core.arguments import count_problems, is_count, refuse
from homdp_ppl.core.pattern import Pattern
from homdp_ppl.core.spaces import Real, Space, Spaces
from homdp_ppl.declare.probing import Site
from homdp_ppl.errors import DeclarationError, Problem
from homdp_ppl.memory import NUMBER, count, memory_problems

PROBED = 900  # bytes per number of T: a declaration is run at 16 points, with some copies
NAMED = 200  # bytes per name of a state, an observation or an action, for all its copies
COPIES = 4  # of rewards and of trial episodes
TRIALS = 32  # trial episodes of a declaration without tables, each with other parameters
ENOUGH = 64  # 2^64 of anything does not fit
SMALLER = "Declare fewer states, observations or actions."
SHORTER = "Declare a shorter horizon."


def check_counts(name: str, least: int = 1, /, **given: Any) -> None:
    """Raise :class:`DeclarationError` for options that are not integers of at least ``least``."""
    refuse(DeclarationError, name, count_problems(least, **given))


def power(base: int, exponent: int) -> int:
    """A power for an estimate: exact if a model fits in memory, else too large in any case."""
    return int(base) ** min(int(exponent), ENOUGH)


def check_sizes_of(name: str, /, **sizes: Any) -> None:
    """Raise :class:`DeclarationError` for invalid sizes, or for tables that do not fit in memory.

    Finite models call this function before they create anything of these sizes.

    Parameters
    ----------
    name
        The model's name, for the error.
    sizes
        ``states``, ``observations``, ``actions`` and ``horizon``. The default of each is 1.

    Examples
    --------
    >>> from homdp_ppl import DeclarationError
    >>> try:
    ...     check_sizes_of("lock", states=100_003, observations=4, actions=4, horizon=100_001)
    ... except DeclarationError as error:
    ...     print([problem.where for problem in error.problems])
    ['states', 'horizon']
    """
    problems = count_problems(**sizes) or table_size_problems(
        *(sizes.get(size, 1) for size in ("states", "observations", "actions", "horizon"))
    )
    refuse(DeclarationError, name, problems)


def table_size_problems(
    states: int, observations: int, actions: int, steps: int, pattern: Pattern | None = None
) -> list[Problem]:
    """Problems if the tables or rewards of a finite declaration do not fit in memory.

    ``pattern`` is that of sparse transitions.
    """
    X, Y, A, H = (int(size) for size in (states, observations, actions, steps))
    largest = "observations" if Y > X * A else "states"
    tables = f"{count(X)} states, {count(A)} actions and {count(Y)} observations"
    rewards = f"{count(H)} steps with {count(X)} states and {count(A)} actions"
    entries = X * A * X if pattern is None else math.prod(pattern.padded)
    problems = memory_problems(largest, tables, PROBED * (entries + X * Y), SMALLER)
    if H > 1:
        problems += memory_problems("horizon", rewards, COPIES * NUMBER * H * X * A, SHORTER)
    return problems


def declared_size_problems(spaces: Spaces, pattern: Pattern | None = None) -> list[Problem]:
    """Problems if a declaration with these spaces does not fit in memory.

    ``pattern`` is that of sparse transitions.
    """
    if spaces.finite:
        return table_size_problems(*spaces.sizes, pattern)
    X, Y, A, H, _ = spaces
    steps = TRIALS * COPIES * NUMBER * H * (_width(X) + _width(Y) + 2)
    played = f"{count(H)} steps in {TRIALS} trial episodes"
    problems = memory_problems("horizon", played, steps, SHORTER)
    if not isinstance(X, Real):
        latent = f"{count(len(X))} states and {count(len(A))} actions"
        problems += memory_problems("states", latent, PROBED * len(X) ** 2 * len(A), SMALLER)
    return problems


def draw_problems(
    where: str,
    n: int,
    sites: Iterable[Site],
    tables: Spaces | None = None,
    remedy: str = "",
    pattern: Pattern | None = None,
) -> list[Problem]:
    """Problems if draws from a prior or a posterior do not fit in memory.

    Parameters
    ----------
    where
        The argument that gives the number of draws.
    n
        The number of draws.
    sites
        The sites to draw.
    tables
        The spaces of a finite declaration if its tables are made for every draw; else None.
    remedy
        What to reduce; by default the argument.
    pattern
        That of sparse transitions.
    """
    numbers = 1 + sum(math.prod(site.shape) for site in sites)
    if tables is not None and tables.finite:
        X, Y, A, _ = tables.sizes
        numbers += X * A * X if pattern is None else math.prod(pattern.padded)
        numbers += X * Y + X
    got = f"{count(int(n))} times {count(numbers)} numbers"
    needed = COPIES * NUMBER * int(n) * numbers
    return memory_problems(where, got, needed, remedy or f"Use fewer {where}.")


def number_of_names_problems(where: str, given: Any) -> list[Problem]:
    """Problems if this number of names does not fit in memory."""
    if not is_count(given):
        return []
    return memory_problems(where, f"{count(int(given))} names", NAMED * int(given), SMALLER)


def _width(space: Space) -> int:
    return space.dimension if isinstance(space, Real) else 1

"""The zoo: one story a file. Each entry is a function that returns the model's default truth, a world to act in.

``models.load("tiger")`` gives the world, ``models.load("tiger").homdp`` the declaration, what is unknown in it included.
"""

from collections.abc import Callable
from typing import Any

from homdp_ppl.declare import World
from homdp_ppl.errors import HOMDPError, Problem
from homdp_ppl.models import hallway, lock, lower_bound, maze, random_tables, rocksample, screening, tiger, tiger_listen

MODELS: dict[str, Callable[..., World]] = {
    "tiger": tiger.structured,
    "tiger_table": tiger.table,
    "tiger_listen": tiger_listen.structured,
    "lock": lock.structured,
    "lock_table": lock.table,
    "screening": screening.structured,
    "screening_table": screening.table,
    "lower_bound_tree": lower_bound.tree,
    "lower_bound_three": lower_bound.three_states,
    "random": random_tables.random_world,
    "maze": maze.structured,
    "hallway": hallway.structured,
    "rocksample": rocksample.structured,
}


def load(name: str, **options: Any) -> World:
    """A world of the zoo by its name.

    Parameters
    ----------
    name
        One of ``MODELS``.
    options
        Arguments of the model's own function, such as ``horizon``.

    Examples
    --------
    >>> load("tiger", horizon=6).spaces.horizon
    6
    """
    if name not in MODELS:
        raise HOMDPError("models.load", [Problem("model", repr(name), "one of " + ", ".join(MODELS))])
    return MODELS[name](**options)

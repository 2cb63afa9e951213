"""Gymnasium, both ways: a world as an environment, and the episodes of an environment that reveals
its states at the end.

Importing this package registers ids for the worlds of the zoo, ``homdp/Tiger-v0`` and so on, which
homdp_ppl.models.environments defines.
"""

from importlib import import_module

from homdp_ppl.gym.environment import HOMDPEnv
from homdp_ppl.gym.episodes import episodes_from

__all__ = [
    "HOMDPEnv",
    "episodes_from",
]


# By name: the zoo is above this package, which it imports.
import_module("homdp_ppl.models.environments")


def __dir__() -> list[str]:
    return __all__

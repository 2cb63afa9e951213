"""Gymnasium, both ways: a world as an environment, and the episodes of an environment that reveals
its states at the end.

Ids for the worlds of the zoo (``homdp/Tiger-v0`` and so on) are registered in
homdp_ppl.models.environments.
"""

from homdp_ppl.gym.environment import HOMDPEnv
from homdp_ppl.gym.episodes import episodes_from

__all__ = [
    "HOMDPEnv",
    "episodes_from",
]


def __dir__() -> list[str]:
    return __all__

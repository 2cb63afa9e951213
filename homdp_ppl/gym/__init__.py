"""Gymnasium: worlds as environments, and episodes from environments that reveal their states.

Importing this package registers ids for the worlds of the model zoo, such as ``homdp/Tiger-v0``.
They are defined in homdp_ppl.models.environments.
"""

from importlib import import_module

from homdp_ppl.gym.environment import HOMDPEnv
from homdp_ppl.gym.episodes import episodes_from
from homdp_ppl.gym.history import HistoryObservation, HistoryPolicy

__all__ = [
    "HOMDPEnv",
    "HistoryObservation",
    "HistoryPolicy",
    "episodes_from",
]


# Imported by name, because the model zoo imports this package.
import_module("homdp_ppl.models.environments")


def __dir__() -> list[str]:
    return __all__

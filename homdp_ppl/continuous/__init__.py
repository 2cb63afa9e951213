"""Continuous spaces: declarations, worlds and episodes whose states or observations are real vectors."""

from homdp_ppl.continuous.declaration import ContinuousHOMDP, ContinuousWorld

__all__ = [
    "ContinuousHOMDP",
    "ContinuousWorld",
]


def __dir__() -> list[str]:
    return __all__

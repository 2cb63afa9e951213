"""Values that are made once for an owner: compiled functions, samplers, analyses."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, final
from weakref import WeakValueDictionary

V = TypeVar("V")


@final
class Cache:
    """Values by name, each made the first time it is asked for.

    The owner holds its cache, so values may refer back to the owner: both are freed together.

    Examples
    --------
    >>> cache = Cache()
    >>> cache.get("answer", lambda: 6 * 7), cache.get("answer", lambda: 0)
    (42, 42)
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, Any] = {}

    def get(self, name: Hashable, make: Callable[[], V]) -> V:
        """The value of this name, made by ``make`` if it is new."""
        if name not in self._made:
            self._made[name] = make()
        value: V = self._made[name]
        return value


_SHARED: WeakValueDictionary[str, Cache] = WeakValueDictionary()


def shared_cache(fingerprint: str) -> Cache:
    """The cache of all owners with this fingerprint, which lives as long as one of them holds it.

    Examples
    --------
    >>> one = shared_cache("tiger")
    >>> one is shared_cache("tiger"), one is shared_cache("lion")
    (True, False)
    """
    return _SHARED.setdefault(fingerprint, Cache())

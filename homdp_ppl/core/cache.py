"""A cache for values that are expensive to make, such as compiled functions."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar, final
from weakref import WeakValueDictionary

V = TypeVar("V")


@final
class Cache:
    """Values by name, each made on first use.

    A cache belongs to its owner, so values may refer to the owner: both are freed together. If the
    total size exceeds the limit, the least recently used values are dropped; the newest is always
    kept.

    Parameters
    ----------
    limit
        The largest total size.
    size
        A function that returns the size of one value; by default 1.

    Examples
    --------
    >>> cache = Cache()
    >>> cache.get("answer", lambda: 6 * 7), cache.get("answer", lambda: 0)
    (42, 42)
    >>> squares = Cache(limit=2)
    >>> [squares.get(k, lambda k=k: k * k) for k in (1, 2, 3)]
    [1, 4, 9]
    >>> 1 in squares, 3 in squares
    (False, True)
    """

    def __init__(self, limit: float = math.inf, size: Callable[[Any], float] | None = None) -> None:
        self._limit, self._size, self._held = limit, size or (lambda value: 1.0), 0.0
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def __contains__(self, name: Hashable) -> bool:
        return name in self._values

    def get(self, name: Hashable, make: Callable[[], V]) -> V:
        """Return the value of a name; call ``make`` if there is none yet.

        ``make`` runs without a lock. Two threads may both call it; only one result is kept.
        """
        with self._lock:
            if name in self._values:
                self._values.move_to_end(name)
                found: V = self._values[name]
                return found
        value = make()
        with self._lock:
            if name in self._values:
                first: V = self._values[name]
                return first
            self._values[name] = value
            self._held += self._size(value)
            while self._held > self._limit and len(self._values) > 1:
                _, dropped = self._values.popitem(last=False)
                self._held -= self._size(dropped)
        return value


_SHARED: WeakValueDictionary[str, Cache] = WeakValueDictionary()


def shared_cache(fingerprint: str) -> Cache:
    """The cache shared by all owners with this fingerprint; freed when no owner is left.

    Examples
    --------
    >>> one = shared_cache("tiger")
    >>> one is shared_cache("tiger"), one is shared_cache("lion")
    (True, False)
    """
    return _SHARED.setdefault(fingerprint, Cache())

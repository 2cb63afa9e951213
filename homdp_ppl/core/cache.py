"""Cache: values made once for equal keys, the least recently used dropped past a limit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Generic, TypeVar

V = TypeVar("V")


class Cache(Generic[V]):
    """Values by key, at most so many units of size; the newest is always kept.

    Examples
    --------
    >>> squares = Cache(limit=2)
    >>> [squares.get(k, lambda k=k: k * k) for k in (1, 2, 3)]
    [1, 4, 9]
    >>> 1 in squares, 3 in squares
    (False, True)
    """

    def __init__(self, limit: float, size: Callable[[V], float] = lambda value: 1) -> None:
        self._limit, self._size, self._held = limit, size, 0.0
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = RLock()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of a key, made if it is not there."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
            value = self._values[key] = make()
            self._held += self._size(value)
            while self._held > self._limit and len(self._values) > 1:
                _, dropped = self._values.popitem(last=False)
                self._held -= self._size(dropped)
            return value

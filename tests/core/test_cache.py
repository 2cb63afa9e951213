"""Caches: values are made once, shared by equal owners, and freed with them."""

import gc
import weakref
from functools import partial

from homdp_ppl.core.cache import Cache, shared_cache
from homdp_ppl.declare.model import World
from tests.worlds import world


def test_values_are_made_once():
    cache, made = Cache(), []
    values = [cache.get(("name", k % 2), lambda: made.append(1) or object()) for k in range(4)]
    assert len(made) == 2
    assert values[0] is values[2]
    assert values[1] is values[3]
    assert cache.get("nothing", lambda: None) is None
    assert cache.get("nothing", lambda: 1) is None


def identity(value):
    """The value itself."""
    return value


class Owner:
    """An owner of a cache whose values refer to the owner."""

    def __init__(self, fingerprint):
        self.cache = shared_cache(fingerprint)
        self.cache.get("back", lambda: self)


def test_owners_and_values_are_freed_together():
    """Even if a value refers to its owner, or another owner was equal."""
    first, second = Owner("same"), Owner("same")
    assert first.cache is second.cache
    alone = Owner("alone")
    kept, gone = weakref.ref(first), weakref.ref(alone)
    del first, alone
    gc.collect()
    assert gone() is None
    assert kept() is second.cache.get("back", object)
    del second
    gc.collect()
    assert kept() is None


def test_declarations_and_worlds_are_freed():
    made = world("tiger").homdp.with_horizon(3).at(accuracy=0.625)
    made.cache.get("back", partial(identity, made))
    made.homdp.with_horizon(7).cache.get(("of a world", made.fingerprint), lambda: 1)
    gone = weakref.ref(made), weakref.ref(made.homdp)
    assert isinstance(gone[0](), World)
    del made
    gc.collect()
    assert [reference() for reference in gone] == [None, None]


def test_values_are_made_once_for_equal_keys():
    made: list[int] = []
    cache: Cache = Cache(limit=10)
    for key in ((1, "a"), (1, "a"), (2, "a")):
        assert cache.get(key, lambda key=key: made.append(key[0]) or key[0]) == key[0]
    assert made == [1, 2]


def test_least_recently_used_values_are_dropped_beyond_the_limit():
    cache: Cache = Cache(limit=5, size=len)
    for word in ("aa", "bb", "aa", "cc"):  # "aa" was used after "bb"
        cache.get(word, lambda word=word: word)
    assert ("aa" in cache, "bb" in cache, "cc" in cache) == (True, False, True)
    cache.get("much too long", lambda: "much too long")
    assert ("aa" in cache, "cc" in cache, "much too long" in cache) == (False, False, True)

"""The cache: equal keys, the least recently used dropped."""

from homdp_ppl.core.cache import Cache


def test_values_are_made_once_for_equal_keys():
    made: list[int] = []
    cache: Cache[int] = Cache(limit=10)
    for key in ((1, "a"), (1, "a"), (2, "a")):
        assert cache.get(key, lambda key=key: made.append(key[0]) or key[0]) == key[0]
    assert made == [1, 2]


def test_the_least_recently_used_is_dropped_past_the_limit():
    cache: Cache[str] = Cache(limit=5, size=len)
    for word in ("aa", "bb", "aa", "cc"):  # "aa" was used after "bb"
        cache.get(word, lambda word=word: word)
    assert ("aa" in cache, "bb" in cache, "cc" in cache) == (True, False, True)
    cache.get("much too long", lambda: "much too long")
    assert ("aa" in cache, "cc" in cache, "much too long" in cache) == (False, False, True)

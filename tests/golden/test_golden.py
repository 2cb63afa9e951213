"""Everything is as it was, to the last bit; where it is not, whether by rounding or in earnest."""

import os
from functools import cache

import numpy as np
import pytest

from tests.golden import digests


@cache
def golden(suite):
    return digests.read(suite)


@cache
def arithmetic():
    return digests.arithmetic()


def compare(suite, name):
    """Fail with a line for each array that is another."""
    setting = digests.SETTINGS[suite]
    if os.environ.get(digests.OPTIMISATIONS) != setting:
        pytest.skip(f"recorded with {digests.OPTIMISATIONS}={setting}: see `make help`")
    about, before = golden(suite)["about"], golden(suite)[name]
    here = {**digests.versions(), "arithmetic": arithmetic()}
    others = [what for what, value in here.items() if about[what] != value]
    if others:  # the last bits differ, and chains of random draws with them
        pytest.skip(f"recorded with other versions or on another processor: {', '.join(others)}")
    now = {array: digests.describe(value) for array, value in digests.SUITES[suite][name]().items()}
    told = [f"{array}: missing" for array in before if array not in now]
    told += [f"{array}: new" for array in now if array not in before]
    for array in before.keys() & now.keys():
        different = digests.difference(before[array], now[array])
        if different:
            told.append(f"{array}: {different}")
    if told:
        pytest.fail(f"{name} is not what it was\n  " + "\n  ".join(sorted(told)), pytrace=False)


@pytest.mark.parametrize("name", digests.SUITES["default"])
def test_default(name):
    compare("default", name)


@pytest.mark.slow
@pytest.mark.parametrize("name", digests.SUITES["slow"])
def test_slow(name):
    compare("slow", name)


@pytest.mark.parametrize("suite", digests.SUITES)
def test_files_hold_the_cases_that_there_are(suite):
    assert set(golden(suite)) == {"about", *digests.SUITES[suite]}


def test_differences_are_seen_and_told_apart():
    """Planted: the last digit, more than that, another shape, kind, whole number and word."""
    array = np.linspace(1, 2, 6).reshape(2, 3)
    before = digests.describe(array)

    def told(other):
        return digests.difference(before, digests.describe(other))

    assert told(array.copy()) is None
    assert "values agree to 1e-9" in told(np.nextafter(array, 3))
    assert "values differ by" in told(array + 1e-6)
    nothing = digests.describe(np.zeros(3))
    for other, words in ((1e-16, "values agree to 1e-9"), (1e-9, "values differ by 1e-06")):
        assert words in digests.difference(nothing, digests.describe(np.full(3, other)))
    assert "values differ by inf" in told(np.where(array > 1.5, np.nan, array))
    assert "shape" in told(array.ravel())
    assert "kind" in told(array.astype(int))
    whole, word = digests.describe(np.arange(3)), digests.describe("a")
    assert "whole numbers" in digests.difference(whole, digests.describe(np.arange(3)[::-1]))
    assert "text" in digests.difference(word, digests.describe("b"))
    long = np.arange(1000.0)
    other = long.copy()
    other[500] += 1
    one, two = digests.describe(long), digests.describe(other)
    assert len(one["kept"]) == 64
    assert one["kept"][0] == 0
    assert one["kept"][-1] == 999
    assert "64 of all" in digests.difference(one, two)
    assert digests.difference(digests.describe(-0.0), digests.describe(0.0)) is None
    assert digests.difference(digests.describe(np.nan), digests.describe(-np.nan)) is None

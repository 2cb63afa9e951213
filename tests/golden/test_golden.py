"""Results equal the recorded ones to the last bit; failures say whether rounding explains it.

On another kind of processor than that of the record, results that agree to 1e-9 are skipped.
"""

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
    """Fail with one line for each array that differs."""
    about, before = golden(suite)["about"], golden(suite)[name]
    for setting, value in digests.settings().items():
        if about[setting] != value:
            pytest.skip(f"recorded with {setting}={about[setting]!r}: see `make help`")
    here = {**digests.versions(), "arithmetic": arithmetic()}
    others = [what for what, value in here.items() if about[what] != value]
    if others:  # the last bits differ, and so do sequences of random draws
        pytest.skip(f"recorded with other versions or on another processor: {', '.join(others)}")
    now = {array: digests.describe(value) for array, value in digests.SUITES[suite][name]().items()}
    lines = [f"{array}: missing" for array in before if array not in now]
    lines += [f"{array}: new" for array in now if array not in before]
    for array in before.keys() & now.keys():
        different = digests.difference(before[array], now[array])
        if different:
            lines.append(f"{array}: {different}")
    elsewhere = about.get("processor") != digests.processor()
    if lines and elsewhere and all(digests.ROUNDING in line for line in lines):
        pytest.skip(f"{name} agrees to 1e-9; the last bits were recorded on another processor")
    if lines:
        pytest.fail(f"{name} has changed\n  " + "\n  ".join(sorted(lines)), pytrace=False)


@pytest.mark.parametrize("name", digests.SUITES["default"])
def test_default(name):
    compare("default", name)


@pytest.mark.slow
@pytest.mark.parametrize("name", digests.SUITES["slow"])
def test_slow(name):
    compare("slow", name)


@pytest.mark.parametrize("suite", digests.SUITES)
def test_files_hold_exactly_the_existing_cases(suite):
    assert set(golden(suite)) == {"about", *digests.SUITES[suite]}


def test_differences_are_found_and_classified():
    """Planted: the last bit, larger errors, another shape, kind, integer and text."""
    array = np.linspace(1, 2, 6).reshape(2, 3)
    before = digests.describe(array)

    def message(other):
        return digests.difference(before, digests.describe(other))

    assert message(array.copy()) is None
    assert "values agree to 1e-9" in message(np.nextafter(array, 3))
    assert "values differ by" in message(array + 1e-6)
    nothing = digests.describe(np.zeros(3))
    for other, words in ((1e-16, "values agree to 1e-9"), (1e-9, "values differ by 1e-06")):
        assert words in digests.difference(nothing, digests.describe(np.full(3, other)))
    assert "values differ by inf" in message(np.where(array > 1.5, np.nan, array))
    assert "shape" in message(array.ravel())
    assert "kind" in message(array.astype(int))
    integers, word = digests.describe(np.arange(3)), digests.describe("a")
    assert "integers" in digests.difference(integers, digests.describe(np.arange(3)[::-1]))
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

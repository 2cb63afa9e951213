"""Assertions about errors by class and place, not by wording."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from homdp_ppl import HOMDPError


@contextmanager
def raises(error: type[HOMDPError], *places: str) -> Iterator[pytest.ExceptionInfo[HOMDPError]]:
    """Expect an error of this class with a problem at each of these places.

    A place is the ``where`` of a problem, followed by ``[at]`` if the entry matters.
    """
    with pytest.raises(error) as caught:
        yield caught
    found = caught.value.problems
    known = {problem.where for problem in found}
    known |= {f"{problem.where}[{problem.at}]" for problem in found}
    missing = [place for place in places if place not in known]
    assert not missing, f"no problem at {missing}; the error is: {caught.value}"

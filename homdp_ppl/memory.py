"""The memory budget: what a computation needs is estimated and compared before it is allocated.

Everything whose size follows from a number (a horizon, a number of draws, the header of a file)
asks :func:`memory_problems` or :func:`require_memory` first, and all compare with the same
:func:`memory_budget`.
"""

from __future__ import annotations

import math
import os

from homdp_ppl.errors import HOMDPError, Problem

VARIABLE = "HOMDP_MEMORY"  # gigabytes that one computation may take
DEFAULT = 4.0
GIGABYTE = 10**9
NUMBER = 8  # bytes of a float64 or an int64
UNITS = {"TB": 10**12, "GB": 10**9, "MB": 10**6, "kB": 10**3}
LARGEST = 15  # digits of a size that is still written in a unit


def memory_budget() -> int:
    """Bytes that one computation may take: 4 GB, or what the variable HOMDP_MEMORY says in GB.

    Examples
    --------
    >>> memory_budget()
    4000000000
    """
    given = os.environ.get(VARIABLE, "").strip()
    try:
        size = float(given) if given else DEFAULT
    except ValueError:
        size = math.nan
    if not 0 < size < math.inf:
        raise HOMDPError(
            VARIABLE, [Problem(VARIABLE, repr(given), "a positive number of gigabytes, such as 4")]
        )
    return int(size * GIGABYTE)


def memory_problems(where: str, got: str, needed: int, remedy: str = "") -> list[Problem]:
    """The problem of a computation that needs more memory than the budget; none if it fits.

    Parameters
    ----------
    where
        The argument or table that makes it large.
    got
        What was given.
    needed
        The estimate in bytes; a Python integer, which cannot overflow.
    remedy
        What to reduce.

    Examples
    --------
    >>> print(*memory_problems("draws", "1,000,000,000", 8 * 10**12, "Use fewer draws."))
    draws: got 1,000,000,000, about 8 TB; expected at most 4 GB of memory. Use fewer draws.
    """
    budget = memory_budget()
    if needed <= budget:
        return []
    expected = f"at most {amount(budget)} of memory"
    return [Problem(where, f"{got}, about {amount(needed)}", expected, remedy)]


def require_memory(
    error: type[HOMDPError], subject: str, where: str, got: str, needed: int, remedy: str = ""
) -> None:
    """Raise an error if a computation needs more memory than the budget."""
    problems = memory_problems(where, got, needed, remedy)
    if problems:
        raise error(subject, problems)


def amount(size: int) -> str:
    """A number of bytes in words, also one with thousands of digits.

    Examples
    --------
    >>> amount(52 * 10**9), amount(10**5000)
    ('52 GB', '10^5000 bytes')
    """
    digits = _exponent(size)
    if digits >= LARGEST:
        return f"10^{digits} bytes"
    for unit, factor in UNITS.items():
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} bytes"


def count(number: int) -> str:
    """A whole number in words, also one with thousands of digits.

    Examples
    --------
    >>> count(1234567), count(10**5000)
    ('1,234,567', 'about 10^5000')
    """
    digits = _exponent(abs(number))
    return f"about {'-' * (number < 0)}10^{digits}" if digits > LARGEST else f"{number:,}"


def _exponent(size: int) -> int:
    """The decimal exponent of a whole number."""
    return int(math.log10(size)) if size > 0 else 0

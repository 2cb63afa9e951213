"""The memory budget: memory needs are estimated and checked before anything is allocated.

Code that allocates arrays of a user-controlled size (a horizon, a number of draws, the header of a
file) calls :func:`memory_problems` or :func:`require_memory` first. Both compare the estimate with
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
LARGEST = 15  # sizes with more digits are written as powers of ten


def memory_budget() -> int:
    """The number of bytes that one computation may use.

    The default is 4 GB. The environment variable HOMDP_MEMORY sets another number of gigabytes.

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
    """Report a computation that needs more memory than the budget; an empty list if it fits.

    Parameters
    ----------
    where
        The argument or table that determines the size.
    got
        What was given.
    needed
        The estimate in bytes, as a Python integer, which cannot overflow.
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
    """Format a number of bytes; it may have thousands of digits.

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
    """Format an integer; it may have thousands of digits.

    Examples
    --------
    >>> count(1234567), count(10**5000)
    ('1,234,567', 'about 10^5000')
    """
    digits = _exponent(abs(number))
    return f"about {'-' * (number < 0)}10^{digits}" if digits > LARGEST else f"{number:,}"


def _exponent(size: int) -> int:
    """The decimal exponent of an integer."""
    return int(math.log10(size)) if size > 0 else 0

"""Declared restrictions of the actions: validation, and a digest by which they are compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from homdp_ppl.core.allowed import Allowed, allowed_after, allowed_problems
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.fingerprint import fingerprint
from homdp_ppl.errors import DeclarationError, Problem

TRIED = 32  # episodes of random observations and allowed actions
LONGEST = 12  # steps of such an episode


def restriction_problems(allowed: Any, spaces: Spaces) -> list[Problem]:
    """Report a restriction that is not a function, or of real-valued observations."""
    problems = allowed_problems(allowed)
    if allowed is not None and not problems and not spaces.finite:
        got, expected = "real-valued spaces", "finitely many states and observations"
        problems = [Problem("allowed", got, expected)]
    return problems


def restriction_digest(allowed: Allowed, spaces: Spaces, subject: str) -> str:
    """A digest of the masks after some random histories.

    The actions in these histories are allowed ones. Raises :class:`DeclarationError` for masks that
    are invalid or that differ in a second call.
    """
    _, Y, A, H = spaces.sizes
    generator = np.random.default_rng(0)
    masks = []
    for _ in range(TRIED):
        seen: list[int] = []
        done: list[int] = []
        for _ in range(min(H, LONGEST)):
            seen.append(int(generator.integers(Y)))
            first, second = (
                allowed_after(allowed, seen, done, spaces, subject, DeclarationError)
                for _ in range(2)
            )
            if not np.array_equal(first, second):
                expected = "the same mask for the same history"
                problem = Problem("allowed", "different masks in a second call", expected)
                raise DeclarationError(subject, [problem])
            masks.append(first)
            done.append(int(generator.choice(A, p=first / first.sum())))
    return fingerprint(np.array(masks))

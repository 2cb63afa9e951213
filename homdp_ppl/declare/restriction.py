"""Declared restrictions of the actions: validation, and a digest by which they are compared."""

from __future__ import annotations

import numpy as np

from homdp_ppl.core.allowed import Allowed, allowed_after, allowed_problems
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.fingerprint import fingerprint
from homdp_ppl.errors import DeclarationError, Problem
from homdp_ppl.precision import Array

TRIED = 32  # episodes of random observations and allowed actions
LONGEST = 12  # steps of such an episode


def restriction_of(allowed: Allowed, spaces: Spaces | None) -> tuple[str, list[Problem]]:
    """A digest of the masks after some random histories, and the problems of a restriction.

    The actions in these histories are allowed ones. Every mask is asked for twice, and must be the
    same. Without spaces, only the form of the function is checked.
    """
    problems = allowed_problems(allowed)
    if problems or spaces is None:
        return "", problems
    if not spaces.finite:
        expected = "finitely many states and observations"
        remedy = (
            "Divide the observations into cells with names, or give forbidden actions low rewards."
        )
        return "", [Problem("allowed", "real-valued spaces", expected, remedy)]
    try:
        return fingerprint(_masks(allowed, spaces)), []
    except DeclarationError as error:
        return "", list(error.problems)


def _masks(allowed: Allowed, spaces: Spaces) -> Array:
    """The masks of random episodes, (TRIED, H or LONGEST, A)."""
    _, Y, A, H = spaces.sizes
    generator = np.random.default_rng(0)
    masks = []
    for _ in range(TRIED):
        seen: list[int] = []
        done: list[int] = []
        for _ in range(min(H, LONGEST)):
            seen.append(int(generator.integers(Y)))
            first, second = (
                allowed_after(allowed, seen, done, spaces, "allowed", DeclarationError)
                for _ in range(2)
            )
            if not np.array_equal(first, second):
                expected = "the same mask for the same history"
                problem = Problem("allowed", "different masks in a second call", expected)
                raise DeclarationError("allowed", [problem])
            masks.append(first)
            done.append(int(generator.choice(A, p=first / first.sum())))
    return np.array(masks)

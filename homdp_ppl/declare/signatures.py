"""The arguments of kernel functions, which are recognised by their names.

``x`` is the state, ``a`` the action (for emissions the previous one) and ``h`` the step, which
counts from 1. A function with other names is called with its usual arguments by position.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array

NAMED = {
    "transition": ("x", "a", "h"),
    "emission": ("x", "a", "h"),
    "first_emission": ("x",),
}  # names that the functions may use
USUAL = {"transition": ("x", "a"), "emission": ("x",), "first_emission": ("x",)}  # by position
WRITE = {
    "transition": "Write lambda x, a: ..., or lambda x, a, h: ... if it depends on the step.",
    "emission": (
        "Write lambda x: ..., or lambda x, a: ... with first_emission if the observation depends "
        "on the previous action."
    ),
    "first_emission": "Write lambda x: ....",
}


class KernelError(Exception):
    """A kernel cannot be tabulated; its problem becomes part of a DeclarationError."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


def arguments(where: str, kernel: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the values that a kernel function receives, in the order of its parameters.

    Raises :class:`KernelError` for a function that takes other arguments.

    Examples
    --------
    >>> arguments("transition", lambda x, a, h: None), arguments("emission", lambda state: None)
    (('x', 'a', 'h'), ('x',))
    """
    signature = inspect.signature(kernel)
    named = _named(where, signature)
    if named:
        return named
    usual = USUAL[where]
    try:
        signature.bind(*usual)
    except TypeError:
        got = f"a function with the signature {signature}"
        expected = f"a function of ({', '.join(usual)})"
        raise KernelError(Problem(where, got, expected, WRITE[where])) from None
    return usual


def call(where: str, kernel: Callable[..., Any], point: Mapping[str, Array]) -> Any:
    """Call a kernel function at a point, which has a value for every name."""
    names = arguments(where, kernel)
    if _named(where, inspect.signature(kernel)):
        return kernel(**{name: point[name] for name in names})
    return kernel(*(point[name] for name in names))


def _named(where: str, signature: inspect.Signature) -> tuple[str, ...]:
    """The recognised names of a signature; none if it requires other arguments."""
    allowed = NAMED[where]
    parameters = [
        p
        for p in signature.parameters.values()
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    positional_only = any(p.kind is p.POSITIONAL_ONLY for p in signature.parameters.values())
    required = [p.name for p in parameters if p.default is p.empty]
    if positional_only or not all(name in allowed for name in required):
        return ()
    return tuple(p.name for p in parameters if p.name in allowed)

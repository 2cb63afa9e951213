"""The arguments of kernel and reward functions, which are recognised by their names.

``x`` is the state, ``a`` the action (for emissions the previous one), ``h`` the step, which counts
from 1, and ``y`` the observation before the action, for rewards only. A function with other names
is called with its usual arguments by position.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from homdp_ppl.core.spaces import kernel_of
from homdp_ppl.errors import Problem
from homdp_ppl.precision import Array

NAMED = {
    "transition": ("x", "a", "h"),
    "emission": ("x", "a", "h"),
    "first_emission": ("x",),
    "reward": ("x", "a", "h", "y"),
    "cost": ("x", "a", "h", "y"),
    "label": ("x",),
    "revealed": ("x", "y", "a", "h"),
}  # names that the functions may use
USUAL = {
    "transition": ("x", "a"),
    "emission": ("x",),
    "first_emission": ("x",),
    "reward": ("x", "a"),
    "cost": ("x", "a"),
    "label": ("x",),
    "revealed": ("x", "y", "a"),
}  # by position
REWARDS = "Write lambda x, a: ...; it may also take h, the step, and y, the observation."
WRITE = {
    "transition": "Write lambda x, a: ..., or lambda x, a, h: ... if it depends on the step.",
    "emission": (
        "Write lambda x: ..., or lambda x, a: ... with first_emission if the observation depends "
        "on the previous action."
    ),
    "first_emission": "Write lambda x: ....",
    "reward": REWARDS,
    "cost": REWARDS,
    "label": "Write lambda x: ....",
    "revealed": "Write lambda x, y, a: ...; it may also take h, the step, or only some of them.",
}


class KernelError(Exception):
    """A kernel or a reward is unusable; its problem becomes part of a DeclarationError."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(str(problem))


class Recognised(NamedTuple):
    """A function with the names of the values that it receives, in the order of its parameters.

    Examples
    --------
    >>> reward = recognised("reward", lambda a, x: 10 * x + a)
    >>> reward.takes, reward(x=1, a=2, h=1, y=5)
    (('a', 'x'), 12)
    """

    function: Callable[..., Any]
    takes: tuple[str, ...]
    by_name: bool  # otherwise by position

    def __call__(self, **point: Any) -> Any:
        """Call the function at a point, which has a value for every name."""
        if self.by_name:
            return self.function(**{name: point[name] for name in self.takes})
        return self.function(*(point[name] for name in self.takes))


def recognised(where: str, function: Callable[..., Any]) -> Recognised:
    """Recognise the arguments of a function.

    Raises :class:`KernelError` for a function that takes other arguments.

    Parameters
    ----------
    where
        The argument of the declaration: a kernel, also of one sensor, "reward" or "cost".
    function
        The function.
    """
    kernel = kernel_of(where)
    usual, write = USUAL[kernel], WRITE[kernel]
    expected = f"a function of ({', '.join(usual)})"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        got = "a function without a readable signature"
        raise KernelError(Problem(where, got, expected, write)) from None
    named = _named(kernel, signature)
    if named:
        return Recognised(function, named, by_name=True)
    try:
        signature.bind(*usual)
    except TypeError:
        got = f"a function with the signature {signature}"
        raise KernelError(Problem(where, got, expected, write)) from None
    return Recognised(function, usual, by_name=False)


def arguments(where: str, kernel: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the values that a function receives; errors as :func:`recognised`.

    Examples
    --------
    >>> arguments("transition", lambda x, a, h: None), arguments("emission", lambda state: None)
    (('x', 'a', 'h'), ('x',))
    """
    return recognised(where, kernel).takes


def call(where: str, kernel: Callable[..., Any], point: Mapping[str, Array]) -> Any:
    """Call a kernel function at a point, which has a value for every name."""
    return recognised(where, kernel)(**point)


def _named(kernel: str, signature: inspect.Signature) -> tuple[str, ...]:
    """The recognised names of a signature; none if it requires other arguments."""
    allowed = NAMED[kernel]
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

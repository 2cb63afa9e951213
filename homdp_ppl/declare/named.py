"""Functions of a declaration whose arguments are recognised by their names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from homdp_ppl.errors import Problem


class Named(NamedTuple):
    """A function with the arguments that it takes.

    Examples
    --------
    >>> found, _ = named("reward", lambda x, a: 10 * x + a, ("x", "y", "a", "h"))
    >>> found.takes, found(x=1, y=5, a=2, h=1)
    (('x', 'a'), 12)
    """

    function: Callable[..., Any]
    takes: tuple[str, ...]
    by_position: int  # number of arguments that must be passed by position

    def __call__(self, **given: Any) -> Any:
        """Call the function with those of the given values that it takes."""
        first, others = self.takes[: self.by_position], self.takes[self.by_position :]
        return self.function(
            *(given[name] for name in first), **{name: given[name] for name in others}
        )


def named(
    where: str, function: Callable[..., Any], known: tuple[str, ...]
) -> tuple[Named, list[Problem]]:
    """A function whose arguments are recognised by name, and its problems.

    Arguments with other names must have defaults, which are used.

    Parameters
    ----------
    where
        The argument of the declaration, for problems.
    function
        The function.
    known
        The names that it may use.
    """
    remedy = f"Name the arguments {', '.join(known[:-1])} and {known[-1]}; leave out unused ones."
    expected = f"a function with arguments among {', '.join(known)}"
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        problem = Problem(where, "a function without a readable signature", expected, remedy)
        return Named(function, (), 0), [problem]
    several = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    unknown = [
        ("*" if p.kind == several[0] else "**" if p.kind == several[1] else "") + p.name
        for p in parameters
        if p.kind in several or (p.default is p.empty and p.name not in known)
    ]
    takes = tuple(p.name for p in parameters if p.name in known and p.kind not in several)
    positional = sum(p.kind == p.POSITIONAL_ONLY for p in parameters if p.name in known)
    if not unknown:
        return Named(function, takes, positional), []
    got = f"the argument{'s' * (len(unknown) > 1)} {', '.join(unknown)}"
    return Named(function, takes, positional), [Problem(where, got, expected, remedy)]

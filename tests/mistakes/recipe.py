"""Recipes: valid calls in which cases replace arguments by mistakes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Recipe(NamedTuple):
    """A valid call of a public function, class, method or property."""

    name: str  # as in tests.mistakes.public
    call: Callable[..., Any]
    arguments: dict[str, Any]
    free: frozenset[str] = frozenset()  # arguments that accept values of any type
    patient: frozenset[str] = frozenset()  # arguments whose huge values may take very long
    record: bool = False  # plain data without validation

    @property
    def family(self) -> str:
        """The namespace or the class."""
        return self.name.rpartition(".")[0] or self.name.partition("(")[0]


def recipe(
    name: str, call: Callable[..., Any], /, *, free: Any = "", patient: Any = "", **arguments: Any
) -> Recipe:
    """Create a recipe; ``free`` and ``patient`` are names separated by spaces."""
    return Recipe(name, call, arguments, frozenset(free.split()), frozenset(patient.split()))


def record(name: str, call: Callable[..., Any], /, **arguments: Any) -> Recipe:
    """Create the recipe of a plain record."""
    return Recipe(name, call, arguments, record=True)


def reading(name: str, thing: Any, *properties: str) -> Iterator[Recipe]:
    """Create recipes of properties, which have no arguments but must be readable."""
    for part in properties:
        yield Recipe(f"{name}.{part}", lambda part=part: getattr(thing, part), {})

"""A recipe: a valid call, of which cases replace one argument by a mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Recipe(NamedTuple):
    """A valid call of something public."""

    name: str  # as in tests.mistakes.public
    call: Callable[..., Any]
    arguments: dict[str, Any]
    free: frozenset[str] = frozenset()  # arguments of any type: nothing must be refused
    patient: frozenset[str] = frozenset()  # arguments whose huge values take for ever, rightly
    record: bool = False  # plain data: its type refuses nothing

    @property
    def family(self) -> str:
        """The namespace or the class."""
        return self.name.rpartition(".")[0] or self.name.partition("(")[0]


def recipe(
    name: str, call: Callable[..., Any], /, *, free: Any = "", patient: Any = "", **arguments: Any
) -> Recipe:
    """A recipe with names of arguments in one text."""
    return Recipe(name, call, arguments, frozenset(free.split()), frozenset(patient.split()))


def record(name: str, call: Callable[..., Any], /, **arguments: Any) -> Recipe:
    """The recipe of plain data."""
    return Recipe(name, call, arguments, record=True)


def reading(name: str, thing: Any, *properties: str) -> Iterator[Recipe]:
    """Recipes of properties: there is nothing to replace, but they must be readable."""
    for part in properties:
        yield Recipe(f"{name}.{part}", lambda part=part: getattr(thing, part), {})

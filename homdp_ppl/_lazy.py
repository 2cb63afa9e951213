"""Lazy packages (PEP 562): each public name is loaded on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def attach(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package that loads its public names on first use.

    Parameters
    ----------
    package
        The name of the package.
    homes
        For each module, the names that it defines, separated by spaces. The names listed under ""
        are modules themselves.

    Examples
    --------
    >>> attach("homdp_ppl", {"core.pomdp": "POMDP"})("POMDP").__name__
    'POMDP'
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = home_of[name]
        if home:
            found = getattr(import_module(f"{package}.{home}"), name)
        else:
            found = import_module(f"{package}.{name}")
        setattr(sys.modules[package], name, found)  # this function runs once per name
        return found

    return load

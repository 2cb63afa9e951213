"""Convert docstrings for Sphinx.

Escape vertical bars in formulas, and list the fields of records with their trailing comments.
"""

import ast
import dataclasses
import inspect
import io
import re
import textwrap
import tokenize
from typing import Any

from sphinx.pycode import ModuleAnalyzer
from sphinx.util.inspect import stringify_signature

LITERAL = re.compile(r"(``.*?``|`.*?`)")


def prepare(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Add the fields of a record to its docstring, and escape vertical bars in formulas."""
    if (
        inspect.isclass(thing)
        and is_record(thing)
        and not any(line.strip() == "Attributes" for line in lines)
    ):
        where = next((k for k, line in enumerate(lines) if line.strip() == "Examples"), len(lines))
        lines[where:where] = fields(thing)
    if what == "property" and not any(line.startswith("---") for line in lines):
        plain[name] = [escape(line) for line in lines]
    example = False
    for k, line in enumerate(lines):
        # An example ends at an empty line and is not escaped.
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        lines[k] = line if example else escape(line)


def restore(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Restore the docstring of a property: napoleon takes the text before a colon for its type."""
    if name in plain:
        lines[:] = plain.pop(name)


plain: dict[str, list[str]] = {}  # docstrings of properties, saved before napoleon runs


def escape(line: str) -> str:
    r"""Escape the vertical bars of a line, except in literals.

    Examples
    --------
    >>> print(escape("T(x'|x, a) of ``a | b``"))
    T(x'\|x, a) of ``a | b``
    """
    parts = LITERAL.split(line)
    return "".join(part if part.startswith("`") else part.replace("|", r"\|") for part in parts)


def is_record(thing: type) -> bool:
    """Whether a class is a NamedTuple or a dataclass."""
    return dataclasses.is_dataclass(thing) or (
        issubclass(thing, tuple) and hasattr(thing, "_fields")
    )


def fields(thing: type) -> list[str]:
    """An Attributes section with the fields of a record and their trailing comments."""
    found = comments(thing)
    if not found:
        return []
    listed = [line for name, text in found.items() for line in (name, f"    {text}")]
    return ["", "Attributes", "----------", *listed, ""]


def comments(thing: type) -> dict[str, str]:
    """The trailing comment of each field in the source of a record, or the type of the field.

    A class without annotations of its own has the fields of its base.
    """
    if not inspect.get_annotations(thing) and hasattr(thing.__base__, "_fields"):
        return comments(thing.__base__)
    source = (
        textwrap.dedent(inspect.getsource(thing))
        if thing.__module__.startswith("homdp_ppl")
        else ""
    )
    if not source:
        return {}
    beside = {
        token.start[0]: token.string.lstrip("# ").replace("noqa: E741", "").strip()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    (declared,) = (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    found = [
        node
        for node in declared.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    return {
        node.target.id: beside.get(node.end_lineno, "") or f"``{ast.unparse(node.annotation)}``"
        for node in found
    }


def skip(app: Any, what: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """Omit "Alias for field number 0", and functions that are the defaults of fields."""
    alias, default = (
        type(thing).__name__ == "_tuplegetter",
        inspect.isfunction(thing) and thing.__name__ != name,
    )
    return True if alias or default else None


def signature(
    app: Any,
    what: str,
    name: str,
    thing: Any,
    options: Any,
    given: str | None,
    returned: str | None,
) -> Any:
    """The signature with types as in the source, and with the names of functions as defaults."""
    if given is None or not callable(thing):
        return None
    actual = inspect.signature(thing)
    parameters = [
        p.replace(default=Default(p.default)) if is_odd(p.default) else p
        for p in actual.parameters.values()
    ]
    if what == "method" and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    if inspect.isclass(thing):
        return stringify_signature(inspect.Signature(parameters), unqualified_typehints=True), None
    written = stringify_signature(actual.replace(parameters=parameters), unqualified_typehints=True)
    arguments, arrow, result = written.rpartition(") -> ")
    return (f"{arguments})", result) if arrow else (written, None)


def is_odd(default: Any) -> bool:
    """Whether the repr of a default is not readable, as in ``<function f at 0x...>``."""
    return default is not inspect.Parameter.empty and repr(default).startswith("<")


class Default:
    """Shows a default by its name, or as dots."""

    def __init__(self, value: Any) -> None:
        self.name = getattr(value, "__name__", "...")

    def __repr__(self) -> str:
        return self.name if self.name.isidentifier() else "..."


def one_signature(module: str) -> None:
    """Show the implementation signature of the functions of a module instead of the overloads."""
    analyzer = ModuleAnalyzer.for_module(module)
    analyzer.analyze()
    analyzer.overloads.clear()

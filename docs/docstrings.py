"""Docstrings as Sphinx can read them.

Formulas with their bars, and the fields of records with the comments beside them.
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
    """Add the fields of a record to its docstring, and keep the bars of formulas from being read as
    markup.
    """
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
        example = line.lstrip().startswith(">>>") or (
            example and bool(line.strip())
        )  # until an empty line: shown as it is
        lines[k] = line if example else escape(line)


def restore(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Undo what napoleon makes of a property: it takes the words before a colon for its type."""
    if name in plain:
        lines[:] = plain.pop(name)


plain: dict[str, list[str]] = {}  # docstrings of properties on their way past napoleon


def escape(line: str) -> str:
    r"""A line whose bars are bars.

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
    """An Attributes section of a record's fields, each with the comment that stands beside it."""
    told = comments(thing)
    if not told:
        return []
    listed = [line for name, words in told.items() for line in (name, f"    {words}")]
    return ["", "Attributes", "----------", *listed, ""]


def comments(thing: type) -> dict[str, str]:
    """The comment beside each field in a record's source; its type where there is none."""
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
    """Leave out "Alias for field number 0", and functions that are the defaults of fields."""
    alias, default = (
        type(thing).__name__ == "_tuplegetter",
        inspect.isfunction(thing) and thing.__name__ != name,
    )
    return True if alias or default else None


def signature(
    app: Any, what: str, name: str, thing: Any, options: Any, told: str | None, returned: str | None
) -> Any:
    """The signature with its types as the source writes them, and functions as defaults by their
    names.
    """
    if told is None or not callable(thing):
        return None
    given = inspect.signature(thing)
    parameters = [
        p.replace(default=Default(p.default)) if is_odd(p.default) else p
        for p in given.parameters.values()
    ]
    if what == "method" and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    if inspect.isclass(thing):
        return stringify_signature(inspect.Signature(parameters), unqualified_typehints=True), None
    written = stringify_signature(given.replace(parameters=parameters), unqualified_typehints=True)
    arguments, arrow, result = written.rpartition(") -> ")
    return (f"{arguments})", result) if arrow else (written, None)


def is_odd(default: Any) -> bool:
    """Whether a default looks odd in print."""
    return default is not inspect.Parameter.empty and repr(default).startswith("<")


class Default:
    """A default by its name, or dots."""

    def __init__(self, value: Any) -> None:
        self.name = getattr(value, "__name__", "...")

    def __repr__(self) -> str:
        return self.name if self.name.isidentifier() else "..."


def one_signature(module: str) -> None:
    """Let the functions of a module have the one signature that holds all of their overloads."""
    analyzer = ModuleAnalyzer.for_module(module)
    analyzer.analyze()
    analyzer.overloads.clear()

"""Models, rules and planners in user files: ``path/to/file.py:name``."""

from __future__ import annotations

import importlib.util
import traceback
from collections.abc import Iterable
from importlib.abc import SourceLoader
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from homdp_ppl.errors import HOMDPError, Problem, did_you_mean


def file_of(text: str) -> Path | None:
    """The file that a text names, if it names one.

    Examples
    --------
    >>> [
    ...     str(file_of(text))
    ...     for text in ("tiger:horizon=3", "hall.POMDP", "mine.py:curious:weight=0.3")
    ... ]
    ['None', 'hall.POMDP', 'mine.py']
    """
    if text.lower().endswith(".pomdp") or text.endswith(".py"):
        return Path(text)
    path, found, _ = text.partition(".py:")
    if found:
        return Path(f"{path}.py")
    path, colon, _ = text.rpartition(":")
    return Path(path) if colon and ("." in path or "/" in path) else None


def source_of(text: str) -> str:
    """The exact content of the file that a text names.

    Empty if the text names no file, or if the file cannot be read.
    """
    file = file_of(text)
    try:
        return "" if file is None else file.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def user_line(error: BaseException, texts: Iterable[str]) -> str:
    """The last line in the traceback of an error that is in a file named by the texts.

    Empty if there is none.
    """
    files = {file.resolve() for file in map(file_of, texts) if file is not None}
    lines = [
        f"{Path(frame.filename).name} line {frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve() in files
    ]
    return lines[-1] if lines else ""


def find_in_file(file: Path, name: str, kinds: Any, expected: str) -> Any:
    """The object ``name`` of a Python file: an instance of the given classes, or a function.

    Other objects raise HOMDPError.

    Parameters
    ----------
    file
        The file. It is imported, so the user must have named it or agreed to it.
    name
        The name of the object.
    kinds
        The accepted classes.
    expected
        A description of the accepted objects, for the error.
    """
    module = _import(file)
    found = getattr(module, name, None)
    if isinstance(found, kinds) or (callable(found) and not isinstance(found, type)):
        return found
    public = {k: v for k, v in vars(module).items() if not k.startswith("_")}
    known = [k for k, v in public.items() if isinstance(v, kinds)]
    known += [
        k
        for k, v in public.items()
        if isinstance(v, FunctionType) and v.__module__ == module.__name__
    ]
    got = (
        f"{name}, an object of type {type(found).__name__}"
        if hasattr(module, name)
        else f"no object named {name!r}"
        if name
        else "a file without a name"
    )
    has = (
        f"The file has: {', '.join(known)}. For example, write {file}:{known[0]}."
        if known
        else "The file has none."
    )
    remedy = did_you_mean(name, known) or has
    raise HOMDPError(
        f"{file}:{name}" if name else str(file), [Problem("name", got, expected, remedy)]
    )


def _import(path: Path) -> ModuleType:
    if not path.is_file():
        raise HOMDPError(
            str(path),
            [Problem("file", f"no file {path}", "a Python file, as in path/to/file.py:name")],
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or not isinstance(spec.loader, SourceLoader):
        raise HOMDPError(str(path), [Problem("file", path.name, "a Python file, ending in .py")])
    module = importlib.util.module_from_spec(spec)
    try:  # compile the source: a cached .pyc may differ
        exec(spec.loader.source_to_code(path.read_bytes(), str(path)), vars(module))
    except HOMDPError:
        raise
    except Exception as error:
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).name == path.name
        ]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else "?"
        got = f"{type(error).__name__}: {error}"
        raise HOMDPError(
            str(path), [Problem(f"line {line}", got, "a file that can be imported")]
        ) from error
    return module

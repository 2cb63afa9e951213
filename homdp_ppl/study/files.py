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
    """The content of the file that a text names, byte for byte.

    Empty if it names none, or one that cannot be read.
    """
    file = file_of(text)
    try:
        return "" if file is None else file.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def own_line(error: BaseException, texts: Iterable[str]) -> str:
    """The last line on the way to an error that stands in one of the files that texts name.

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
    """What a Python file calls ``name``: something of the wanted kinds, or a function.

    Anything else is refused.

    Parameters
    ----------
    file
        A file, which is imported: only for files that the user has named or agreed to.
    name
        The name in it.
    kinds
        Classes of what is wanted.
    expected
        The same in words.
    """
    module = _import(file)
    found = getattr(module, name, None)
    if isinstance(found, kinds) or (callable(found) and not isinstance(found, type)):
        return found
    public = {k: v for k, v in vars(module).items() if not k.startswith("_")}
    there = [k for k, v in public.items() if isinstance(v, kinds)]
    there += [
        k
        for k, v in public.items()
        if isinstance(v, FunctionType) and v.__module__ == module.__name__
    ]
    got = (
        f"{name}, a {type(found).__name__}"
        if hasattr(module, name)
        else f"nothing called {name!r}"
        if name
        else "a file alone"
    )
    has = (
        f"The file has: {', '.join(there)}. Write {file}:{there[0]}."
        if there
        else "The file has none."
    )
    remedy = did_you_mean(name, there) or has
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
    try:  # from the text itself: a cached .pyc may hold something else
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

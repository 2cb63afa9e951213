"""Files of plain arrays (``.npz``) that anyone can read; nothing in them is ever executed."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from homdp_ppl.errors import PolicyError, Problem
from homdp_ppl.precision import Array
from homdp_ppl.storage.atomic import atomic_write


def write_arrays(path: str | Path, form: str, **arrays: Array) -> None:
    """Write arrays, with the name of their format.

    Parameters
    ----------
    path
        The file, with any suffix.
    form
        The name of the format.
    arrays
        Numbers and texts.
    """
    content = BytesIO()
    named: dict[str, Any] = {"format": np.array(form), **arrays}
    np.savez_compressed(content, **named)
    atomic_write(path, content.getvalue())


def read_arrays(path: str | Path, form: str, names: Sequence[str]) -> dict[str, Array]:
    """The arrays of a file; refuses files of another format, damaged ones, and objects in place of
    numbers.

    Parameters
    ----------
    path
        The file.
    form
        The name of the format.
    names
        Which arrays it must have.
    """
    with open(path, "rb") as opened:
        try:
            with np.load(opened, allow_pickle=False) as file:
                parts = {name: file[name] for name in ("format", *names) if name in file.files}
        except Exception:  # NumPy and zipfile have many ways to say that a file is damaged
            parts = {}
    missing = [name for name in names if name not in parts]
    if str(parts.get("format")) != form:
        got = (
            f"format {parts['format']}"
            if "format" in parts
            else "another kind of file, or a damaged one"
        )
        raise PolicyError(str(path), [Problem("file", got, f"a policy in the format {form}")])
    if missing:
        raise PolicyError(
            str(path),
            [Problem("file", f"no {', '.join(missing)}", f"the arrays {', '.join(names)}")],
        )
    return parts

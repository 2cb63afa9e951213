"""The tutorials live outside of the documentation.

A copy of them, with their README as the page that leads to them.

Pages link to the originals, so that links hold where the files are read as they are; on the site
they lead to the copies.
"""

import re
import shutil
from pathlib import Path
from typing import Any

NOTEBOOK = re.compile(r"\[([^]]+)\]\(([^)]+)\.ipynb\)")


def copy(source: Path, target: Path) -> None:
    """Copy the notebooks, and write their index.

    Parameters
    ----------
    source
        The folder of the notebooks and of their README.
    target
        Where Sphinx finds the copies; files that have not changed are not written, so that they are
        not read again.
    """
    target.mkdir(exist_ok=True)
    for path in sorted(source.glob("*.ipynb")):
        beside = target / path.name
        if not beside.exists() or beside.read_bytes() != path.read_bytes():
            shutil.copyfile(path, beside)
    readme = (
        (source / "README.md").read_text(encoding="utf-8").replace("](../", "](../../")
    )  # the copy is one folder deeper
    listed = "\n".join(f"{title} <{name}>" for title, name in NOTEBOOK.findall(readme))
    (target / "README.md").write_text(
        f"{readme}\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n", encoding="utf-8"
    )


def redirect(app: Any, name: str, source: list[str]) -> None:
    """Let the links of a page to what lives outside lead to its copy."""
    source[0] = (
        source[0]
        .replace("](../../CONTRIBUTING.md", "](../contributing.md")
        .replace("../tutorials/", "tutorials/")
    )

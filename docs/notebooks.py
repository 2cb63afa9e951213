"""Copy the tutorials into the documentation, with their README as the index page.

Pages link to the original notebooks, so that links also work in the repository. When the site is
built, these links are redirected to the copies.
"""

import re
import shutil
from pathlib import Path
from typing import Any

NOTEBOOK = re.compile(r"\[([^]]+)\]\(([^)]+)\.ipynb\)")


def copy(source: Path, target: Path) -> None:
    """Copy the notebooks and write their index.

    Parameters
    ----------
    source
        The directory of the notebooks and their README.
    target
        The directory of the copies. Unchanged files are not written, so that Sphinx does not read
        them again.
    """
    target.mkdir(exist_ok=True)
    for path in sorted(source.glob("*.ipynb")):
        duplicate = target / path.name
        if not duplicate.exists() or duplicate.read_bytes() != path.read_bytes():
            shutil.copyfile(path, duplicate)
    # The copy is one directory deeper.
    readme = (source / "README.md").read_text(encoding="utf-8").replace("](../", "](../../")
    listed = "\n".join(f"{title} <{name}>" for title, name in NOTEBOOK.findall(readme))
    (target / "README.md").write_text(
        f"{readme}\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n", encoding="utf-8"
    )


def redirect(app: Any, name: str, source: list[str]) -> None:
    """Redirect links to files outside of the documentation to their copies."""
    source[0] = (
        source[0]
        .replace("](../../CONTRIBUTING.md", "](../contributing.md")
        .replace("../tutorials/", "tutorials/")
    )

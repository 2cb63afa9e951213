"""Run the tutorial notebooks from fresh kernels and keep their outputs.

A notebook that raises an error, or writes anything to stderr, is refused with the cell that did it and stays as it was. What is
written depends on the notebook alone: no timestamps, no versions or names of the machine it ran on.
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parent
TIMEOUT = 600  # seconds for one cell
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class NotebookError(RuntimeError):
    """A notebook that failed, or wrote to stderr; the message names the notebook and the cell."""


def execute(path: Path) -> NotebookNode:
    """Run one notebook from a fresh kernel, in its own folder, without writing anything.

    Parameters
    ----------
    path
        The notebook's file.

    Returns
    -------
    NotebookNode
        The notebook with its outputs and stable metadata.
    """
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name="python3",
        record_timing=False,
        resources={"metadata": {"path": str(path.resolve().parent)}},
    )
    # Test runners often choose a backend without a screen; notebooks show their pictures whatever it is.
    environment = {**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    try:
        client.execute(env=environment)
    except (CellTimeoutError, DeadKernelError) as error:
        raise NotebookError(f"{path.name}: {error}") from error
    except CellExecutionError as error:
        _refuse_noise(path, notebook)
        raise NotebookError(f"{path.name}: {error}") from error
    _refuse_noise(path, notebook)
    notebook.metadata = NotebookNode(METADATA)
    return notebook


def main() -> int:
    """Run every notebook of the folder and write its outputs in place; returns the exit code."""
    failed = False
    for path in sorted(FOLDER.glob("*.ipynb")):
        start = time.perf_counter()
        try:
            notebook = execute(path)
        except NotebookError as error:
            print(error, file=sys.stderr)
            failed = True
            continue
        nbformat.write(notebook, path)
        print(f"{path.name}: {time.perf_counter() - start:.0f} s")
    return int(failed)


def _refuse_noise(path: Path, notebook: NotebookNode) -> None:
    """Raise at the first cell with an error or with stderr output."""
    for number, cell in enumerate(notebook.cells, start=1):
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                raise NotebookError(f"{path.name}, cell {number}: error\n{COLOURS.sub('', chr(10).join(output.traceback))}")
            if output.output_type == "stream" and output.name == "stderr":
                raise NotebookError(f"{path.name}, cell {number}: output on stderr\n{output.text}")


if __name__ == "__main__":
    sys.exit(main())

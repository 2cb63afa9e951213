"""Run the tutorial notebooks in fresh kernels and store their outputs.

If a cell raises an error or writes to stderr, the cell is reported and the file is not changed. The
outputs contain no timestamps, versions or machine names, so they depend only on the notebook.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parent
TIMEOUT = 1200  # seconds for one cell
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # IPython colours its tracebacks


class NotebookError(RuntimeError):
    """A notebook that failed or wrote to stderr; the message names the notebook and the cell."""


def execute(path: Path) -> NotebookNode:
    """Run one notebook in a fresh kernel, in its own folder, without writing the file.

    Parameters
    ----------
    path
        The notebook file.

    Returns
    -------
    NotebookNode
        The notebook with its outputs and stable metadata.
    """
    notebook: NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    started = [0]  # numbers of the cells that have started
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(path.resolve().parent)}},
        on_cell_start=lambda cell, cell_index: started.append(cell_index + 1),
        extra_arguments=[
            "--IPKernelApp.log_level=ERROR"
        ],  # otherwise each kernel warns that it uses TCP
    )
    try:
        # With a backend that was set for tests, the notebook would have no figures.
        client.execute(
            env={**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
        )
    except CellExecutionError:
        pass  # the error is in the cell and is reported below
    except (CellTimeoutError, DeadKernelError) as error:
        raise NotebookError(f"{path.name}, cell {started[-1]}: {error}") from error
    for number, cell in enumerate(notebook.cells, start=1):
        for output in cell.get("outputs", []):
            _check_output(f"{path.name}, cell {number}", output)
        cell.metadata.clear()
    notebook.metadata.clear()
    notebook.metadata.update(METADATA)
    return notebook


def _check_output(where: str, output: NotebookNode) -> None:
    if output.output_type == "error":
        traceback = COLOURS.sub("", "\n".join(output.traceback))
        raise NotebookError(f"{where}: {output.ename}\n{traceback}")
    if output.output_type == "stream" and output.name == "stderr":
        raise NotebookError(f"{where}: output on stderr\n{output.text}")


def main(names: Sequence[str] = ()) -> int:
    """Run the given notebooks, or all notebooks of the folder, and store their outputs.

    Returns the exit code.
    """
    failed = 0
    for path in map(Path, names) if names else sorted(FOLDER.glob("*.ipynb")):
        start = time.perf_counter()
        try:
            notebook = execute(path)
        except NotebookError as error:
            print(error, file=sys.stderr)
            failed += 1
        else:
            nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
            print(f"{path.name}: {time.perf_counter() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "notebooks", nargs="*", help="notebook files (default: all files in this folder)"
    )
    sys.exit(main(parser.parse_args().notebooks))

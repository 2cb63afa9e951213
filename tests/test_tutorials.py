"""Every notebook runs in a fresh kernel without errors or warnings, and is saved with outputs."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "tutorials"
spec = importlib.util.spec_from_file_location("execute", FOLDER / "execute.py")
assert spec is not None
assert spec.loader is not None
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


def outputs(notebook):
    """The kinds of all outputs by cell.

    Numbers are not compared, because their last digits may depend on the processor.
    """
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [[(o.output_type, sorted(o.get("data", {}))) for o in cell.outputs] for cell in cells]


def notebooks():
    """All notebooks; running them takes minutes."""
    return [pytest.param(path, id=path.stem) for path in sorted(FOLDER.glob("*.ipynb"))]


@pytest.mark.slow
@pytest.mark.parametrize("path", notebooks())
def test_notebook_runs_and_has_its_outputs(path):
    assert outputs(nbformat.read(path, as_version=4)) == outputs(tool.execute(path))


@pytest.mark.parametrize("path", notebooks())
def test_notebook_has_pictures_and_no_errors(path):
    stored = outputs(nbformat.read(path, as_version=4))
    assert any("image/png" in kinds for cell in stored for _, kinds in cell)
    assert all(kind != "error" for cell in stored for kind, _ in cell)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("1 / 0", "cell 1: ZeroDivisionError"),
        ("import warnings\nwarnings.warn('mind')", "cell 1: output on stderr"),
    ],
)
def test_errors_and_warnings_raise(tmp_path, source, words):
    path = tmp_path / "bad.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)]), path)
    with pytest.raises(tool.NotebookError, match=words):
        tool.execute(path)


@pytest.mark.parametrize("path", notebooks())
def test_notebook_opens_in_colab_and_binder(path):
    """Links in the first cell; then a cell that installs only where the package is missing."""
    notebook = nbformat.read(path, as_version=4)
    for start in ("https://colab.research.google.com/github", "https://mybinder.org/v2/gh"):
        (link,) = re.findall(rf"\(({start}[^)]*)\)", notebook.cells[0].source)
        assert link.endswith(f"tutorials/{path.name}")
    install = next(cell for cell in notebook.cells if cell.cell_type == "code")
    assert install.source.splitlines()[2].startswith('if find_spec("homdp_ppl") is None:')
    assert install.source.splitlines()[3].startswith("    %pip install")
    assert install.outputs == []
    scripts = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert sum("pip install" in script for script in scripts) == 1

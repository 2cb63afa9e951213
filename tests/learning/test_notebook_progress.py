"""Progress in a real notebook kernel."""

import nbformat
import pytest
from nbclient import NotebookClient

SOURCE = """
from homdp_ppl import explorers, learn, models
from homdp_ppl.planners import history_tree
world = models.load("tiger", horizon=2)
def run(progress):
    return learn(world, explorers.greedy(), history_tree(), 5, compiled=False, progress=progress)
"""


@pytest.mark.slow
def test_progress_in_a_notebook():
    """If asked for, a bar that ends complete, and nothing on stderr; otherwise no output."""
    cells = [SOURCE, "run(True).seconds;", "run(None).seconds;", "run(None)"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=300).execute()
    (bar,) = notebook.cells[1].outputs
    assert bar.output_type == "display_data"
    assert bar.data["text/plain"] == "learning: 5 of 5"
    assert 'value="5" max="5"' in bar.data["text/html"]
    assert notebook.cells[2].outputs == []
    (shown,) = notebook.cells[3].outputs
    assert "<table>" in shown.data["text/html"]

"""Pictures of programs show every site and the program's arrows."""

import pytest

from homdp_ppl.report import draw_program
from homdp_ppl.report.program import _program_graph
from tests.worlds import world


@pytest.mark.parametrize("name", ["tiger", "checkup"])
def test_the_picture_places_every_site(name, tmp_path):
    model = world(name).homdp
    graph, places, colours = _program_graph(model, 2)
    assert set(graph) == set(places) == set(colours)
    assert {site.name for site in model.sites} <= set(graph)
    assert ("y[1]", "a[2]") in graph.edges
    assert not any(parent.startswith("x") and child.startswith("a") for parent, child in graph.edges)
    axes = draw_program(model, steps=2)
    axes.figure.savefig(tmp_path / "program.png")
    assert (tmp_path / "program.png").stat().st_size > 5000

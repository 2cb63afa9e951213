"""Plots of programs show every site and every edge."""

import numpy as np
import pytest

from homdp_ppl.report import draw_program
from homdp_ppl.report.program import _program_graph
from tests.worlds import world


@pytest.mark.parametrize(("name", "steps"), [("tiger", 2), ("checkup", 2), ("screening", 1)])
def test_every_site_has_a_position(name, steps, tmp_path):
    model = world(name).homdp
    graph, places, colours = _program_graph(model, steps)
    assert set(graph) == set(places) == set(colours)
    assert {site.name for site in model.sites} <= set(graph)
    assert ("y[1]", f"a[{steps}]") in graph.edges
    assert not any(
        parent.startswith("x") and child.startswith("a") for parent, child in graph.edges
    )
    apart = np.abs(
        np.subtract.outer(*[np.array([complex(*place) for place in places.values()])] * 2)
    )
    assert apart[~np.eye(len(places), dtype=bool)].min() > 0.59
    axes = draw_program(model, steps)
    axes.figure.savefig(tmp_path / "program.png")
    assert (tmp_path / "program.png").stat().st_size > 5000

"""Pictures of checks and explanations show their numbers."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from homdp_ppl import explain
from homdp_ppl.report import draw_explanation, draw_live_check
from tests.agent import wrong
from tests.agent.processes import tiger
from tests.runs import TREE


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def test_picture_of_a_check(tmp_path):
    check = wrong.shared_errors(0, 30).check()
    left, right = draw_live_check(check)
    labels = [label.get_text() for label in left.get_yticklabels()]
    assert labels == [finding.what for finding in check.findings][::-1]
    calm, marked = (part.get_offsets() for part in left.collections[-2:])
    assert len(marked) == len(check.unusual) > 0
    assert len(calm) + len(marked) == len(check.findings)
    delivered = next(line for line in right.get_lines() if line.get_label() == "delivered")
    np.testing.assert_allclose(delivered.get_ydata(), [w.delivered for w in check.windows])
    left.figure.savefig(tmp_path / "check.png")


def test_picture_of_an_explanation(tmp_path):
    world = tiger()
    found = explain(TREE(world.pomdp).policy, world, ["growl left"], [])
    left, right = draw_explanation(found)
    widths = sorted(bar.get_width() for bar in left.patches)
    np.testing.assert_allclose(widths, sorted(found.belief.values()))
    assert [label.get_text() for label in right.get_yticklabels()] == [*found.values][::-1]
    assert right.get_legend_handles_labels()[1] == ["taken"]
    left.figure.savefig(tmp_path / "explanation.png")

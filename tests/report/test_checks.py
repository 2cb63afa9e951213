"""The table and the plot of a predictive check show the observed statistics."""

import numpy as np
import pytest

from homdp_ppl.posteriors import PredictiveCheck
from homdp_ppl.posteriors.replication import Statistics
from homdp_ppl.report import check_table, draw_check
from tests.report.words import text_of
from tests.worlds import world


def checked(observed):
    """A check of tiger with 200 replications of 100 episodes. Half of the growls are from the left,
    except at step 1, where a share ``observed`` of the data is.
    """
    generator = np.random.default_rng(0)

    def growls(left):
        return np.stack([left, 1 - left], -1)

    replicated = Statistics(
        growls(generator.binomial(100, 0.5, (200, 4)) / 100),
        np.full((200, 2, 2), 0.25),
        generator.normal(2.5, 0.1, 200),
        generator.normal(0.9, 0.05, 200),
    )
    seen = Statistics(
        growls(np.array([observed, 0.5, 0.5, 0.5])),
        np.full((2, 2), 0.25),
        np.array(2.5),
        np.array(0.9),
    )
    return PredictiveCheck(world("tiger").homdp, 100, seen, replicated)


@pytest.mark.parametrize(
    ("observed", "labels"), [(0.5, set()), (0.8, {"growl left, step 1", "growl right, step 1"})]
)
def test_table_and_plot_of_a_predictive_check(observed, labels, tmp_path):
    check = checked(observed)
    text = text_of(check_table(check))
    assert "100 episodes against 200 replications" in text
    assert (check.unusual == ("observations by step",)) == bool(labels)
    assert ("growl left at step 1" in text) or not labels
    for finding in check.findings:
        assert f"{finding.p:.3g}" in next(
            line for line in text.splitlines() if finding.what in line
        )
    frequencies, returns = draw_check(check)
    assert {text.get_text() for text in frequencies.texts} == labels
    assert "by step: p = 0.005" in frequencies.get_title() or not labels
    assert tuple(returns.get_lines()[0].get_xydata()[0]) == (2.5, 0.9)
    dots = frequencies.collections[-1].get_offsets()
    assert np.allclose(dots[:, 1], check.observed.frequency.ravel())
    frequencies.figure.savefig(tmp_path / "check.png")
    assert (tmp_path / "check.png").stat().st_size > 10_000

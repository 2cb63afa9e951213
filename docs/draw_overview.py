"""Draw the figure of the README: a declaration, a plan, and the regret of three rules.

    python docs/draw_overview.py

writes docs/pictures/overview.png.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt

from homdp_ppl import explorers, models, report, study
from homdp_ppl.planners import history_tree

TARGET = Path(__file__).parent / "pictures" / "overview.png"


def main() -> None:
    """Draw the figure and save it."""
    tiger, lock = models.load("tiger"), models.load("lock")
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(15, 4.6), layout="constrained", width_ratios=[1.0, 1.15, 1.0]
    )
    report.draw_program(tiger.homdp, axes=left)
    history_tree()(tiger.pomdp).named(tiger).draw(steps=2, axes=middle)
    rules = [explorers.tight(), explorers.posterior_sampling(), explorers.quantile_backup()]
    runs = study.side_by_side(lock, rules, history_tree(), episodes=150, seeds=range(10))
    report.draw_regret(runs, axes=right)
    for axes, title in (
        (left, "1  Declare: a probabilistic program"),
        (middle, "2  Plan: the best policy on observations alone"),
        (right, "3  Learn: regret of three rules on a lock"),
    ):
        axes.set_title("")  # remove the default title
        axes.set_title(title, fontsize=12, loc="left", pad=10)
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET, dpi=110)


if __name__ == "__main__":
    main()

"""Figures of regret with their data, which the script of the page turns into charts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from homdp_ppl.learning.metrics import Measured
from homdp_ppl.report.formatting import colour_of
from homdp_ppl.report.learning import Curve, curve_of
from homdp_ppl.report.page.html import Html

EVERY = 2  # one of so many points is kept, at equal distances and at equal ratios


def regret_data(model: str, runs: Mapping[str, Sequence[Measured]], file: str) -> dict[str, Any]:
    """The curves of a figure of regret: mean and band of each rule at some of the episodes.

    Parameters
    ----------
    model
        The name of the model, for the title.
    runs
        The runs of each rule.
    file
        The name of the file that readers of the page can save.
    """
    rules = [
        {"name": name, "colour": colour_of(name, k), **_curve(group)}
        for k, (name, group) in enumerate(runs.items())
    ]
    return {"title": f"Regret on {model} against episodes", "file": file, "rules": rules}


def with_data(figure: Html, data: dict[str, Any]) -> Html:
    """A figure with its data inside, as JSON that contains no markup."""
    coded = json.dumps(data, allow_nan=False)
    for letter in "<>&":
        coded = coded.replace(letter, f"\\u{ord(letter):04x}")
    opened = figure.replace("<figure>", '<figure data-chart="">', 1)
    script = f'<script type="application/json">{coded}</script></figure>'
    return Html(opened.removesuffix("</figure>") + script)


def _curve(group: Sequence[Measured]) -> dict[str, list[float]]:
    both = [_thinned(curve_of(group, lambda run: run.lost_by_round, log)) for log in (False, True)]
    x, at = np.unique(np.concatenate([curve.episodes for curve in both]), return_index=True)
    rows = {
        name: np.concatenate([getattr(curve, name) for curve in both])[at]
        for name in ("mean", "low", "high")
    }
    numbers = {name: [float(f"{v:.6g}") for v in row] for name, row in rows.items()}
    return {"x": [int(episode) for episode in x], **numbers}


def _thinned(curve: Curve) -> Curve:
    """Fewer points, with the first and the last one."""
    some = np.unique([*range(0, len(curve.episodes), EVERY), len(curve.episodes) - 1])
    return Curve(*(part[some] for part in curve))

"""Posteriors as tables for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from homdp_ppl.core import html
from homdp_ppl.declare.parameters import short

if TYPE_CHECKING:
    from homdp_ppl.posteriors.belief import Posterior


def posterior_html(belief: Posterior) -> str:
    """The means of all sites, and how they were computed."""
    heading, *lines = repr(belief).splitlines()
    rows = [
        (name, short(np.asarray(mean).round(4)), "x".join(map(str, np.shape(mean))) or "number")
        for name, mean in belief.site_means.items()
    ]
    means = [html.table("Posterior means", ("site", "mean", "shape"), rows)] if rows else []
    return html.block(html.paragraph(heading, strong=True), *means, html.listing(lines))

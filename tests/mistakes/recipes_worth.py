"""Recipes of partial hindsight."""

from __future__ import annotations

from collections.abc import Iterator

from homdp_ppl import Reveal
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, reading, recipe


def hindsight() -> Iterator[Recipe]:
    """Protocols."""
    fifth = Reveal(0.2)
    yield recipe("Reveal", Reveal, share=0.2, unit="step", states="all", episodes=5)
    yield recipe("Reveal.with_share", fifth.with_share, share=0.5)
    yield recipe("Reveal.mask", fifth.mask, seed=0, episode=3, steps=4)
    yield recipe("Reveal.show", fifth.show, episode=things.episodes()[0], seed=0, number=3)
    yield from reading("Reveal", fifth, "complete", "coin")

"""What is measured of a run, whether it was just made or is read from a file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from homdp_ppl.core.pomdp import TIE
from homdp_ppl.learning.record import Record
from homdp_ppl.precision import Array


class Measured:
    """Values, gaps and regret of a run, round by round."""

    record: Record
    seconds: Mapping[str, float]

    @property
    @abstractmethod
    def about(self) -> Mapping[str, str | int | float]:
        """The run in words and numbers.

        Model, explorer, soundness, seed, episodes, horizon, optimum and so on.
        """

    @property
    def model_name(self) -> str:
        """The world's name."""
        return str(self.about["model"])

    @property
    def horizon(self) -> int:
        """H."""
        return int(self.about["horizon"])

    @property
    def episodes_per_round(self) -> int:
        """H for rules that deploy a policy once for every step, else 1."""
        return int(self.about["episodes_per_round"])

    @property
    def optimum(self) -> float:
        """The optimal value in the true world, or a bound on it from above.

        See ``inexact``, and ``estimated``.
        """
        return float(self.about["optimum"])

    @property
    def inexact(self) -> str:
        """What to say where the planner did not find the optimum exactly; empty where it did."""
        slack = float(self.about.get("slack", 0.0))
        return (
            f"not exact, and gaps may be too large by {slack:.2g}"
            if slack > TIE * self.horizon
            else ""
        )

    @property
    def values(self) -> Array:
        """The value of each round's policy in the true world: exact, unless ``estimated``."""
        return self.record.values

    @property
    def optimistic(self) -> Array:
        """The optimistic value that each round planned."""
        return self.record.optimistic

    @property
    def was_optimistic(self) -> Array:
        """Whether each round's optimistic value covered the optimum."""
        return self.record.optimistic >= self.optimum - TIE * self.horizon

    @property
    def gaps(self) -> Array:
        """Optimum minus values."""
        return self.optimum - self.values

    @property
    def regret(self) -> Array:
        """Cumulative gaps."""
        return np.cumsum(self.gaps)

    @property
    def played(self) -> Array:
        """The value of what was deployed in each episode: exact, unless ``estimated``."""
        return self.record.played

    @property
    def impossible(self) -> Array:
        """How many observations of each episode had probability zero under the planned model."""
        return self.record.impossible

    @property
    def estimated(self) -> bool:
        """Whether values, gaps and the optimum are means of simulated episodes instead of exact.

        They then have a statistical error.
        """
        return bool(self.about["estimated"])


@dataclass(frozen=True, eq=False)
class Saved(Measured):
    """A run as it is stored in a journal."""

    described: Mapping[str, str | int | float]
    record: Record
    seconds: Mapping[str, float]

    @property
    def about(self) -> Mapping[str, str | int | float]:
        """The run in words and numbers."""
        return self.described

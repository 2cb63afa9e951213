"""Values, gaps and regret of a run, in memory or read from a file."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from homdp_ppl.core import html
from homdp_ppl.core.pomdp import TIE
from homdp_ppl.explorers.explorer import PROVED
from homdp_ppl.learning.record import Record
from homdp_ppl.precision import Array


class Measured:
    """Values, gaps and regret of a run for each round, in the user's units."""

    record: Record
    seconds: Mapping[str, float]

    @property
    @abstractmethod
    def about(self) -> Mapping[str, str | int | float]:
        """The run as text and numbers.

        Model, explorer, soundness, seed, episodes, horizon, optimum and more.
        """

    @property
    def model_name(self) -> str:
        """The name of the world."""
        return str(self.about["model"])

    @property
    def guaranteed(self) -> bool:
        """Whether optimism is proved for the rule, by a frequentist bound or by the posterior."""
        return str(self.about["soundness"]).startswith(PROVED)

    @property
    def horizon(self) -> int:
        """H."""
        return int(self.about["horizon"])

    @property
    def episodes_per_round(self) -> int:
        """H for rules that deploy each policy once per step, else 1."""
        return int(self.about["episodes_per_round"])

    @property
    def below_certificate(self) -> bool:
        """Whether a certificate was computed that refutes the last optimistic value."""
        return False

    @property
    def _units(self) -> tuple[float, float]:
        return float(self.about.get("scale", 1.0)), float(self.about.get("shift", 0.0))

    @property
    def rescaled(self) -> bool:
        """Whether the user's units differ from rewards in [0, 1]."""
        return self._units != (1.0, 0.0)

    @property
    def return_range(self) -> tuple[float, float]:
        """The smallest and the largest possible return."""
        scale, shift = self._units
        return self.horizon * shift, self.horizon * (scale + shift)

    @property
    def _tie(self) -> float:
        """Values that differ by less than this are equal up to rounding."""
        return TIE * self.horizon * self._units[0]

    @property
    def optimum(self) -> float:
        """The optimum in the true world, or an upper bound of it.

        See ``inexact`` and ``estimated``.
        """
        return float(self.about["optimum"])

    @property
    def inexact(self) -> str:
        """A note for an optimum that is not exact; empty if it is exact."""
        slack = float(self.about.get("slack", 0.0))
        return (
            f"not exact, and gaps may be too large by up to {slack:.2g}"
            if slack > self._tie
            else ""
        )

    @property
    def values(self) -> Array:
        """The value of each round's policy in the true world: exact, unless ``estimated``."""
        return self.record.values

    @property
    def optimistic(self) -> Array:
        """The optimistic value of each round."""
        return self.record.optimistic

    @property
    def was_optimistic(self) -> Array:
        """Whether each round was optimistic: its optimistic value is at least the optimum."""
        return self.record.optimistic >= self.optimum - self._tie

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
        """The value of the policy deployed in each episode: exact, unless ``estimated``."""
        return self.record.played

    @property
    def lost(self) -> Array:
        """The loss summed over the episodes played so far, (episodes,): optimum minus ``played``.

        It equals the regret, except for rules that play other policies than those of the rounds:
        HOP-V plays each policy H times with a uniform action. Compare rules by what they lost. With
        foresight, the collector sees the state, so its episodes cannot be compared with the
        optimum, and the loss is the regret.
        """
        if self.about.get("foresight"):
            return self.regret
        return np.cumsum(self.optimum - self.played)

    @property
    def lost_by_round(self) -> Array:
        """The loss summed over the episodes played up to the end of each round, (rounds,)."""
        return self.lost[self.episodes_per_round - 1 :: self.episodes_per_round]

    @property
    def impossible(self) -> Array:
        """Number of observations per episode with probability zero under the planned model."""
        return self.record.impossible

    @property
    def estimated(self) -> bool:
        """Whether values, gaps and the optimum are estimated from simulated episodes.

        Estimates have a statistical error.
        """
        return bool(self.about["estimated"])

    def _repr_html_(self) -> str:
        rounds, about = len(self.values), self.about
        rows: list[tuple[str, object]] = [("rule", about["explorer"]), ("seed", about["seed"])]
        rows.append(("rounds", rounds))
        if rounds:
            rows += [
                ("optimum", self.optimum),
                ("regret", round(float(self.regret[-1]), 9) + 0.0),
                ("last gap", round(float(self.gaps[-1]), 9) + 0.0),
                ("optimistic rounds", f"{np.mean(self.was_optimistic):.0%}"),
            ]
        notes = [self.inexact] if rounds and self.inexact else []
        notes += ["Values are estimated from simulations."] * self.estimated
        notes += ["The optimistic value is below what is certified."] * self.below_certificate
        found = html.facts(f"Run in {self.model_name}", rows)
        return html.block(found, *map(html.paragraph, notes))


@dataclass(frozen=True, eq=False)
class Saved(Measured):
    """A run read from a journal."""

    described: Mapping[str, str | int | float]
    record: Record
    seconds: Mapping[str, float]

    @property
    def about(self) -> Mapping[str, str | int | float]:
        """The run as text and numbers."""
        return self.described

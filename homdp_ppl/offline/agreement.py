"""Whether model-based and weighted estimates agree: a test of the declaration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from homdp_ppl.offline.estimates import Estimate

LEVEL = 0.01  # false-alarm rate
FEWEST = 30.0  # effective episodes that the normal approximation needs


class Agreement(NamedTuple):
    """The comparison of the posterior mean of a value with a weighted estimate.

    Examples
    --------
    >>> Agreement("doubly robust", p_value=0.3, effective=120.0)
    Agreement: the declaration and the doubly robust estimate agree (p = 0.3)
    """

    estimate: str  # the name of the weighted estimate
    p_value: float
    effective: float  # the effective number of episodes
    level: float = LEVEL

    @property
    def enough(self) -> bool:
        """Whether there are enough effective episodes for the comparison."""
        return self.effective >= FEWEST and bool(np.isfinite(self.p_value))

    @property
    def violated(self) -> bool:
        """Whether the estimates disagree at the level of the test."""
        return self.enough and self.p_value < self.level

    @property
    def words(self) -> str:
        """The result in words."""
        if not self.enough:
            return (
                f"not compared: the log has only {self.effective:.3g} effective episodes of this "
                "policy"
            )
        found = f"(p = {self.p_value:.2g})"
        if not self.violated:
            return f"the declaration and the {self.estimate} estimate agree {found}"
        return (
            f"the declaration and the {self.estimate} estimate disagree {found}: the declaration "
            "does not describe this log, or the behaviour policy is not the one that acted"
        )

    def __repr__(self) -> str:
        return f"Agreement: {self.words}"


def compare(mean: float, deviation: float, weighted: Estimate, effective: float) -> Agreement:
    """Compare the posterior mean and standard deviation of a value with a weighted estimate.

    Both use the same data. If the declaration is right, the posterior mean is the more precise of
    the two and the variance of the difference is at most the sum of both variances, so the test is
    conservative.
    """
    spread = np.hypot(deviation, weighted.error)
    if not spread > 0:
        exact = np.isclose(mean, weighted.value, rtol=1e-9, atol=1e-9)
        return Agreement(weighted.name, 1.0 if exact else 0.0, effective)
    p_value = 2 * norm.sf(abs(mean - weighted.value) / spread)
    return Agreement(weighted.name, float(p_value), effective)

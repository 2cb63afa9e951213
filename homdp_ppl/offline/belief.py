"""The posterior of a policy's value."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.evaluation.exact import policy_value
from homdp_ppl.posteriors import Posterior
from homdp_ppl.precision import Array


class ValueBelief(NamedTuple):
    """The posterior of the value of a policy, from draws of models, in the user's units.

    Examples
    --------
    >>> import numpy as np
    >>> ValueBelief(np.linspace(1.0, 2.0, 101), level=0.1)
    ValueBelief: mean 1.5, 90 % interval 1.05 to 1.95, from 101 draws
    """

    values: Array  # (draws,)
    level: float  # the probability outside of the interval

    @property
    def mean(self) -> float:
        """The posterior mean."""
        return float(self.values.mean())

    @property
    def deviation(self) -> float:
        """The posterior standard deviation."""
        return float(self.values.std())

    @property
    def low(self) -> float:
        """The lower end of the interval: the quantile at half of the level."""
        return float(np.quantile(self.values, self.level / 2))

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return float(np.quantile(self.values, 1 - self.level / 2))

    def __repr__(self) -> str:
        interval = f"{100 * (1 - self.level):.3g} % interval {self.low:.4g} to {self.high:.4g}"
        return f"ValueBelief: mean {self.mean:.4g}, {interval}, from {len(self.values)} draws"


def values_in(models: list[POMDP], graph: GraphPolicy) -> Array:
    """The value of a policy in each model, in the user's units."""
    return np.array([float(model.to_user(policy_value(graph, model))) for model in models])


def drawn_models(belief: Posterior, draws: int, seed: int) -> list[POMDP]:
    """Models from a posterior, one by one."""
    batch = belief.draws(jax.random.key(seed), draws)
    return [POMDP(*(np.asarray(part)[k] for part in batch)) for k in range(draws)]

"""Values of sites without a closed form: draws, or all possible values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np

from homdp_ppl.precision import Array


@final
@dataclass(frozen=True, eq=False)
class Atoms:
    """Values of the sites without a closed form, with their probabilities.

    They are draws, or all possible values.
    """

    values: Mapping[str, Array]  # (N, ...)
    chains: int = 1
    weights: Array | None = None  # (N,)  probabilities, if they differ
    complete: bool = False  # whether these are all possible values
    statistics: Mapping[str, Array] = field(default_factory=dict)  # (N,)  of the sampler

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    @property
    def probabilities(self) -> Array:
        """The probability of each value, (N,)."""
        return np.full(len(self), 1 / len(self)) if self.weights is None else self.weights

    def pick(self, generator: np.random.Generator, n: int) -> dict[str, Array]:
        """Pick n values at random.

        Equally likely draws are picked without replacement until all have been used.
        """
        if self.weights is not None:
            chosen = generator.choice(len(self), n, p=self.weights)
        else:
            rounds = [generator.permutation(len(self)) for _ in range(-(-n // len(self)))]
            chosen = np.concatenate([*rounds, np.zeros(0, int)])[:n]
        return {name: values[chosen] for name, values in self.values.items()}

    def means(self) -> dict[str, Array]:
        """The mean of each site."""
        if self.weights is None:
            return {name: value.mean(0) for name, value in self.values.items()}
        return {name: np.tensordot(self.weights, v, 1) for name, v in self.values.items()}

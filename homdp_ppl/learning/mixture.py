"""``Mixture``: a policy drawn from all rounds of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jax

from homdp_ppl.core.checked import check_fields, checked
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.randomness import as_key, refuse_traced_key
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.precision import Array, in_x64

if TYPE_CHECKING:
    from homdp_ppl.learning.run import Run


@dataclass(frozen=True, eq=False)
class Mixture:
    """The uniform mixture of the policies of all rounds (online-to-batch conversion).

    Its gap is the average gap of the rounds.

    Examples
    --------
    >>> from homdp_ppl import explorers, learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> run = learn(
    ...     models.load("tiger", horizon=2),
    ...     explorers.greedy(),
    ...     history_tree(),
    ...     episodes=3,
    ...     compiled=False,
    ... )
    >>> bool(abs(run.mixture.value - run.values.mean()) < 1e-12)
    True
    """

    run: Run

    def __post_init__(self) -> None:
        check_fields(self, "Mixture")

    @property
    def value(self) -> float:
        """The value of the mixture: the mean of the rounds' values, exact if they are exact."""
        return float(self.run.values.sum() / self._rounds)

    @checked
    @in_x64
    def draw(self, key: Array) -> Policy:
        """Draw one policy of the mixture; the guarantee holds for it in expectation.

        Parameters
        ----------
        key
            A JAX random key.
        """
        refuse_traced_key(key, "mixture")
        return self.run.policy_at(
            int(jax.random.randint(as_key(key, "mixture"), (), 0, self._rounds))
        )

    @property
    def _rounds(self) -> int:
        rounds = len(self.run.values)
        if rounds == 0:
            raise ParameterError("mixture", [Problem("run", "no rounds", "at least one round")])
        return rounds

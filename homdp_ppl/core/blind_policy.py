"""Blind policies, which ignore observations, and the uniform policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.allowed import Allowed, AllowedPolicy
from homdp_ppl.core.arguments import refuse, size_problems
from homdp_ppl.core.checked import checked
from homdp_ppl.core.graph_policy import COPIES, GraphPolicy
from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.core.policy import as_history
from homdp_ppl.core.pomdp_validation import spaces_of
from homdp_ppl.core.spaces import HasSpaces, require_finite
from homdp_ppl.errors import PolicyError, Problem
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array


class BlindPolicy(NamedTuple):
    """A policy that ignores observations: its action probabilities depend only on the step.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import BlindPolicy
    >>> policy = BlindPolicy(np.array([[1.0, 0.0], [0.5, 0.5]]))
    >>> policy.act([1, 0], [0])  # the second step
    array([0.5, 0.5])
    """

    probabilities: Array  # (H, A)

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}."""
        seen, done = as_history("BlindPolicy.act", observations, actions)
        h, H = len(np.atleast_1d(seen)), len(self.table)
        if not 1 <= h <= H:
            raise PolicyError(
                "BlindPolicy.act",
                [Problem("history", f"{h} observations", f"1 to {H} observations, one per step")],
            )
        if done.shape != (h - 1,):
            got = f"{h} observations and actions of shape {done.shape}"
            problem = Problem("history", got, "h observations and h - 1 actions")
            raise PolicyError("BlindPolicy.act", [problem])
        chances: Array = self.table[h - 1]
        return chances

    @property
    def table(self) -> Array:
        """The action probabilities as an array (H, A)."""
        found, problems = as_numbers("probabilities", self.probabilities, "shape (H, A)")
        if found is not None and (found.ndim != 2 or 0 in found.shape):
            problems = [Problem("probabilities", f"shape {found.shape}", "shape (H, A)")]
        if found is None or problems:
            raise PolicyError("BlindPolicy", problems)
        return found

    @checked
    def graph(self, observations: int) -> GraphPolicy:
        """The same policy as a graph with one node per step.

        ``observations`` is the number of possible observations.
        """
        H = len(self.table)
        problems = size_problems(observations=observations)
        refuse(PolicyError, "BlindPolicy.graph", problems)
        following = np.minimum(np.arange(1, H + 1), H - 1)[:, None, None]
        return GraphPolicy(
            np.zeros(observations, int),
            self.table,
            np.broadcast_to(following, (H, 1, observations)),
        )


@checked
def uniform_policy(
    model: HasSpaces, allowed: Allowed | None = None
) -> GraphPolicy | BlindPolicy | AllowedPolicy:
    """The policy that chooses all actions, or all allowed actions, with the same probability.

    Parameters
    ----------
    model
        The HOMDP or World in which it acts.
    allowed
        A function of y_1 .. y_h and a_1 .. a_{h-1}, as arrays of indices, that returns which
        actions are allowed next, (A,) of booleans. Default: all actions.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import Spaces, uniform_policy
    >>> lamp = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=2)
    >>> uniform_policy(lamp).act([0, 1], [1])
    array([0.5, 0.5])
    >>> def press_once(observations, actions):
    ...     return np.array([True, 1 not in actions])
    >>> uniform_policy(lamp, press_once).act([0, 1], [1])
    array([1., 0.])
    """
    spaces = spaces_of(model, "uniform_policy")
    if allowed is not None:
        require_finite(spaces, "uniform_policy", "model")
        return AllowedPolicy(allowed, spaces)
    A, Y = len(spaces.actions), len(spaces.observations) if spaces.finite else 0
    got = f"{count(spaces.horizon)} steps with {count(A)} actions and {count(Y)} observations"
    needed = COPIES * NUMBER * spaces.horizon * (A + Y)
    remedy = "Use a shorter horizon."
    require_memory(PolicyError, "uniform_policy", "horizon", got, needed, remedy)
    blind = BlindPolicy(np.full((spaces.horizon, A), 1 / A))
    return blind.graph(Y) if spaces.finite else blind

"""The behaviour policy of a log, estimated from the recorded actions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.checked import checked
from homdp_ppl.core.episode_validation import incomplete_problems
from homdp_ppl.core.episodes import SAW_STATES, Episodes
from homdp_ppl.core.graph_policy import MAX_NODES, GraphPolicy
from homdp_ppl.core.policy import as_history, history_problems
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import DataError, ParameterError, PolicyError, Problem
from homdp_ppl.offline.logs import Played, read_log
from homdp_ppl.precision import Array

NONE = -1  # in a context: nothing was seen or done yet


@dataclass(frozen=True, eq=False, repr=False)
class Behaviour:
    """Action frequencies in a log, by the step and the last observations. It is a policy.

    Create it with :func:`estimate_behaviour`.

    Attributes
    ----------
    window
        The number of last observations, with the actions between them, that actions depend on.
    sees_states
        Whether the frequencies also depend on the latent state of the step.
    contexts
        The contexts that occur in the log: step, observations, actions, state; (C, 2 window + 1).
    counts
        How often each action was taken in each context, (C, A).
    spaces
        The spaces of the declaration.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, offline, rollout, uniform_policy
    >>> world = models.load("tiger", horizon=2)
    >>> log = rollout(jax.random.split(jax.random.key(0), 300), world, uniform_policy(world))
    >>> acting = offline.estimate_behaviour(world.homdp, log)
    >>> acting
    Behaviour estimated from the step and the last observation: 4 contexts
    >>> acting.act([0], []).round(1)
    array([0.3, 0.3, 0.3])
    """

    window: int
    sees_states: bool
    contexts: Array  # (C, 2 window + 1)
    counts: Array  # (C, A)
    spaces: Spaces

    @property
    def uses(self) -> str:
        """What the estimated action probabilities depend on."""
        last = (
            "the last observation" if self.window == 1 else f"the last {self.window} observations"
        )
        return f"the step, {last} and the state" if self.sees_states else f"the step and {last}"

    @checked
    def chances(self, episodes: Episodes) -> Array:
        """The estimated probability of each recorded action, (N, H); 1 after the end.

        Actions of contexts that were not in the log have probability 1 / A.
        """
        episodes = Episodes.of(episodes, self.spaces)
        contexts = _contexts(episodes, self.window, self.sees_states)
        taken = episodes.steps
        rows, actions = contexts[taken], episodes.actions[taken]
        known, which = np.unique(np.concatenate([self.contexts, rows]), axis=0, return_inverse=True)
        which = which.ravel()
        table = np.full((len(known), self.counts.shape[1]), 1 / self.counts.shape[1])
        table[which[: len(self.contexts)]] = self._shares
        found = np.ones(episodes.actions.shape)
        found[taken] = table[which[len(self.contexts) :], actions]
        return found

    @property
    def _shares(self) -> Array:
        shares: Array = self.counts / self.counts.sum(1, keepdims=True)
        return shares

    @cached_property
    def _table(self) -> dict[tuple[int, ...], Array]:
        shares = self._shares
        return {tuple(row): shares[k] for k, row in enumerate(self.contexts.tolist())}

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Estimated probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}."""
        self._require_history("Behaviour.act")
        names = self.spaces.observations, self.spaces.actions
        seen, done = as_history("Behaviour.act", observations, actions, names)
        if seen.ndim != 1 or not 1 <= len(seen) <= self.spaces.horizon:
            got = f"observations of shape {seen.shape}"
            expected = f"1 to {self.spaces.horizon} observations"
            raise PolicyError("Behaviour.act", [Problem("history", got, expected)])
        problems = history_problems(seen, done, *self.spaces.sizes[1:3])
        if problems:
            raise PolicyError("Behaviour.act", problems)
        return self._at(len(seen), [int(y) for y in seen], [int(a) for a in done])

    def _at(self, step: int, seen: list[int], done: list[int]) -> Array:
        last, before = seen[::-1][: self.window], done[::-1][: self.window - 1]
        last = last + [NONE] * (self.window - len(last))
        before = before + [NONE] * (self.window - 1 - len(before))
        A = self.counts.shape[1]
        return self._table.get((step - 1, *last, *before, NONE), np.full(A, 1 / A))

    @checked
    def graph(self) -> GraphPolicy:
        """The same policy as a graph: one node per step and possible window."""
        self._require_history("Behaviour.graph")
        _, Y, A, H = self.spaces.sizes
        if H * (Y * A) ** self.window > MAX_NODES * A:
            expected = f"at most {MAX_NODES:,} nodes"
            problem = Problem("window", str(self.window), expected, "Use a shorter window.")
            raise PolicyError("Behaviour.graph", [problem])
        ahead: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = [
            (1, (y,), ()) for y in range(Y)
        ]
        nodes = {node: k for k, node in enumerate(ahead)}
        chances, successor = [], []
        for step, seen, done in ahead:  # grows while it is read
            chances.append(self._at(step, list(seen), list(done)))
            own = nodes[step, seen, done]
            following = np.full((A, Y), own)
            for a in range(A if step < H else 0):
                for y in range(Y):
                    acted = (*done, a)[1 - self.window :] if self.window > 1 else ()
                    node = (step + 1, (*seen, y)[-self.window :], acted)
                    if node not in nodes:
                        nodes[node] = len(nodes)
                        ahead.append(node)
                    following[a, y] = nodes[node]
            successor.append(following)
        return GraphPolicy(np.arange(Y), np.stack(chances), np.stack(successor))

    def _require_history(self, subject: str) -> None:
        if self.sees_states:
            expected = "a policy of observations and actions only"
            problem = Problem("behaviour", "actions that depend on states", expected)
            raise PolicyError(subject, [problem])

    def __repr__(self) -> str:
        return f"Behaviour estimated from {self.uses}: {len(self.contexts)} contexts"


@checked
def estimate_behaviour(homdp: HOMDP, log: Played, window: int = 1) -> Behaviour:
    """Estimate the policy that acted in a log by frequencies of actions.

    The frequencies depend on the step and on the last observations. If the log says that actions
    may depend on the states (``behaviour="saw states"``), they also depend on the state of the
    step, which must be revealed. Weighted estimates are biased if actions depended on more than
    that.

    Parameters
    ----------
    homdp
        The declaration.
    log
        Recorded episodes.
    window
        The number of last observations. With k observations, the k - 1 actions between them are
        also used. A longer window needs more data.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, offline, rollout, uniform_policy
    >>> world = models.load("tiger", horizon=3)
    >>> log = rollout(jax.random.split(jax.random.key(0), 300), world, uniform_policy(world))
    >>> offline.estimate_behaviour(world.homdp, log, window=2)
    Behaviour estimated from the step and the last 2 observations: 26 contexts
    """
    refuse(ParameterError, "estimate_behaviour", count_problems(window=window))
    return behaviour_of(homdp, read_log(homdp, log, "estimate_behaviour").episodes, window)


def behaviour_of(homdp: HOMDP, episodes: Episodes, window: int = 1) -> Behaviour:
    """:func:`estimate_behaviour` for validated episodes."""
    window = min(window, homdp.horizon)
    states = episodes.behaviour == SAW_STATES
    if states and (hidden := incomplete_problems(episodes)):
        raise DataError("estimate_behaviour", hidden)
    taken = episodes.steps
    rows = _contexts(episodes, window, states)[taken]
    contexts, which = np.unique(rows, axis=0, return_inverse=True)
    counts = np.zeros((len(contexts), len(homdp.spaces.actions)), dtype=np.int64)
    np.add.at(counts, (which.ravel(), episodes.actions[taken]), 1)
    return Behaviour(window, states, contexts, counts, homdp.spaces)


def _contexts(episodes: Episodes, window: int, states: bool) -> Array:
    """Step, last observations and actions, and state: (N, H, 2 window + 1)."""
    N, H = episodes.actions.shape
    contexts = np.full((N, H, 2 * window + 1), NONE, dtype=np.int64)
    contexts[:, :, 0] = np.arange(H)
    for back in range(window):
        contexts[:, back:, 1 + back] = episodes.observations[:, : H - back]
    for back in range(1, window):
        contexts[:, back:, window + back] = episodes.actions[:, : H - back]
    if states:
        contexts[:, :, -1] = episodes.states[:, :-1]
    return contexts

"""Explanations of decisions: belief over states, and the value of each action with its spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from homdp_ppl.agent.values import encode
from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.checked import checked_but
from homdp_ppl.core.graph_policy import GraphPolicy, graph_of
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.spaces import Spaces, names_of, require_finite
from homdp_ppl.declare.world import World
from homdp_ppl.errors import DataError, ParameterError, Problem
from homdp_ppl.evaluation.exact import evaluate
from homdp_ppl.posteriors.belief import Posterior
from homdp_ppl.precision import Array, in_x64

DRAWS = 100  # models drawn from a posterior


class ActionValue(NamedTuple):
    """The value of one action, if the policy is followed afterwards."""

    probability: float  # with which the policy takes it
    value: float  # of the remaining steps, in the user's units
    spread: float  # standard deviation over the models of the posterior


class Explanation(NamedTuple):
    """Why a policy acts as it does after a history; made by :func:`explain`."""

    observations: tuple[str, ...]
    actions: tuple[str, ...]  # so far
    belief: dict[str, float]  # probability of each state now
    values: dict[str, ActionValue]  # by action

    def __str__(self) -> str:
        seen = ", ".join(self.observations)
        states = sorted(self.belief.items(), key=lambda item: -item[1])
        lines = [f"after {seen}", *(f"  {name}: {p:.3f}" for name, p in states if p > 5e-4)]
        lines += [
            f"{'->' if value.probability > 0 else '  '} {name}: {value.value:.4g} "
            f"± {value.spread:.2g} (probability {value.probability:.3g})"
            for name, value in self.values.items()
        ]
        return "\n".join(lines)


@checked_but("observations", "actions", "draws")
@in_x64
def explain(
    policy: Policy,
    model: Posterior | World,
    observations: Sequence[Any],
    actions: Sequence[Any],
    draws: int = DRAWS,
) -> Explanation:
    """Explain the next action of a policy: the belief over states and the value of each action.

    Values are those of the remaining steps if the action is taken now and the policy is followed
    afterwards. Under a posterior, they are means over models drawn from it, weighted by the
    likelihood of the history.

    Parameters
    ----------
    policy
        The policy.
    model
        A posterior, or a world.
    observations
        y_1 .. y_h, as names or indices.
    actions
        a_1 .. a_{h-1}, as names or indices.
    draws
        The number of models drawn from a posterior.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.planners import history_tree
    >>> tiger = models.load("tiger", horizon=2)
    >>> plan = history_tree()(tiger.pomdp)
    >>> print(explain(plan.policy, tiger, ["growl left"], []))
    after growl left
      left: 0.850
      right: 0.150
    -> listen: 1.852 ± 0 (probability 1)
       open left: 1.05 ± 0 (probability 0)
       open right: 1.75 ± 0 (probability 0)
    """
    homdp = model.homdp
    require_finite(homdp.spaces, homdp.name, "explain")
    refuse(ParameterError, "explain", count_problems(draws=draws))
    seen = _indices("observations", observations, names_of(homdp.spaces.observations))
    done = _indices("actions", actions, homdp.spaces.actions)
    h, H = len(seen), homdp.horizon
    if not 1 <= h <= H or len(done) != h - 1:
        got = f"{h} observations and {len(done)} actions"
        expected = f"h observations and h - 1 actions, with h in 1..{H}"
        raise DataError("explain", [Problem("history", got, expected)])
    graph = graph_of(policy, homdp)
    found = [_at(graph, each, seen, done) for each in _models(model, draws)]
    weights = np.array([chance for chance, _, _ in found])
    if not weights.sum() > 0:
        problem = Problem("observations", "an impossible history", "one that the model allows")
        raise DataError("explain", [problem])
    weights = weights / weights.sum()
    belief = sum(w * b for w, (_, b, _) in zip(weights, found, strict=True))
    values = np.array([v for _, _, v in found])  # (models, A)
    mean = weights @ values
    spread = np.sqrt(weights @ (values - mean) ** 2)
    return _named(homdp.spaces, seen, done, np.asarray(belief), graph.act(seen, done), mean, spread)


def _named(
    spaces: Spaces,
    seen: Array,
    done: Array,
    belief: Array,
    chances: Array,
    mean: Array,
    spread: Array,
) -> Explanation:
    states, observations, actions = spaces.names
    return Explanation(
        tuple(observations[y] for y in seen),
        tuple(actions[a] for a in done),
        dict(zip(states, belief.tolist(), strict=True)),
        {
            name: ActionValue(float(chances[a]), float(mean[a]), float(spread[a]))
            for a, name in enumerate(actions)
        },
    )


def _indices(where: str, given: Sequence[Any], names: tuple[str, ...]) -> Array:
    problems: list[Problem] = []
    found: list[int] = []
    try:
        listed = list(given)
    except TypeError:
        listed = [given]
    for step, value in enumerate(listed, start=1):
        index, wrong = encode(where, value, names, f"step {step}")
        found.append(int(index))  # type: ignore[arg-type]
        problems += wrong
    refuse(DataError, "explain", problems)
    return np.array(found, dtype=np.int64)


def _models(model: Posterior | World, draws: int) -> list[POMDP]:
    if isinstance(model, World):
        return [model.pomdp]
    batch = model.draws(jax.random.key(0), draws)
    return [jax.tree.map(lambda leaf, k=k: leaf[k], batch) for k in range(draws)]


def _at(graph: GraphPolicy, model: POMDP, seen: Array, done: Array) -> tuple[float, Array, Array]:
    """The probability of a history in a model, the belief after it, and action values, (A,)."""
    predicted, chance, belief = np.asarray(model.initial), 1.0, np.asarray(model.initial)
    node = graph.first(int(seen[0]))
    for h, y in enumerate(seen):
        previous = int(done[h - 1]) if h else None
        joint = predicted * np.asarray(model.likelihood(int(y), previous, h))
        total = float(joint.sum())
        chance *= total
        belief = joint / total if total > 0 else predicted
        if previous is not None:
            node = graph.next(node, previous, int(y))
        if h < len(done):
            predicted = np.asarray(model.predict(belief, int(done[h]), h))
    rest = _rest(model, belief, len(seen), int(seen[-1]))
    A = graph.probabilities.shape[1]
    values = [evaluate(_forced(graph, int(node), a), rest) for a in range(A)]
    return chance, belief, np.array(values)


def _rest(model: POMDP, belief: Array, h: int, y: int) -> POMDP:
    """The remaining steps h..H as a model of their own, which starts with the observation y."""
    _, Y, A = model.sizes
    steps = range(h - 1, model.horizon)
    moves = np.stack([np.asarray(model.moves(k)) for k in steps])
    shows = np.stack(
        [np.stack([np.asarray(model.shows(k, a)) for a in (*range(A), None)]) for k in steps]
    )
    shows[0] = np.eye(Y)[y]
    reward = np.asarray(model.reward)[h - 1 :]
    return model._replace(initial=belief, transition=moves, emission=shows, reward=reward)


def _forced(graph: GraphPolicy, node: int, action: int) -> GraphPolicy:
    """The policy from a node on, with a given first action."""
    start, chances, successor = graph.start, graph.probabilities, graph.successor
    first = np.eye(chances.shape[1])[action]
    return GraphPolicy(
        np.full(len(start), len(chances)),
        np.vstack([chances, first]),
        np.concatenate([successor, successor[node : node + 1]]),
    )

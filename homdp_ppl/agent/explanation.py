"""Explanations of decisions: belief over states, and the value of each action with its spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from homdp_ppl.agent.decision import (
    Following,
    Moment,
    Turning,
    moment,
    named_action,
    node_after,
    turnings,
)
from homdp_ppl.agent.similar import Similar, similar
from homdp_ppl.agent.values import encode
from homdp_ppl.core import html
from homdp_ppl.core.allowed import allowed_after
from homdp_ppl.core.arguments import count_problems, refuse
from homdp_ppl.core.checked import checked_but
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.graph_policy import GraphPolicy, graph_of
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.sensors import ENDED
from homdp_ppl.core.spaces import names_of, require_finite
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.world import World
from homdp_ppl.errors import DataError, ParameterError, Problem
from homdp_ppl.posteriors.belief import Posterior
from homdp_ppl.precision import Array, in_x64

DRAWS = 100  # models drawn from a posterior
LISTED = 4  # reasons of each kind in a text
LEAST = 5e-4  # probability of a next observation that is listed
ROUNDING = 1e-12  # relative: smaller spreads are zero


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
    values: dict[str, ActionValue]  # by action, without those that are forbidden now
    turnings: tuple[Turning, ...]  # beliefs from which on another action would be better
    instead: dict[str, str]  # the action, had the last observation been another one
    following: dict[str, Following]  # the next action, by the next observation
    similar: Similar | None  # revealed episodes with a similar history

    @property
    def action(self) -> str:
        """The action that the policy takes with the largest probability."""
        return max(self.values, key=lambda name: self.values[name].probability)

    def __str__(self) -> str:
        seen = ", ".join(self.observations)
        states = sorted(self.belief.items(), key=lambda item: -item[1])
        lines = [f"after {seen}", *(f"  {name}: {p:.3f}" for name, p in states if p > 5e-4)]
        lines += [
            f"{'->' if value.probability > 0 else '  '} {name}: {value.value:.4g} "
            f"± {value.spread:.2g} (probability {value.probability:.3g})"
            for name, value in self.values.items()
        ]
        return "\n".join([*lines, *(f"  {line}" for line in self.reasons())])

    def reasons(self) -> list[str]:
        """What would change the decision, what comes next, and what was seen before, as text."""
        taken, best = self.values[self.action], max(self.values.items(), key=_value)
        lines = []
        if best[1].value - taken.value > LEAST:
            gain = best[1].value - taken.value
            lines.append(f"{best[0]} looks better than {self.action} by {gain:.2g}")
        lines += [
            f"{name} would be better from a probability of {then:.3g} for {state}, now {now:.3g}"
            for state, now, then, name in self.turnings[:LISTED]
        ]
        others = {y: a for y, a in self.instead.items() if a != self._usual}
        lines += [f"if it had been {y}: {a}" for y, a in list(others.items())[:LISTED]]
        lines += [
            f"next, after {y} ({p:.0%}): {a}" for y, (p, a) in list(self.following.items())[:LISTED]
        ]
        if self.similar is not None:
            number, steps, states, actions = self.similar
            noun = f"{number:,} revealed episode{'s' * (number != 1)}"
            which = "this history" if steps == len(self.observations) else f"the last {steps} steps"
            hidden = ", ".join(f"{name} in {n:,}" for name, n in states.items())
            lines.append(f"{noun} with {which}: {hidden}")
            lines += [f"{name} then earned {v:.4g} ({n:,})" for name, (n, v) in actions.items()]
        return lines

    @property
    def _usual(self) -> str:
        return " / ".join(name for name, value in self.values.items() if value.probability > 0)

    def _repr_html_(self) -> str:
        states = sorted(self.belief.items(), key=lambda item: -item[1])
        values = [
            (name, v.value, v.spread, f"{v.probability:.3g}") for name, v in self.values.items()
        ]
        return html.block(
            html.paragraph(f"{self.action} after {', '.join(self.observations)}", strong=True),
            html.table("Belief", ("state", "probability"), [(x, f"{p:.3f}") for x, p in states]),
            html.table("Actions", ("action", "value", "spread", "probability"), values),
            html.listing(self.reasons()),
        )


def _value(named: tuple[str, ActionValue]) -> float:
    return named[1].value


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
        y_1 .. y_h, as names or indices; of several sensors also as dicts or tuples.
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
      open right would be better from a probability of 0.981 for left, now 0.85
      open left would be better from a probability of 0.807 for right, now 0.15
      next, after growl left (74%): open right
      next, after growl right (26%): listen
    """
    past = model.episodes if isinstance(model, Posterior) else None
    return explanation(policy, model, observations, actions, draws, past)


@in_x64
def explanation(
    policy: Policy,
    model: Posterior | World,
    observations: Sequence[Any],
    actions: Sequence[Any],
    draws: int,
    past: Episodes | None,
) -> Explanation:
    """:func:`explain`, with revealed episodes in which to look for similar histories."""
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
    found = [moment(graph, each, seen, done) for each in _models(model, draws)]
    weights = np.array([each.chance for each in found])
    if not weights.sum() > 0:
        problem = Problem("observations", "an impossible history", "one that the model allows")
        raise DataError("explain", [problem])
    return _named(homdp, graph, seen, done, found, weights / weights.sum(), past)


def _named(
    homdp: HOMDP,
    graph: GraphPolicy,
    seen: Array,
    done: Array,
    found: list[Moment],
    weights: Array,
    past: Episodes | None,
) -> Explanation:
    """The explanation from the moments of all models and their weights."""
    states, observations, actions = homdp.spaces.names
    beliefs, values = (np.stack([each[k] for each in found]) for k in (1, 2))  # (M, X), (M, A, X)
    belief = weights @ beliefs
    each = np.einsum("mx,max->ma", beliefs, values)
    mean = weights @ each
    spread = np.sqrt(weights @ (each - mean) ** 2)
    spread[spread <= ROUNDING * (1 + np.abs(mean))] = 0.0
    together = np.einsum("m,mx,max->ax", weights, beliefs, values)
    plain = np.einsum("m,max->ax", weights, values)
    by_state = np.where(belief > 0, together / np.where(belief > 0, belief, 1.0), plain)
    node = node_after(graph, seen, done)
    chances, chosen = graph.probabilities[node], int(np.argmax(graph.probabilities[node]))
    offered = np.flatnonzero(_allowed(homdp, seen, done) | (chances > 0))
    named, place = [actions[a] for a in offered], int(np.searchsorted(offered, chosen))
    following = {}
    if len(seen) < homdp.horizon:
        ahead = weights @ np.stack([each.following[chosen] for each in found])
        for y in np.argsort(-ahead):
            if ahead[y] > LEAST:
                after = named_action(graph, int(graph.next(node, chosen, int(y))), actions)
                following[observations[y]] = Following(float(ahead[y]), after)
    instead = {
        name: named_action(graph, node_after(graph, [*seen[:-1], y], done), actions)
        for y, name in enumerate(observations)
        if y != seen[-1] and not (homdp.spaces.terminal and name == ENDED)
    }
    return Explanation(
        tuple(observations[y] for y in seen),
        tuple(actions[a] for a in done),
        dict(zip(states, belief.tolist(), strict=True)),
        {
            actions[a]: ActionValue(float(chances[a]), float(mean[a]), float(spread[a]))
            for a in offered
        },
        tuple(turnings(belief, by_state[offered], place, states, named)),
        instead,
        following,
        similar(homdp, past, seen, done),
    )


def _allowed(homdp: HOMDP, seen: Array, done: Array) -> Array:
    """Which actions are allowed after a history, (A,)."""
    if homdp.allowed is None:
        return np.ones(len(homdp.spaces.actions), dtype=bool)
    return allowed_after(homdp.allowed, seen, done, homdp.spaces, "explain", DataError)


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

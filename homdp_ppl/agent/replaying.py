"""Replays: every episode simulated again under the policy with which it was played."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import numpy as np

from homdp_ppl.agent.actor import Actor
from homdp_ppl.agent.ledger import Ledger, Session
from homdp_ppl.core.graph_policy import GraphPolicy, graph_of
from homdp_ppl.core.policy import Searching
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.spaces import names_of
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.declare.returns import draw_rewards
from homdp_ppl.precision import Array

CHUNK = 4_000_000  # numbers in memory at once
WIDEST = 64  # observations; with more, pairs of them are not counted


class Replays(NamedTuple):
    """Statistics of N episodes: one row for each set of replays, or a single one if observed."""

    seen: Array  # (D, H, Y)  how often each observation was made at each step
    pairs: Array  # (D, Y, Y)  how often y was followed by y'; (D, 0, 0) if there are too many
    returns: Array  # (D, N)  in the user's units


class Groups(NamedTuple):
    """Sessions that can be replayed, by the policy that was in force."""

    sessions: list[Session]
    policies: list[tuple[GraphPolicy, Array]]  # each with the places of its sessions


def groups_of(ledger: Ledger, actor: Actor, last: int) -> tuple[Groups, int]:
    """The last episodes that can be replayed, and the number of those that cannot.

    An episode can be replayed if the agent played it to its end, and if its policy is known after
    every history. Its states need not be revealed: a choice of revealed episodes would be biased.
    """
    H = ledger.spaces.horizon
    played = [
        session
        for session in ledger.sessions
        if session.decision is not None
        and session.id is not None
        and (len(session.actions) == H or session.ended == "terminal")
    ][-last:]
    kept: list[Session] = []
    policies: dict[tuple[int | None, int], tuple[GraphPolicy | None, list[int]]] = {}
    for session in played:
        key = session.decision, -1 if session.slot is None else session.slot % H
        if key not in policies:
            policy = actor.policy(ledger, session)
            graph = None
            if not isinstance(policy, Searching):
                graph = graph_of(policy, actor.learner.homdp)
            policies[key] = graph, []
        if policies[key][0] is not None:
            policies[key][1].append(len(kept))
            kept.append(session)
    found: list[tuple[GraphPolicy, Array]] = [
        (graph, np.array(where)) for graph, where in policies.values() if graph is not None
    ]
    return Groups(kept, found), len(played) - len(kept)


def padded_observations(sessions: list[Session], horizon: int, observations: int) -> Array:
    """The observations of finite episodes, (N, H); "ended", the last one, after an early end."""
    seen = np.full((len(sessions), horizon), observations - 1)
    for k, session in enumerate(sessions):
        seen[k, : len(session.observations)] = session.observations
    return seen


def observed(homdp: HOMDP, groups: Groups, returns: Array) -> Replays:
    """The statistics of the episodes themselves, given their returns."""
    Y = len(names_of(homdp.spaces.observations))
    seen = padded_observations(groups.sessions, homdp.horizon, Y)
    counts, pairs = _counters(1, homdp.horizon, Y)
    _count(counts, pairs, seen[None])
    return Replays(counts, pairs, returns[None])


def replay(
    homdp: HOMDP,
    groups: Groups,
    models: POMDP,
    parameters: Mapping[str, Array],
    seed: int,
) -> Replays:
    """Simulate all episodes once in each of D models, with the policies of the episodes.

    Parameters
    ----------
    homdp
        The declaration.
    groups
        The episodes and their policies.
    models
        D models; every table has a leading axis.
    parameters
        The values of the sites in these models.
    seed
        The seed of the simulations.
    """
    generator = np.random.default_rng(seed)
    D, (H, Y) = len(models.initial), (homdp.horizon, models.emission.shape[-1])
    N, law = len(groups.sessions), homdp.rewards.law
    counts, pairs = _counters(D, H, Y)
    returns: Array = np.zeros((D, N))
    whole = []
    tables, most = _Tables(models), max(models.sizes)
    chunk = max(1, CHUNK // (D * most))
    parts = [
        (graph, places[k : k + chunk])
        for graph, places in groups.policies
        for k in range(0, len(places), chunk)
    ]
    for graph, where in parts:
        states, seen, done = _simulate(generator, graph, tables, len(where), H)
        _count(counts, pairs, seen)
        if law is None:
            returns[:, where] = _known_returns(homdp, states, seen, done)
        else:
            whole.append((where, states, seen, done))
    if whole:
        order = np.argsort(np.concatenate([where for where, *_ in whole]))
        steps = range(1, 4)  # states, observations and actions
        drawn: list[Array] = [
            np.concatenate([made[k] for made in whole], axis=1)[:, order] for k in steps
        ]
        returns = _drawn_returns(homdp, parameters, drawn, seed)
    return Replays(counts, pairs, returns)


class _Tables:
    """Cumulated rows of D models, from which outcomes are drawn."""

    def __init__(self, models: POMDP) -> None:
        parts = (models.initial, models.transition, models.emission)
        self.initial, self.transition, self.emission = (
            np.cumsum(np.asarray(part), axis=-1)[..., :-1] for part in parts
        )
        self.first = np.arange(len(self.initial))[:, None]  # (D, 1)

    def moves(self, h: int, x: Array, a: Array) -> Array:
        """The rows of the next states, (D, n, X - 1)."""
        return self.transition[self.first, min(h, self.transition.shape[1] - 1), x, a]

    def shows(self, h: int, x: Array, a: Array | None) -> Array:
        """The rows of observations, (D, n, Y - 1), after the previous actions."""
        columns = self.emission.shape[2] - 1
        previous = columns if a is None else np.minimum(a, columns)
        return self.emission[self.first, min(h, self.emission.shape[1] - 1), previous, x]


def _pick(generator: np.random.Generator, rows: Array) -> Array:
    """One outcome from each of the cumulated rows (..., K - 1)."""
    picked: Array = (generator.random(rows.shape[:-1])[..., None] >= rows).sum(-1)
    return picked


def _simulate(
    generator: np.random.Generator, graph: GraphPolicy, tables: _Tables, n: int, horizon: int
) -> tuple[Array, Array, Array]:
    """States (D, n, H + 1), observations and actions (D, n, H)."""
    D, chances = len(tables.initial), np.cumsum(graph.probabilities, axis=1)[:, :-1]
    x = _pick(generator, np.broadcast_to(tables.initial[:, None], (D, n, tables.initial.shape[1])))
    states, seen, done = [x], [], []
    node: Array = np.zeros((D, n), dtype=int)
    a: Array | None = None
    for h in range(horizon):
        y = _pick(generator, tables.shows(h, x, a))
        if a is None:
            node = graph.start[y]
        else:
            node = graph.successor[node, 0 if graph.successor.shape[1] == 1 else a, y]
        a = _pick(generator, chances[node])
        x = _pick(generator, tables.moves(h, x, a))
        states.append(x)
        seen.append(y)
        done.append(a)
    return np.stack(states, -1), np.stack(seen, -1), np.stack(done, -1)


def _counters(sets: int, horizon: int, observations: int) -> tuple[Array, Array]:
    width = observations if observations <= WIDEST else 0
    return np.zeros((sets, horizon, observations)), np.zeros((sets, width, width))


def _count(counts: Array, pairs: Array, seen: Array) -> None:
    """Count observations (D, n, H) and pairs of successive ones."""
    D, _, H = seen.shape
    counts, pairs = np.asarray(counts), np.asarray(pairs)  # views
    first, steps = np.arange(D)[:, None, None], np.arange(H)
    np.add.at(counts, (np.broadcast_to(first, seen.shape), steps, seen), 1.0)
    if pairs.size and H > 1:
        before, after = seen[..., :-1], seen[..., 1:]
        np.add.at(pairs, (np.broadcast_to(first, before.shape), before, after), 1.0)


def _known_returns(homdp: HOMDP, states: Array, seen: Array, done: Array) -> Array:
    table = np.asarray(homdp.rewards.table)
    y = seen if table.shape[2] > 1 else 0
    rewards = table[np.arange(done.shape[-1]), states[..., :-1], y, done]
    return np.asarray(homdp.rewards.to_user(rewards, 1)).sum(-1)


def _drawn_returns(
    homdp: HOMDP, parameters: Mapping[str, Array], parts: list[Array], seed: int
) -> Array:
    """Returns with random rewards, (D, N)."""
    states, seen, done = parts
    D, N = states.shape[:2]

    def make() -> Callable[..., Array]:
        one = jax.vmap(draw_rewards(homdp), in_axes=(None, 0, 0, 0, 0))
        return jax.jit(jax.vmap(one))

    keys = jax.random.split(jax.random.key(seed), (D, N))
    draw: Callable[..., Array] = homdp.cache.get("rewards of replays", make)
    return np.asarray(draw(dict(parameters), keys, states, seen, done)).sum(-1)

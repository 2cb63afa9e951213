"""Checks of the good events of appendix C, on which the guarantee of HOP-B depends.

Each event is a statement about all rounds k. The functions here check one round, from the counts
before it; the event holds in a run if it holds in every round. For rows without visits the bound is
infinite. By the lemmas of appendix C, each of E_T, E_O and E_T^c has a probability of at least 1 -
delta. If tables depend on the step or on the previous action, the events are about the rows of
these tables that can be used. The paper knows the initial distribution, and no event is about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from homdp_ppl.confidence.estimates import empirical
from homdp_ppl.confidence.radii import hop_b_betas, hop_b_sensor_radii
from homdp_ppl.confidence.rows import row_steps, unknown_rows
from homdp_ppl.core.arguments import check_arguments
from homdp_ppl.core.checked import checked
from homdp_ppl.core.counts import Counts, check_counts
from homdp_ppl.core.graph_policy import GraphPolicy, check_policy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.pomdp_validation import check_pomdp
from homdp_ppl.core.spaces import HasTables, Spaces
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import PlanningError, Problem
from homdp_ppl.precision import Array


class Event(NamedTuple):
    """Whether an event holds in a round, and where it is closest to failing.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, tabular
    >>> coin = tabular(
    ...     T=[[[1.0]]], O=dist.Dirichlet(np.ones((1, 2))), initial=[1], reward=[[1]], horizon=1
    ... )
    >>> event = emission_event(
    ...     coin.at(O=[[0.5, 0.5]]),
    ...     Counts(np.ones((1, 1, 1)), np.array([[600, 400]])),
    ...     episodes=100,
    ... )
    >>> event.holds, round(event.slack, 3), event.where  # sqrt(16 log(2000) / 1000) - 0.2
    (True, 0.149, 'O(. | x0)')
    """

    holds: bool
    # the smallest value of bound - error over all cases of the event; negative if it fails
    slack: float
    where: str  # the case with the smallest slack, in the model's names


class Continuations(NamedTuple):
    """The expected return of a policy after each history and action, as a function of the state.

    g(x') = sum_y' O(y'|x') alpha_{h+1, tau'}(x').

    Examples
    --------
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> lamp = POMDP.of(
    ...     [0, 1], [[[1, 0]], [[0.5, 0.5]]], emission=np.eye(2), reward=[[0], [1]], horizon=3
    ... )
    >>> found = continuations(uniform_policy(lamp), lamp)
    >>> [
    ...     g.shape for g in found.values
    ... ]  # two steps have a next step; the policy has one node at each
    [(1, 1, 2), (1, 1, 2)]
    >>> found.arrivals[1].tolist()  # node 0, by action 0 and observation 0
    [[0, 0, 0]]
    """

    values: tuple[
        Array, ...
        # for h = 1..H-1: (nodes, A, X), one node for all histories that the policy does not
        # distinguish
    ]
    arrivals: tuple[
        Array, ...
    ]  # for h = 1..H-1: (nodes, 3)  a previous node, and the action and observation that lead here


@checked
def continuations(policy: GraphPolicy, pomdp: POMDP) -> Continuations:
    """The continuations of a policy after EVERY history, including those that it never reaches.

    E_T needs all of them: the regret proof compares with the optimal policy after histories of
    other policies.

    Parameters
    ----------
    policy
        For E_T the optimal policy of the true model, as an exact planner returns it: it acts
        optimally after every history.
    pomdp
        The true model.

    Examples
    --------
    >>> from homdp_ppl import POMDP, uniform_policy
    >>> lamp = POMDP.of(
    ...     [0, 1], [[[1, 0]], [[0.5, 0.5]]], emission=np.eye(2), reward=[[0], [1]], horizon=3
    ... )
    >>> [
    ...     g.tolist() for g in continuations(uniform_policy(lamp), lamp).values
    ... ]  # lit at the next step, then with probability 1/2
    [[[[0.0, 1.5]]], [[[0.0, 1.0]]]]
    """
    pomdp = check_pomdp(pomdp, "continuations")
    check_policy(policy, pomdp.spaces)
    if pomdp.rewards_by_observation:
        expected = "rewards that depend on the state and the action only, as in appendix C"
        problem = Problem("reward", "rewards that depend on the observation", expected)
        raise PlanningError("continuations", [problem])
    (X, Y, A), H = pomdp.sizes, pomdp.horizon
    by_step, arrivals = _every_node(policy, H)
    alpha = policy.probabilities[by_step[-1]] @ pomdp.rewards(H - 1)[:, 0].T  # (N, X)
    values: list[Array] = []
    for h in reversed(range(H - 1)):
        nodes, T, O = by_step[h], pomdp.moves(h), pomdp.shows_after(h + 1)  # noqa: E741
        after = np.searchsorted(by_step[h + 1], policy.successor[nodes])  # (N, A or 1, Y)
        g = sum(O[:, :, y] * alpha[after[:, :, y]] for y in range(Y))
        g = np.broadcast_to(g, (len(nodes), A, X))
        values.append(g)
        r = pomdp.rewards(h)[:, 0]
        alpha = np.einsum(
            "na,nxa->nx", policy.probabilities[nodes], r + np.einsum("xaz,naz->nxa", T, g)
        )
    return Continuations(tuple(reversed(values)), tuple(arrivals[: H - 1]))


@checked
def transition_event(
    world: World,
    counts: Counts,
    episodes: int,
    optimal: Continuations,
    delta: float = 0.1,
    known: bool = True,
) -> Event:
    """E_T: |sum_x' (T - T-hat)(x'|x, a) g(x')| <= sqrt(beta_1 / n(x, a)) for all h, x, a and
    histories tau_h.

    Here g is the continuation of the optimal policy after tau_h and a. The paper states the event
    for one sign and proves it for the other; the proofs use both. At h = H the left side is zero.

    Parameters
    ----------
    world
        The true world.
    counts
        The data before the round.
    episodes
        K, the number of rounds of the whole run.
    optimal
        :func:`continuations` of the optimal policy in the true model.
    delta
        Allowed probability of error.
    known
        Whether known rows are exact in the estimates; otherwise all rows come from counts.

    Examples
    --------
    >>> from homdp_ppl import Counts, models
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=3)
    >>> optimal = continuations(history_tree()(world.pomdp).policy, world.pomdp)
    >>> heads = Counts(
    ...     np.full((2, 3, 2), [100_000, 0]), np.ones((2, 2))
    ... )  # after each action the tiger went left
    >>> transition_event(world, heads, 1000, optimal, known=False).where
    'step 2 after growl left, listen, growl left: T(. | right, listen)'
    """
    check_arguments("transition_event", episodes=episodes, delta=delta)
    check_counts(counts, world)
    error, _ = _errors(world, counts, known)
    rows = error.shape[:-1]
    # the largest error of each row, and its step and node
    worst, place = np.zeros(rows), np.full((*rows, 2), -1)
    for h, g in enumerate(optimal.values):
        here = (h,) if world.form.moves_by_step else ()
        for a in range(rows[-1]):
            row = (*here, slice(None), a)
            sizes = np.abs(g[:, a] @ error[row].T)  # (N, X)
            node = sizes.argmax(0)
            largest = sizes.max(0)
            place[row] = np.where(
                (largest > worst[row])[:, None],
                np.stack([np.full(len(node), h), node], 1),
                place[row],
            )
            worst[row] = np.maximum(worst[row], largest)

    def describe(*row: int) -> str:
        text = f"T(. | {world.spaces.states[row[-2]]}, {world.spaces.actions[row[-1]]})"
        h, node = place[row]
        return (
            f"step {h + 1} after {_history(optimal, h, node, world.spaces)}: {text}"
            if h >= 0
            else text
        )

    beta, _ = hop_b_betas(world, episodes, delta)
    return _judge(worst, np.sqrt(_per_visit(beta, counts.state_action)), describe)


@checked
def emission_event(
    world: World, counts: Counts, episodes: int, delta: float = 0.1, known: bool = True
) -> Event:
    """E_O: ||O(.|x) - O-hat(.|x)||_1 <= sqrt(beta_2 / n(x)) for all x, or all rows of the table.

    beta_2 is as printed. The paper's proof needs log(2YXKH/delta), but by Weissman's inequality the
    event fails with probability at most X K H (2^Y - 2) (delta / (Y X K H))^(4Y) < delta. For
    several sensors and ``known=True``, the bound is that of :func:`hop_b_radii`.

    Parameters
    ----------
    world, counts, episodes, delta, known
        As in :func:`transition_event`.

    Examples
    --------
    >>> from homdp_ppl import Counts, models
    >>> world = models.load("tiger")
    >>> event = emission_event(
    ...     world, Counts(np.zeros((2, 3, 2)), np.array([[900, 100], [500, 500]])), 1000
    ... )
    >>> event.holds, round(event.slack, 6), event.where
    (False, -0.262134, 'O(. | right)')
    """
    check_arguments("emission_event", episodes=episodes, delta=delta)
    _, error = _errors(world, counts, known)
    _, beta = hop_b_betas(world, episodes, delta)
    radius: Array = np.sqrt(_per_visit(beta, counts.visits))
    if known and world.spaces.sensors:
        radius = hop_b_sensor_radii(world.homdp, counts, episodes, delta, 1.0)
    bound = np.where(row_steps(world)[1] > 0, radius, np.inf)
    return _judge(np.abs(error).sum(-1), bound, lambda *row: _emission_row(world, row))


@checked
def relative_transition_event(
    world: World, counts: Counts, episodes: int, c: float, delta: float = 0.1, known: bool = True
) -> Event:
    """E_T^c: T-hat(x'|x, a) - T(x'|x, a) <= T(x'|x, a) / (2c) + 2c log(X^2 A K H / delta) / n(x, a)
    for all x, a, x'.

    The paper prints "=" instead of "<=". The event is one-sided: the other side is neither claimed
    nor used.

    Parameters
    ----------
    world, counts, episodes, delta, known
        As in :func:`transition_event`.
    c
        At least 1. The regret proof uses H/2, which is below 1 at H = 1: use max(1, H/2).

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, tabular
    >>> lamp = tabular(
    ...     T=dist.Dirichlet(np.ones((2, 1, 2))),
    ...     O=np.eye(2),
    ...     initial=[0, 1],
    ...     reward=[[0], [1]],
    ...     horizon=2,
    ... )
    >>> seen = Counts(np.array([[[0, 0]], [[10_000, 30_000]]]), np.ones((2, 2)))
    >>> event = relative_transition_event(
    ...     lamp.at(T=np.full((2, 1, 2), 0.5)), seen, episodes=1000, c=2.0
    ... )
    >>> (
    ...     event.holds,
    ...     round(event.slack, 3),
    ...     event.where,
    ... )  # T-hat is 0.75; T/4 and 4 log(80000) / 40000 are not enough
    (False, -0.124, 'T(x1 | x1, a0)')
    """
    check_arguments("relative_transition_event", episodes=episodes, delta=delta, c=c)
    check_counts(counts, world)
    T, _ = world.form.short(world.pomdp.transition, world.pomdp.emission)
    error = -_errors(world, counts, known)[0]
    bound = (
        T / (2 * c)
        + _per_visit(2 * c * _logarithm(world, episodes, delta), counts.state_action)[..., None]
    )
    states, actions = world.spaces.states, world.spaces.actions

    def describe(*entry: int) -> str:
        *step, x, a, after = entry
        return f"T{_step(step)}({states[after]} | {states[x]}, {actions[a]})"

    return _judge(error, bound, describe)


@checked
def tilde_epsilon(
    c: float, homdp: HOMDP, counts: Counts, episodes: int, delta: float = 0.1, known: bool = True
) -> Array:
    """The lower-order radius of the regret proof, (X, A).

    min(2, 2c X log(X^2 A K H / delta) / n(x, a)), and 0 for known rows.

    Parameters
    ----------
    c
        As in :func:`relative_transition_event`.
    homdp
        The declaration.
    counts, episodes, delta, known
        As in :func:`transition_event`.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import Counts, tabular
    >>> lamp = tabular(
    ...     T=dist.Dirichlet(np.ones((2, 1, 2))),
    ...     O=np.eye(2),
    ...     initial=[0, 1],
    ...     reward=[[0], [1]],
    ...     horizon=2,
    ... )
    >>> seen = Counts(np.array([[[0, 0]], [[250, 750]]]), np.ones((2, 2)))
    >>> tilde_epsilon(1.0, lamp, seen, episodes=1000).ravel().round(
    ...     4
    ... ).tolist()  # never visited; 4 log(80000) / 1000
    [2.0, 0.0452]
    """
    check_arguments("tilde_epsilon", episodes=episodes, delta=delta, c=c)
    check_counts(counts, homdp)
    X = homdp.spaces.sizes[0]
    radius = np.minimum(
        2, _per_visit(2 * c * X * _logarithm(homdp, episodes, delta), counts.state_action)
    )
    return np.where(unknown_rows(homdp, known).transition, radius, 0.0)


def _logarithm(model: HasTables, episodes: int, delta: float) -> float:
    rows_and_visits = int(row_steps(model)[0].sum())  # X A H
    return math.log(model.spaces.sizes[0] * rows_and_visits * float(episodes) / delta)


def _errors(world: World, counts: Counts, known: bool) -> tuple[Array, Array]:
    """T - T-hat and O - O-hat, in the form of the declared tables."""
    estimate, truth = empirical(world.homdp, counts, known), world.pomdp
    moves, shows = truth.transition - estimate.transition, truth.emission - estimate.emission
    return world.form.short(moves, shows)


def _step(steps: Sequence[int]) -> str:
    """The subscript of a table at a step, which counts from 1; empty without a step axis."""
    return f"_{steps[0] + 1}" if steps else ""


def _emission_row(world: World, row: Sequence[int]) -> str:
    """An emission row in names."""
    states, actions = world.spaces.states, world.spaces.actions
    *steps, a, x = row if len(row) > 1 else (-1, *row)
    text = f"O{_step(steps)}(. | {states[x]}"
    if not world.form.answers_action:
        return f"{text})"
    return f"{text}, {actions[a]})" if a < len(actions) else f"{text}) at first"


def _per_visit(numerator: Array | float, n: Array) -> Array:
    """Numerator / n, infinite where n = 0."""
    return np.where(n > 0, numerator / np.where(n > 0, n, 1), np.inf)


def _judge(error: Array, bound: Array, describe: Callable[..., str]) -> Event:
    slack = bound - error
    worst = np.unravel_index(slack.argmin(), slack.shape)
    return Event(bool((slack >= 0).all()), float(slack[worst]), describe(*map(int, worst)))


def _every_node(policy: GraphPolicy, horizon: int) -> tuple[list[Array], list[Array]]:
    """The nodes that any actions reach at each step, sorted, and one way to arrive at each."""
    nodes, first = np.unique(policy.start, return_index=True)
    none = np.full(len(nodes), -1)
    found: list[Array] = [nodes]
    arrivals: list[Array] = [np.stack([none, none, first], 1)]
    for _ in range(horizon - 1):
        following = policy.successor[nodes]
        nodes, first = np.unique(following, return_index=True)
        found.append(nodes)
        arrivals.append(np.stack(np.unravel_index(first, following.shape), 1))
    return found, arrivals


def _history(optimal: Continuations, step: int, node: int, spaces: Spaces) -> str:
    """A history that leads to a node, by names."""
    words: list[str] = []
    for h in range(step, -1, -1):
        before, action, observation = map(int, optimal.arrivals[h][node])
        words = [spaces.actions[action]] * (h > 0) + [spaces.names[1][observation]] + words
        node = before
    return ", ".join(words)

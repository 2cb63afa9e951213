"""Random worlds, and an independent simulator of behaviours that may see the state."""

import numpy as np
import numpyro.distributions as dist

from homdp_ppl import Episodes, GraphPolicy, tabular, uniform_policy
from homdp_ppl.confidence import confidence_sets
from homdp_ppl.core.episodes import SAW_STATES
from homdp_ppl.planners import history_tree


def declaration(states=2, observations=2, actions=2, horizon=3, seed=0):
    """A declaration whose rows are all unknown, with random rewards per state and action."""
    rng = np.random.default_rng([seed, 1])
    return tabular(
        T=dist.Dirichlet(np.ones((states, actions, states))),
        O=dist.Dirichlet(np.ones((states, observations))),
        initial=np.full(states, 1 / states),
        reward=rng.random((states, actions)),
        horizon=horizon,
        name="random",
    )


def random_world(homdp, seed):
    """A world of the declaration with uneven rows."""
    rng = np.random.default_rng([seed, 2])
    X, Y, A, _ = homdp.spaces.sizes
    return homdp.at(T=rng.dirichlet(np.full(X, 0.5), (X, A)), O=rng.dirichlet(np.full(Y, 0.5), X))


def draw(rng, chances):
    """One outcome per row of probabilities."""
    return (rng.random((len(chances), 1)) > chances.cumsum(-1)[:, :-1]).sum(-1)


def simulate(pomdp, acting, episodes, seed, saw_states=False):
    """Episodes of a behaviour ``acting(h, nodes, states, observations) -> (chances, nodes)``."""
    rng = np.random.default_rng([seed, 3])
    H = pomdp.horizon
    x = draw(rng, np.repeat(pomdp.initial[None], episodes, 0))
    states, seen, done, nodes, a = [x], [], [], None, None
    for h in range(H):
        table = pomdp.shows(h) if h == 0 else pomdp.shows_after(h)
        rows = table[x] if table.ndim == 2 else table[a % len(table), x]
        y = draw(rng, rows)
        chances, nodes = acting(h, nodes, x, y, a)
        a = draw(rng, chances)
        x = draw(rng, pomdp.moves(h)[x, a])
        states.append(x)
        seen.append(y)
        done.append(a)
    behaviour = SAW_STATES if saw_states else None
    return Episodes(np.stack(seen, 1), np.stack(done, 1), np.stack(states, 1), behaviour=behaviour)


def following(policy: GraphPolicy, share=0.0):
    """A behaviour that follows a graph, with a share of uniform actions."""
    A = policy.probabilities.shape[1]

    def acting(h, nodes, x, y, a):
        column = 0 if policy.successor.shape[1] == 1 else a
        nodes = policy.start[y] if h == 0 else policy.successor[nodes, column, y]
        return (1 - share) * policy.probabilities[nodes] + share / A, nodes

    return acting


def seeing(table):
    """A behaviour with probabilities (X, A) by the state."""
    return lambda h, nodes, x, y, a: (table[x], nodes)


def behaviours(homdp, world, seed, episodes):
    """Logs of a uniform behaviour, one that learns greedily, and one that sees the state."""
    rng = np.random.default_rng([seed, 4])
    X, _, A, _ = homdp.spaces.sizes
    uniform = uniform_policy(world)
    if seed % 3 == 0:
        return simulate(world.pomdp, following(uniform), episodes, seed)
    if seed % 3 == 1:
        first = simulate(world.pomdp, following(uniform), episodes // 3, seed)
        centre = confidence_sets(homdp, homdp.counts(first)).centre
        greedy = history_tree()(centre).policy
        rest = episodes - len(first)
        return first + simulate(world.pomdp, following(greedy), rest, seed + 1)
    table = rng.dirichlet(np.ones(A), X)
    return simulate(world.pomdp, seeing(table), episodes, seed, saw_states=True)

"""Other planners on the same arrays: a naive networkx tree, and two planners of pomdp-py."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx
import numpy as np

from homdp_ppl import POMDP


def naive_tree(pomdp: POMDP) -> float:
    """A naive tree: a networkx node per history with its belief, and values by recursion."""
    rho, T, O, r = pomdp.stationary()  # noqa: E741
    tree = nx.DiGraph()

    def grow(weights: Any, h: int) -> int:
        node = tree.number_of_nodes()
        tree.add_node(node, weights=weights)
        if h + 1 < len(r):
            for a in range(T.shape[1]):
                for y in range(O.shape[1]):
                    tree.add_edge(node, grow((weights @ T[:, a]) * O[:, y], h + 1), action=a)
        return node

    def value(node: int, h: int) -> float:
        totals = list(tree.nodes[node]["weights"] @ r[h])
        for _, child, data in tree.out_edges(node, data=True):
            totals[data["action"]] += value(child, h + 1)
        return max(totals)

    return sum(value(grow(rho * O[:, y], 0), 0) for y in range(O.shape[1]))


def pomdp_py_models(pomdp: POMDP) -> Any:
    """The module pomdp_py, and a function from a belief to an agent with these arrays as models."""
    import pomdp_py

    X, Y, A = pomdp.sizes
    T, r = pomdp.moves(0), pomdp.rewards(0)[:, 0]
    O = np.stack([pomdp.shows(min(1, pomdp.horizon - 1), a) for a in range(A)])  # noqa: E741

    class Thing:
        def __init__(self, k: int) -> None:
            self.k = k

        def __hash__(self) -> int:
            return hash((type(self).__name__, self.k))

        def __eq__(self, other: object) -> bool:
            return type(self) is type(other) and self.k == other.k  # type: ignore[attr-defined]

    class State(Thing, pomdp_py.State): ...

    class Action(Thing, pomdp_py.Action): ...

    class Observation(Thing, pomdp_py.Observation): ...

    states, actions = [State(k) for k in range(X)], [Action(k) for k in range(A)]
    observations = [Observation(k) for k in range(Y)]

    class Transition(pomdp_py.TransitionModel):
        def probability(self, following: Any, state: Any, action: Any) -> float:
            return float(T[state.k, action.k, following.k])

        def sample(self, state: Any, action: Any) -> Any:
            return random.choices(states, T[state.k, action.k])[0]

        def get_all_states(self) -> Any:
            return states

    class Emission(pomdp_py.ObservationModel):
        def probability(self, observation: Any, following: Any, action: Any) -> float:
            return float(O[action.k, following.k, observation.k])

        def sample(self, following: Any, action: Any) -> Any:
            return random.choices(observations, O[action.k, following.k])[0]

        def get_all_observations(self) -> Any:
            return observations

    class Reward(pomdp_py.RewardModel):
        def sample(self, state: Any, action: Any, following: Any) -> float:
            return float(r[state.k, action.k])

    class Rollout(pomdp_py.RolloutPolicy):
        def sample(self, state: Any) -> Any:
            return random.choice(actions)

        def rollout(self, state: Any, history: Any = None) -> Any:
            return random.choice(actions)

        def get_all_actions(self, *_: Any, **__: Any) -> Any:
            return actions

    def agent(belief: Any) -> Any:
        weights = {state: float(b) for state, b in zip(states, belief, strict=True)}
        return pomdp_py.Agent(
            pomdp_py.Histogram(weights), Rollout(), Transition(), Emission(), Reward()
        )

    return pomdp_py, agent


def pomdp_py_value_iteration(pomdp: POMDP) -> None:
    """Plan the action after the first observation by the exact value iteration of pomdp-py."""
    module, agent = pomdp_py_models(pomdp)
    belief = pomdp.initial * pomdp.shows(0)[:, 0]
    planner = module.ValueIteration(horizon=pomdp.horizon, discount_factor=1.0, epsilon=1e-9)
    planner.plan(agent(belief / belief.sum()))


class PouctPolicy:
    """POUCT of pomdp-py, which plans again at every step, as a policy with an exact value.

    Its random numbers depend on the seed and the history.
    """

    def __init__(self, pomdp: POMDP, simulations: int, seed: int) -> None:
        self._pomdp, self._simulations, self._seed = pomdp, simulations, seed
        self._module, self._agent = pomdp_py_models(pomdp)

    def act(self, observations: Any, actions: Any) -> Any:
        """All probability on the action that the search finds best."""
        seen, done = [int(y) for y in observations], [int(a) for a in actions]
        belief = self._pomdp.initial * self._pomdp.shows(0)[:, seen[0]]
        for h, (a, y) in enumerate(zip(done, seen[1:], strict=True)):
            belief = self._pomdp.predict(belief, a, h) * self._pomdp.shows(h + 1, a)[:, y]
        if not belief.any():  # an impossible history: the action does not matter
            return np.eye(self._pomdp.sizes[2])[0]
        agent = self._agent(belief / belief.sum())
        random.seed(repr((self._seed, seen, done)))
        solver = self._module.POUCT(
            max_depth=self._pomdp.horizon - len(done) - 1,  # depths from 0
            discount_factor=1.0,
            num_sims=self._simulations,
            exploration_const=self._pomdp.horizon,  # the range of returns
            rollout_policy=agent.policy_model,
        )
        return np.eye(self._pomdp.sizes[2])[solver.plan(agent).k]


def pomdp_py_pouct(pomdp: POMDP, episodes: int, simulations: int = 300) -> float:
    """The mean return of POUCT of pomdp-py, which plans again at every step."""
    module, agent = pomdp_py_models(pomdp)
    rho, T, O, r = pomdp.stationary()  # noqa: E741
    generator = np.random.default_rng(0)
    random.seed(0)
    total = 0.0
    for _ in range(episodes):
        state = generator.choice(len(rho), p=rho)
        belief = rho * O[:, generator.choice(O.shape[1], p=O[state])]
        for h in range(len(r)):
            belief = belief / belief.sum()
            solver = module.POUCT(
                max_depth=len(r) - h,
                discount_factor=1.0,
                num_sims=simulations,
                exploration_const=1.0,
                rollout_policy=agent(belief).policy_model,
            )
            action = solver.plan(agent(belief)).k
            total += r[h, state, action]
            state = generator.choice(len(rho), p=T[state, action])
            belief = (belief @ T[:, action]) * O[:, generator.choice(O.shape[1], p=O[state])]
    return total / episodes

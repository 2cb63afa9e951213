"""A policy that plans online: it updates a particle belief and searches before every action."""

from __future__ import annotations

import math
import time
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple, TypeVar, cast

import jax
import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.checked import checked
from homdp_ppl.core.policy import Searching, range_problems
from homdp_ppl.core.pomdp import TIE
from homdp_ppl.core.spaces import Real, Spaces, shape_of, value_problems
from homdp_ppl.declare.dynamics import Dynamics, Numbers
from homdp_ppl.errors import PolicyError, Problem
from homdp_ppl.planners._particle_belief import Belief, make_filter
from homdp_ppl.planners._particle_rows import Constants, Sizes, Tree
from homdp_ppl.planners._particle_search import Search
from homdp_ppl.precision import Array, in_x64, to_numpy

CHUNK = 64  # simulations between two checks of the clock
BELIEFS, ACTIONS = 1024, 100_000  # numbers of histories whose beliefs and actions are cached
BELIEF_BYTES = 250_000_000  # memory limit of the cached beliefs

V = TypeVar("V")


class Budget(NamedTuple):
    """When a search ends: after a number of simulations or seconds, whichever comes first."""

    simulations: int
    seconds: float | None


class OnlinePolicy(Searching):
    """A policy that searches before every action, as :func:`homdp_ppl.planners.particle_tree`
    returns it.

    The policy uses observations and actions only; states are particles that it draws itself. Its
    beliefs are updated from step to step, and those of recent histories are cached. With a budget
    in simulations, actions are a function of the seed and the history, whatever the order of calls.
    With a budget in seconds, the action of a history is cached after the first call.

    If no particle explains an observation (its density is zero or NaN at all of them), the belief
    stays as predicted before that observation, and ``statistics["depletions"]`` counts the history.
    Rewards outside their range and states that are not finite raise PolicyError if they occur in
    the search.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> from homdp_ppl.planners import particle_tree
    >>> policy = particle_tree(simulations=50)(models.load("tiger", horizon=2)).policy
    >>> belief = policy.belief([0], [])  # the tiger growled on the left
    >>> (
    ...     len(belief.particles),
    ...     round(float(belief.weights[belief.particles == 0].sum()), 2),
    ... )  # 0.85 with infinitely many
    (1000, 0.85)
    >>> policy.act(
    ...     [0, 0], [0]
    ... )  # after listening it growled left again: open right. The last action needs no search.
    array([0., 0., 1.])
    >>> policy
    OnlinePolicy(particle_tree, 0 searches so far)
    """

    @checked
    def __init__(
        self,
        dynamics: Dynamics,
        numbers: Numbers,
        sizes: Sizes,
        constants: Constants,
        budget: Budget,
        particles: int,
        seed: int,
    ) -> None:
        self._parameters, self._domain = numbers, dynamics.spaces
        self._machine = dynamics.cache.get(
            ("particle_tree", sizes, particles), lambda: _Machine(dynamics, sizes, particles)
        )
        self._constants, self._budget, self._seed = constants, budget, seed
        self._beliefs: OrderedDict[bytes, Belief] = OrderedDict()
        self._actions: OrderedDict[bytes, int] = OrderedDict()
        self._most = max(
            self._domain.horizon,
            min(BELIEFS, BELIEF_BYTES // belief_bytes(self._domain, particles)),
        )
        self._depleted: set[bytes] = set()
        self._simulations = self._searches = 0
        self._seconds, self._effective = 0.0, float(particles)

    @property
    def statistics(self) -> Mapping[str, float]:
        """Numbers of simulations, searches and seconds, of histories that no particle explained
        (depletions), and the smallest effective number of particles.
        """
        return {
            "simulations": self._simulations,
            "searches": self._searches,
            "seconds": self._seconds,
            "depletions": len(self._depleted),
            "effective particles": self._effective,
        }

    @checked
    @in_x64
    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}.

        The policy is deterministic: one probability is 1.
        """
        history = self._history(observations, actions)
        name = _name(*history)
        if name not in self._actions:
            values = self._values(*history)
            if np.isnan(values).any():
                raise PolicyError("OnlinePolicy.act", [_not_a_number(len(history[0]))])
            _keep(
                self._actions,
                name,
                int(np.argmax(values >= values.max() - TIE * self._domain.horizon)),
                ACTIONS,
            )
        return np.eye(len(self._domain.actions))[self._actions[name]]

    @checked
    @in_x64
    def belief(self, observations: ArrayLike, actions: ArrayLike) -> Belief:
        """The weighted particles after a history."""
        return to_numpy(self._belief(*self._history(observations, actions)))

    @checked
    @in_x64
    def search(self, observations: ArrayLike, actions: ArrayLike) -> Tree:
        """The search tree after a history that is not complete; row 0 is the root."""
        history = self._history(observations, actions)
        if len(history[0]) == self._domain.horizon:
            got = f"{len(history[0])} observations"
            raise PolicyError(
                "OnlinePolicy.search",
                [
                    Problem(
                        "history",
                        got,
                        f"at most {self._domain.horizon - 1}",
                        "The last step needs no search; use act.",
                    )
                ],
            )
        return to_numpy(self._grown(*history))

    def _values(self, seen: Array, done: Array) -> Array:
        """The value of each action; -inf if the search did not try it."""
        if len(seen) < self._domain.horizon:
            tree = self._grown(seen, done)
            return np.where(np.asarray(tree.visits[0]) > 0, np.asarray(tree.quality[0]), -np.inf)
        belief = self._belief(seen, done)
        return np.asarray(
            self._machine.search.rewards(
                self._parameters, len(done), seen[-1], belief.particles, belief.weights
            )
        )

    def _grown(self, seen: Array, done: Array) -> Tree:
        search, h, belief = self._machine.search, len(done), self._belief(seen, done)
        _, planting, growing = self._machine.keys(self._seed, _number(seen, done))
        tree = search.root(self._parameters, planting, h, seen[-1], *belief[:2])

        def grow(tree: Tree, first: int, last: int) -> Tree:
            grown: Tree = search.run(
                tree, self._parameters, self._constants, growing, h, first, last
            )
            cast(jax.Array, grown.value).block_until_ready()
            return grown

        tree = grow(tree, 0, 0)  # compile before the clock starts
        begun, most = time.perf_counter(), self._budget.simulations
        limit = math.inf if self._budget.seconds is None else self._budget.seconds
        chunk, count = (most if limit == math.inf else CHUNK), 0
        while count < most and (count == 0 or time.perf_counter() - begun < limit):
            tree = grow(tree, count, min(count + chunk, most))
            count = min(count + chunk, most)
        self._seconds += time.perf_counter() - begun
        self._simulations += count
        self._searches += 1
        return tree

    def _belief(self, seen: Array, done: Array) -> Belief:
        name = _name(seen, done)
        if name in self._beliefs:
            self._beliefs.move_to_end(name)
            return self._beliefs[name]
        key = self._machine.keys(self._seed, _number(seen, done))[0]
        if len(done) == 0:
            belief: Belief = self._machine.first(self._parameters, key, seen[0])
        else:
            before = self._belief(seen[:-1], done[:-1])
            belief = self._machine.update(
                self._parameters, key, before, done[-1], seen[-1], len(done)
            )
        if belief.depleted:
            self._depleted.add(name)
        self._effective = min(self._effective, float(belief.effective))
        _keep(self._beliefs, name, belief, self._most)
        return belief

    def _history(self, observations: ArrayLike, actions: ArrayLike) -> tuple[Array, Array]:
        """Validate observations and actions, and return them as arrays."""
        Y = self._domain.observations
        seen, done = np.asarray(observations), np.asarray(actions)
        done = done if done.size else np.zeros(0, dtype=int)
        if (
            seen.shape[1:] != shape_of(Y)
            or seen.ndim == 0
            or done.shape != (len(seen) - 1,)
            or len(seen) > self._domain.horizon
        ):
            got = f"observations of shape {seen.shape} and actions of shape {done.shape}"
            expected = (
                f"h observations of shape {shape_of(Y)} and h - 1 actions, h at most "
                f"{self._domain.horizon}"
            )
            raise PolicyError("OnlinePolicy.act", [Problem("history", got, expected)])
        wrong = [
            problem._replace(at=problem.at.removeprefix("episode 0, "))
            for problem in value_problems("observations", seen[None], Y)
        ]
        problems = [*wrong, *range_problems("actions", done, len(self._domain.actions))]
        if problems:
            raise PolicyError("OnlinePolicy.act", problems)
        return seen.astype(float if isinstance(Y, Real) else int), done.astype(int)

    def __repr__(self) -> str:
        return f"OnlinePolicy(particle_tree, {self._searches} searches so far)"


class _Machine:
    """Compiled functions for a model: filter, search, and random keys from a seed and a history."""

    def __init__(self, dynamics: Dynamics, sizes: Sizes, particles: int) -> None:
        first, update = make_filter(dynamics, particles)
        self.first, self.update = jax.jit(first), jax.jit(update)
        self.search = Search(dynamics, sizes)
        self.keys = jax.jit(
            lambda seed, number: jax.random.split(
                jax.random.fold_in(jax.random.key(seed), number), 3
            )
        )


def belief_bytes(domain: Spaces, particles: int) -> int:
    """Memory of a belief, in bytes."""
    return 8 * particles * (1 + math.prod(shape_of(domain.states)))


def _not_a_number(step: int) -> Problem:
    remedy = (
        "Clip the reward to [0, 1], or declare a larger reward_range. If the reward is correct, a "
        "kernel has a parameter outside its domain, or the states diverge."
    )
    return Problem(
        "world",
        "a reward that is NaN or outside its range",
        "rewards in [0, 1], or in reward_range",
        remedy,
        f"step {step}",
    )


def _name(seen: Array, done: Array) -> bytes:
    return bytes(seen.tobytes() + done.tobytes())  # unique, since the lengths differ by one


def _number(seen: Array, done: Array) -> np.uint32:
    return np.uint32(zlib.crc32(_name(seen, done)))


def _keep(store: OrderedDict[bytes, V], name: bytes, value: V, most: int) -> None:
    store[name] = value
    if len(store) > most:
        store.popitem(last=False)

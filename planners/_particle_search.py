"""Compiled tree search over particle beliefs; each simulation adds one belief.

    belief ──action──► branch: particles of the next state
    branch ──observation──► belief: weights for the branch's particles

All observations of a branch share its particles and weight them by their densities (POWSS: Lim,
Tomlin and Sunberg 2020). Their number grows with the visits to the branch (POMCPOW: Sunberg and
Kochenderfer 2018). A simulation descends by upper confidence bounds, adds one belief, and backs up
its value: the mean over observations, the maximum over actions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from homdp_ppl.core.spaces import Real
from homdp_ppl.declare.dynamics import Dynamics
from homdp_ppl.planners._particle_belief import normalised, systematic
from homdp_ppl.planners._particle_rows import (
    Change,
    Constants,
    Leaf,
    Sizes,
    Step,
    Stop,
    Tree,
    at_step,
    empty_tree,
    get,
    put,
    with_step,
)
from homdp_ppl.precision import Array

GOLDEN = (5**0.5 - 1) / 2  # its multiples are evenly distributed modulo 1


class Search:
    """The compiled search of one model: ``root`` creates a tree, ``run`` extends it.

    Parameters
    ----------
    dynamics
        The model.
    sizes
        Static sizes of the search.
    """

    def __init__(self, dynamics: Dynamics, sizes: Sizes) -> None:
        self.dynamics, self.sizes, spaces = dynamics, sizes, dynamics.spaces
        self.actions, self.horizon = len(spaces.actions), spaces.horizon
        # whether an observation can occur twice
        self.countable = not isinstance(spaces.observations, Real)
        self.root = jax.jit(self._root)
        self.run = jax.jit(self._run, donate_argnums=0)
        self.rewards = jax.jit(self._rewards)

    def _root(
        self, parameters: Any, key: Array, h: Array, y: Array, particles: Array, weights: Array
    ) -> Tree:
        """A tree with a belief at step h, after observation y, as its root."""
        n, tree = self.sizes.particles, empty_tree(self.dynamics.spaces, self.sizes)
        sample, even = particles[systematic(key, weights, n)], jnp.full(n, 1 / n)
        return tree._replace(
            weights=put(tree.weights, even, 0),
            reward=put(tree.reward, self._rewards(parameters, h, y, sample, even), 0),
            particles=put(tree.particles, sample, 0),
        )

    def _run(
        self,
        tree: Tree,
        parameters: Any,
        constants: Constants,
        key: Array,
        h: Array,
        first: Array,
        last: Array,
    ) -> Tree:
        """Simulations first .. last - 1 from a root at step h, which is not the last step."""

        def simulate(i: Array, tree: Tree) -> Tree:
            descending, expanding = jax.random.split(jax.random.fold_in(key, i))
            stop = self._descend(tree, parameters, constants, descending, h)
            leaf = jax.lax.cond(
                stop.new_belief,
                lambda: self._expand(tree, parameters, expanding, h + stop.depth, stop),
                lambda: self._no_leaf(tree, stop),
            )
            zero, changes = self._backed_up(tree, stop, leaf)
            # ``zero`` is computed after everything has been read. Indices that depend on it make
            # XLA write after all reads. Otherwise it would copy the tree in every simulation.
            return self._written(
                tree, i + 1 + zero, stop._replace(depth=stop.depth + zero), leaf, changes
            )

        grown: Tree = jax.lax.fori_loop(first, last, simulate, tree)
        return grown

    def _descend(
        self, tree: Tree, parameters: Any, constants: Constants, key: Array, start: Array
    ) -> Stop:
        """Follow the tree to a missing branch or belief, or to the last step."""

        def step(stop: Stop) -> Stop:
            belief, h = stop.belief, start + stop.depth
            visits = get(tree.visits, belief)
            action = self._choose(
                visits, get(tree.quality, belief), constants.exploration * (self.horizon - h)
            )
            branch = get(tree.branch, belief, action)
            room = constants.k * (visits[action] + 1) ** constants.alpha

            def drawn(source: Array) -> Array:
                x = get(tree.particles, branch, source)
                return self.dynamics.observe(
                    parameters, jax.random.fold_in(key, h), x, action, h + 1
                )

            slot, new, y = self._observe(tree, drawn, branch, visits[action], room)
            first = branch < 0
            slot = jnp.where(first, 0, slot)
            path = with_step(stop.path, Step(belief, action, branch, slot), stop.depth)
            return Stop(stop.depth + 1, get(tree.child, branch, slot), path, first, first | new, y)

        def on(stop: Stop) -> Array:
            return ~stop.new_belief & (start + stop.depth < self.horizon - 1)

        path = Step(*(jnp.zeros(self.horizon, int) for _ in Step._fields))
        begin = Stop(
            jnp.array(0),
            jnp.array(0),
            path,
            jnp.array(False),
            jnp.array(False),
            jnp.zeros_like(tree.seen[0, 0]),
        )
        stop: Stop = jax.lax.while_loop(on, step, begin)
        return stop

    def _choose(self, visits: Array, quality: Array, scale: Array) -> Array:
        """The action with the largest upper confidence bound; untried actions come first."""
        bonus = scale * jnp.sqrt(jnp.log(1 + jnp.sum(visits)) / jnp.maximum(visits, 1))
        return jnp.argmax(jnp.where(visits > 0, quality + bonus, jnp.inf))

    def _observe(
        self,
        tree: Tree,
        drawn: Callable[[Array], Array],
        branch: Array,
        visits: Array,
        room: Array,
    ) -> tuple[Array, ...]:
        """The observation to follow: its slot, whether it is new, and its value in finite models.

        If there is room for another observation, one is drawn. Otherwise, or if the drawn one is
        known, the observation that was followed least relative to its share is chosen.
        """
        share, went, seen = get(tree.share, branch), get(tree.went, branch), get(tree.seen, branch)
        known = share > 0
        count = jnp.sum(known)
        new, y = (count < room) & (count < self.sizes.observations), seen[0]
        if self.countable:
            source = self._source(visits)
            y = jax.lax.cond(new, lambda: drawn(source), lambda: y)
            new = new & ~jnp.any(known & (seen == y))
        behind = jnp.argmin(jnp.where(known, went / jnp.where(known, share, 1), jnp.inf))
        return jnp.where(new, count, behind), new, y

    def _source(self, times: Array) -> Array:
        """The particle that generates an observation; over time, evenly distributed indices."""
        return jnp.floor((GOLDEN * times) % 1 * self.sizes.particles).astype(int)

    def _expand(self, tree: Tree, parameters: Any, key: Array, h: Array, stop: Stop) -> Leaf:
        """The missing belief at step h, and the branch if that is missing too."""
        n, last = self.sizes.particles, at_step(stop.path, stop.depth - 1)
        sampling, moving, drawing, valuing = jax.random.split(key, 4)

        def predicted() -> Array:
            chosen = systematic(sampling, get(tree.weights, last.belief), n)
            now = get(tree.particles, get(tree.origin, last.belief))[chosen]
            return jax.vmap(
                lambda k, x: self.dynamics.following(parameters, k, x, last.action, h - 1)
            )(jax.random.split(moving, n), now)

        particles = jax.lax.cond(
            stop.new_branch, predicted, lambda: get(tree.particles, last.branch)
        )
        x = get(particles, self._source(last.slot))
        y = self.dynamics.observe(parameters, drawing, x, last.action, h)
        if self.countable:
            y = jnp.where(stop.new_branch, y, stop.observation)
        likelihood = jax.vmap(
            lambda x: self.dynamics.log_emission(parameters, x, last.action, h, y)
        )(particles)
        weights, _ = normalised(jnp.full(n, 1 / n), likelihood)
        # Real-valued observations are a sample and have equal weights. Finite ones occur once, with
        # their probability as weight.
        share = jnp.mean(jnp.exp(likelihood)) if self.countable else jnp.ones(())
        reward = self._rewards(parameters, h, y, particles, weights)
        value = jax.lax.cond(
            h == self.horizon - 1,
            lambda: jnp.max(reward),
            lambda: self._leaf_value(parameters, valuing, h, y, particles, weights),
        )
        return Leaf(particles, y, share, weights, reward, value)

    def _no_leaf(self, tree: Tree, stop: Stop) -> Leaf:
        """The existing belief at the last step, if nothing is missing."""
        last = at_step(stop.path, stop.depth - 1)
        y, share = get(tree.seen, last.branch, last.slot), get(tree.share, last.branch, last.slot)
        nothing = (
            jnp.zeros_like(tree.particles[0]),
            jnp.zeros_like(tree.weights[0]),
            jnp.zeros_like(tree.reward[0]),
        )
        return Leaf(nothing[0], y, share, *nothing[1:], get(tree.value, stop.belief))

    def _rewards(
        self, parameters: Any, h: Array, y: Array, particles: Array, weights: Array
    ) -> Array:
        """Expected rewards of the actions after observation y, (A,)."""
        actions = jnp.arange(self.actions)
        return weights @ jax.vmap(
            lambda x: jax.vmap(lambda a: self._reward(parameters, h, x, y, a))(actions)
        )(particles)

    def _reward(self, parameters: Any, h: Array, x: Array, y: Array, a: Array) -> Array:
        """The reward; NaN if a function of real-valued states returns a number outside [0, 1].

        The NaN propagates up to the root, where it raises an error.
        """
        reward = self.dynamics.reward(parameters, h, x, y, a)
        if self.dynamics.spaces.finite:
            return reward
        return jnp.where((reward >= 0) & (reward <= 1), reward, jnp.nan)

    def _leaf_value(
        self, parameters: Any, key: Array, h: Array, y: Array, particles: Array, weights: Array
    ) -> Array:
        """The value of a new belief at step h after observation y.

        It comes from simulated uniform actions, or from the heuristic.
        """
        heuristic, m = self.sizes.heuristic, self.sizes.rollouts
        if heuristic is not None:
            return weights @ jax.vmap(lambda x: heuristic(h, x))(particles)

        def step(carry: tuple[Array, ...]) -> tuple[Array, ...]:
            h, states, seen, total = carry
            keys = jax.random.split(jax.random.fold_in(key, h), 1 + m)
            actions = (jax.random.uniform(keys[m], (m,)) * self.actions).astype(int)
            gained = jax.vmap(lambda x, y, a: self._reward(parameters, h, x, y, a))(
                states, seen, actions
            )
            moved = jax.vmap(lambda k, x, a: self.dynamics.following(parameters, k, x, a, h))(
                keys[:m], states, actions
            )
            # compiled away if rewards do not depend on observations
            shown = jax.vmap(lambda k, x, a: self.dynamics.observe(parameters, k, x, a, h + 1))(
                jax.vmap(lambda k: jax.random.fold_in(k, 1))(keys[:m]), moved, actions
            )
            return h + 1, moved, shown, total + jnp.mean(gained)

        begin: tuple[Array, ...] = (
            h,
            particles[systematic(jax.random.fold_in(key, self.horizon), weights, m)],
            jnp.broadcast_to(y, (m, *jnp.shape(y))),
            jnp.zeros(()),
        )
        return jax.lax.while_loop(lambda carry: carry[0] < self.horizon, step, begin)[3]

    def _backed_up(self, tree: Tree, stop: Stop, leaf: Leaf) -> tuple[Array, Change]:
        """Back up the value of the leaf along the path: a zero that depends on it, and the
        changes.
        """

        def step(carry: tuple[Array, Array, Change]) -> tuple[Array, Array, Change]:
            after, below, changes = carry
            depth = after - 1
            at, last = at_step(stop.path, depth), after == stop.depth
            here = jnp.arange(self.sizes.observations) == at.slot
            fresh = last & stop.new_branch
            share = jnp.where(
                here & last, leaf.share, jnp.where(fresh, 0, get(tree.share, at.branch))
            )
            ahead = jnp.where(here, below, tree.value[get(tree.child, at.branch)])
            quality = get(tree.reward, at.belief, at.action) + share @ jnp.where(
                share > 0, ahead, 0
            ) / jnp.sum(share)
            taken = jnp.arange(self.actions) == at.action
            visits = get(tree.visits, at.belief) + taken
            value = jnp.max(
                jnp.where(
                    visits > 0, jnp.where(taken, quality, get(tree.quality, at.belief)), -jnp.inf
                )
            )
            went = jnp.where(fresh, 0, get(tree.went, at.branch, at.slot)) + 1
            return (
                depth,
                value,
                with_step(changes, Change(quality, visits[at.action], value, went), depth),
            )

        rows = Change(*(jnp.zeros(self.horizon) for _ in Change._fields))
        zero, _, changes = jax.lax.while_loop(
            lambda carry: carry[0] > 0, step, (stop.depth, leaf.value, rows)
        )
        return zero, changes

    def _written(self, tree: Tree, row: Array, stop: Stop, leaf: Leaf, changes: Change) -> Tree:
        """The tree with a new row and the changes on the path."""
        last = at_step(stop.path, stop.depth - 1)
        branch = jnp.where(stop.new_branch, row, last.branch)
        path = stop.path._replace(branch=put(stop.path.branch, branch, stop.depth - 1))
        tree = tree._replace(
            weights=put(tree.weights, leaf.weights, row),
            origin=put(tree.origin, branch, row),
            reward=put(tree.reward, leaf.reward, row),
            value=put(tree.value, leaf.value, row),
            branch=put(tree.branch, branch, last.belief, last.action),
            particles=put(tree.particles, leaf.particles, row),
            seen=put(tree.seen, leaf.observation, branch, last.slot),
            child=put(tree.child, jnp.where(stop.new_belief, row, stop.belief), branch, last.slot),
            share=put(tree.share, leaf.share, branch, last.slot),
        )

        def step(depth: Array, tree: Tree) -> Tree:
            at, change = at_step((path, changes), depth)
            return tree._replace(
                quality=put(tree.quality, change.quality, at.belief, at.action),
                visits=put(tree.visits, change.visits, at.belief, at.action),
                value=put(tree.value, change.value, at.belief),
                went=put(tree.went, change.went, at.branch, at.slot),
            )

        written: Tree = jax.lax.fori_loop(0, stop.depth, step, tree)
        return written

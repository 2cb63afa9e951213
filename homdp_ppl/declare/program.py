"""The episode as a NumPyro program, and the program conditioned on hindsight.

    parameters ──┬─────────┬──────────────┐
                 ▼         ▼              ▼
         x_1 ──► y_1     x_2 ──► y_2 ...  x_last     x: latent, revealed in hindsight
          │       │       ▲       │
          │       ▼       │       ▼
          └────► a_1 ─────┘      a_2 ...             a: depends on y_1..y_h, a_1..a_{h-1} only

(the arrow from x_1 goes to x_2; the policy's arrows come from observations and actions only).
Sites ``x``, ``y``, ``a`` have the shape (H, episodes), ``x_last`` has the shape (episodes,). This
program is the reference; rollouts and count likelihoods are faster implementations of it.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.contrib.control_flow import scan

from homdp_ppl.core.graph_policy import GraphPolicy, graph_of, uniform_policy
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.density_program import at_least_one, density_program
from homdp_ppl.declare.kernels import Kernels, Tables, tabulate
from homdp_ppl.precision import Array


def episode_program(function: Callable[[], Kernels], spaces: Spaces) -> Callable[..., None]:
    """The NumPyro model of ``episodes`` episodes under a policy, by default the uniform one."""
    return (table_program if spaces.finite else density_program)(function, spaces)


def table_program(function: Callable[[], Kernels], spaces: Spaces) -> Callable[..., None]:
    """The program of a finite model, whose kernels are tables."""

    def program(policy: Policy | None = None, episodes: int = 1) -> None:
        at_least_one("episodes", episodes)
        graph = as_graph(policy, spaces)
        tables = tabulate(function(), spaces)
        form = tables.form

        def step(
            carry: tuple[Array, Array, Array], h: Array
        ) -> tuple[tuple[Array, Array, Array], None]:
            state, action, node = carry
            with numpyro.plate("episodes", episodes, dim=-1):
                moves = tables.transition[form.transition_index(h - 1, state, action)]
                rows = jnp.where(h == 0, tables.initial, moves)
                state = numpyro.sample("x", dist.Categorical(probs=rows))
                previous = jnp.where(h == 0, len(spaces.actions), action)
                shows = tables.emission[form.emission_index(h, previous, state)]
                observation = numpyro.sample("y", dist.Categorical(probs=shows))
                node = jnp.where(
                    h == 0, graph.first(observation), graph.next(node, action, observation)
                )
                action = numpyro.sample("a", dist.Categorical(probs=graph.probabilities[node]))
            return (
                state.astype(index),
                action.astype(index),
                node.astype(index),
            ), None  # data in a condition may be int32

        index = jnp.result_type(int)
        nothing = jnp.zeros(episodes, dtype=index)
        (state, action, _), _ = scan(step, (nothing, nothing, nothing), jnp.arange(spaces.horizon))
        _sample_last(tables, state, action, episodes, spaces.horizon - 1)

    return program


def unrolled_program(function: Callable[[], Kernels], spaces: Spaces) -> Callable[..., None]:
    """The same model with one site per step: ``x[1]``, ``y[1]``, ``a[1]``, ....

    Use it for pictures: a loop would hide which site depends on which.
    """

    def program(policy: Policy | None = None, episodes: int = 1, steps: int | None = None) -> None:
        length = spaces.horizon if steps is None else min(steps, spaces.horizon)
        at_least_one("episodes", episodes)
        at_least_one("steps", length)
        graph = as_graph(policy, spaces)
        tables = tabulate(function(), spaces)
        with numpyro.plate("episodes", episodes, dim=-1):
            node: Array = jnp.zeros((), int)
            action: Array = jnp.array(len(spaces.actions))
            rows = jnp.broadcast_to(tables.initial, (episodes, len(spaces.states)))
            for h in range(1, length + 1):
                state = numpyro.sample(f"x[{h}]", dist.Categorical(probs=rows))
                shows = tables.emission[tables.form.emission_index(h - 1, action, state)]
                observation = numpyro.sample(f"y[{h}]", dist.Categorical(probs=shows))
                node = graph.first(observation) if h == 1 else graph.next(node, action, observation)
                action = numpyro.sample(
                    f"a[{h}]", dist.Categorical(probs=graph.probabilities[node])
                )
                rows = tables.transition[tables.form.transition_index(h - 1, state, action)]
        _sample_last(tables, state, action, episodes, length - 1)

    return program


def hindsight(
    program: Callable[..., None],
    function: Callable[[], Kernels],
    states: Array,
    observations: Array,
    actions: Array,
) -> Callable[[], None]:
    """A program conditioned on revealed episodes; only the user's sites remain latent.

    Parameters
    ----------
    program
        An episode program.
    function
        The user's program in it.
    states, observations, actions
        One episode per row: (episodes, H + 1), (episodes, H), (episodes, H). Vector values add
        trailing axes.
    """
    by_step = (np.swapaxes(part, 0, 1) for part in (states[:, :-1], observations, actions))
    data = dict(zip(("x", "y", "a", "x_last"), (*by_step, states[:, -1]), strict=True))

    def conditioned() -> None:
        if len(states) == 0:  # no data: the prior
            function()
            return
        # converted here, in the precision of the call, because a scan accepts no other
        arrays = {name: jnp.asarray(values) for name, values in data.items()}
        handlers.condition(program, data=arrays)(episodes=len(states))

    return conditioned


def as_graph(policy: Policy | None, spaces: Spaces) -> GraphPolicy:
    """Convert a policy to the form that programs compile: a graph with JAX arrays."""
    graph = uniform_policy(spaces) if policy is None else graph_of(policy, spaces)
    traceable: GraphPolicy = jax.tree.map(jnp.asarray, graph)
    return traceable


def _sample_last(tables: Tables, state: Array, action: Array, episodes: int, h: int) -> None:
    rows = tables.transition[tables.form.transition_index(h, state, action)]
    with numpyro.plate("episodes", episodes, dim=-1):
        numpyro.sample("x_last", dist.Categorical(probs=rows))

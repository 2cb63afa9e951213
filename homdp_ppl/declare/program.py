"""The episode as a NumPyro program, and the program conditioned on hindsight.

    parameters ──┬─────────┬──────────────┐          r: if random; depends on x_h, y_h and a_h
                 ▼         ▼              ▼
         x_1 ──► y_1     x_2 ──► y_2 ...  x_last     x: latent, revealed in hindsight
          │       │       ▲       │
          │       ▼       │       ▼
          └────► a_1 ─────┘      a_2 ...             a: depends on y_1..y_h, a_1..a_{h-1} only

(the arrow from x_1 goes to x_2; the policy's arrows come from observations and actions only).
Sites ``x``, ``y``, ``a`` have the shape (H, episodes), ``x_last`` has the shape (episodes,). If
rewards are random, there is a site ``r`` of shape (H, episodes), revealed in hindsight too. If
labels are declared, there are sites ``z`` and ``z_last``; if a mechanism of reveals is declared,
``m`` and ``m_last`` say what is revealed, or ``m`` of shape (episodes,) for whole episodes. This
program is the reference; rollouts and count likelihoods are faster implementations of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from numpyro.distributions import Distribution

from homdp_ppl.core.blind_policy import uniform_policy
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.graph_policy import GraphPolicy, graph_of
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.spaces import Real, Spaces
from homdp_ppl.declare.conditional import Conditional
from homdp_ppl.declare.density_program import at_least_one, density_program
from homdp_ppl.declare.hindsight_kernels import RevealUnit
from homdp_ppl.declare.hindsight_sites import HindsightSites
from homdp_ppl.declare.kernels import Kernels, form_of_kernels, tabulate
from homdp_ppl.declare.reward_law import reward_distribution
from homdp_ppl.precision import Array


def episode_program(
    function: Callable[[], Kernels], spaces: Spaces, unit: RevealUnit = "step"
) -> Callable[..., None]:
    """The NumPyro model of ``episodes`` episodes under a policy, by default the uniform one."""
    if spaces.finite:
        return table_program(function, spaces, unit)
    return density_program(function, spaces)


def table_program(
    function: Callable[[], Kernels], spaces: Spaces, unit: RevealUnit = "step"
) -> Callable[..., None]:
    """The program of a finite model, whose kernels are tables.

    ``recorded`` is a mask (H, episodes) of rewards that are part of the density, by default all.
    """

    def program(
        policy: Policy | None = None, episodes: int = 1, recorded: Array | None = None
    ) -> None:
        at_least_one("episodes", episodes)
        graph = as_graph(policy, spaces)
        kernels = function()
        tables = tabulate(kernels, spaces)
        form, law = form_of_kernels(kernels, tables, spaces), _reward_law(kernels, spaces)
        hindsight = HindsightSites(kernels, spaces, unit)
        every = jnp.ones((spaces.horizon, episodes), bool) if recorded is None else recorded

        def step(
            carry: tuple[Array, Array, Array], inputs: tuple[Array, Array]
        ) -> tuple[tuple[Array, Array, Array], None]:
            (state, action, node), (h, known) = carry, inputs
            with numpyro.plate("episodes", episodes, dim=-1):
                moves = form.transition_rows(tables.transition, h - 1, state, action)
                rows = jnp.where(h == 0, tables.initial, moves)
                state = numpyro.sample("x", dist.Categorical(probs=rows))
                previous = jnp.where(h == 0, len(spaces.actions), action)
                shows = tables.emission[form.emission_index(h, previous, state)]
                observation = numpyro.sample("y", dist.Categorical(probs=shows))
                node = jnp.where(
                    h == 0, graph.first(observation), graph.next(node, action, observation)
                )
                action = numpyro.sample("a", dist.Categorical(probs=graph.probabilities[node]))
                if law is not None:
                    at = jnp.broadcast_to(h, (episodes,)), state, observation, action
                    rewards = Conditional(law, at, (0, 0, 0, 0), Real(1))
                    numpyro.sample("r", rewards.mask(known))
                hindsight.at(h, state, observation, action)
            return (
                state.astype(index),
                action.astype(index),
                node.astype(index),
            ), None  # data in a condition may be int32

        index = jnp.result_type(int)
        nothing = jnp.zeros(episodes, dtype=index)
        inputs = jnp.arange(spaces.horizon), every
        (state, action, _), _ = scan(step, (nothing, nothing, nothing), inputs)
        rows = form.transition_rows(tables.transition, spaces.horizon - 1, state, action)
        _sample_last(rows, episodes, spaces.horizon, hindsight)

    return program


def unrolled_program(
    function: Callable[[], Kernels], spaces: Spaces, unit: RevealUnit = "step"
) -> Callable[..., None]:
    """The same model with one site per step: ``x[1]``, ``y[1]``, ``a[1]``, ....

    Use it for pictures: a loop would hide which site depends on which.
    """

    def program(policy: Policy | None = None, episodes: int = 1, steps: int | None = None) -> None:
        length = spaces.horizon if steps is None else min(steps, spaces.horizon)
        at_least_one("episodes", episodes)
        at_least_one("steps", length)
        graph = as_graph(policy, spaces)
        kernels = function()
        tables, law = tabulate(kernels, spaces), _reward_law(kernels, spaces)
        form = form_of_kernels(kernels, tables, spaces)
        hindsight = HindsightSites(kernels, spaces, unit)
        with numpyro.plate("episodes", episodes, dim=-1):
            node: Array = jnp.zeros((), int)
            action: Array = jnp.array(len(spaces.actions))
            rows: Any = jnp.broadcast_to(tables.initial, (episodes, len(spaces.states)))
            for h in range(1, length + 1):
                state = numpyro.sample(f"x[{h}]", dist.Categorical(probs=rows))
                shows = tables.emission[form.emission_index(h - 1, action, state)]
                observation = numpyro.sample(f"y[{h}]", dist.Categorical(probs=shows))
                node = graph.first(observation) if h == 1 else graph.next(node, action, observation)
                action = numpyro.sample(
                    f"a[{h}]", dist.Categorical(probs=graph.probabilities[node])
                )
                if law is not None:
                    at = jnp.full(episodes, h - 1), state, observation, action
                    numpyro.sample(f"r[{h}]", Conditional(law, at, (0, 0, 0, 0), Real(1)))
                hindsight.at(h - 1, state, observation, action, f"[{h}]")
                rows = form.transition_rows(tables.transition, h - 1, state, action)
        _sample_last(rows, episodes, length, hindsight)

    return program


def hindsight(
    program: Callable[..., None],
    function: Callable[[], Kernels],
    episodes: Episodes,
    rewards: Array | None = None,
) -> Callable[[], None]:
    """A program conditioned on revealed episodes; only the user's sites remain latent.

    Parameters
    ----------
    program
        An episode program.
    function
        The user's program in it.
    episodes
        Episodes of H steps with all states.
    rewards
        Recorded rewards, (episodes, H), if they are random; NaN if they were not recorded.
    """
    states = episodes.states
    by_step = {"x": states[:, :-1], "y": episodes.observations, "a": episodes.actions}
    if rewards is not None:
        by_step["r"] = np.nan_to_num(rewards)
    data = {name: np.swapaxes(part, 0, 1) for name, part in by_step.items()}
    data["x_last"] = states[:, -1]

    def conditioned() -> None:
        if len(states) == 0:  # no data: the prior
            function()
            return
        # converted here, in the precision of the call, because a scan accepts no other
        arrays = {name: jnp.asarray(values) for name, values in data.items()}
        more = {} if rewards is None else {"recorded": jnp.asarray(~np.isnan(rewards.T))}
        handlers.condition(program, data=arrays)(episodes=len(states), **more)

    return conditioned


def as_graph(policy: Policy | None, spaces: Spaces) -> GraphPolicy:
    """Convert a policy to the form that programs compile: a graph with JAX arrays."""
    graph = uniform_policy(spaces) if policy is None else graph_of(policy, spaces)
    traceable: GraphPolicy = jax.tree.map(jnp.asarray, graph)
    return traceable


def _reward_law(kernels: Kernels, spaces: Spaces) -> Callable[..., Distribution] | None:
    """The law of rewards at h, x, y and a; None if rewards are known."""
    return None if kernels.reward is None else reward_distribution(kernels.reward, spaces)


def _sample_last(rows: Array, episodes: int, h: int, hindsight: HindsightSites) -> None:
    with numpyro.plate("episodes", episodes, dim=-1):
        last = numpyro.sample("x_last", dist.Categorical(probs=rows))
        hindsight.last(h, last, episodes)

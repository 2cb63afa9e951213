"""Tables of the latent part of worlds with finitely many states and observations in Real(1)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from homdp_ppl.core.probabilities import row_problems
from homdp_ppl.core.spaces import Real, Spaces, shape_of
from homdp_ppl.declare.dynamics import Parameters
from homdp_ppl.declare.kernels import snap_table
from homdp_ppl.declare.model import World
from homdp_ppl.declare.signatures import KernelError
from homdp_ppl.errors import PlanningError, Problem, with_article
from homdp_ppl.precision import Array, in_x64, to_numpy


def states_on_line(world: World) -> tuple[str, ...]:
    """The states of a world with finitely many states and observations in Real(1).

    Other worlds raise :class:`PlanningError`.
    """
    if not isinstance(world, World) or world.spaces.finite:
        remedy = (
            "Fix the parameters of a declaration with .at(...). For a finite world, "
            "use planners.auto()(world.pomdp)."
        )
        problem = Problem(
            "world",
            with_article(type(world).__name__),
            "a world with observations in Real(1)",
            remedy,
        )
        raise PlanningError("cells", [problem])
    X, Y = world.spaces.states, world.spaces.observations
    remedy = "Use planners.particle_tree for such worlds."
    problems = []
    if isinstance(X, Real):
        problems.append(Problem("states", f"states in {X}", "finitely many states", remedy))
    if not isinstance(Y, Real) or Y.dimension > 1:
        got = f"observations in {Y}" if isinstance(Y, Real) else f"{len(Y)} observations"
        problems.append(Problem("observations", got, "observations in Real(1)", remedy))
    if any(world.homdp.context):
        got = "kernels that depend on the step or the previous action"
        problems.append(Problem("kernels", got, "the same kernels at all steps", remedy))
    if problems or isinstance(X, Real):
        raise PlanningError(world.homdp.name, problems)
    return X


@in_x64
def latent_tables(world: World) -> tuple[Array, Array, Array]:
    """The initial distribution (X,), transitions (X, A, X) and rewards (H, X, A) of a world with
    finitely many states. Rewards are in [0, 1].

    Rewards that depend on the observation raise :class:`PlanningError`.

    Examples
    --------
    >>> import numpyro.distributions as dist
    >>> from homdp_ppl import Kernels, Real, homdp
    >>> @homdp(
    ...     states=("a", "b"),
    ...     observations=Real(1),
    ...     actions=("stay",),
    ...     horizon=3,
    ...     reward=[[0.0], [1.0]],
    ... )
    ... def model():
    ...     return Kernels(
    ...         [0.5, 0.5],
    ...         lambda x, a: dist.Bernoulli(0.1 + 0.8 * x),
    ...         lambda x: dist.Normal(x, 1.0),
    ...     )
    >>> initial, transition, reward = latent_tables(model.at())
    >>> transition[:, 0].round(3).tolist(), reward.shape
    ([[0.9, 0.1], [0.1, 0.9]], (3, 2, 1))
    """
    states = states_on_line(world)
    if world.homdp.rewards.by_observation:
        got, expected = "rewards that depend on the observation", "rewards of x, a and h"
        remedy = "Use planners.particle_tree for such worlds."
        raise PlanningError(world.homdp.name, [Problem("reward", got, expected, remedy)])
    steps = np.arange(world.spaces.horizon if world.homdp.rewards.by_step else 1)
    dynamics, domain = world.dynamics, world.spaces
    spaces = Spaces(states, ("y",), domain.actions, domain.horizon)

    def tables(parameters: Parameters) -> tuple[Array, Array, Array]:
        rho, T = map(snap_table, dynamics.latent_rows(parameters, spaces))
        X, A = (jnp.arange(len(names)) for names in (spaces.states, spaces.actions))
        unseen = jnp.zeros(shape_of(domain.observations))

        def rewards(h: Array) -> Array:
            return jax.vmap(
                lambda x: jax.vmap(lambda a: dynamics.reward(parameters, h, x, unseen, a))(A)
            )(X)

        return rho, T, jax.vmap(rewards)(steps)

    compiled = world.dynamics.cache.get("latent tables", lambda: jax.jit(tables))
    try:
        rho, T, r = to_numpy(compiled(dict(world.parameters)))
    except KernelError as error:
        raise PlanningError(world.homdp.name, [error.problem]) from error
    problems = [*row_problems("initial", rho, spaces), *row_problems("transition", T, spaces)]
    if not np.isfinite(r).all():
        problems.append(Problem("reward", "entries that are not finite", "finite numbers"))
    if problems:
        raise PlanningError(world.homdp.name, problems)
    return rho, T, np.broadcast_to(r, (domain.horizon, *r.shape[1:])).copy()

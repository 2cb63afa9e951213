"""Whether the compiled loop can run a rule, determined from the rule itself."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.policy import Trajectory
from homdp_ppl.declare.distributions import TRACER_ERRORS, tracer_problem
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import TracedError
from homdp_ppl.explorers.state import Pairs, State
from homdp_ppl.learning.learner import Learner
from homdp_ppl.learning.planning import check_proposal
from homdp_ppl.precision import in_x64


class NotCompilable(NamedTuple):
    """Why a run cannot be compiled, and what to do about it."""

    reason: str
    remedy: str = ""


def plain_reason(
    world: World, learner: Learner, state: State, foresight: bool = False
) -> NotCompilable | None:
    """Why a run cannot be compiled, if that is known without tracing.

    Parameters
    ----------
    world
        The true world.
    learner
        The rule, the planner and the learner's declaration.
    state
        The state before the first episode.
    foresight
        Whether a collector that sees the state gathers the data.
    """
    explorer, planning = learner.explorer, learner.planning
    if not world.spaces.finite:
        return NotCompilable("continuous spaces")
    if learner.hindsight != "complete":
        return NotCompilable("missing states are inferred episode by episode")
    if world.pomdp.is_sparse or learner.homdp.structure.pattern is not None:
        return NotCompilable("transitions are sparse")
    if planning.tree is None:
        return NotCompilable("the planner cannot be traced", "Use planner=history_tree().")
    if explorer.deployment.uniform_at_each_step:
        return _more_than_arrays(learner, "Epochs of H episodes are not compiled.")
    kinds = (np.ndarray, np.generic, jax.Array)
    if not all(isinstance(leaf, kinds) for leaf in jax.tree.leaves(state)):
        return _more_than_arrays(learner, "Its state contains more than arrays.")
    if foresight:
        return NotCompilable("foresight is played step by step")
    initial, *rows = planning.support
    full = initial, *planning.support.form.full(*rows)
    tables = zip(full, world.pomdp[:3], strict=True)
    if any(((real > 0) & ~(mine > 0)).any() for mine, real in tables):
        return NotCompilable("the world allows outcomes that the learner's declaration excludes")
    return None


def traced_reason(learner: Learner, state: State) -> NotCompilable | None:
    """The reason that JAX reports when it traces the rule; traced once for equal rules.

    Only errors about traced values, from JAX or from this package, are reasons. Other errors are
    raised.
    """
    name = "not compilable", learner.explorer, learner.homdp.horizon
    return learner.homdp.cache.get(name, lambda: _traced_reason(learner, state))


@in_x64
def _traced_reason(learner: Learner, state: State) -> NotCompilable | None:
    explorer, key = learner.explorer, jax.random.key(0)

    def step(key: Any, state: State, episode: Episode) -> Any:
        proposal = explorer.propose(key, state)
        check_proposal(explorer, proposal, learner.homdp.spaces)
        pairs = isinstance(proposal, Pairs)
        return explorer.update(state, episode), None if pairs else proposal

    try:
        after, proposal = jax.eval_shape(step, key, state, _some_episode(learner.homdp))
    except TracedError as error:
        remedy = error.problems[0].remedy
        return _more_than_arrays(learner, f"It calls {error.args[0]} on traced values. {remedy}")
    except tuple(TRACER_ERRORS) as error:
        problem = tracer_problem("propose or update", error)
        return _more_than_arrays(learner, f"It has {problem.got}. {problem.remedy}")
    if proposal is None:
        return _more_than_arrays(learner, "It proposes pairs of models.")
    if _shapes(after) != _shapes(state):
        remedy = "Its update changes the shapes or types of the arrays in the state."
        return _more_than_arrays(learner, remedy)
    return None


def _more_than_arrays(learner: Learner, remedy: str) -> NotCompilable:
    reason = f"{learner.explorer.name} needs more than array functions on {learner.homdp.name}"
    return NotCompilable(reason, remedy)


def _shapes(state: Any) -> Any:
    shapes = [(np.shape(leaf), np.dtype(leaf.dtype)) for leaf in jax.tree.leaves(state)]
    return jax.tree.structure(state), shapes


def _some_episode(model: HOMDP) -> Episode:
    steps = np.zeros(model.horizon, dtype=np.int64)
    rewards = None if model.rewards.law is None else np.zeros(model.horizon)
    states = np.zeros(model.horizon + 1, dtype=np.int64)
    return Episode(Trajectory(steps, steps), states, rewards)

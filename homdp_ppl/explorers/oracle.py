"""The oracle: plans in the true world."""

from __future__ import annotations

from typing import Any

from homdp_ppl.core.bound import bind
from homdp_ppl.core.checked import checked
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.spaces import Spaces
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem, with_article
from homdp_ppl.explorers._supports import declared
from homdp_ppl.explorers.explorer import About, Deployment, Explorer, Objective
from homdp_ppl.explorers.state import Proposal, State, init_state, one
from homdp_ppl.precision import Array

ANOTHER = "Pass the world that the run takes place in: oracle(world)."


@checked
def oracle(world: World) -> Explorer:
    """Plan once in the true world, as a reference without anything to learn. Its regret is zero.

    Parameters
    ----------
    world
        The true world of the run.

    Examples
    --------
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> run = learn(world, oracle(world), history_tree(), episodes=3)
    >>> run.values.round(3), round(run.optimum, 3)
    (array([1.852, 1.852, 1.852]), 1.852)
    """
    if not isinstance(world, World):
        remedy = "Fix the parameters of a declaration: homdp.at(...)."
        problem = Problem("world", with_article(type(world).__name__), "a World", remedy)
        raise ParameterError("oracle", [problem])
    truth: Any = (
        world.pomdp if world.spaces.finite else world
    )  # tables do not hold a reference to the world
    return Explorer(
        About("oracle"),
        init=bind(_init, spaces=world.spaces),
        propose=bind(_propose, truth=truth),
        objective=Objective(support=bind(_support, truth=truth)),
        deployment=Deployment(replan="once"),
    )


def _init(homdp: HOMDP, episodes: int | None, spaces: Spaces) -> State:
    same = spaces[:3] == homdp.spaces[:3] if spaces.finite else spaces == homdp.spaces
    if not same:
        problem = Problem("world", str(spaces), str(homdp.spaces), ANOTHER)
        raise ParameterError("oracle", [problem])
    return init_state(homdp, episodes)


def _propose(key: Array, state: State, truth: Any) -> Proposal:
    if state.counts is None:
        return Proposal(truth)
    table = state.homdp.rewards.table  # None if rewards are random: those of the world
    return one(truth if table is None else truth._replace(reward=table))


def _support(homdp: HOMDP, truth: POMDP) -> Tables:
    initial, *rows = declared(homdp)
    if homdp.structure.pattern is not None:  # only tables of this form are planned for
        short = homdp.form.short(*truth[1:3])
        rows = [mine | (real > 0) for mine, real in zip(rows, short, strict=True)]
        return Tables(initial | (truth.initial > 0), *rows)
    tables = zip((initial, *homdp.form.full(*rows)), truth.dense[:3], strict=True)
    return Tables(*(mine | (real > 0) for mine, real in tables))

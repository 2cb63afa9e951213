"""The oracle: plans in the true world."""

from __future__ import annotations

from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers._rules import tables_only
from homdp_ppl.explorers._sampled_worlds import ANOTHER, oracle_rule
from homdp_ppl.explorers.explorer import Explorer, Proposal, State, declared, one
from homdp_ppl.precision import Array


def oracle(world: World) -> Explorer:
    """Plan in the true world, once: what a rule could reach that had nothing to learn. Regret zero.

    Parameters
    ----------
    world
        The world that is acted in.

    Examples
    --------
    >>> from homdp_ppl import learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> world = models.load("tiger", horizon=2)
    >>> run = learn(world, oracle(world), history_tree(), episodes=3)
    >>> run.values.round(3), round(run.optimum, 3)
    (array([1.852, 1.852, 1.852]), 1.852)
    """
    if isinstance(world, World) and not world.spaces.finite:
        refuse = tables_only("oracle", "world")
        return Explorer(
            "oracle", refuse, "none", init=refuse, replan="once", continuous=oracle_rule(world)
        )
    if not isinstance(world, World):
        remedy = "Fix the parameters of a declaration: homdp.at(...)."
        raise ParameterError(
            "oracle", [Problem("world", f"a {type(world).__name__}", "a World", remedy)]
        )

    def propose(key: Array, state: State) -> Proposal:
        return one(world.pomdp.with_tables(reward=state.homdp.reward))

    def support(homdp: HOMDP) -> Tables:
        if world.spaces[:3] != homdp.spaces[:3]:
            raise ParameterError(
                "oracle", [Problem("world", str(world.spaces), str(homdp.spaces), ANOTHER)]
            )
        allowed = (
            mine | (real > 0)
            for mine, real in zip(
                declared(homdp), world.pomdp.stationary("oracle")[:3], strict=True
            )
        )
        return Tables(*allowed)

    return Explorer("oracle", propose, "none", support=support, replan="once")

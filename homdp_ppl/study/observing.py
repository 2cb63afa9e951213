"""Extra observations in hindsight: more than observations during the episode, less than states.

After an episode, the learner receives further independent observations of each visited state, as in
Guo, Chen, Wang, Xu and Bai (2023), arXiv 2307.02884, and no state. They are declared as further
sensors with the same emissions, which policies do not see.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.plan import Plan
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.sensors import Sensors
from homdp_ppl.core.spaces import Spaces, names_of
from homdp_ppl.declare.decorator import homdp as declared
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import ParameterError, PlanningError, Problem, shown
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.learning.hindsight import SUMMED, how
from homdp_ppl.learning.planning import Planner
from homdp_ppl.precision import Array, namespace

MOST, LARGEST = 8, 4096  # extra observations, and joint outcomes
SEEN = "seen"  # the sensor that policies see


def extra_problems(homdp: HOMDP, rule: Explorer, number: int) -> list[Problem]:
    """Why extra observations cannot be studied with a declaration and a rule."""
    spaces, got = homdp.spaces, ""
    if how(rule) != SUMMED or rule.objective.backup is not None:
        expected = "a rule that plans for draws of a posterior, such as posterior_sampling()"
        return [Problem("observations", f"extra observations, with {rule.name}", expected)]
    if not spaces.finite:
        got = "real-valued spaces"
    elif isinstance(spaces.observations, Sensors):
        got = "several sensors"
    elif homdp.rewards.law is not None or homdp.rewards.by_observation:
        got = "rewards that are random or depend on observations"
    elif homdp.allowed is not None or homdp.hindsight_form is not None:
        got = "restricted actions, labels or a mechanism of reveals"
    elif number > MOST or outcomes_of(spaces) ** (number + 1) > LARGEST:
        expected = f"at most {MOST} extra observations, and {LARGEST:,} joint outcomes"
        return [Problem("observations", f"{number:,} extra observations", expected)]
    expected = "a finite model with one sensor and rewards of states and actions"
    return [Problem("observations", f"{homdp.name}, with {got}", expected)] if got else []


def observed_again(homdp: HOMDP, number: int) -> HOMDP:
    """The declaration with further observations of every visited state.

    Parameters
    ----------
    homdp
        The declaration, with one sensor.
    number
        How many further observations of each state there are.

    Examples
    --------
    >>> from homdp_ppl import models
    >>> again = observed_again(models.load("tiger", horizon=2).homdp, 1)
    >>> again.observations[:2]
    ('growl left, growl left', 'growl left, growl right')
    """
    names = [SEEN, *(f"again {k + 1}" for k in range(number))]
    spaces = homdp.spaces
    seen = names_of(spaces.observations)[: outcomes_of(spaces)]

    def program() -> Kernels:
        kernels = homdp.function()
        emission, first = kernels.emission, kernels.first_emission
        return kernels._replace(
            emission=dict.fromkeys(names, emission),
            first_emission=None if first is None else dict.fromkeys(names, first),
        )

    rewards = homdp.rewards
    table = rewards.to_user(np.asarray(rewards.table)[:, :, 0], 1)
    found = declared(
        states=spaces.states,
        observations=dict.fromkeys(names, seen),
        actions=spaces.actions,
        horizon=spaces.horizon,
        reward=table,
        terminal=spaces.terminal,
    )(program)
    return replace(found, name=homdp.name, rewards=rewards)


def outcomes_of(spaces: Spaces) -> int:
    """The number of observations, without "ended"."""
    return len(names_of(spaces.observations)) - bool(spaces.terminal)


def joint_spaces(spaces: Spaces, number: int) -> Spaces:
    """The spaces with as many observations as the declaration with further ones has."""
    joint = outcomes_of(spaces) ** (number + 1) + bool(spaces.terminal)
    return spaces._replace(observations=tuple(map(str, range(joint))))


@dataclass(frozen=True)
class FirstSensor:
    """A planner for policies that see the first of several equal sensors.

    Attributes
    ----------
    planner
        Plans for the model with this sensor only.
    outcomes
        The number of its outcomes.
    number
        How many further sensors there are.
    """

    planner: Planner
    outcomes: int
    number: int

    def __call__(self, model: POMDP) -> Plan:
        """Plan for the model with one sensor; the policy ignores the others."""
        joint = model.emission.shape[-1]
        plan = self.planner(model._replace(emission=self._summed(model.emission)))
        if not isinstance(plan.policy, GraphPolicy):
            raise PlanningError(
                "extra observations",
                [Problem("policy", shown(plan.policy), "a planner whose policies are graphs")],
            )
        place = self._first(joint)
        graph = plan.policy
        policy = GraphPolicy(graph.start[place], graph.probabilities, graph.successor[..., place])
        return replace(plan, policy=policy, model=model, spaces=model.spaces)

    def _first(self, joint: int) -> Array:
        """The outcome of the first sensor at each joint outcome, "ended" included."""
        place = np.arange(joint) // self.outcomes**self.number
        return np.minimum(place, self.outcomes)  # the last joint outcome may be "ended"

    def _summed(self, emission: Array) -> Array:
        place = self._first(emission.shape[-1])
        sums = (place[:, None] == np.arange(int(place.max()) + 1)).astype(np.float64)
        return emission @ namespace(emission).asarray(sums)


def observing(
    world: World, rule: Explorer, planner: Planner, model: HOMDP, number: int
) -> tuple[World, Planner, HOMDP]:
    """The world, the planner and the declaration of a run with extra observations."""
    refuse(ParameterError, "hindsight", extra_problems(model, rule, number))
    again = observed_again(world.homdp, number)
    other = again if model is world.homdp else observed_again(model, number)
    return (
        again.at(**world.parameters),
        FirstSensor(planner, outcomes_of(world.spaces), number),
        other,
    )

"""``LiveEpisode``: one open episode of an agent."""

from __future__ import annotations

from typing import Any, Literal, final

import numpy as np

from homdp_ppl.agent.events import Act, End
from homdp_ppl.agent.keeper import Keeper
from homdp_ppl.agent.ledger import Session, values_array
from homdp_ppl.agent.values import encode, ended_problems
from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.policy import Trajectory
from homdp_ppl.errors import DataError, Problem


@final
class LiveEpisode:
    """One episode of an :class:`Agent`; create it with :meth:`Agent.begin`.

    The policy of the episode is fixed when it begins. Everything about the episode is kept by the
    agent, so that any number of these objects, also in other processes, may refer to it.

    Examples
    --------
    >>> from homdp_ppl import Agent, explorers, models
    >>> from homdp_ppl.planners import history_tree
    >>> tiger = models.load("tiger", horizon=2).homdp
    >>> agent = Agent(tiger, explorers.quantile_backup(), history_tree())
    >>> episode = agent.begin("first")
    >>> episode.act("growl left"), episode.act("growl left")
    ('listen', 'open right')
    >>> episode
    LiveEpisode('first', 2 of 2 steps, ended)
    """

    def __init__(self, keeper: Keeper, name: str) -> None:
        self._keeper, self._name = keeper, name

    @property
    def id(self) -> str:
        """The name of the episode."""
        return self._name

    @checked_but("observation")
    def act(self, observation: Any, step: int | None = None) -> str:
        """The action after an observation; it is saved before it is returned.

        Parameters
        ----------
        observation
            The observation of this step: its name or index, or real numbers. With several sensors,
            also a dict {sensor: outcome} or a tuple with one outcome per sensor.
        step
            The number of the step, from 1. With it, a call may be repeated: it returns the same
            action again. Default: the next step.

        Returns
        -------
        str
            The name of the action.
        """
        spaces, name = self._keeper.learner.homdp.spaces, self._name
        with self._keeper.turn():
            session, at = self._session(), f"episode {name!r}"
            value, problems = encode("observation", observation, spaces.observations, at)
            problems = problems or ended_problems(value, spaces, "observation")
            following = len(session.actions) + 1
            step = following if step is None else int(step)
            if not 1 <= step <= following:
                problems.append(Problem("step", str(step), f"a step in 1..{following}", at=at))
            refuse(DataError, "act", problems)
            if step < following:
                if session.observations[step - 1] != value:
                    got = f"another observation than before at step {step}"
                    problem = Problem("observation", got, "the same observation in a retry", at=at)
                    raise DataError("act", [problem])
                return spaces.actions[session.actions[step - 1]]
            if not session.is_open:
                problem = Problem("id", f"{name!r}, which has ended", "an open episode")
                raise DataError("act", [problem])
            action = self._keeper.actor.action(self._keeper.ledger, session, value)
            self._keeper.append(Act(session.ordinal, step, value, action))
            return spaces.actions[action]

    @checked
    def end(self, reason: Literal["terminal", "truncated"] | None = None) -> None:
        """End the episode before its last step. It ends automatically after H steps.

        Parameters
        ----------
        reason
            "terminal" if it has reached a terminal state, "truncated" otherwise. Default:
            "terminal" if the declaration has terminal states.
        """
        terminal = bool(self._keeper.learner.homdp.spaces.terminal)
        with self._keeper.turn():
            session, problem = self._session(), None
            if reason == "terminal" and not terminal:
                remedy = "Declare terminal states, or end the episode as truncated."
                problem = Problem("reason", "'terminal'", "'truncated'", remedy)
            elif session.abandoned is not None:
                problem = Problem("id", f"{self._name!r}, which was abandoned", "an open episode")
            if problem is not None:
                raise DataError("end", [problem])
            if session.ended is None:
                usual = "terminal" if terminal else "truncated"
                self._keeper.append(End(session.ordinal, reason or usual))

    @property
    def trajectory(self) -> Trajectory:
        """The observations and actions so far, as indices or numbers."""
        spaces = self._keeper.learner.homdp.spaces
        with self._keeper.turn():
            session = self._session()
            seen = values_array(session.observations, spaces.observations)
            return Trajectory(seen, np.array(session.actions, dtype=np.int64))

    @property
    def ended(self) -> str | None:
        """How it ended: "horizon", "terminal", "truncated" or "abandoned"; None if it is open."""
        with self._keeper.turn():
            session = self._session()
            return "abandoned" if session.abandoned is not None else session.ended

    def _session(self) -> Session:
        return self._keeper.session(self._name, "episode")

    def __repr__(self) -> str:
        steps, state = len(self.trajectory.actions), self.ended
        H, said = self._keeper.learner.homdp.horizon, "open" if state is None else "ended"
        said = "abandoned" if state == "abandoned" else said
        return f"LiveEpisode({self._name!r}, {steps} of {H} steps, {said})"

"""``Agent``: an exploration rule that acts in a live system and learns from late reveals."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

from homdp_ppl.agent.additions import add_events
from homdp_ppl.agent.delays import warn_of_delays
from homdp_ppl.agent.events import LONGEST, Abandon, Refuse
from homdp_ppl.agent.keeper import Keeper, make_learner
from homdp_ppl.agent.knowledge import Delay, with_gaps
from homdp_ppl.agent.live import LiveEpisode
from homdp_ppl.agent.reading import Reading
from homdp_ppl.agent.reveals import ExcludedError, reveal_event
from homdp_ppl.agent.rewriting import migrated, without
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import DataError, ParameterError, Problem, shown
from homdp_ppl.explorers.explorer import Explorer
from homdp_ppl.learning.learner import Learner
from homdp_ppl.learning.planning import Planner


@final
class Agent(Reading):
    """An exploration rule with a planner in a live system, whose true parameters are unknown.

    The agent acts in any number of open episodes. States are revealed later, in any order, and may
    be corrected. With a directory, everything is saved before it is returned: after a crash, also
    inside an episode, the agent continues with the action that it would have given. Several
    processes may use one directory. If every episode is revealed before the next one begins, the
    agent takes the same decisions as :func:`learn` with the same seed.

    Parameters
    ----------
    homdp
        The declaration.
    explorer
        The rule, from :mod:`homdp_ppl.explorers`.
    planner
        The planner, from :mod:`homdp_ppl.planners`.
    path
        The directory of the agent. A new agent is created there, or the existing one is opened; it
        must have been created with the same arguments. Default: the agent is kept in memory.
    seed
        Determines all random choices of the rule, together with the number of the episode.
    episodes
        K, the number of episodes that may begin; required by rules that depend on it.
    delay
        "any": rules with a frequentist guarantee use the episodes up to the first one, in the order
        in which they began, that is not revealed. This is sound for every mechanism of delay.
        "independent" declares that delays depend neither on the states nor on the observations of
        an episode; then these rules use all revealed episodes. Other rules always do.

    Examples
    --------
    >>> from homdp_ppl import Agent, explorers, models
    >>> from homdp_ppl.planners import history_tree
    >>> tiger = models.load("tiger", horizon=2).homdp
    >>> agent = Agent(tiger, explorers.quantile_backup(), history_tree())
    >>> episode = agent.begin("patient 17")
    >>> [episode.act("growl left"), episode.act("growl left")]
    ['listen', 'open right']
    >>> agent.pending
    ('patient 17',)
    >>> agent.reveal("patient 17", ["left", "left", "left"])
    >>> agent.posterior
    Posterior of 'tiger' after 2 steps: conjugate
      accuracy in closed form
    """

    @checked_but("planner", "path")
    def __init__(
        self,
        homdp: HOMDP,
        explorer: Explorer,
        planner: Planner,
        path: str | Path | None = None,
        seed: int = 0,
        episodes: int | None = None,
        delay: Delay = "any",
    ) -> None:
        learner = make_learner(homdp, explorer, planner, seed, episodes)
        if not (path is None or isinstance(path, str | Path)):
            problem = Problem("path", shown(path), "a directory, or None")
            raise ParameterError("Agent", [problem])
        super().__init__(Keeper(learner, delay, None if path is None else Path(path).absolute()))

    @checked
    def begin(self, id: str | None = None) -> LiveEpisode:  # noqa: A002
        """Begin an episode; its policy is fixed now.

        Parameters
        ----------
        id
            A name for the episode. For the id of an open episode, that episode is returned, so that
            the call may be repeated. Default: a new name.
        """
        with self._keeper.turn():
            if id is not None and id in self._keeper.ledger and self._keeper.ledger[id].is_open:
                return LiveEpisode(self._keeper, id)
            name = self._keeper.new_name(id)
            self._keeper.append(self._keeper.actor.begin(self._keeper.ledger, name))
            return LiveEpisode(self._keeper, name)

    @checked
    def episode(self, id: str) -> LiveEpisode:  # noqa: A002
        """The episode with this id, open or not."""
        with self._keeper.turn():
            self._keeper.session(id, "episode")
            return LiveEpisode(self._keeper, id)

    @checked
    def abandon(self, id: str, reason: str = "") -> None:  # noqa: A002
        """Declare that the states of an episode will never be revealed; it may be open.

        Parameters
        ----------
        id
            The episode.
        reason
            Why, for the record.
        """
        with self._keeper.turn():
            session = self._keeper.session(id, "abandon")
            if session.abandoned is not None:
                return
            if session.is_revealed:
                remedy = "To erase its data, use agent.forget(id)."
                problem = Problem("id", f"{id!r}, which is revealed", "a pending episode", remedy)
                raise DataError("abandon", [problem])
            self._keeper.append(Abandon(session.ordinal, reason[:500]))

    @checked_but("states", "rewards", "labels")
    def reveal(self, id: str, states: Any, rewards: Any = None, labels: Any = None) -> None:  # noqa: A002
        """Reveal the states of an episode that has ended, at any time and in any order.

        Parameters
        ----------
        id
            The episode.
        states
            All states: one per step and the state after the last action, as names, indices or real
            numbers. Or some of them, as a dictionary from steps, which start at 1, to states;
            further calls complete them. A state that is revealed again replaces the earlier one.
            None says that a state will never be revealed. Rules with a posterior sum over it; rules
            that count refuse it. Certificates end before the first such episode.
        rewards, labels
            Recorded rewards, one per step, and labels, one per state.

        Raises
        ------
        DataError
            The states do not fit the declaration; all problems are reported together. If the
            declaration excludes them, this is remembered until the episode is revealed:
            :meth:`check` reports it.
        """
        with self._keeper.turn():
            session = self._keeper.session(id, "reveal")
            problem = None
            if session.ended is None and session.abandoned is None:
                remedy = "States are revealed after the end: call end() first."
                problem = Problem("id", f"{id!r}, which is open", "an episode that ended", remedy)
            elif session.abandoned is not None:
                problem = Problem("id", f"{id!r}, which was abandoned", "an episode that ended")
            if problem is not None:
                raise DataError("reveal", [problem])
            try:
                event = reveal_event(self._keeper.learner, session, states, rewards, labels)
            except ExcludedError as error:
                text = str(error.problems[0])[:LONGEST]
                if session.refused != text:
                    self._keeper.append(Refuse(session.ordinal, text))
                raise DataError(error.args[0], error.problems) from None
            if event is None:
                return
            was_revealed = session.is_revealed
            self._keeper.append(event)
            if session.is_revealed and not was_revealed:
                sound = self._keeper.actor.knowledge.needs_prefix
                warn_of_delays(self._keeper.ledger, sound)

    @checked_but("episodes")
    def add(self, episodes: Episode | Episodes | Iterable[Episode | Episodes]) -> None:
        """Add episodes that others played.

        They are used like revealed episodes of the agent. States that are missing will never be
        revealed: rules with a posterior sum over them, and rules that count refuse them. An episode
        with the id of one that was added before is skipped if it is the same, so that the call may
        be repeated.

        Parameters
        ----------
        episodes
            The episodes, validated like the data of :func:`posterior`.
        """
        with self._keeper.turn():
            events = add_events(self._keeper.ledger, self._keeper.actor, episodes)
            for event in events[:-1]:
                self._keeper.append(event, sync=False)
            if events:
                self._keeper.append(events[-1])

    @checked_but("env", "episodes", "latent", "seed")
    def train(
        self, env: Any, episodes: int, latent: Any = "latent_states", seed: int | None = None
    ) -> None:
        """Play and learn in a Gymnasium environment that reveals its states after each episode.

        Parameters
        ----------
        env
            The environment; see :func:`homdp_ppl.gym.episodes_from`.
        episodes
            The number of episodes.
        latent
            A key of the last info, or a function of all infos that returns the states.
        seed
            The seed of the first ``reset``; None leaves the environment as it is.
        """
        from homdp_ppl.agent.training import train  # loads Gymnasium

        train(self, env, episodes, latent, seed)

    @checked
    def forget(self, id: str) -> None:  # noqa: A002
        """Erase an episode from the journal; afterwards, it counts as abandoned.

        The journal is replaced by one without the id, observations, actions and states of the
        episode. Saved policies that were planned from it remain.

        Parameters
        ----------
        id
            The episode.
        """
        with self._keeper.turn():
            ordinal = self._keeper.session(id, "forget").ordinal
            self._keeper.replace(without(self._keeper.events(), ordinal))
            self._inferred = None

    @checked
    def migrate(self, homdp: HOMDP) -> None:
        """Continue with a changed declaration: all revealed episodes are used again under it.

        Parameters
        ----------
        homdp
            The new declaration. States, observations and actions are matched by name.

        Raises
        ------
        DataError
            A revealed episode does not fit the new declaration; nothing was changed.
        """
        with self._keeper.turn():
            old = self._keeper.learner
            learner = Learner(homdp, old.explorer, old.planner, old.episodes, old.seed)
            learner.planning, learner.init()  # raise errors for incompatible parts
            if self._keeper.ledger.with_gaps:
                with_gaps(learner)
            events = migrated(self._keeper.events(), self._keeper.ledger, homdp)
            self._keeper.replace(events, learner)
            self._inferred = None

    def close(self) -> None:
        """Close the journal; the agent can be opened again."""
        self._keeper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

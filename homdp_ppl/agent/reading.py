"""What an agent knows: its posterior, its policy, certificates, checks and explanations."""

from __future__ import annotations

from homdp_ppl.agent.certificate import LiveCertificate, live_certificate
from homdp_ppl.agent.check import DRAWS as CHECKED
from homdp_ppl.agent.check import LAST, LiveCheck, check_agent
from homdp_ppl.agent.explanation import DRAWS, Explanation, explanation
from homdp_ppl.agent.gap import ExpectedGap, expected_gap
from homdp_ppl.agent.keeper import Keeper
from homdp_ppl.agent.ledger import episodes_of
from homdp_ppl.agent.status import Status, status_html, status_of
from homdp_ppl.confidence.sets import MixtureName, check_mixture
from homdp_ppl.core.arguments import check_arguments, count_problems, refuse
from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.graph_policy import GraphPolicy
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.policy_card import Carded
from homdp_ppl.declare.model import HOMDP
from homdp_ppl.errors import DataError, ParameterError, Problem
from homdp_ppl.posteriors import Posterior


class Reading:
    """The methods of :class:`Agent` that change nothing.

    Parameters
    ----------
    keeper
        The ledger of the agent.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._inferred: tuple[int, Posterior] | None = None
        self._certified: tuple[tuple[int, int], LiveCertificate] | None = None

    @property
    def homdp(self) -> HOMDP:
        """The declaration."""
        return self._keeper.learner.homdp

    @property
    def posterior(self) -> Posterior:
        """The posterior given all revealed episodes."""
        with self._keeper.turn():
            version = self._keeper.ledger.version
            if self._inferred is None or self._inferred[0] != version:
                self._inferred = version, self._keeper.infer()
            return self._inferred[1]

    @property
    def policy(self) -> Policy:
        """The policy of the next episode, without the uniform step of rules with epochs.

        If it has a method ``save``, the file says which model it is for, the optimistic value,
        from how many episodes it learned, and the bounds of :meth:`certificate`, if these were
        computed since the last reveal.
        """
        with self._keeper.turn():
            keeper = self._keeper
            policy, optimistic = keeper.actor.current(keeper.ledger)
            if not isinstance(policy, Carded):
                return policy
            if isinstance(policy, GraphPolicy):
                policy = policy.named(self.homdp)
            used = len(keeper.actor.knowledge.data(keeper.ledger))
            horizon, name = self.homdp.spaces.horizon, self.homdp.name
            card = policy.card._replace(model=name, horizon=horizon)
            card = card._replace(value=optimistic, episodes=used)
            if self._certified is not None and self._certified[0] == self._place:
                found = self._certified[1]
                card = card._replace(lower=found.lower, upper=found.upper)
            return policy.with_card(card)

    @property
    def _place(self) -> tuple[int, int]:
        """The number of episodes and of changes of the revealed ones."""
        return len(self._keeper.ledger.sessions), self._keeper.ledger.version

    @property
    def pending(self) -> tuple[str, ...]:
        """The ids of episodes that have ended and wait for states."""
        with self._keeper.turn():
            return status_of(self._keeper.ledger, self._keeper.actor).pending

    @property
    def status(self) -> Status:
        """Numbers of episodes, and the ids of those that are open or pending."""
        with self._keeper.turn():
            return status_of(self._keeper.ledger, self._keeper.actor)

    @property
    def episodes(self) -> Episodes:
        """All revealed episodes in the order in which they began.

        States that will never be revealed are missing.
        """
        with self._keeper.turn():
            return episodes_of(self._keeper.ledger.revealed, self.homdp.spaces)

    @checked
    def certificate(
        self, delta: float = 0.1, mixture: MixtureName = "jeffreys", known: bool = True
    ) -> LiveCertificate:
        """Bounds on the value of the current policy and on the optimum, from data alone.

        Both bounds hold at all times at once with probability 1 - delta, for every rule, whatever
        it assumes. So you may look at them after every episode and stop when ``gap`` is small. They
        use the revealed episodes before the first one, in the order in which they began, that is
        not revealed; all of them if the agent was created with ``delay="independent"``. Warns with
        :class:`OptimismWarning` if the rule expects less than the lower bound.

        Parameters
        ----------
        delta, mixture, known
            As in :func:`homdp_ppl.confidence.confidence_sets`.

        Raises
        ------
        SpacesError
            States or observations are real-valued.
        PolicyError
            The planner searches online, so that its actions are not known after every history.

        Examples
        --------
        >>> from homdp_ppl import Agent, explorers, models
        >>> from homdp_ppl.planners import history_tree
        >>> tiger = models.load("tiger", horizon=2).homdp
        >>> Agent(tiger, explorers.greedy(), history_tree()).certificate()
        Certificate from 0 episodes: value at least 1.8, optimum at most 2, with probability 0.9
        """
        check_arguments("certificate", delta=delta)
        check_mixture("certificate", mixture)
        with self._keeper.turn():
            keeper = self._keeper
            policy, optimistic = keeper.actor.current(keeper.ledger)
            found = live_certificate(
                keeper.learner,
                keeper.ledger,
                keeper.delay,
                policy,
                optimistic,
                {"delta": delta, "mixture": mixture, "known": known},
            )
            self._certified = self._place, found
            return found

    @checked_but("draws", "last")
    def check(self, draws: int = CHECKED, last: int = LAST) -> LiveCheck:
        """Check whether the episodes look like replays under the posterior.

        Every episode is replayed under the policy with which it began, in models drawn from the
        posterior. A wrong declaration, sensors that depend on each other, and parameters that
        change over time make findings unusual; a correct one does so with probability at most 5 %.

        - All episodes that were played to their end: observations by step, and pairs of them. They
          need not be revealed.
        - Revealed episodes: mean, spread and trend of the returns.
        - Revealed episodes, also added ones: states and observations given the states and actions
          before them, and whether they drift over the episodes.
        - Reveals that were refused because the declaration excludes them.
        - Whether the delay of reveals depends on the states.

        The result also has optimistic values and delivered returns over time, and the rows of the
        tables whose uncertainty moves the value of the current policy most.

        Parameters
        ----------
        draws
            The number of models drawn from the posterior.
        last
            How many episodes to check, from the last one backwards.

        Raises
        ------
        SpacesError
            States or observations are real-valued.

        Examples
        --------
        >>> from homdp_ppl import Agent, explorers, models
        >>> from homdp_ppl.gym import HOMDPEnv
        >>> from homdp_ppl.planners import history_tree
        >>> world = models.load("tiger", horizon=2)
        >>> agent = Agent(world.homdp, explorers.posterior_sampling(), history_tree())
        >>> agent.train(HOMDPEnv(world), 20, seed=0)
        >>> agent.check().unusual
        ()
        """
        refuse(ParameterError, "check", count_problems(draws=draws, last=last))
        belief, policy = self.posterior, self.policy
        with self._keeper.turn():
            return check_agent(
                self._keeper.ledger, self._keeper.actor, belief, policy, int(draws), int(last)
            )

    @checked_but("draws")
    def expected_gap(self, draws: int = DRAWS) -> ExpectedGap:
        """The expected loss of the current policy against the optimum, under the posterior.

        Parameters
        ----------
        draws
            The number of models that are drawn from the posterior; the planner plans for each.
        """
        refuse(ParameterError, "expected_gap", count_problems(draws=draws))
        policy, belief = self.policy, self.posterior
        return expected_gap(policy, belief, self._keeper.learner, draws)

    @checked_but("draws")
    def explain(self, id: str, draws: int = DRAWS) -> Explanation:  # noqa: A002
        """Explain the last action of an episode; see :func:`homdp_ppl.explain`.

        Parameters
        ----------
        id
            The episode, open or not. Its policy is the one with which it began.
        draws
            The number of models that are drawn from the posterior.
        """
        with self._keeper.turn():
            session = self._keeper.session(id, "explain")
            if session.decision is None or not session.actions:
                problem = Problem("id", f"{id!r}", "an episode in which the agent has acted")
                raise DataError("explain", [problem])
            policy = self._keeper.actor.policy(self._keeper.ledger, session)
            seen, done = list(session.observations), session.actions[:-1]
            past = [other for other in self._keeper.ledger.complete if other is not session]
            known = episodes_of(past, self.homdp.spaces)
        return explanation(policy, self.posterior, seen, done, draws, known)

    def __repr__(self) -> str:
        found = self.status
        return (
            f"Agent for {found.model!r} with {found.explorer}: "
            f"{found.begun:,} episode{'s' * (found.begun != 1)}, "
            f"{len(found.open):,} open, {len(found.pending):,} pending, {found.used:,} used"
        )

    def _repr_html_(self) -> str:
        return status_html(self.status)

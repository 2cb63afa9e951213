"""The actor: decides which policy an episode plays, and which action follows an observation."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from homdp_ppl.agent.events import Begin, Made
from homdp_ppl.agent.knowledge import Delay, Knowledge
from homdp_ppl.agent.ledger import Ledger, Session, values_array
from homdp_ppl.agent.policies import Kept, Shelf
from homdp_ppl.agent.slots import current_epoch, next_slot
from homdp_ppl.agent.values import Value
from homdp_ppl.core.cache import Cache
from homdp_ppl.core.policy import Policy, ask
from homdp_ppl.core.randomness import choose
from homdp_ppl.errors import ParameterError, Problem
from homdp_ppl.explorers.state import State
from homdp_ppl.learning.learner import Decision, Learner, out_of_date
from homdp_ppl.learning.noise import density_noise, episode_noise, rule_number
from homdp_ppl.learning.stages import BLOCK
from homdp_ppl.precision import Array, in_x64

RECENT = 64  # policies that are kept in memory


class Actor:
    """Decisions of a learner about the episodes of a ledger.

    All methods are functions of the ledger; what is kept between calls only saves time.

    Parameters
    ----------
    learner
        The rule with its planner.
    shelf
        Where policies are saved.
    delay
        See :class:`homdp_ppl.agent.knowledge.Knowledge`.
    again
        A function that plans a decision again, for policies that cannot be saved.
    """

    def __init__(
        self, learner: Learner, shelf: Shelf, delay: Delay, again: Callable[[int], Decision]
    ) -> None:
        self.learner, self._shelf, self._delay, self._again = learner, shelf, delay, again
        self.epochs = learner.explorer.deployment.uniform_at_each_step
        self.restart()

    def restart(self) -> None:
        """Forget everything that was kept: the ledger is another one."""
        self.knowledge = Knowledge(self.learner, self._delay)
        self._next: tuple[tuple[int, int], Decision] | None = None
        self._unsaved: dict[int, Kept] = {}
        self._recent = Cache(limit=RECENT)
        self._noise = Cache(limit=RECENT)

    def begin(self, ledger: Ledger, name: str) -> Begin:
        """The event of a new episode, with a decision if one is made for it."""
        slot, fresh = next_slot(ledger) if self.epochs else (None, False)
        self._require_episodes(ledger, slot)
        decision = self.due(ledger, fresh)
        if decision is None:
            return Begin(name, len(ledger.decisions) - 1, slot)
        digest = self._shelf.add(decision.policy, decision.allowed)
        number = len(ledger.decisions)
        if digest is None:
            self._unsaved[number] = Kept(decision.policy, decision.allowed)
        value = float(decision.optimistic)
        known = value if np.isfinite(value) else None
        made = Made(digest, np.asarray(decision.visits), known)
        return Begin(name, number, slot, made)

    def _require_episodes(self, ledger: Ledger, slot: int | None) -> None:
        """Raise an error if all K episodes have begun; abandoned slots do not count."""
        K, H = self.learner.episodes, ledger.spaces.horizon
        if K is None:
            return
        over = slot is not None and slot >= K // H * H if self.epochs else len(ledger.sessions) >= K
        if over:
            got = f"episode {len(ledger.sessions) + 1}"
            expected = f"at most the {K} episodes for which the rule was prepared"
            remedy = "Begin a new agent with more episodes, and add the episodes of this one to it."
            raise ParameterError("begin", [Problem("episodes", got, expected, remedy)])

    @in_x64
    def due(self, ledger: Ledger, fresh: bool = False) -> Decision | None:
        """A new decision for the next episode; None if the last one is still in force."""
        state = self.knowledge.state(ledger)
        last = ledger.decisions[-1] if ledger.decisions else None
        if last is not None and not (fresh if self.epochs else self._out_of_date(state, last)):
            return None
        place = len(ledger.sessions), ledger.version
        if self._next is None or self._next[0] != place:
            self._next = place, self.learner.decide(place[0], state)
        return self._next[1]

    def _out_of_date(self, state: State, last: Made) -> bool:
        if out_of_date(self.learner.explorer.deployment, state.visits, last.visits):
            return True
        lowered = bool((np.asarray(state.visits) < last.visits).any())  # by a correction
        return lowered and self.learner.explorer.deployment.replan != "once"

    def current(self, ledger: Ledger) -> tuple[Policy, float | None]:
        """The policy that the next episode will play, and its optimistic value."""
        fresh = next_slot(ledger)[1] if self.epochs else False
        decision = self.due(ledger, fresh)
        if decision is None:
            number = len(ledger.decisions) - 1
            return self._kept(ledger, number).policy, ledger.decisions[number].optimistic
        value = float(decision.optimistic)
        return decision.policy, value if np.isfinite(value) else None

    def policy(self, ledger: Ledger, session: Session) -> Policy:
        """The policy of an episode: that of its decision, uniform at the step of its slot."""
        number = session.decision
        assert number is not None
        step = 0 if session.slot is None else session.slot % ledger.spaces.horizon + 1

        def make() -> Policy:
            policy, allowed = self._kept(ledger, number)
            if not step:
                return policy
            nothing = np.zeros(0)
            decision = Decision(policy, np.float64(0), None, nothing, np.int64(0), allowed)
            return self.learner.policy_of(decision, step)

        return self._recent.get((number, step), make)

    def _kept(self, ledger: Ledger, number: int) -> Kept:
        digest = ledger.decisions[number].policy
        if digest is not None:
            return self._shelf.get(digest)
        if number not in self._unsaved:
            decision = self._again(number)
            self._unsaved[number] = Kept(decision.policy, decision.allowed)
        return self._unsaved[number]

    @in_x64
    def action(self, ledger: Ledger, session: Session, observation: Value) -> int:
        """The action after one more observation."""
        seen = values_array([*session.observations, observation], ledger.spaces.observations)
        chances = ask(self.policy(ledger, session), seen, session.actions, ledger.spaces)
        return int(choose(chances, self._uniform(session)[len(session.actions)]))

    def _uniform(self, session: Session) -> Array:
        """The uniform numbers for the actions of an episode, (H,), the same as in ``learn``."""
        H, finite = self.learner.homdp.horizon, self.learner.homdp.spaces.finite
        rule, n = rule_number(self.learner.explorer), session.ordinal
        seed = jax.random.key(self.learner.seed)
        if not finite:
            return self._noise.get(
                n, lambda: np.asarray(density_noise(seed, rule, n, H).actions)[0]
            )

        def block() -> Array:
            first = n // BLOCK * BLOCK
            return np.asarray(episode_noise(seed, rule, first, BLOCK, H).noise.action)

        return self._noise.get(n // BLOCK, block)[n % BLOCK]

    def release(self, ledger: Ledger) -> None:
        """Drop policies from memory that no open episode plays."""
        used = {s.decision for s in ledger.sessions if s.is_open} | {len(ledger.decisions) - 1}
        digests = {ledger.decisions[k].policy for k in used if k is not None and k >= 0}
        self._shelf.keep_only({digest for digest in digests if digest is not None})
        self._unsaved = {k: kept for k, kept in self._unsaved.items() if k in used}

    def epoch(self, ledger: Ledger) -> int | None:
        """The number of the current epoch, from 0; None for rules without epochs."""
        return current_epoch(ledger) if self.epochs else None

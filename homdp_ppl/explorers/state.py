"""The state of a rule, its proposals, and how rules count episodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

import jax
import numpy as np

from homdp_ppl.confidence.rewards import require_bounded
from homdp_ppl.core.arguments import refuse
from homdp_ppl.core.checked import check_types, checked
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.evidence import revealed_counts
from homdp_ppl.core.form import Form
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.spaces import is_real
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.declare.paired import paired
from homdp_ppl.errors import ParameterError, Problem, shown
from homdp_ppl.precision import Array, namespace


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["counts", "played", "memory", "key_data", "state_action"],
    meta_fields=["homdp", "episodes", "coin"],
)
@dataclass(frozen=True, eq=False)
class State:
    """The knowledge of a rule before a round.

    Examples
    --------
    >>> from homdp_ppl import explorers, learn, models
    >>> from homdp_ppl.planners import history_tree
    >>> run = learn(models.load("tiger", horizon=2), explorers.greedy(), history_tree(), episodes=3)
    >>> int(run.state.played), int(run.state.counts.visits.sum())  # three episodes of two steps
    (3, 6)
    """

    counts: Counts  # None if states or observations are real-valued
    played: Array  # ()  episodes so far
    memory: Any  # anything else that the rule keeps
    homdp: HOMDP  # the learner's declaration
    episodes: int  # K; None only for rules that do not need it
    key_data: Array = field(
        default_factory=lambda: np.zeros(2, dtype=np.uint32)
    )  # of the random key for inference by sampling
    state_action: Array | None = None  # (X, A)  n(x, a), if only observations are real-valued
    coin: bool = False  # whether a coin hides states, so that revealed steps alone may be counted

    @property
    def visits(self) -> Array:
        """n(x, a), (X, A), or the number of episodes if states are real-valued or have labels.

        If tables depend on the step or the previous action, these are the visits of all their rows,
        (rows,): a row of O can then be visited often while all n(x, a) stay almost the same. If
        rewards are random, the numbers of recorded rewards are added to them.
        """
        form = self.homdp.hindsight_form
        if form is not None and form.label is not None:  # no states are revealed
            return np.asarray(self.played)[None]
        rewards = None if self.counts is None else self.counts.rewards
        if rewards is not None or (self.counts is not None and not self.counts.form.is_stationary):
            parts = [self.counts.state_action.ravel(), self.counts.visits.ravel()]
            parts += [] if rewards is None else [rewards.number.ravel()]
            return namespace(self.counts).concatenate(parts)
        if self.counts is not None:
            return self.counts.state_action
        return np.asarray(self.played)[None] if self.state_action is None else self.state_action

    @property
    def only_counts(self) -> bool:
        """Whether the state consists of counts only, so that earlier states can be recomputed."""
        return self.memory is None and self.counts is not None


Update: TypeAlias = Callable[[State, Episode], State]


class Tabled(NamedTuple):
    """A model with tables for the latent part and the emission densities of a world.

    It is for real-valued observations of finitely many states. Rewards may include bonuses.
    """

    initial: Array  # (X,)
    transition: Array  # (X, A, X)
    reward: Array  # (H, X, A)
    world: World


class Proposal(NamedTuple):
    """The models to plan for.

    In finite spaces, all parts are arrays with a leading axis of candidates. In real-valued spaces,
    ``models`` is a single world, or None if no plan is needed because every action is random.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import explorers, models
    >>> rule, tiger = explorers.value_quantile(draws=3), models.load("tiger", horizon=2).homdp
    >>> proposal = rule.propose(jax.random.key(0), rule.init(tiger, 100))
    >>> proposal.models.shows(0).shape  # three tables, each with one row per state
    (3, 2, 2)
    """

    models: POMDP | World | Tabled | None
    parameters: Any = None  # of the backup, or of the root value


class Pairs(NamedTuple):
    """All pairs of a transition and an emission table as candidates: HOP-V's version spaces.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import explorers, models
    >>> world = models.load("tiger", horizon=2)
    >>> rule = explorers.hop_v([world], [world, models.load("tiger", horizon=2, accuracy=0.6)])
    >>> pairs = rule.propose(jax.random.key(0), rule.init(world.homdp, 100))
    >>> pairs.alive_emissions, pairs.model(0, 1).shows(0)[0]
    (array([ True,  True]), array([0.6, 0.4]))
    """

    transitions: Any  # (N, X, A, X) in the declared form, or a class of densities
    emissions: Any  # (M, X, Y) in the declared form, or a class of densities
    alive_transitions: Array  # (N,)
    alive_emissions: Array  # (M,)
    reference: POMDP | None = None  # has the initial distribution and rewards; for tables only
    offset: float = 0.0  # added to the optimistic value if the initial distribution is unknown
    rewards: Array | None = None  # (N, H, X, Y|1, A)  mean rewards, with each transition table
    alive_pairs: Array | None = None  # (N, M)  if pairs of survivors may be excluded

    @checked
    def model(self, t: int, o: int) -> Any:
        """The model of a pair: a POMDP, or a World."""
        members = {"t": (t, self.alive_transitions), "o": (o, self.alive_emissions)}
        refuse(
            ParameterError,
            "Pairs.model",
            [
                Problem(name, shown(index), f"a member in 0..{len(alive) - 1}")
                for name, (index, alive) in members.items()
                if not 0 <= index < len(alive)
            ],
        )
        if self.reference is None:
            return paired(self.transitions.members[t], self.emissions.members[o])
        tables = self.transitions[t], self.emissions[o]
        shapes = [np.shape(part) for part in (self.reference.initial, *tables)]
        transition, emission = Form(shapes[0], shapes[1], shapes[2]).full(*tables)
        model = self.reference._replace(transition=transition, emission=emission)
        return model if self.rewards is None else model._replace(reward=self.rewards[t])


def check_declaration(subject: str, homdp: HOMDP, episodes: int | None) -> None:
    """Raise an error if the arguments of a rule's ``init`` have the wrong types."""
    check_types(subject, homdp=(homdp, HOMDP), episodes=(episodes, int | None))


def check_step(subject: str, state: State, episode: Episode) -> None:
    """Raise an error if the arguments of a rule's ``update`` have the wrong types."""
    if not (isinstance(state, State) and isinstance(episode, Episode)):
        check_types(subject, state=(state, State), episode=(episode, Episode))


def init_state(homdp: HOMDP, episodes: int | None, memory: Any = None) -> State:
    """The state before the first episode, with zero counts for finite spaces."""
    played, length = np.zeros((), dtype=np.int64), cast(int, episodes)
    if homdp.spaces.finite:
        return State(Counts.zero(homdp), played, memory, homdp, length)
    nothing: Any = None
    state = State(nothing, played, memory, homdp, length)
    if is_real(homdp.spaces.states):
        return state
    sizes = len(homdp.spaces.states), len(homdp.spaces.actions)
    return replace(state, state_action=np.zeros(sizes, dtype=np.int64))


def init_counts(homdp: HOMDP, episodes: int | None) -> State:
    """The initial state of rules that count states and observations."""
    check_declaration("init", homdp, episodes)
    refuse_real_spaces(homdp)
    return init_state(homdp, episodes)


def init_bounded(homdp: HOMDP, episodes: int | None) -> State:
    """As :func:`init_counts`, for rules whose radii need rewards inside the declared range."""
    state = init_counts(homdp, episodes)
    require_bounded(homdp)
    return state


def count(state: State, episode: Episode) -> State:
    """Count one more episode (Algorithm 1, "update models")."""
    check_step("update", state, episode)
    played = state.played + 1
    if state.counts is not None:
        declared = state.homdp.hindsight_form is not None  # also if this episode is complete
        if state.coin and (declared or np.ma.is_masked(episode.states)):
            counts = state.counts + revealed_counts(episode, state.homdp)
            return replace(state, counts=counts, played=played)
        return replace(state, counts=state.counts.add(episode), played=played)
    if state.state_action is None:
        return replace(state, played=played)
    visits = state.state_action.copy()
    np.add.at(visits, (episode.states[:-1], episode.actions), 1)
    return replace(state, state_action=visits, played=played)


def one(model: POMDP, parameters: Any = None) -> Proposal:
    """A proposal with a single candidate."""
    proposal: Proposal = jax.tree.map(lambda leaf: leaf[None], Proposal(model, parameters))
    return proposal


def refuse_real_spaces(homdp: HOMDP) -> None:
    """Raise an error for real-valued states or observations, which cannot be counted."""
    if homdp.spaces.finite:
        return
    got = f"a rule that counts states and observations, in {homdp.name}"
    expected = (
        "posterior_sampling or uniform; or oracle, hop_v or hop_b_class with worlds of this kind"
    )
    remedy = "States or observations are real-valued here and cannot be counted."
    raise ParameterError("explorer", [Problem("explorer", got, expected, remedy)])

"""World, a declaration with its parameters fixed: a model in which policies can act."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

from homdp_ppl.core.cache import Cache, shared_cache
from homdp_ppl.core.checked import check_fields, checked
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.core.form import Form
from homdp_ppl.core.graph_policy import check_policy
from homdp_ppl.core.policy import Policy
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.randomness import as_keys, refuse_traced_key
from homdp_ppl.core.rollout import hindsight_keys, play_tables, reward_keys
from homdp_ppl.core.spaces import Spaces, no_tables
from homdp_ppl.declare.dynamics import Dynamics, Numbers
from homdp_ppl.declare.fingerprint import fingerprint
from homdp_ppl.declare.hindsight_draws import with_hindsight
from homdp_ppl.declare.notebook import world_html
from homdp_ppl.declare.parameters import short
from homdp_ppl.declare.playing import play
from homdp_ppl.declare.returns import with_rewards
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.precision import Array

if TYPE_CHECKING:
    from homdp_ppl.declare.model import HOMDP


@final
@dataclass(frozen=True, eq=False, repr=False)
class World:
    """A HOMDP with its parameters fixed. Create one with ``HOMDP.at`` or ``HOMDP.draw``.

    Two worlds are equal if they have equal declarations and equal parameters.

    Attributes
    ----------
    homdp
        The declaration.
    parameters
        The value of each site.

    Examples
    --------
    >>> import numpy as np, numpyro.distributions as dist
    >>> from homdp_ppl import tabular
    >>> lamp = tabular(
    ...     T=dist.Dirichlet(np.ones((2, 1, 2))),
    ...     O=np.eye(2),
    ...     initial=[0, 1],
    ...     reward=[[0], [1]],
    ...     horizon=3,
    ... )
    >>> world = lamp.at(T=[[[1.0, 0.0]], [[0.25, 0.75]]])
    >>> world.pomdp.moves(0)[1, 0], world.homdp is lamp
    (array([0.25, 0.75]), True)
    """

    homdp: HOMDP
    parameters: Mapping[str, Array]
    _pomdp: POMDP | None = None

    def __post_init__(self) -> None:
        check_fields(self, "World")

    @property
    def spaces(self) -> Spaces:
        """States, observations and actions, and the horizon."""
        return self.homdp.spaces

    @property
    def form(self) -> Form:
        """The form of the tables: on what their rows depend."""
        return self.homdp.form

    @property
    def pomdp(self) -> POMDP:
        """The arrays of the model; raises :class:`SpacesError` if a space is real-valued."""
        if self._pomdp is None:
            raise no_tables(self.spaces, self.homdp.name, "pomdp")
        return self._pomdp

    @property
    def dynamics(self) -> Dynamics:
        """Draws, rewards and log densities as pure functions of :attr:`numbers`."""
        return self.homdp.dynamics

    @property
    def numbers(self) -> Numbers:
        """The first argument of :attr:`dynamics`: the arrays of a finite world, or parameters."""
        return dict(self.parameters) if self._pomdp is None else self._pomdp

    @checked
    def play(self, keys: Array, policy: Policy, actions: Array | None = None) -> Episodes:
        """Play one episode of a policy per key; :func:`homdp_ppl.rollout` calls this method.

        Parameters
        ----------
        keys
            An array of JAX random keys, (episodes,).
        policy
            Any policy. A graph policy in a finite world is compiled; others are called at every
            step.
        actions
            Uniform numbers for random actions, (episodes, H), to use instead of those from the
            keys.
        """
        keys = as_keys(keys, "World.play")
        refuse_traced_key(keys, "World.play")
        if keys.ndim != 1:
            problem = Problem("keys", f"shape {keys.shape}", "keys along one axis, (episodes,)")
            raise DataError("World.play", [problem])
        check_policy(policy, self)
        shape = (len(keys), self.spaces.horizon)
        if actions is not None and actions.shape != shape:
            expected = f"uniform numbers of shape {shape}: episodes, steps"
            problem = Problem("actions", f"shape {actions.shape}", expected)
            raise DataError("World.play", [problem])
        if self.spaces.finite:
            played = play_tables(keys, self.pomdp, policy, self.spaces, actions)
            return with_rewards(self.homdp, self.parameters, reward_keys(keys), played)
        return play(keys, self.dynamics, self.numbers, policy, actions)

    @checked
    def reveal(self, keys: Array, episodes: Episodes) -> Episodes:
        """Simulated episodes as hindsight shows them.

        Nothing changes unless the declaration has labels, which then replace the states, or a
        mechanism that decides which of them are revealed.

        Parameters
        ----------
        keys
            The random keys with which the episodes were simulated, (episodes,).
        episodes
            Episodes with all states.
        """
        keys = as_keys(keys, "World.reveal")
        refuse_traced_key(keys, "World.reveal")
        if keys.shape != (len(episodes),):
            expected = f"one key for each of the {len(episodes):,} episodes"
            problem = Problem("keys", f"shape {keys.shape}", expected)
            raise DataError("World.reveal", [problem])
        if self.homdp.hindsight_form is None:
            return episodes
        played = Episodes.of(episodes, self).require_revealed("World.reveal")
        return with_hindsight(self.homdp, self.parameters, hindsight_keys(keys), played)

    @checked
    def returns(self, episodes: Episode | Episodes | Iterable[Episode | Episodes]) -> Array:
        """The sum of rewards of each episode, in the user's units."""
        return self.homdp.returns(episodes)

    @property
    def return_range(self) -> tuple[float, float]:
        """The smallest and the largest possible return, in the user's units."""
        H, rewards = self.spaces.horizon, self.homdp.rewards
        return float(rewards.to_user(0.0, H)), float(rewards.to_user(float(H), H))

    def with_horizon(self, horizon: int) -> World:
        """The same world with another horizon, if its rewards are the same at every step."""
        model = self.homdp.with_horizon(horizon)
        pomdp, table = self._pomdp, model.rewards.table
        if pomdp is None:
            return World(model, self.parameters)
        if table is None:  # mean rewards, the same at every step
            table = np.repeat(pomdp.reward[:1], model.horizon, axis=0)
        return World(model, self.parameters, pomdp._replace(reward=table))

    @property
    def name(self) -> str:
        """The name of the declaration."""
        return self.homdp.name

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the declaration and the parameters."""
        values = ((name, np.asarray(value)) for name, value in sorted(self.parameters.items()))
        return fingerprint(self.homdp.fingerprint, *(part for pair in values for part in pair))

    @cached_property
    def cache(self) -> Cache:
        """Compiled functions of this world."""
        return shared_cache(self.fingerprint) if self.spaces.finite else Cache()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, World) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={short(value)}" for name, value in self.parameters.items())
        return f"World {self.homdp.name!r} at {values or 'no parameters'}"

    def _repr_html_(self) -> str:
        return world_html(self)

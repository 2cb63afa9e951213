"""What the declaration of a world reveals in a run: labels, or states by a mechanism."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from homdp_ppl.core.episode import Episode
from homdp_ppl.core.episodes import Episodes
from homdp_ppl.declare.hindsight_draws import with_hindsight
from homdp_ppl.declare.model import World
from homdp_ppl.learning.noise import hindsight_keys
from homdp_ppl.precision import in_x64


@dataclass(frozen=True)
class Declared:
    """Labels or a mechanism of reveals, as the declaration of a world says.

    What is drawn depends only on the seed, the number of the episode and the episode itself, so it
    can be drawn again from the record of a run.

    Attributes
    ----------
    world
        The true world.

    Examples
    --------
    >>> import jax, numpy as np
    >>> from homdp_ppl import Kernels, homdp, rollout, uniform_policy
    >>> @homdp(states=2, observations=2, actions=2, horizon=2, reward=np.eye(2))
    ... def guess():
    ...     half = np.full((2, 2, 2), 0.5)
    ...     return Kernels([0.5, 0.5], half, np.eye(2), label=np.eye(2))
    >>> world = guess.at()
    >>> every_state = world.play(jax.random.split(jax.random.key(0), 3), uniform_policy(world))
    >>> shown = Declared(world).shown(every_state, seed=0)
    >>> bool(shown.revealed.any()), bool((shown.labels == every_state.states).all())
    (False, True)
    >>> print(Declared(world))
    labels as declared
    """

    world: World

    @property
    def complete(self) -> bool:
        """Whether every state of every episode is revealed: not in general."""
        return False

    @property
    def coin(self) -> bool:
        """Whether a coin decides about all states alike; a declared coin is a ``Reveal``."""
        return False

    @in_x64
    def shown(self, episodes: Episodes, seed: int, first: int = 0) -> Episodes:
        """Consecutive episodes of a run as they are revealed.

        Parameters
        ----------
        episodes
            The episodes, with all their states.
        seed
            The seed of the run.
        first
            The number of the first of these episodes, from 0.
        """
        keys = hindsight_keys(jax.random.key(seed), jnp.arange(len(episodes)) + first)
        world = self.world
        return with_hindsight(world.homdp, world.parameters, keys, episodes)

    def episode(self, episode: Episode, seed: int, number: int) -> Episode:
        """One episode of a run as it is revealed."""
        return self.shown(Episodes.of(episode, self.world), seed, number)[0]

    def __str__(self) -> str:
        form = self.world.homdp.hindsight_form
        assert form is not None
        item = "states" if form.label is None else "labels"
        how = "as declared" if form.revealed is None else "by the declared mechanism"
        return f"{item} {how}"

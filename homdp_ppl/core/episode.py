"""Episodes, and how a policy is played in a world.

While an episode lasts there is only a :class:`Trajectory`; an :class:`Episode`, with latent states,
exists after the last action.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from homdp_ppl.core.policy import Trajectory
from homdp_ppl.core.spaces import Real, Spaces, shape_of, value_problems
from homdp_ppl.errors import DataError, Problem
from homdp_ppl.precision import Array

if TYPE_CHECKING:
    pass


@partial(jax.tree_util.register_dataclass, data_fields=["trajectory", "states"], meta_fields=[])
@dataclass(frozen=True, eq=False)
class Episode:
    """A finished episode with its latent states revealed.

    A batch of episodes has leading axes: it has a length, is indexed, sliced and iterated episode
    by episode.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, rollout, uniform_policy
    >>> world = models.load("tiger")
    >>> episode = rollout(jax.random.key(0), world, uniform_policy(world))
    >>> (
    ...     episode.actions.shape,
    ...     [world.spaces.states[x] for x in episode.states],
    ... )  # the state after the last action is there too
    ((4,), ['left', 'right', 'left', 'left', 'left'])
    """

    trajectory: Trajectory  # (H,) observations and actions
    states: Array  # (H + 1,)  x_1 .. x_{H+1}

    def __getitem__(self, index: Any) -> Episode:
        len(self)
        chosen: Episode = jax.tree.map(lambda leaf: leaf[index], self)
        return chosen

    def __len__(self) -> int:
        if self.actions.ndim < 2:
            raise TypeError("this is a single episode; its horizon is the length of its actions")
        return len(self.actions)

    def __iter__(self) -> Iterator[Episode]:
        return (self[k] for k in range(len(self)))

    @property
    def observations(self) -> Array:
        """y_1 .. y_H."""
        return self.trajectory.observations

    @property
    def actions(self) -> Array:
        """a_1 .. a_H."""
        return self.trajectory.actions


def stack(episodes: Episode | Iterable[Episode], spaces: Spaces) -> Episode:
    """Episodes as one batch with a single leading axis, checked against the model they are said to
    come from.
    """
    H = spaces.horizon
    shapes = {
        "observations": (H, *shape_of(spaces.observations)),
        "actions": (H,),
        "states": (H + 1, *shape_of(spaces.states)),
    }
    parts: dict[str, list[Array]] = {name: [] for name in shapes}
    for episode in [episodes] if isinstance(episodes, Episode) else episodes:
        place = str(sum(map(len, parts["actions"])))
        if not isinstance(episode, Episode):
            raise DataError(
                "episodes",
                [Problem("episode", f"a {type(episode).__name__}", "an Episode", at=place)],
            )
        arrays = {name: np.asarray(getattr(episode, name)) for name in shapes}
        leading = {array.shape[: array.ndim - len(shapes[name])] for name, array in arrays.items()}
        alike = all(
            array.shape[array.ndim - len(shapes[name]) :] == shapes[name]
            for name, array in arrays.items()
        )
        if len(leading) != 1 or not alike:
            got = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
            expected = (
                f"{H} observations, {H} actions and {H + 1} states an episode: "
                f"shapes {', '.join(map(str, shapes.values()))}"
            )
            raise DataError("episodes", [Problem("episode", got, expected, at=place)])
        for name, array in arrays.items():
            parts[name].append(array.reshape(-1, *shapes[name]))
    whole, problems = {}, []
    for name, shape in shapes.items():
        space = getattr(spaces, name)
        kind = float if isinstance(space, Real) else int
        whole[name] = (
            np.concatenate(parts[name]) if parts[name] else np.zeros((0, *shape), dtype=kind)
        )
        problems += value_problems(name, whole[name], space)
    if problems:
        raise DataError("episodes", problems)
    return Episode(Trajectory(whole["observations"], whole["actions"]), whole["states"])

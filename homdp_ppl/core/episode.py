"""One finished episode with its latent states.

During an episode there is only a :class:`Trajectory`. An :class:`Episode`, with latent states,
exists after the last action. :class:`homdp_ppl.Episodes` is a container for many episodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias, get_args

import jax
import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.episode_values import Known, Values, in_space, split_missing
from homdp_ppl.core.policy import Trajectory
from homdp_ppl.core.pomdp_validation import spaces_of
from homdp_ppl.core.sensors import Sensors
from homdp_ppl.core.spaces import HasSpaces, Space, Spaces, shape_of, value_problems
from homdp_ppl.errors import DataError, Problem, shown
from homdp_ppl.precision import Array

UNKNOWN = {
    "observations": "",
    "actions": "",
    "states": "For an episode without hindsight, pass [None] * (steps + 1).",
    "rewards": "",
    "labels": "",
}  # remedies if nothing is known
Ended: TypeAlias = Literal["horizon", "terminal", "truncated"]


@partial(
    jax.tree_util.register_dataclass,
    data_fields=["trajectory", "states", "rewards", "labels"],
    meta_fields=["ended"],
    drop_fields=["id"],
)
@dataclass(frozen=True, eq=False)
class Episode:
    """One finished episode with its latent states.

    Missing states, rewards and labels are masked, None or NaN. JAX transformations drop the id.

    Examples
    --------
    >>> import jax
    >>> from homdp_ppl import models, rollout, uniform_policy
    >>> world = models.load("tiger")
    >>> episode = rollout(jax.random.key(0), world, uniform_policy(world))
    >>> (
    ...     episode.actions.shape,
    ...     [world.spaces.states[x] for x in episode.states],
    ... )  # includes the state after the last action
    ((4,), ['left', 'right', 'left', 'left', 'left'])
    """

    trajectory: Trajectory  # (H,) observations and actions
    states: Array  # (H + 1,)  x_1 .. x_{H+1}
    rewards: Array | None = None  # (H,)  as recorded
    labels: Array | None = None  # (H + 1,)  coarse or noisy hindsight
    id: str | None = None
    ended: Ended = "horizon"  # "terminal" or "truncated" if there are fewer than H steps

    @property
    def observations(self) -> Array:
        """y_1 .. y_H."""
        return self.trajectory.observations

    @property
    def actions(self) -> Array:
        """a_1 .. a_H."""
        return self.trajectory.actions

    @classmethod
    def of(
        cls,
        observations: ArrayLike,
        actions: ArrayLike,
        states: ArrayLike,
        model: HasSpaces,
        *,
        rewards: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        id: str | None = None,  # noqa: A002
        ended: Ended = "horizon",
    ) -> Episode:
        """Create an episode from names or indices, validated against the spaces of a model.

        Parameters
        ----------
        observations, actions
            One value per step. Observations of several sensors may also be tuples or dicts, or a
            dict {sensor: one value per step}.
        states
            One value per step and the state after the last action; None for states that were not
            revealed.
        model
            A declaration, a world or spaces.
        rewards, labels
            Recorded rewards and labels, with None for missing values.
        id
            A name for the episode.
        ended
            The reason why the episode ended.

        Examples
        --------
        >>> from homdp_ppl import Spaces
        >>> lamp = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=2)
        >>> Episode.of(["dark", "light"], ["press", "wait"], ["off", "on", None], lamp).states
        masked_array(data=[0, 1, --],
                     mask=[False, False,  True],
               fill_value=999999)
        """
        spaces = spaces_of(model, "episode")
        problems: list[Problem] = []
        seen = _encoded("observations", observations, spaces.observations, problems)
        done = _encoded("actions", actions, spaces.actions, problems)
        hidden = _encoded("states", states, spaces.states, problems)
        for where, values in (("observations", seen), ("actions", done)):
            missing = np.flatnonzero(np.ma.getmaskarray(values))
            problems += [missing_value(where, f"step {h + 1}") for h in missing[:8]]
        arrays = {"observations": seen, "actions": done, "states": hidden}
        recorded = {
            name: None if part is None else _numbers(name, part, problems)
            for name, part in (("rewards", rewards), ("labels", labels))
        }
        early = isinstance(ended, str) and ended in ("terminal", "truncated")
        problems = problems or [
            *(
                shape_problems(arrays, spaces, "", early)
                or length_problems(len(done), ended, spaces.horizon, "")
            ),
            *_record_problems(recorded, len(done)),
        ]
        if problems:
            raise DataError("episode", problems)
        return cls(Trajectory(seen, done), hidden, **recorded, id=id, ended=ended)


def shape_problems(
    arrays: dict[str, Values], spaces: Spaces, at: str, short: bool = False
) -> list[Problem]:
    """Report wrong shapes of one episode: L observations, L actions and L + 1 states.

    ``short`` says that the episode ended early. Otherwise the error asks for H actions.
    """
    steps = len(arrays["actions"]) if arrays["actions"].ndim == 1 else -1
    shapes = {
        "observations": (steps, *shape_of(spaces.observations)),
        "actions": (steps,),
        "states": (steps + 1, *shape_of(spaces.states)),
    }
    if all(arrays[name].shape == shape for name, shape in shapes.items()):
        return []
    H = steps if short and steps >= 0 else spaces.horizon
    got = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
    full = ((H, *shapes["observations"][1:]), (H,), (H + 1, *shapes["states"][1:]))
    expected = (
        f"{H} observations, {H} actions and {H + 1} states per episode: "
        f"shapes {', '.join(map(str, full))}"
    )
    remedy = "For many episodes, use Episodes(observations, actions, states)." * (steps < 0)
    if steps > 0 and arrays["states"].shape[:1] == (steps,):
        remedy = "Add the state after the last action, or None if it was not revealed."
    return [Problem("episode", got, expected, remedy, at)]


def length_problems(length: int, ended: str, horizon: int, at: str) -> list[Problem]:
    """Report a number of steps that does not fit the reason for the episode's end."""
    if not isinstance(ended, str) or ended not in get_args(Ended):
        return [Problem("ended", shown(ended), '"horizon", "terminal" or "truncated"', at=at)]
    if length == horizon and ended != "truncated":
        return []
    if length < horizon and ended != "horizon":
        return []
    remedy = 'If it ended early, pass ended="terminal" or "truncated".' * (length < horizon)
    expected = f"{horizon} steps" if ended == "horizon" else f"fewer than {horizon} steps"
    if ended == "terminal":
        expected = f"at most {horizon} steps"
    got = f"{length} step{'s' * (length != 1)}, ended {ended!r}"
    return [Problem("length", got, expected, remedy, at)]


def _record_problems(recorded: dict[str, Values | None], steps: int) -> list[Problem]:
    """Report a wrong number of rewards or labels."""
    wanted = {"rewards": steps, "labels": steps + 1}
    return [
        Problem(name, f"{len(part)} values", f"{wanted[name]} values, with None if missing")
        for name, part in recorded.items()
        if part is not None and len(part) != wanted[name]
    ]


def missing_value(where: str, at: str) -> Problem:
    """The problem for a missing observation or action."""
    return Problem(where, "no value", "a value for every step", at=at)


def _encoded(where: str, values: ArrayLike, space: Space, problems: list[Problem]) -> Values:
    """Convert the values of one episode to indices or numbers; missing values are masked."""
    if isinstance(space, Sensors):
        values, wrong = space.encode_steps(where, values)
        if wrong:
            problems += wrong
            return np.zeros(0, dtype=int)
    array, known = _read(where, values, problems)
    array, wrong = in_space(where, array, known, space)
    if not wrong and array.ndim:
        rows = None if known is None else known[None]
        found = value_problems(where, array[None], space, rows)
        wrong = [problem._replace(at=problem.at.removeprefix("episode 0, ")) for problem in found]
    problems += wrong
    return array if known is None else hide(array, known)


def _read(where: str, values: ArrayLike, problems: list[Problem]) -> tuple[Values, Known | None]:
    """Split the values of one episode into values and a mask; report invalid sequences."""
    try:
        array, known = split_missing(values, axes=1)
    except (TypeError, ValueError, IndexError):  # raised by NumPy for invalid sequences
        array, known = np.zeros(()), None
    if array.ndim == 0:
        problems.append(Problem(where, shown(values), "a sequence of values", UNKNOWN[where]))
        return np.zeros(0, dtype=int), None
    return array, known


def _numbers(where: str, values: ArrayLike, problems: list[Problem]) -> Values:
    """Convert recorded numbers to an array; missing values are masked."""
    array, known = _read(where, values, problems)
    if array.dtype.kind not in "biuf":
        problems.append(Problem(where, shown(values), "numbers"))
    return array if known is None else hide(array, known)


def hide(values: Values, known: Values) -> Values:
    """Return a masked array that hides values that are not known."""
    trailing = values.ndim - known.ndim
    mask = np.broadcast_to(~known.reshape(*known.shape, *(1,) * trailing), values.shape)
    return np.ma.MaskedArray(values, mask=mask)

"""Read .POMDP files: their contents in their own units, and as worlds."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from homdp_ppl.core.checked import checked, checked_but
from homdp_ppl.core.sparse import Sparse, is_sparse
from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import SNAP, Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.errors import HOMDPError, ParameterError, Problem, shown
from homdp_ppl.formats.grammar import KINDS, Grammar
from homdp_ppl.formats.learnable import sampled, truth, with_first
from homdp_ppl.formats.sparse_tables import (
    SparseTable,
    sparse_distributions,
    sparse_mean_reward,
)
from homdp_ppl.formats.tables import Table, distributions, mean_reward
from homdp_ppl.formats.words import Words, decode, opened
from homdp_ppl.precision import Array

MOST = 1e300  # a concentration beyond this leaves float64
NULL = "nothing"  # the observation before the first action if observations depend on the action


def null_name(observations: Collection[str]) -> str:
    """The name of the observation before the first action, different from all others."""
    names = (NULL + "_" * k for k in range(len(observations) + 1))
    return next(name for name in names if name not in observations)


@dataclass(frozen=True, eq=False, repr=False)
class PomdpFile:
    """The contents of a .POMDP file, as :func:`read_file` returns them.

    Attributes
    ----------
    path
        The path of the file.
    discount
        The discount in the file, None if it has none. It is recorded but never applied.
    costs
        Whether the file has costs instead of rewards.
    states, actions, observations
        Names; x0, a0, y0 and so on if the file gives only their number.
    start
        The distribution of the first state.
    transition
        T(s' | s, a); a :class:`Sparse` table if it is large and most entries are zero.
    observation
        O(o | a, s'), emitted after the transition.
    reward
        The reward or cost of (s, a) in the units of the file: R averaged over the next state and
        the observation.
    null
        The name of the extra observation before the first action, or None if the first state emits
        an observation as every other state does.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from homdp_ppl import formats
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "lamp.POMDP"
    ...     _ = path.write_text(
    ...         "states: off on  actions: 1  observations: 1 "
    ...         "T: * identity  O: * uniform  R: * : on : * : * 10"
    ...     )
    ...     lamp = formats.read_file(path)
    >>> lamp.states, lamp.reward[:, 0], lamp.start
    (('off', 'on'), array([ 0., 10.]), array([0.5, 0.5]))
    >>> lamp.world(horizon=6).homdp.reward_range
    (0.0, 10.0)
    """

    path: str
    discount: float | None
    costs: bool
    states: tuple[str, ...]
    actions: tuple[str, ...]
    observations: tuple[str, ...]
    start: Array  # (X,)
    transition: Array | Sparse  # (X, A, X)
    observation: Array  # (A, X, Y)
    reward: Array  # (X, A)
    null: str | None = None

    @property
    def action_matters(self) -> bool:
        """Whether observations depend on the action."""
        return bool((self.observation != self.observation[0]).any())

    @checked_but("horizon", "prior")
    def world(self, horizon: int, prior: float | None = None) -> World:
        """The file as a world; see :func:`read_pomdp`."""
        name = Path(self.path).stem
        positive = isinstance(prior, Real) and not isinstance(prior, bool) and 0 < prior < MOST
        if prior is not None and not positive:
            raise ParameterError(
                name,
                [Problem("prior", shown(prior), "None, or a positive concentration such as 1.0")],
            )
        # zeros as in every declaration
        transition = _snapped(self.transition)
        emission = np.where(self.observation > SNAP, self.observation, 0.0)
        emission = emission[0] if self.null is None else emission

        def program() -> Kernels:
            T = transition if prior is None else sampled("T", transition, prior)
            O = emission if prior is None else sampled("O", emission, prior)  # noqa: E741
            return Kernels(self.start, T, O if self.null is None else with_first(O))

        program.__name__ = name
        declare = homdp(
            states=self.states,
            observations=self.observations
            if self.null is None
            else (*self.observations, self.null),
            actions=self.actions,
            horizon=horizon,
            reward=None if self.costs else self.reward,
            cost=self.reward if self.costs else None,
        )
        if prior is None:
            return declare(program).at()
        return declare(program).at(**truth("T", transition), **truth("O", emission))

    def __repr__(self) -> str:
        X, A, Y = len(self.states), len(self.actions), len(self.observations)
        kind = "costs" if self.costs else "rewards"
        numbers = f"{kind} {self.reward.min():g} to {self.reward.max():g}, discount {self.discount}"
        return f"PomdpFile {self.path!r}: {X} states, {Y} observations, {A} actions, {numbers}"


@checked
def read_file(path: str | os.PathLike[str]) -> PomdpFile:
    """Read a .POMDP file: names, discount, and rewards or costs in the units of the file.

    Parameters
    ----------
    path
        A file in Cassandra's format (pomdp.org). The whole grammar is supported.

    Returns
    -------
    PomdpFile
        The contents as NumPy arrays. The sum of a row may differ from one by 1e-5, as in published
        files; the row is then normalised.

    Raises
    ------
    HOMDPError
        If the file is invalid, with the file, the line, its text and what was expected. It is
        raised before anything large is allocated.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from homdp_ppl import formats, models, write_pomdp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tiger.POMDP"
    ...     write_pomdp(models.load("tiger", horizon=2), path, discount=0.95)
    ...     file = formats.read_file(path)
    >>> file.discount, file.actions
    (0.95, ('listen', 'open left', 'open right'))
    >>> file.transition.shape  # T(s' | s, a); file.world(horizon=2) is a world
    (2, 3, 2)
    """
    if not isinstance(path, str | os.PathLike):
        raise HOMDPError("read_file", [Problem("path", shown(path), "the name of a file")])
    with opened(Path(path)) as stream:
        return parse(decode(stream), str(path))


def parse(text: str | Iterable[str], path: str) -> PomdpFile:
    """Parse the text of a .POMDP file, given as one string or in pieces.

    The path is used in errors and as the model's name.
    """
    words = Words([text] if isinstance(text, str) else text, path)
    found = Grammar(words)
    names = {kind: _names(found, kind) for kind in KINDS}
    rows = (names["actions"], names["states"])
    moves: Any = found.tables["T"]
    shows: Any = found.tables["O"]
    large = isinstance(moves, SparseTable)
    T, wrong_T = _distributions(moves, rows)
    O, wrong_O = distributions(shows, rows)  # noqa: E741
    if wrong_T or wrong_O:
        raise HOMDPError(path, [*wrong_T, *wrong_O])
    X = len(names["states"])
    average: Any = sparse_mean_reward if large else mean_reward
    mean = average(found.tables["R"], T, O)
    return PomdpFile(
        path=path,
        discount=found.discount,
        costs=found.costs,
        states=names["states"],
        actions=names["actions"],
        observations=names["observations"],
        start=np.full(X, 1 / X) if found.start is None else found.start,
        transition=_stored(T) if large else np.ascontiguousarray(np.swapaxes(T, 0, 1)),
        observation=O,
        reward=np.ascontiguousarray(mean.T),
        null=_null(found, names["observations"], bool((O[0] != O).any())),
    )


def _distributions(
    table: Table | SparseTable, rows: tuple[tuple[str, ...], tuple[str, ...]]
) -> tuple[Any, list[Problem]]:
    """The rows of T, and problems for those that do not sum to one."""
    if isinstance(table, SparseTable):
        return sparse_distributions(table, rows)
    return distributions(table, rows)


def _snapped(table: Any) -> Any:
    if isinstance(table, Sparse):
        return Sparse(np.where(table.values > SNAP, table.values, 0.0), table.pattern)
    return np.where(table > SNAP, table, 0.0)


def _stored(table: Sparse) -> Array | Sparse:
    """The transitions (X, A, X) of a large model: an array if few of them are zero."""
    size = math.prod(table.shape)
    return table if is_sparse(len(table.values), size) else table.dense("read_file")[0]


def _null(found: Grammar, observations: tuple[str, ...], action_matters: bool) -> str | None:
    """The name of the observation before the first action.

    There is one if observations depend on the action, or if :func:`homdp_ppl.write_pomdp` noted it.
    """
    name = null_name(found.names["observations"].places)
    noted = found.words.long_names.get(("observations", name))
    if noted is None and not action_matters:
        return None
    full = noted or name
    return full if full not in observations else null_name(observations)


def _names(found: Grammar, kind: str) -> tuple[str, ...]:
    """The names in a file; names that :func:`homdp_ppl.write_pomdp` changed are restored.

    If the file gives only a number, names are numbered.
    """
    _, size, places = found.names[kind]
    if not places:
        return tuple(f"{KINDS[kind]}{k}" for k in range(size))
    full = tuple(found.words.long_names.get((kind, name), name) for name in places)
    return full if len(set(full)) == size and all(full) else tuple(places)


@checked_but("horizon", "prior")
def read_pomdp(path: str | os.PathLike[str], horizon: int, prior: float | None = None) -> World:
    """Read a .POMDP file (Cassandra's format) as a world.

    Three conventions of the format differ from those of this package:

    - In the format, observations come after an action; here they come before it. If observations do
      not depend on the action, each state emits them by the file's O, including the first state. If
      they do, the emission table has one table per previous action, (A + 1, X, Y), and the first
      observation is always "nothing", the last one in the list.
    - R(action, state, next state, observation) is averaged over the next state and the observation.
      Values are in the units of the file; the reward of a cost is minus the cost.
    - The file has a discount and no horizon; a model here has a horizon and no discount. The
      discount is recorded (``read_file``) but not applied.

    Parameters
    ----------
    path
        The file.
    horizon
        Number of actions in an episode.
    prior
        None: everything is known. A number: every row of T and O with two or more possible outcomes
        is unknown, with a Dirichlet prior that has this concentration on each outcome. Zeros in the
        file are known zeros, and the numbers in the file are the true parameters of the world. The
        sites are named after the number of outcomes: "T2", "O5". Rewards are known, even if they
        are averages.

    Returns
    -------
    World
        ``.homdp`` is the declaration, with closed-form posteriors.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name) / "lamp.POMDP"
    >>> sizes = "states: off on  actions: wait  observations: dark light  start: on "
    >>> _ = path.write_text(sizes + "T: wait 1 0 0.1 0.9  O: * identity  R: * : on : * : * 10")
    >>> world = read_pomdp(path, horizon=6, prior=1.0)
    >>> world.homdp
    HOMDP 'lamp': 2 states, 2 observations, 1 action, horizon 6, rewards 0 to 10
      T: 1 of 2 rows known, 1 row Dirichlet, conjugate; O: known; initial: known
    >>> folder.cleanup()
    """
    return read_file(path).world(horizon, prior)

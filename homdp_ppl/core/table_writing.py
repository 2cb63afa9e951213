"""From :class:`Episodes` to a table with one row per step."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from homdp_ppl.core.episode_values import Known, Values
from homdp_ppl.core.spaces import Real, Space, Spaces

if TYPE_CHECKING:
    from homdp_ppl.core.episodes import Episodes


def to_table(episodes: Episodes, spaces: Spaces | None) -> Any:
    """A pandas DataFrame, or a dict of columns if pandas is not installed."""
    columns = table_columns(episodes, spaces)
    if find_spec("pandas") is None:
        return {name: as_objects(*column) for name, column in columns.items()}
    import pandas

    return pandas.DataFrame({name: _series(pandas, *each) for name, each in columns.items()})


def table_columns(
    episodes: Episodes, spaces: Spaces | None
) -> dict[str, tuple[Values, Known, Any]]:
    """The columns by name: values, which are known, and the names of indices or None."""
    N, H, length = len(episodes), episodes.horizon, episodes.length
    after = episodes.revealed[np.arange(N), length].copy()
    if episodes.labels_known is not None:
        after |= episodes.labels_known[np.arange(N), length]
    after |= length == 0  # an episode needs at least one row
    width = length + after
    row, place = np.nonzero(np.arange(H + 1) < width[:, None])
    step = np.minimum(place, H - 1)
    acted, always = place < length[row], np.ones(len(row), dtype=bool)
    columns: dict[str, tuple[Values, Known, Any]] = {
        "episode": (_ids(episodes)[row], always, None),
        "step": (place + 1, always, None),
    }
    for name, values, known, at in (
        ("observation", episodes.observations, acted, step),
        ("action", episodes.actions, acted, step),
        ("state", episodes.states, episodes.revealed[row, place], place),
    ):
        space: Space | None = getattr(spaces, f"{name}s", None)
        columns |= _parts(name, values[row, at], known, space)
    if episodes.rewards is not None and episodes.rewards_known is not None:
        known = acted & episodes.rewards_known[row, step]
        columns["reward"] = episodes.rewards[row, step], known, None
    if episodes.labels is not None and episodes.labels_known is not None:
        columns["label"] = episodes.labels[row, place], episodes.labels_known[row, place], None
    if (episodes.ended != "horizon").any():
        columns["ended"] = episodes.ended[row].astype(object), always, None
    return columns


def _ids(episodes: Episodes) -> Values:
    """The ids; episodes without an id are numbered from 0."""
    if episodes.ids is None:
        return np.arange(len(episodes))
    taken = {each for each in episodes.ids if each is not None}
    names = list(episodes.ids)
    for k, name in enumerate(names):
        if name is None:
            name = str(k)
            while name in taken:
                name = f"episode {name}"
            taken.add(name)
            names[k] = name
    return np.array(names, dtype=object)


def _parts(
    name: str, values: Values, known: Known, space: Space | None
) -> dict[str, tuple[Values, Known, Any]]:
    """One column, or one per axis of a vector: "state 1", "state 2"."""
    if values.ndim > 1:
        axes = range(values.shape[1])
        return {f"{name} {k + 1}": (values[:, k], known, None) for k in axes}
    named = space is not None and not isinstance(space, Real) and values.dtype.kind in "iu"
    return {name: (values, known, space if named else None)}


def as_objects(values: Values, known: Known, names: Any) -> Values:
    """A column as an array; missing values are None."""
    if names is not None:
        values = np.array(names, dtype=object)[np.where(known, values, 0)]
    if known.all():
        return values
    column = values.astype(object)
    column[~known] = None
    return column


def _series(pandas: Any, values: Values, known: Known, names: Any) -> Any:
    """A column of a DataFrame: categories for names, Int64 for indices with gaps."""
    if names is not None:
        codes = np.where(known, values, -1)
        return pandas.Categorical.from_codes(codes, categories=list(names))
    if values.dtype.kind in "iu" and not known.all():
        return pandas.arrays.IntegerArray(values.astype(np.int64), ~known)
    if values.dtype.kind == "f" and not known.all():
        return np.where(known, values, np.nan)
    return as_objects(values, known, None)

"""Random episodes, written to tables row by row in plain Python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from homdp_ppl import Episode, Episodes, Real, Spaces
from homdp_ppl.core.sensors import Sensors

STATES = ("home", "ward", "discharged")
EAR, EYE = ("left", "right"), ("dark", "dim", "light")
SPACES = {
    "names": Spaces(STATES, ("dark", "light"), ("wait", "press"), 3),
    "terminal": Spaces(STATES, ("dark", "light", "ended"), ("wait", "press"), 3, ("discharged",)),
    "sensors": Spaces(STATES, Sensors({"ear": EAR, "eye": EYE}), ("wait", "press"), 3),
    "vectors": Spaces(Real(2), Real(1), ("wait", "press"), 3),
}
LIBRARIES = ("dict", "pandas", "polars", "pyarrow", "xarray")
COLUMNS: dict[str, dict[str, Any]] = {
    "sensors": {"observation": {"eye": "seen", "ear": "heard"}},
    "vectors": {"state": ["state 1", "state 2"]},
}


def some_episodes(kind: str, rng: random.Random, number: int) -> list[Episode]:
    """Random episodes with gaps, rewards and labels."""
    spaces = SPACES[kind]
    return [_episode(spaces, rng, f"e{k}") for k in range(number)]


def _episode(spaces: Spaces, rng: random.Random, name: str) -> Episode:
    H, last = spaces.horizon, 2 if spaces.terminal else 3
    L = rng.randint(1, H)
    states: list[Any]
    if isinstance(spaces.states, Real):
        states = [_maybe(rng, [rng.random(), rng.random()], [None, None]) for _ in range(L + 1)]
    else:
        states = [_maybe(rng, rng.choice(STATES[:last])) for _ in range(L + 1)]
    ended = "horizon" if L == H else "truncated"
    if spaces.terminal and rng.random() < 0.5:
        ended, states[-1] = "terminal", rng.choice([None, "discharged"])
    shown = spaces.observations
    seen: list[Any]
    if isinstance(shown, Real):
        seen = [rng.random() for _ in range(L)]
    else:
        seen = [rng.choice(shown[: len(shown) - bool(spaces.terminal)]) for _ in range(L)]
    return Episode.of(
        seen,
        [rng.choice(spaces.actions) for _ in range(L)],
        states,
        spaces,
        rewards=[_maybe(rng, rng.randint(0, 4) / 4) for _ in range(L)],
        labels=[_maybe(rng, float(rng.randint(0, 2))) for _ in range(L + 1)],
        id=name,
        ended=ended,  # type: ignore[arg-type]
    )


def _maybe(rng: random.Random, value: Any, missing: Any = None) -> Any:
    return missing if rng.random() < 0.3 else value


def rows_of(
    episodes: list[Episode], spaces: Spaces, first: int = 1, names: bool = True
) -> list[dict[str, Any]]:
    """The rows of a table, one dict per row."""
    rows = []
    for episode in episodes:
        L = len(episode.actions)
        for h in range(L + 1):
            acted = h < L
            row: dict[str, Any] = {"episode": episode.id, "step": h + first, "comment": "none"}
            seen: Any = episode.observations[h] if acted else None
            if isinstance(spaces.observations, Sensors):
                parts = spaces.observations.split(int(seen)) if acted else {}
                row |= {"heard": parts.get("ear"), "seen": parts.get("eye")}
            elif isinstance(spaces.observations, Real):
                row["observation"] = float(seen) if acted else None
            else:
                row["observation"] = _name(seen, spaces.observations, names) if acted else None
            row["action"] = _name(episode.actions[h], spaces.actions, names) if acted else None
            state, mask = episode.states[h], np.ma.getmaskarray(np.ma.asarray(episode.states))[h]
            if isinstance(spaces.states, Real):
                for k in range(2):
                    row[f"state {k + 1}"] = None if mask[k] else float(state[k])
            else:
                row["state"] = None if mask else _name(state, spaces.states, names)
            row["reward"] = _number(episode.rewards, h) if acted else None
            row["label"] = _number(episode.labels, h)
            row["ended"] = episode.ended
            values = [v for k, v in row.items() if k not in ("episode", "step", "comment", "ended")]
            if any(v is not None for v in values):
                rows.append(row)
    return rows


def _name(index: Any, names: tuple[str, ...], named: bool) -> Any:
    return names[int(index)] if named else int(index)


def _number(values: Any, h: int) -> float | None:
    return None if np.ma.getmaskarray(values)[h] else float(values[h])


def as_table(rows: list[dict[str, Any]], library: str) -> Any:
    """The rows as a table of a library."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    if library == "dict":
        return columns
    if library == "polars":
        import polars

        return polars.DataFrame(columns)
    if library == "pyarrow":
        import pyarrow

        return pyarrow.table(columns)
    import pandas

    frame = pandas.DataFrame(columns)
    if library == "pandas":
        return frame
    import xarray

    return xarray.Dataset.from_dataframe(frame.astype(object).set_index(["episode", "step"]))


def in_order(episodes: Episodes, ids: list[str]) -> Episodes:
    """The episodes in the order of these ids."""
    assert episodes.ids is not None
    place = {name: k for k, name in enumerate(episodes.ids)}
    return episodes[[place[name] for name in ids]]


def alike(one: Episodes, other: Episodes) -> bool:
    """Whether two containers are equal, up to the types of numbers."""
    for name in ("observations", "actions", "states", "revealed", "length", "ended", "ids"):
        if not np.array_equal(_plain(one, name), _plain(other, name)):
            return False
    for name in ("rewards", "labels"):
        mine, theirs = getattr(one, f"{name}_known"), getattr(other, f"{name}_known")
        if (mine is None) != (theirs is None) or not np.array_equal(mine, theirs):
            return False
        if mine is not None and not np.array_equal(
            getattr(one, name)[mine], getattr(other, name)[mine]
        ):
            return False
    return True


def _plain(episodes: Episodes, name: str) -> Any:
    values = getattr(episodes, name)
    return np.nan_to_num(values, nan=-1.0) if values.dtype.kind == "f" else values

"""Reading, padding, masking and joining the columns of episodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl import errors
from homdp_ppl.core.episode import Ended, hide
from homdp_ppl.core.episode_validation import structure_problems, unseen_problems
from homdp_ppl.core.episode_values import Known, Values, blank, split_missing
from homdp_ppl.errors import DataError, Problem

MASKS = {"states": "revealed", "rewards": "rewards_known", "labels": "labels_known"}


def columns_of(
    observations: ArrayLike,
    actions: ArrayLike,
    values: Mapping[str, ArrayLike | None],
    known: Mapping[str, ArrayLike | None],
    length: ArrayLike | None,
    ended: ArrayLike,
    ids: ArrayLike | Sequence[str | None] | None,
) -> dict[str, Any]:
    """Make the columns of :class:`homdp_ppl.Episodes`; raises DataError if they do not fit.

    Parameters
    ----------
    observations, actions, length, ended, ids
        The arguments of :class:`homdp_ppl.Episodes`.
    values, known
        States, rewards and labels, and the masks of their known values.
    """
    seen, saw = read("observations", observations)
    done, did = read("actions", actions)
    given = {name: read(name, part) for name, part in values.items() if part is not None}
    if "states" not in given:
        raise DataError("episodes", [Problem("states", "None", "an array (N, H + 1)")])
    N, H = done.shape if done.ndim == 2 else (0, 0)
    steps = np.full(N, H) if length is None else read("length", length, axes=1)[0]
    texts = isinstance(ended, str | np.ndarray | list | tuple) and not hasattr(ended, "_fields")
    flat = not isinstance(ended, list | tuple) or all(isinstance(each, str) for each in ended)
    reasons = np.asarray(ended if texts and flat else 0)
    if reasons.dtype.kind != "U" or not np.isin(reasons, get_args(Ended)).all():
        expected = " or ".join(f'"{reason}"' for reason in get_args(Ended))
        raise DataError("episodes", [Problem("ended", errors.shown(ended), expected)])
    reasons = reasons.astype("<U10")
    names = None if ids is None else np.array(ids, dtype=object)
    structure = {"observations": seen, "actions": done, "length": steps, "ended": reasons}
    structure |= {name: part for name, (part, _) in given.items()}
    given_masks = {name: mask for name, mask in known.items() if mask is not None}
    structure |= {f"known {name}": read(name, mask)[0] for name, mask in given_masks.items()}
    structure |= {} if names is None else {"ids": names}
    problems = structure_problems(structure) or [
        Problem(MASKS[name], errors.shown(mask), "True or False for each entry")
        for name, mask in given_masks.items()
        if not _is_mask(structure[f"known {name}"])
    ]
    if problems:
        raise DataError("episodes", problems)
    short = length is not None and bool((steps < H).any())
    present = np.arange(H + 1) <= steps[:, None] if short else None
    problems = unseen_problems({"observations": saw, "actions": did}, present, names)
    if problems:
        raise DataError("episodes", problems)
    columns: dict[str, Any] = {
        "observations": padded(seen, present),
        "actions": padded(done, present),
        "length": steps,
        "ended": np.full(N, reasons) if reasons.ndim == 0 else reasons,
        "ids": names,
    }
    for name, mask in MASKS.items():
        part, found = given.get(name, (None, None))
        columns[name], columns[mask] = masked(part, found, known[name], present)
    return columns


def _is_mask(values: Values) -> bool:
    """Whether all values are True or False, also as numbers."""
    return values.dtype.kind in "biufO" and bool(np.isin(values, (0, 1)).all())


def read(where: str, values: ArrayLike, axes: int = 2) -> tuple[Values, Known | None]:
    """Return an array of values and the mask of known entries; None if all are known."""
    try:
        return split_missing(values, axes=axes)
    except (TypeError, ValueError):  # of NumPy and JAX: ragged lists, keys, traced values
        got, expected = "rows of different lengths", "a padded array, with length=..."
        remedy = "Use Episodes.of([...], spaces), which pads single episodes."
        raise DataError("episodes", [Problem(where, got, expected, remedy)]) from None


def padded(values: Values, present: Known | None) -> Values:
    """Replace values after the end of each episode by blanks."""
    if present is None:
        return values
    cleared = values.copy()
    cleared[~present[:, 1:]] = blank(values.dtype)
    return cleared


def masked(
    values: Values | None, found: Known | None, given: ArrayLike | None, present: Known | None
) -> tuple[Values | None, Known | None]:
    """Return values and the mask of the known ones.

    A value is known if it is neither missing nor excluded by the given mask, and if it is before
    the end of its episode.
    """
    if values is None:
        return None, None
    known = np.ones(values.shape[:2], dtype=bool) if found is None else found
    if given is not None:
        known = known & np.asarray(given, dtype=bool)
    if present is not None:
        known = known & (present if known.shape[1] == present.shape[1] else present[:, 1:])
    if (given is not None or present is not None) and not known.all():
        values = values.copy()
        values[~known] = blank(values.dtype)
    return values, known


def shown(values: Values, known: Known) -> Values:
    """Return the values of one episode, as a masked array if some are missing."""
    return values if known.all() else hide(values, known)


def column(columns: list[Values]) -> Values:
    """Concatenate a column of all parts; the types of empty parts are ignored."""
    return np.concatenate([each for each in columns if len(each)] or columns)


def optional_column(columns: list[Values | None], sizes: list[int]) -> Values | None:
    """Concatenate an optional column, with blanks where it is absent; None if all lack it."""
    example = next((column for column in columns if column is not None), None)
    if example is None:
        return None
    empty = None if example.dtype.kind == "O" else blank(example.dtype)
    return np.concatenate(
        [
            np.full((n, *example.shape[1:]), empty, dtype=example.dtype) if c is None else c
            for c, n in zip(columns, sizes, strict=True)
        ]
    )


def equal(one: Values | None, other: Values | None) -> bool:
    """Whether two columns are equal; NaN equals NaN."""
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f")

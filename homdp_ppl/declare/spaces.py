"""The spaces that programs declare, and the entries of reward tables in them."""

from __future__ import annotations

import numpy as np

from homdp_ppl.core.sensors import Sensors
from homdp_ppl.core.spaces import Spaces, names_of
from homdp_ppl.precision import Array


def declared_observations(spaces: Spaces) -> Spaces:
    """The spaces without the observation of terminal states, which programs do not declare."""
    if not spaces.terminal:
        return spaces
    names = names_of(spaces.observations)
    declared = names.without_end() if isinstance(names, Sensors) else names[:-1]
    return spaces._replace(observations=declared)


def after_end(shape: tuple[int, ...], spaces: Spaces) -> Array:
    """Which entries of a table (H|1, X, Y|1, A) belong to terminal states or to "ended"."""
    over = np.zeros(shape, dtype=bool)
    if spaces.terminal:
        over[:, spaces.ends] = True
        if shape[2] > 1:
            over[:, :, -1] = True
    return over

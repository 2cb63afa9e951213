"""Well-known problems as arrays and files that are not part of this repository.

The environment variable HOMDP_PROBLEMS names their folder.
"""

import os
from pathlib import Path

import numpy as np
import pytest

FOLDER = os.environ.get("HOMDP_PROBLEMS")
needs_problems = pytest.mark.skipif(
    FOLDER is None, reason="HOMDP_PROBLEMS is not set to a folder with reference arrays"
)


def file(name: str) -> Path:
    """The path of a file in this folder."""
    assert FOLDER is not None
    return Path(FOLDER) / name


def arrays(name: str) -> dict[str, np.ndarray]:
    """The arrays of a problem.

    These are initial (X,), transition (X, A, X), emission (X, Y) and reward (X, A).
    """
    with np.load(file(f"{name}.npz"), allow_pickle=False) as found:
        return dict(found)

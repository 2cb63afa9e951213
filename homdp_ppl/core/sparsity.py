"""Large tables with few non-zero entries, as sparse arrays for products."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from homdp_ppl.precision import Array

# Tables with more than LARGE entries, of which less than a share SPARSE is non-zero, are sparse.
SPARSE, LARGE = 0.2, 10_000


def sparse_if_large(table: Array) -> Any:
    """A table of float64, as a sparse array if it is large and most entries are zero.

    Examples
    --------
    >>> sparse_if_large(np.eye(3)).shape, type(sparse_if_large(np.eye(200))).__name__
    ((3, 3), 'csr_array')
    """
    dense = np.asarray(table, dtype=np.float64)
    if dense.size > LARGE and np.count_nonzero(dense) < SPARSE * dense.size:
        return sparse.csr_array(dense)
    return dense

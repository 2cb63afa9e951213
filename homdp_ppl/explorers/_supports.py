"""Which entries of the tables a proposed model may have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from homdp_ppl.core.checked import check_types
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP


def declared(homdp: HOMDP) -> Tables:
    """What the declaration allows."""
    check_types("support", homdp=(homdp, HOMDP))
    return homdp.structure.support


def anything(homdp: HOMDP) -> Tables:
    """Every transition and emission: for rules that know only rho and r."""
    check_types("support", homdp=(homdp, HOMDP))
    support = homdp.structure.support
    return Tables(support.initial, np.ones_like(support.transition), np.ones_like(support.emission))


def support_if(known: bool) -> Callable[[HOMDP], Tables]:
    """What the declaration allows if known rows are exact, else everything."""
    return declared if known else anything

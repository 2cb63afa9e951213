"""Supports: the table entries that may be positive in a proposed model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from homdp_ppl.core.checked import check_types
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.declare.model import HOMDP


def declared(homdp: HOMDP) -> Tables:
    """The support of the declaration."""
    check_types("support", homdp=(homdp, HOMDP))
    return homdp.structure.support


def anything(homdp: HOMDP) -> Tables:
    """All transitions and emissions, for rules that know only r and the support of rho."""
    check_types("support", homdp=(homdp, HOMDP))
    support = homdp.structure.support
    return Tables(support.initial, np.ones_like(support.transition), np.ones_like(support.emission))


def support_if(known: bool) -> Callable[[HOMDP], Tables]:
    """The declared support if known rows are exact, else everything."""
    return declared if known else anything

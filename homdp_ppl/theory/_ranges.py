"""Allowed ranges of the arguments of formulas."""

import math

PROBABILITY = (1e-300, 1.0)  # a smaller delta overflows 1 / delta
ACCURACY = (1e-12, math.inf)

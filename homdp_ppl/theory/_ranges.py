"""Allowed ranges of the arguments of formulas."""

PROBABILITY = (1e-300, 1.0)  # a smaller delta overflows 1 / delta
ACCURACY = (1e-12, 1e100)  # the squares of larger numbers overflow

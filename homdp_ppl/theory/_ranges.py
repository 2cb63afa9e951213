"""Between which ends the numbers of the formulas lie."""

import math

PROBABILITY = (1e-300, 1.0)  # a smaller delta overflows 1 / delta
ACCURACY = (1e-12, math.inf)

"""What all tests share. Float64 is not switched on here: the library must bring its own."""

import matplotlib
from hypothesis import settings

matplotlib.use("Agg")
settings.register_profile("steady", derandomize=True, deadline=None, max_examples=25, print_blob=False)
settings.load_profile("steady")

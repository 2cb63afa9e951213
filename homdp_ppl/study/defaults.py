"""Constants of studies that the command line shows in its help; this module imports nothing."""

EXPLORERS = ("tight", "posterior_sampling", "quantile_backup")
PRIORS = ("declared", "flat", "sparse")
EPISODES = 500
SEEDS = 10
EPSILON = 0.1
FILE_HORIZON = 10  # of a .POMDP file, which has none
# rules that need tables or worlds, which cannot be written on a command line
CLASSES = ("hop_b_class", "hop_v")

"""Defaults of studies, which the command line shows in its help; this module imports nothing."""

EXPLORERS = ("tight", "posterior_sampling", "quantile_backup")
PRIORS = ("declared", "flat", "sparse")
EPISODES = 500
SEEDS = 10
EPSILON = 0.1
FILE_HORIZON = 10  # for .POMDP files, which do not define a horizon
# rules that need tables or worlds as arguments, which a command line cannot express
CLASSES = ("hop_b_class", "hop_v")
REFERENCES = ("foresight", "observation")  # of studies of the value of hindsight

"""The learning loop: learners, runs and records of runs."""

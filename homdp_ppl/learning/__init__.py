"""The learning loop: learners, runs and their records."""

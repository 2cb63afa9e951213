"""Fuzzing of the public API with plausible mistakes: valid calls, mistakes and verdicts.

``python -m tests.mistakes --calls 10000 --seed 0`` runs the cases and counts their outcomes.
"""

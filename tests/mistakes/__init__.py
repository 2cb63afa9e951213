"""Plausible mistakes in calls of the public API: which calls, which mistakes, and the verdict.

``python -m tests.mistakes --calls 10000 --seed 0`` runs them and counts the outcomes.
"""

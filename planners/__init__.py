"""Planners: one a file, each a factory for functions from a POMDP to a plan."""

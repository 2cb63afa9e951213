"""Tests of the planners."""

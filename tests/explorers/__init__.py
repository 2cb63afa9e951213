"""Tests of the exploration rules."""

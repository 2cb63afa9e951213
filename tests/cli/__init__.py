"""Tests of homdp_ppl.cli."""

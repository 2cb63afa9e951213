"""Tests of homdp_ppl.gym."""

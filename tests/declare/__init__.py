"""Tests of homdp_ppl.declare."""

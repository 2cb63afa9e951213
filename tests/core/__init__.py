"""Tests of homdp_ppl.core."""

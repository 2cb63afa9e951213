"""Tests of homdp_ppl.evaluation."""

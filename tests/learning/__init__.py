"""Tests of homdp_ppl.learning."""

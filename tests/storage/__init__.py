"""Tests of homdp_ppl.storage."""

"""Declarations: turn a NumPyro program into a HOMDP and its worlds."""

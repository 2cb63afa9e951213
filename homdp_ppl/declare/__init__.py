"""From a NumPyro program to a HOMDP and its worlds."""

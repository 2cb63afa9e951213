"""The homdp command."""

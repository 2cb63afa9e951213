"""The ``homdp`` command."""

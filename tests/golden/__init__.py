"""The golden suite: results of the code before its redesign, which must not change."""

"""The golden suite: numbers of the code before its redesign, to be had again after it."""

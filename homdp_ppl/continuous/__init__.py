"""Continuous spaces: declarations, worlds and episodes whose states or observations are real vectors."""

from homdp_ppl.continuous.declaration import ContinuousHOMDP as ContinuousHOMDP
from homdp_ppl.continuous.declaration import ContinuousWorld as ContinuousWorld

"""Exploration rules: one a file, each a factory for an Explorer."""

from collections.abc import Callable

from homdp_ppl.explorers.classes import low_rank as low_rank
from homdp_ppl.explorers.densities import candidates as candidates
from homdp_ppl.explorers.epsilon_greedy import epsilon_greedy as epsilon_greedy
from homdp_ppl.explorers.explorer import Explorer as Explorer
from homdp_ppl.explorers.explorer import Pairs as Pairs
from homdp_ppl.explorers.explorer import Proposal as Proposal
from homdp_ppl.explorers.explorer import State as State
from homdp_ppl.explorers.greedy import greedy as greedy
from homdp_ppl.explorers.hop_b import hop_b as hop_b
from homdp_ppl.explorers.hop_b_class import hop_b_class as hop_b_class
from homdp_ppl.explorers.hop_v import hop_v as hop_v
from homdp_ppl.explorers.oracle import oracle as oracle
from homdp_ppl.explorers.posterior_sampling import posterior_sampling as posterior_sampling
from homdp_ppl.explorers.quantile_backup import quantile_backup as quantile_backup
from homdp_ppl.explorers.quantile_bonus import quantile_bonus as quantile_bonus
from homdp_ppl.explorers.tight import tight as tight
from homdp_ppl.explorers.uniform import uniform as uniform
from homdp_ppl.explorers.value_quantile import value_quantile as value_quantile

EXPLORERS: dict[str, Callable[..., Explorer]] = {
    "epsilon_greedy": epsilon_greedy,
    "greedy": greedy,
    "hop_b": hop_b,
    "hop_b_class": hop_b_class,
    "hop_v": hop_v,
    "oracle": oracle,
    "posterior_sampling": posterior_sampling,
    "quantile_backup": quantile_backup,
    "quantile_bonus": quantile_bonus,
    "tight": tight,
    "uniform": uniform,
    "value_quantile": value_quantile,
}

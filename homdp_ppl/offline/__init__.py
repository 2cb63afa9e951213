"""Recorded episodes: evaluate policies without acting, and choose one that is certified."""

from homdp_ppl.offline.agreement import Agreement
from homdp_ppl.offline.behaviour import Behaviour, estimate_behaviour
from homdp_ppl.offline.belief import ValueBelief
from homdp_ppl.offline.choice import Candidate, Choice
from homdp_ppl.offline.choosing import choose
from homdp_ppl.offline.estimates import Estimate
from homdp_ppl.offline.evaluation import Evaluation, evaluate
from homdp_ppl.offline.markov import MarkovTest, markov_test
from homdp_ppl.offline.pessimism import bonus_plan, quantile_backup_plan, value_quantile_plan
from homdp_ppl.offline.returns import returns_interval

__all__ = [
    "Agreement",
    "Behaviour",
    "Candidate",
    "Choice",
    "Estimate",
    "Evaluation",
    "MarkovTest",
    "ValueBelief",
    "bonus_plan",
    "choose",
    "estimate_behaviour",
    "evaluate",
    "markov_test",
    "quantile_backup_plan",
    "returns_interval",
    "value_quantile_plan",
]


def __dir__() -> list[str]:
    return __all__

"""Hindsight posteriors of declared models given revealed episodes, for any declared prior."""

from homdp_ppl.posteriors.belief import Posterior
from homdp_ppl.posteriors.density import log_likelihood
from homdp_ppl.posteriors.diagnostics import Diagnostics, Gate
from homdp_ppl.posteriors.inference import posterior
from homdp_ppl.posteriors.nuts import Sampling
from homdp_ppl.posteriors.predictive import PredictiveCheck, predictive_check

__all__ = [
    "Diagnostics",
    "Gate",
    "Posterior",
    "PredictiveCheck",
    "Sampling",
    "log_likelihood",
    "posterior",
    "predictive_check",
]


def __dir__() -> list[str]:
    return __all__

"""Hindsight posteriors of declared models given revealed episodes, for any declared prior."""

from homdp_ppl.posteriors.belief import Posterior
from homdp_ppl.posteriors.density import log_likelihood
from homdp_ppl.posteriors.diagnostics import Diagnostics, Gate
from homdp_ppl.posteriors.inference import posterior
from homdp_ppl.posteriors.nuts import Sampling
from homdp_ppl.posteriors.predictive import PredictiveCheck, predictive_check
from homdp_ppl.posteriors.symmetries import Symmetry, label_symmetries

__all__ = [
    "Diagnostics",
    "Gate",
    "Posterior",
    "PredictiveCheck",
    "Sampling",
    "Symmetry",
    "label_symmetries",
    "log_likelihood",
    "posterior",
    "predictive_check",
]


def __dir__() -> list[str]:
    return __all__

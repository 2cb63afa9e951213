"""Hindsight posteriors: from revealed episodes to what the learner believes, for any declared prior."""

from homdp_ppl.posteriors.belief import Posterior as Posterior
from homdp_ppl.posteriors.density import log_likelihood as log_likelihood
from homdp_ppl.posteriors.diagnostics import Diagnostics as Diagnostics
from homdp_ppl.posteriors.diagnostics import Gate as Gate
from homdp_ppl.posteriors.inference import posterior as posterior
from homdp_ppl.posteriors.nuts import Sampling as Sampling
from homdp_ppl.posteriors.predictive import PredictiveCheck as PredictiveCheck
from homdp_ppl.posteriors.predictive import predictive_check as predictive_check

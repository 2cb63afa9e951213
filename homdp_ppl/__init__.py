"""homdp_ppl: probabilistic programs for decision problems whose hidden states are revealed in
hindsight.

Declare a problem with ``homdp`` or ``tabular``, fix its parameters to get a world, and let a rule
of ``explorers`` learn in it with ``learn`` and a planner of ``planners``. ``models`` is a zoo of
worlds, ``study`` compares rules, ``report`` draws.
"""

from homdp_ppl import (
    confidence,
    evaluation,
    explorers,
    formats,
    gym,
    models,
    planners,
    posteriors,
    report,
    study,
    theory,
)
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.episode import Episode
from homdp_ppl.core.graph_policy import BlindPolicy, GraphPolicy, uniform_policy
from homdp_ppl.core.plan import Plan, make_plan
from homdp_ppl.core.policy import Policy, Trajectory
from homdp_ppl.core.pomdp import POMDP
from homdp_ppl.core.rollout import rollout
from homdp_ppl.core.spaces import Real, Spaces
from homdp_ppl.declare.decorator import homdp, tabular
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import HOMDP, World
from homdp_ppl.errors import (
    DataError,
    DeclarationError,
    HOMDPError,
    InferenceError,
    ParameterError,
    PlanningError,
    PolicyError,
    Problem,
    SpacesError,
)
from homdp_ppl.evaluation.exact import evaluate
from homdp_ppl.formats import read_pomdp, write_pomdp
from homdp_ppl.learning.learn import learn
from homdp_ppl.learning.run import Mixture, Run
from homdp_ppl.models import environments as _environments  # noqa: F401  the zoo's Gymnasium ids
from homdp_ppl.posteriors import Posterior, posterior
from homdp_ppl.precision import x64
from homdp_ppl.storage.atomic import StorageError

__version__ = "0.1.0"

__all__ = [
    "HOMDP",
    "POMDP",
    "BlindPolicy",
    "Counts",
    "DataError",
    "DeclarationError",
    "Episode",
    "GraphPolicy",
    "HOMDPError",
    "InferenceError",
    "Kernels",
    "Mixture",
    "ParameterError",
    "Plan",
    "PlanningError",
    "Policy",
    "PolicyError",
    "Posterior",
    "Problem",
    "Real",
    "Run",
    "Spaces",
    "SpacesError",
    "StorageError",
    "Trajectory",
    "World",
    "__version__",
    "confidence",
    "evaluate",
    "evaluation",
    "explorers",
    "formats",
    "gym",
    "homdp",
    "learn",
    "make_plan",
    "models",
    "planners",
    "posterior",
    "posteriors",
    "read_pomdp",
    "report",
    "rollout",
    "study",
    "tabular",
    "theory",
    "uniform_policy",
    "write_pomdp",
    "x64",
]


def __dir__() -> list[str]:
    return __all__

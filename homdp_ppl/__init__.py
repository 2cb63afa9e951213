"""homdp_ppl: probabilistic programs for decision problems whose hidden states are revealed in hindsight.

Declare a problem with ``homdp`` or ``tabular``, fix its parameters to get a world, and let a rule of ``explorers`` learn in it
with ``learn`` and a planner of ``planners``. ``models`` is a zoo of worlds, ``study`` compares rules, ``report`` draws.
"""

from homdp_ppl import (
    confidence,
    continuous,
    evaluation,
    events,
    explorers,
    formats,
    gym,
    models,
    page,
    planners,
    posteriors,
    report,
    restricted,
    study,
    theory,
)
from homdp_ppl.acting import Policy, Trajectory
from homdp_ppl.continuous import ContinuousHOMDP, ContinuousWorld
from homdp_ppl.counts import Counts
from homdp_ppl.declare import HOMDP, World, homdp, tabular
from homdp_ppl.domain import Real
from homdp_ppl.episode import Episode, rollout
from homdp_ppl.errors import (
    DataError,
    DeclarationError,
    HOMDPError,
    InferenceError,
    ParameterError,
    PlanningError,
    PolicyError,
    Problem,
)
from homdp_ppl.evaluation import evaluate
from homdp_ppl.formats import read_pomdp, write_pomdp
from homdp_ppl.kernels import Kernels
from homdp_ppl.learning import learn
from homdp_ppl.models import environments as _environments  # noqa: F401  the zoo's Gymnasium ids
from homdp_ppl.outcome import Mixture
from homdp_ppl.plan import Plan, make_plan
from homdp_ppl.policy import BlindPolicy, GraphPolicy, uniform_policy
from homdp_ppl.pomdp import POMDP, Spaces
from homdp_ppl.posteriors import Posterior, posterior
from homdp_ppl.precision import x64
from homdp_ppl.run import ContinuousRun, Run
from homdp_ppl.storage import StorageError

__version__ = "0.1.0"

__all__ = [
    "HOMDP",
    "POMDP",
    "BlindPolicy",
    "ContinuousHOMDP",
    "ContinuousRun",
    "ContinuousWorld",
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
    "StorageError",
    "Trajectory",
    "World",
    "__version__",
    "confidence",
    "continuous",
    "evaluate",
    "evaluation",
    "events",
    "explorers",
    "formats",
    "gym",
    "homdp",
    "learn",
    "make_plan",
    "models",
    "page",
    "planners",
    "posterior",
    "posteriors",
    "read_pomdp",
    "report",
    "restricted",
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

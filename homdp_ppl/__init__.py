"""homdp_ppl: probabilistic programs for decision problems whose hidden states are revealed in
hindsight.

Declare a problem with ``homdp`` or ``tabular`` and fix its parameters to get a world. ``learn``
simulates an exploration rule from ``explorers`` in this world, with a planner from ``planners``.
An ``Agent`` learns in a live system, whose parameters are unknown.
``models`` contains example worlds, ``study`` compares rules, and ``report`` draws figures.

Each public name is loaded on first use. Importing this package is therefore fast, and JAX,
Matplotlib and Gymnasium are imported only if they are needed.
"""

from typing import TYPE_CHECKING

from homdp_ppl._lazy import attach

if TYPE_CHECKING:  # for type checkers and editors; _HOMES is the same list at run time
    from homdp_ppl import (
        confidence,
        evaluation,
        explorers,
        formats,
        gym,
        models,
        offline,
        planners,
        posteriors,
        report,
        study,
        theory,
    )
    from homdp_ppl.agent.agent import Agent
    from homdp_ppl.agent.explanation import explain
    from homdp_ppl.agent.live import LiveEpisode
    from homdp_ppl.core.blind_policy import BlindPolicy, uniform_policy
    from homdp_ppl.core.counts import Counts
    from homdp_ppl.core.episode import Episode
    from homdp_ppl.core.episodes import Episodes
    from homdp_ppl.core.function_policy import FunctionPolicy
    from homdp_ppl.core.graph_policy import GraphPolicy
    from homdp_ppl.core.plan import Plan, make_plan
    from homdp_ppl.core.policy import BatchPolicy, Policy, Trajectory
    from homdp_ppl.core.pomdp import POMDP
    from homdp_ppl.core.reveal import Reveal
    from homdp_ppl.core.rollout import rollout
    from homdp_ppl.core.spaces import Real, Spaces
    from homdp_ppl.core.sparse import Sparse
    from homdp_ppl.declare.decorator import homdp, tabular
    from homdp_ppl.declare.kernels import Kernels
    from homdp_ppl.declare.model import HOMDP
    from homdp_ppl.declare.world import World
    from homdp_ppl.errors import (
        DataError,
        DeclarationError,
        HindsightWarning,
        HOMDPError,
        InferenceError,
        OptimismWarning,
        ParameterError,
        PlanningError,
        PolicyError,
        Problem,
        SpacesError,
    )
    from homdp_ppl.evaluation.exact import evaluate
    from homdp_ppl.formats import read_pomdp, write_pomdp
    from homdp_ppl.learning.labels import LabelValue, rank_labels
    from homdp_ppl.learning.learn import learn
    from homdp_ppl.learning.mixture import Mixture
    from homdp_ppl.learning.run import Run
    from homdp_ppl.posteriors import Posterior, posterior
    from homdp_ppl.precision import x64
    from homdp_ppl.storage.atomic import StorageError

__version__ = "0.2.0"

__all__ = [
    "HOMDP",
    "POMDP",
    "Agent",
    "BatchPolicy",
    "BlindPolicy",
    "Counts",
    "DataError",
    "DeclarationError",
    "Episode",
    "Episodes",
    "FunctionPolicy",
    "GraphPolicy",
    "HOMDPError",
    "HindsightWarning",
    "InferenceError",
    "Kernels",
    "LabelValue",
    "LiveEpisode",
    "Mixture",
    "OptimismWarning",
    "ParameterError",
    "Plan",
    "PlanningError",
    "Policy",
    "PolicyError",
    "Posterior",
    "Problem",
    "Real",
    "Reveal",
    "Run",
    "Spaces",
    "SpacesError",
    "Sparse",
    "StorageError",
    "Trajectory",
    "World",
    "__version__",
    "confidence",
    "evaluate",
    "evaluation",
    "explain",
    "explorers",
    "formats",
    "gym",
    "homdp",
    "learn",
    "make_plan",
    "models",
    "offline",
    "planners",
    "posterior",
    "posteriors",
    "rank_labels",
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

_HOMES = {  # module: the public names that it defines
    "": (
        "confidence evaluation explorers formats gym models offline planners posteriors report "
        "study theory"
    ),
    "agent.agent": "Agent",
    "agent.explanation": "explain",
    "agent.live": "LiveEpisode",
    "core.blind_policy": "BlindPolicy uniform_policy",
    "core.counts": "Counts",
    "core.episode": "Episode",
    "core.episodes": "Episodes",
    "core.function_policy": "FunctionPolicy",
    "core.graph_policy": "GraphPolicy",
    "core.plan": "Plan make_plan",
    "core.policy": "BatchPolicy Policy Trajectory",
    "core.pomdp": "POMDP",
    "core.reveal": "Reveal",
    "core.rollout": "rollout",
    "core.spaces": "Real Spaces",
    "core.sparse": "Sparse",
    "declare.decorator": "homdp tabular",
    "declare.kernels": "Kernels",
    "declare.model": "HOMDP",
    "declare.world": "World",
    "errors": (
        "DataError DeclarationError HindsightWarning HOMDPError InferenceError OptimismWarning "
        "ParameterError PlanningError PolicyError Problem SpacesError"
    ),
    "evaluation.exact": "evaluate",
    "formats": "read_pomdp write_pomdp",
    "learning.labels": "LabelValue rank_labels",
    "learning.learn": "learn",
    "learning.mixture": "Mixture",
    "learning.run": "Run",
    "posteriors": "Posterior posterior",
    "precision": "x64",
    "storage.atomic": "StorageError",
}

if not TYPE_CHECKING:
    __getattr__ = attach(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__

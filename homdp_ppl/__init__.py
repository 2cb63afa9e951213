"""homdp_ppl: probabilistic programs for decision problems whose hidden states are revealed in hindsight."""

from homdp_ppl import gym as gym
from homdp_ppl.continuous import ContinuousHOMDP as ContinuousHOMDP
from homdp_ppl.continuous import ContinuousWorld as ContinuousWorld
from homdp_ppl.counts import Counts as Counts
from homdp_ppl.declare import HOMDP as HOMDP
from homdp_ppl.declare import World as World
from homdp_ppl.declare import homdp as homdp
from homdp_ppl.declare import tabular as tabular
from homdp_ppl.domain import Real as Real
from homdp_ppl.episode import Episode as Episode
from homdp_ppl.episode import rollout as rollout
from homdp_ppl.errors import DataError as DataError
from homdp_ppl.errors import DeclarationError as DeclarationError
from homdp_ppl.errors import HOMDPError as HOMDPError
from homdp_ppl.errors import InferenceError as InferenceError
from homdp_ppl.errors import ParameterError as ParameterError
from homdp_ppl.errors import PlanningError as PlanningError
from homdp_ppl.errors import PolicyError as PolicyError
from homdp_ppl.errors import Problem as Problem
from homdp_ppl.evaluation import evaluate as evaluate
from homdp_ppl.formats import read_pomdp as read_pomdp
from homdp_ppl.formats import write_pomdp as write_pomdp
from homdp_ppl.kernels import Kernels as Kernels
from homdp_ppl.learning import learn as learn
from homdp_ppl.models import environments as _environments  # noqa: F401  the zoo's Gymnasium ids
from homdp_ppl.policy import BlindPolicy as BlindPolicy
from homdp_ppl.policy import GraphPolicy as GraphPolicy
from homdp_ppl.policy import Policy as Policy
from homdp_ppl.policy import Trajectory as Trajectory
from homdp_ppl.policy import uniform_policy as uniform_policy
from homdp_ppl.pomdp import POMDP as POMDP
from homdp_ppl.pomdp import Spaces as Spaces
from homdp_ppl.posteriors import Posterior as Posterior
from homdp_ppl.posteriors import posterior as posterior
from homdp_ppl.precision import x64 as x64
from homdp_ppl.run import Run as Run

__version__ = "0.1.0"

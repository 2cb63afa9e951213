"""Policy graphs and blind policies; the policy protocol is in policy.py."""

from __future__ import annotations

from copy import copy as shallow
from pathlib import Path
from typing import Self

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.checked import checked
from homdp_ppl.core.graph_arrays import Names, read_graph
from homdp_ppl.core.policy import Policy, as_history, history_problems
from homdp_ppl.core.policy_card import CARD, Named, PolicyCard, card_of, too_long
from homdp_ppl.core.pomdp_shapes import check_index
from homdp_ppl.core.pomdp_validation import spaces_of
from homdp_ppl.core.sensors import SENSOR_ARRAYS, Sensors, sensors_of
from homdp_ppl.core.spaces import HasSpaces, Real, names_of
from homdp_ppl.core.writing_out import written_out
from homdp_ppl.errors import PolicyError, Problem, with_article
from homdp_ppl.precision import Array
from homdp_ppl.storage.npz import names_in, read_arrays, write_arrays

MAX_NODES = 200_000
COPIES = 4  # of the arrays of a policy while it is created
FORMAT = "homdp_ppl policy 2"
OLDER = ("homdp_ppl policy 1",)  # formats without a card, which can be loaded
PARTS = ("start", "probabilities", "successor", "observations", "actions")


@jax.tree_util.register_pytree_node_class
class GraphPolicy:
    """A policy as a graph: a finite-state controller with action probabilities at each node.

    The first observation selects a node of step 1. The chosen action and the next observation then
    lead to a node of the next step. Successors of nodes of the last step are never used. If the
    horizon is known from :attr:`card`, longer histories raise PolicyError; otherwise answers for
    them are meaningless.

    Parameters
    ----------
    start
        The node after each first observation, (Y,).
    probabilities
        The action probabilities of each node, (N, A); rows in float32 are normalised.
    successor
        The next node, (N, A, Y), or (N, 1, Y) if it does not depend on the action.
    names
        The names of observations and actions, if they are known.
    card
        Horizon, model, values and number of episodes, if they are known. JAX transformations drop
        it.

    Examples
    --------
    >>> from homdp_ppl import GraphPolicy
    >>> repeat = GraphPolicy(
    ...     start=[0, 1], probabilities=[[1, 0], [0, 1]], successor=[[[0, 1]], [[0, 1]]]
    ... )
    >>> repeat
    GraphPolicy(2 nodes, 2 observations, 2 actions)
    >>> (
    ...     repeat.act([1], []).tolist(),
    ...     repeat.act([1, 0], [1]).tolist(),
    ... )  # repeats the last observation
    ([0.0, 1.0], [1.0, 0.0])
    """

    def __init__(
        self,
        start: ArrayLike,
        probabilities: ArrayLike,
        successor: ArrayLike,
        names: Names | None = None,
        card: PolicyCard | None = None,
    ) -> None:
        arrays = read_graph(start, probabilities, successor, names)
        self.start: Array = arrays.start
        self.probabilities: Array = arrays.probabilities
        self.successor: Array = arrays.successor
        self.names = names
        self.card = PolicyCard() if card is None else card

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], Names | None]:
        """The arrays, for JAX."""
        return (self.start, self.probabilities, self.successor), self.names

    @classmethod
    def tree_unflatten(cls, names: Names | None, arrays: tuple[Array, Array, Array]) -> GraphPolicy:
        """Create a policy from arrays, which may be traced."""
        policy = object.__new__(cls)
        policy.start, policy.probabilities, policy.successor = arrays
        policy.names, policy.card = names, PolicyCard()
        return policy

    @checked
    def named(self, model: HasSpaces) -> GraphPolicy:
        """The same policy with the names and the horizon of a model."""
        check_policy(self, model)
        names = names_of(model.spaces.observations), model.spaces.actions
        named, card = self.tree_unflatten(names, self.tree_flatten()[0]), self.card
        model_name = model.name if isinstance(model, Named) else card.model
        named.card = card._replace(horizon=model.spaces.horizon, model=model_name)
        return named

    @checked
    def with_card(self, card: PolicyCard) -> Self:
        """The same policy with another card."""
        copy = shallow(self)  # of the same class, with the attributes of a subclass
        copy.card = card
        return copy

    def graph(self) -> nx.DiGraph:
        """The policy as a networkx graph.

        Nodes have the attribute ``action``, edges the attribute ``observation``. The graph contains
        only nodes that the policy can reach from the start by its own actions. Node -1 is the time
        before the first action; its action is empty.
        """
        observations, actions = self.names or (
            tuple(f"y{k}" for k in range(len(self.start))),
            tuple(f"a{k}" for k in range(self.probabilities.shape[1])),
        )
        graph = nx.DiGraph()
        graph.add_node(-1, action="")
        ahead = [(-1, int(node), observations[y]) for y, node in enumerate(self.start)]
        while ahead:
            before, node, seen = ahead.pop()
            if node not in graph:
                taken = np.flatnonzero(self.probabilities[node] > 0)
                graph.add_node(node, action=" / ".join(actions[a] for a in taken))
                columns = [0] if self.successor.shape[1] == 1 else taken
                ways = {
                    (int(self.successor[node, c, y]), word)
                    for c in columns
                    for y, word in enumerate(observations)
                }
                ahead += [(node, after, word) for after, word in sorted(ways) if after != node]
            listed = (
                graph.edges[before, node]["observation"] + " / "
                if graph.has_edge(before, node)
                else ""
            )
            if seen not in listed.split(" / "):
                graph.add_edge(before, node, observation=listed + seen)
        return graph

    @checked
    def save(self, path: str | Path) -> None:
        """Save the policy to an ``.npz`` file, which contains only plain NumPy arrays.

        The file has the arrays ``start``, ``probabilities`` and ``successor``, the names of
        ``observations`` and ``actions``, the ``horizon`` (-1 if it is unknown), and ``about``: the
        rest of :attr:`card`, the date and the version of the library, as JSON text.
        """
        observations, actions = self.names or ((), ())
        names = {
            "observations": np.array(observations, dtype=np.str_),
            "actions": np.array(actions, dtype=np.str_),
        }
        arrays = {
            "start": self.start,
            "probabilities": self.probabilities,
            "successor": self.successor,
        }
        if isinstance(observations, Sensors):
            names |= observations.arrays
        write_arrays(path, FORMAT, **arrays, **names, **self.card.arrays())

    @classmethod
    @checked
    def load(cls, path: str | Path) -> GraphPolicy:
        """Load a policy from a file written by :meth:`save`; no code is executed."""
        optional = (*SENSOR_ARRAYS, *CARD)
        parts = read_arrays(path, FORMAT, PARTS, optional=optional, older=OLDER)
        card = card_of(str(path), parts)
        start, probabilities, successor = (parts[name] for name in PARTS[:3])
        observations, actions = (names_in(path, parts, name) for name in PARTS[3:])
        names = sensors_of(parts, observations), actions
        return cls(start, probabilities, successor, names if names[1] else None, card)

    @checked
    def first(self, observation: Array | int) -> Array:
        """The node after the first observation."""
        check_index("observation", observation, len(self.start), PolicyError, "GraphPolicy")
        traced = isinstance(observation, jax.core.Tracer)  # NumPy arrays need concrete indices
        return (jnp.asarray(self.start) if traced else self.start)[observation]

    @checked
    def next(self, node: Array | int, action: Array | int, observation: Array | int) -> Array:
        """The node after an action and the observation that follows it."""
        check_index("node", node, len(self.successor), PolicyError, "GraphPolicy")
        check_index("action", action, self.probabilities.shape[1], PolicyError, "GraphPolicy")
        check_index("observation", observation, len(self.start), PolicyError, "GraphPolicy")
        column = 0 if self.successor.shape[1] == 1 else action
        place = node, column, observation
        traced = any(isinstance(index, jax.core.Tracer) for index in place)
        return (jnp.asarray(self.successor) if traced else self.successor)[place]

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}.

        Values are indices, or names if the policy has :attr:`names`. Observations of several
        sensors may also be tuples or dicts.
        """
        seen, done = as_history("GraphPolicy.act", observations, actions, self.names)
        problems = history_problems(seen, done, len(self.start), self.probabilities.shape[1])
        problems = problems or too_long(self.card, len(seen))
        if problems:
            raise PolicyError("GraphPolicy.act", problems)
        node = self.first(seen[0])
        for action, observation in zip(done, seen[1:], strict=True):
            node = self.next(node, action, observation)
        return self.probabilities[node]

    @classmethod
    def from_policy(
        cls, policy: Policy, model: HasSpaces, max_nodes: int = MAX_NODES
    ) -> GraphPolicy:
        """Convert any policy to the tree of the histories that it can reach.

        Simulations of the result can be compiled. The tree does not contain histories with actions
        that the policy never takes, and answers for such histories are meaningless. If random
        actions will be taken, mix them into the policy before the conversion. The policy must
        always give the same answer for the same history; this is tested on the first histories.

        Parameters
        ----------
        policy
            An object with ``act``. A :class:`BatchPolicy` is asked for all histories of a step at
            once.
        model
            The HOMDP, World or POMDP in which it acts. The policy is not called after the end of an
            episode.
        max_nodes
            The largest number of nodes; raises PolicyError if the tree is larger.
        """
        check_policy(policy, model)
        return cls(*written_out(policy, model.spaces, max_nodes))

    def __repr__(self) -> str:
        nodes, actions = self.probabilities.shape
        return f"GraphPolicy({nodes} nodes, {len(self.start)} observations, {actions} actions)"


def graph_of(policy: Policy, model: HasSpaces) -> GraphPolicy:
    """Return the graph of a policy; policies that are not graphs are converted."""
    check_policy(policy, model)
    return policy if isinstance(policy, GraphPolicy) else GraphPolicy.from_policy(policy, model)


def check_policy(policy: Policy, model: HasSpaces) -> None:
    """Raise an error for an invalid policy, or a graph for other observations or actions."""
    graph = isinstance(policy, GraphPolicy)  # tests of protocols are slow
    if not graph and (isinstance(policy, type) or not isinstance(policy, Policy)):
        got = (
            f"the class {policy.__name__}"
            if isinstance(policy, type)
            else with_article(type(policy).__name__)
        )
        remedy = (
            "Write a class with act(self, observations, actions) that returns "
            "probabilities, and pass an instance of it."
        )
        if hasattr(policy, "policy"):
            remedy = "Pass its policy: plan.policy or run.policy."
        elif hasattr(policy, "spaces"):
            remedy = "This is a model: swap the policy and the model."
        raise PolicyError(
            "policy", [Problem("policy", got, "an object with act(observations, actions)", remedy)]
        )
    spaces = spaces_of(model, "policy")
    if not isinstance(policy, GraphPolicy):
        return
    if isinstance(spaces.observations, Real):
        remedy = "Graphs need finitely many observations. Plan for this model instead."
        raise PolicyError(
            "policy",
            [
                Problem(
                    "policy",
                    "a GraphPolicy",
                    f"a policy for observations in {spaces.observations}",
                    remedy,
                )
            ],
        )
    Y, A = len(spaces.observations), len(spaces.actions)
    observations, actions = len(policy.start), policy.probabilities.shape[1]
    if (observations, actions) != (Y, A):
        got = f"a policy for {_sizes(observations, actions)}"
        problem = Problem("policy", got, _sizes(Y, A), "Plan for this model.")
        raise PolicyError("policy", [problem])


def _sizes(observations: int, actions: int) -> str:
    """Describe the numbers of observations and actions."""
    return (
        f"{observations} observation{'s' * (observations != 1)} and "
        f"{actions} action{'s' * (actions != 1)}"
    )

"""Policies as graphs, and by the step alone: acting, saving, loading.

The protocol of policies is in policy.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from homdp_ppl.core.arguments import refuse, size_problems
from homdp_ppl.core.checked import checked
from homdp_ppl.core.graph_arrays import Names, read_graph
from homdp_ppl.core.numbers import as_numbers
from homdp_ppl.core.policy import Policy, as_history, history_problems
from homdp_ppl.core.pomdp_shapes import check_index
from homdp_ppl.core.spaces import HasSpaces, Real, names_of, spaces_of
from homdp_ppl.core.writing_out import written_out
from homdp_ppl.errors import PolicyError, Problem
from homdp_ppl.memory import NUMBER, count, require_memory
from homdp_ppl.precision import Array
from homdp_ppl.storage.npz import read_arrays, write_arrays

MAX_NODES = 200_000
COPIES = 4  # of a policy's arrays while it is made
FORMAT = "homdp_ppl policy 1"
PARTS = ("start", "probabilities", "successor", "observations", "actions")


@jax.tree_util.register_pytree_node_class
class GraphPolicy:
    """A policy as a graph: a node for each situation told apart, with action probabilities and
    successors.

    A node belongs to one step. The first observation picks a node of step 1; the action taken and
    the next observation lead to a node of the next step. Successors of nodes of the last step are
    never followed: a graph does not know the horizon, and what it answers beyond it means nothing.

    Parameters
    ----------
    start
        The node after each first observation, (Y,).
    probabilities
        Action probabilities at each node, (N, A); rows in float32 are divided by their sums.
    successor
        The next node, (N, A, Y), or (N, 1, Y) when the action taken does not matter.
    names
        The names of the observations and of the actions it was made for, where they are known.

    Examples
    --------
    >>> from homdp_ppl import GraphPolicy
    >>> repeat = GraphPolicy(
    ...     start=[0, 1], probabilities=[[1, 0], [0, 1]], successor=[[[0, 1]], [[0, 1]]]
    ... )
    >>> repeat
    GraphPolicy(2 nodes, 2 observations, 2 actions)
    >>> repeat.act([1], []).tolist(), repeat.act([1, 0], [1]).tolist()  # does what it saw last
    ([0.0, 1.0], [1.0, 0.0])
    """

    def __init__(
        self,
        start: ArrayLike,
        probabilities: ArrayLike,
        successor: ArrayLike,
        names: Names | None = None,
    ) -> None:
        arrays = read_graph(start, probabilities, successor, names)
        self.start: Array = arrays.start
        self.probabilities: Array = arrays.probabilities
        self.successor: Array = arrays.successor
        self.names = names

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], Names | None]:
        """The arrays, for JAX."""
        return (self.start, self.probabilities, self.successor), self.names

    @classmethod
    def tree_unflatten(cls, names: Names | None, arrays: tuple[Array, Array, Array]) -> GraphPolicy:
        """A policy around arrays that JAX may be tracing."""
        policy = object.__new__(cls)
        policy.start, policy.probabilities, policy.successor = arrays
        policy.names = names
        return policy

    @checked
    def named(self, model: HasSpaces) -> GraphPolicy:
        """The same policy, knowing the names of the model it was made for."""
        check_policy(self, model)
        names = names_of(model.spaces.observations), model.spaces.actions
        return self.tree_unflatten(names, self.tree_flatten()[0])

    def graph(self) -> nx.DiGraph:
        """The policy as a networkx graph.

        Its nodes with their ``action``, an edge with the ``observation`` for each way on.

        Only what the policy can meet is there: nodes that are reached from the start by actions it
        takes. Edges that come before the first action leave from node -1, whose action is empty.
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
            told = (
                graph.edges[before, node]["observation"] + " / "
                if graph.has_edge(before, node)
                else ""
            )
            if seen not in told.split(" / "):
                graph.add_edge(before, node, observation=told + seen)
        return graph

    @checked
    def save(self, path: str | Path) -> None:
        """Write the policy to an ``.npz`` file.

        Plain NumPy arrays that anyone can read, no code in it.
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
        write_arrays(path, FORMAT, **arrays, **names)

    @classmethod
    @checked
    def load(cls, path: str | Path) -> GraphPolicy:
        """Read a policy from a file written by :meth:`save`; nothing in it is executed."""
        parts = read_arrays(path, FORMAT, PARTS)
        start, probabilities, successor, observations, actions = (parts[name] for name in PARTS)
        names = tuple(map(str, observations)), tuple(map(str, actions))
        return cls(start, probabilities, successor, names if names[1] else None)

    @checked
    def first(self, observation: Array | int) -> Array:
        """The node after the first observation."""
        check_index("observation", observation, len(self.start), PolicyError, "GraphPolicy")
        traced = isinstance(observation, jax.core.Tracer)  # NumPy arrays have no traced indices
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
        """Probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}."""
        seen, done = as_history("GraphPolicy.act", observations, actions)
        problems = history_problems(seen, done, len(self.start), self.probabilities.shape[1])
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
        """Write any policy out as the tree of the histories it can meet; it can be compiled.

        Histories after actions that the policy never takes are not in it: what the graph answers
        there means nothing. Mix in random actions first, where they will be taken. The policy must
        give the same answer to the same question, so that one answer per history is enough; the
        first histories are asked about twice.

        Parameters
        ----------
        policy
            Anything with ``act``.
        model
            The HOMDP or World it will act in.
        max_nodes
            Refuse larger trees.
        """
        check_policy(policy, model)
        return cls(*written_out(policy, model.spaces, max_nodes))

    def __repr__(self) -> str:
        nodes, actions = self.probabilities.shape
        return f"GraphPolicy({nodes} nodes, {len(self.start)} observations, {actions} actions)"


class BlindPolicy(NamedTuple):
    """Action probabilities that depend on the step alone, whatever is seen: names or real numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from homdp_ppl import BlindPolicy
    >>> policy = BlindPolicy(np.array([[1.0, 0.0], [0.5, 0.5]]))
    >>> policy.act([1, 0], [0])  # the second step
    array([0.5, 0.5])
    """

    probabilities: Array  # (H, A)

    def act(self, observations: ArrayLike, actions: ArrayLike) -> Array:
        """Probabilities of the next action, (A,), given y_1 .. y_h and a_1 .. a_{h-1}."""
        seen, done = as_history("BlindPolicy.act", observations, actions)
        h, H = len(np.atleast_1d(seen)), len(self.table)
        if not 1 <= h <= H:
            raise PolicyError(
                "BlindPolicy.act",
                [Problem("history", f"{h} observations", f"1 to {H}, a step each")],
            )
        if done.shape != (h - 1,):
            got = f"{h} observations and actions of shape {done.shape}"
            problem = Problem("history", got, "h observations and h - 1 actions")
            raise PolicyError("BlindPolicy.act", [problem])
        chances: Array = self.table[h - 1]
        return chances

    @property
    def table(self) -> Array:
        """The action probabilities as an array (H, A)."""
        found, problems = as_numbers("probabilities", self.probabilities, "shape (H, A)")
        if found is not None and (found.ndim != 2 or 0 in found.shape):
            problems = [Problem("probabilities", f"shape {found.shape}", "shape (H, A)")]
        if found is None or problems:
            raise PolicyError("BlindPolicy", problems)
        return found

    @checked
    def graph(self, observations: int) -> GraphPolicy:
        """The same policy as a graph.

        One node a step, whichever of so many observations is made.
        """
        H = len(self.table)
        problems = size_problems(observations=observations)
        refuse(PolicyError, "BlindPolicy.graph", problems)
        following = np.minimum(np.arange(1, H + 1), H - 1)[:, None, None]
        return GraphPolicy(
            np.zeros(observations, int),
            self.table,
            np.broadcast_to(following, (H, 1, observations)),
        )


@checked
def uniform_policy(model: HasSpaces) -> GraphPolicy | BlindPolicy:
    """Every action with the same probability, whatever was seen.

    Parameters
    ----------
    model
        The HOMDP or World it will act in.

    Examples
    --------
    >>> from homdp_ppl import Spaces, uniform_policy
    >>> lamp = Spaces(("off", "on"), ("dark", "light"), ("wait", "press"), horizon=2)
    >>> uniform_policy(lamp).act([0, 1], [1])
    array([0.5, 0.5])
    """
    spaces = spaces_of(model, "uniform_policy")
    A, Y = len(spaces.actions), len(spaces.observations) if spaces.finite else 0
    got = f"{count(spaces.horizon)} steps with {count(A)} actions and {count(Y)} observations"
    needed = COPIES * NUMBER * spaces.horizon * (A + Y)
    remedy = "Use a shorter horizon."
    require_memory(PolicyError, "uniform_policy", "horizon", got, needed, remedy)
    blind = BlindPolicy(np.full((spaces.horizon, A), 1 / A))
    return blind.graph(Y) if spaces.finite else blind


def graph_of(policy: Policy, model: HasSpaces) -> GraphPolicy:
    """A policy as a graph; one that is asked step by step is written out as the tree of the
    histories it can meet.
    """
    check_policy(policy, model)
    return policy if isinstance(policy, GraphPolicy) else GraphPolicy.from_policy(policy, model)


def check_policy(policy: Policy, model: HasSpaces) -> None:
    """Refuse what is no policy, and a graph made for other numbers of observations or actions."""
    if isinstance(policy, type) or not isinstance(policy, Policy):
        got = (
            f"the class {policy.__name__}"
            if isinstance(policy, type)
            else f"{type(policy).__name__}"
        )
        remedy = (
            "Write a class with act(self, observations, actions) that returns "
            "probabilities, and pass an instance of it."
        )
        if hasattr(policy, "policy"):
            remedy = "Pass its policy: plan.policy, run.policy."
        elif hasattr(policy, "spaces"):
            remedy = "This is a model: the policy and the model have changed places."
        raise PolicyError(
            "policy", [Problem("policy", got, "an object with act(observations, actions)", remedy)]
        )
    spaces = spaces_of(model, "policy")
    if not isinstance(policy, GraphPolicy):
        return
    if isinstance(spaces.observations, Real):
        remedy = "A graph is for finitely many observations: plan on this model."
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
        made = f"a policy for {observations} observations and {actions} actions"
        raise PolicyError(
            "policy",
            [
                Problem(
                    "policy", made, f"{Y} observations and {A} actions", "Plan it on this model."
                )
            ],
        )

"""The paper's lower bound: a binary tree of latent states whose last layer is hard to tell apart.

    x_0 ──1/2──► upper child ...     observations "up" and "down" reveal the way through the tree;
      └───1/2──► lower child ...     in the last layer every observation is almost equally likely

Lee, Agarwal, Dann and Zhang (2023), appendix D: X + 1 a power of two, H = log2(X + 1). No action
matters before the last layer; there action 1 is right in an upper leaf, action 2 in a lower one,
and all that helps is that each of the Y' = Y - 2 last observations is (1 + u epsilon)/Y' or (1 - u
epsilon)/Y' likely, with signs u(y, parent) that must be learned for every parent. The second half
of the observations mirrors the first. The root, which the paper leaves open, shows "up".
`three_states` is the paper's small figure.

Known: the tree, the rewards, the observations before the last layer. Unknown: the emissions of each
leaf, under flat Dirichlet priors on the Y' observations it can show.
"""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl.core.arguments import between_problems, count_problems, refuse
from homdp_ppl.declare.decorator import homdp
from homdp_ppl.declare.kernels import Kernels
from homdp_ppl.declare.model import World
from homdp_ppl.declare.sizes import check_sizes_of, power
from homdp_ppl.errors import DeclarationError, Problem, shown


def tree(
    depth: int = 4,
    observations: int = 8,
    epsilon: float = 0.25,
    u: np.ndarray | None = None,
    seed: int = 0,
) -> World:
    """Lower bound: a binary tree whose last layer is hard to tell apart, so that every learner
    needs many episodes.

    Parameters
    ----------
    depth
        Number of layers, equal to the horizon; the tree has 2^depth - 1 states.
    observations
        Y, an even number of at least 4; two of them are "up" and "down".
    epsilon
        How far the last layer is from uniform, in (0, 1).
    u
        Signs, one for each parent and each observation of the first half: (2^(depth - 2), (Y - 2) /
        2).
    seed
        Draws the signs when ``u`` is not given.
    """
    refuse(
        DeclarationError,
        "lower_bound_tree",
        [*count_problems(2, depth=depth), *_problems(observations, epsilon, seed)],
    )
    check_sizes_of("lower_bound_tree", states=power(2, depth), observations=observations, actions=2)
    half, parents = (observations - 2) // 2, 2 ** (depth - 2)
    drawn = np.random.default_rng(seed).choice([-1, 1], (parents, half))
    signs = drawn if u is None else np.asarray(u)
    if signs.shape != (parents, half) or not np.isin(signs, (-1, 1)).all():
        expected = f"signs -1 and 1 of shape {(parents, half)}: parents, half of Y - 2"
        problem = Problem("u", shown(u), expected)
        raise DeclarationError("lower_bound_tree", [problem])
    X, leaves = 2**depth - 1, 2 ** (depth - 1)
    inner = X - leaves
    moves = np.zeros((X, 2, X))
    for state in range(inner):
        moves[state, :, [2 * state + 1, 2 * state + 2]] = 0.5
    moves[inner:, :, 0] = 1.0  # after the last step back to the root, which nobody sees
    reward = np.zeros((X, 2))
    reward[inner::2, 0] = reward[inner + 1 :: 2, 1] = 1.0
    ways = np.zeros((inner, observations))
    ways[0, 0] = 1.0
    ways[1::2, 0] = ways[2::2, 1] = 1.0

    @homdp(
        states=tuple(f"x{k}" for k in range(X)),
        observations=(
            "up",
            "down",
            *(f"y+{k}" for k in range(half)),
            *(f"y-{k}" for k in range(half)),
        ),
        actions=("a1", "a2"),
        horizon=depth,
        reward=reward,
    )
    def lower_bound_tree() -> Kernels:
        leaf = numpyro.sample("leaf", dist.Dirichlet(np.ones((leaves, 2 * half))).to_event(1))
        last = jnp.concatenate([jnp.zeros((leaves, 2)), leaf], axis=1)
        return Kernels(
            initial=np.eye(X)[0], transition=moves, emission=jnp.concatenate([ways, last])
        )

    upper = np.concatenate([1 + epsilon * signs, 1 - epsilon * signs], axis=1)  # (parents, Y')
    pairs = np.stack([upper, 2 - upper], axis=1) / (
        2 * half
    )  # the lower child has the opposite signs
    return lower_bound_tree.at(leaf=pairs.reshape(leaves, 2 * half))


def three_states(
    observations: int = 8, epsilon: float = 0.25, u: np.ndarray | None = None, seed: int = 0
) -> World:
    """The paper's figure: a root and two leaves, the tree of depth 2."""
    return tree(2, observations, epsilon, u, seed)


def _problems(observations: int, epsilon: float, seed: int) -> list[Problem]:
    problems = count_problems(0, seed=seed)
    if count_problems(4, observations=observations) or observations % 2:
        problems.append(Problem("observations", shown(observations), "an even number >= 4"))
    return problems + between_problems(0.0, 1.0, "a number in (0, 1)", epsilon=epsilon)

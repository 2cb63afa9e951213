"""Declarations with labels, mechanisms and random rewards, and their densities by enumeration."""

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from scipy import stats

from homdp_ppl import HOMDP, Episodes, Kernels, World, homdp, rollout, uniform_policy
from tests.gaps import tables_of
from tests.richer import SIZES

THREE: dict[str, Any] = {**SIZES, "states": 3, "reward": np.full((3, 2), 0.5)}
MOVES = np.array([[[0.7, 0.3], [0.2, 0.8]], [[0.1, 0.9], [0.6, 0.4]]])
SHOWS = np.array([[0.8, 0.2], [0.3, 0.7]])


class Known(NamedTuple):
    """The densities of a declaration in plain Python, from its parameters."""

    label: Callable[..., float] | None = None  # of z given x
    revealed: Callable[..., float] | None = None  # given h (from 1), x, y and a
    reward: Callable[..., float] | None = None  # of r given x, y and a
    by_episode: bool = False


@homdp(**SIZES)
def noisy():
    """Labels with unknown errors; everything is conjugate."""
    moves = numpyro.sample("moves", dist.Dirichlet(2 * jnp.ones((2, 2, 2))))
    confusion = numpyro.sample("confusion", dist.Dirichlet(jnp.array([[6.0, 2, 1], [1, 2, 6]])))
    return Kernels([0.4, 0.6], moves, SHOWS, label=confusion)


@homdp(**THREE)
def coarse():
    """Two of the three states have the same label."""
    moves = numpyro.sample("moves", dist.Dirichlet(jnp.ones((3, 2, 3))))
    shows = numpyro.sample("shows", dist.Dirichlet(jnp.ones((3, 2))))
    return Kernels([0.2, 0.3, 0.5], moves, shows, label=lambda x: jnp.array([0, 1, 1])[x])


@homdp(**SIZES)
def chosen():
    """What is revealed depends on the state, the observation and the action."""
    shows = numpyro.sample("shows", dist.Dirichlet(jnp.ones((2, 2))))
    right = numpyro.sample("right", dist.Beta(4, 2))
    last = numpyro.sample("last", dist.Beta(2, 2))

    def revealed(x, y, a):
        if a is None:
            return jnp.where(x == 0, last, 0.5)
        return jnp.where(x == y, right, 0.1 + 0.2 * a)

    return Kernels([0.4, 0.6], MOVES, shows, revealed=revealed)


@homdp(**SIZES)
def later():
    """The chance of a label grows with the step, on a scale without a closed form."""
    slope = numpyro.sample("slope", dist.Uniform(0.05, 0.25))
    error = numpyro.sample("error", dist.Uniform(0.0, 0.4))
    return Kernels(
        [0.4, 0.6],
        MOVES,
        SHOWS,
        label=lambda x: dist.Bernoulli(jnp.where(x == 1, 1 - error, error)),
        revealed=lambda x, h: slope * (h - x),
    )


@homdp(**SIZES)
def coin():
    """An unknown coin decides."""
    shows = numpyro.sample("shows", dist.Dirichlet(jnp.ones((2, 2))))
    q = numpyro.sample("q", dist.Beta(2, 2))
    return Kernels([0.4, 0.6], MOVES, shows, revealed=q)


@homdp(**SIZES, reveal_unit="episode")
def coins():
    """An unknown coin decides for whole episodes."""
    shows = numpyro.sample("shows", dist.Dirichlet(jnp.ones((2, 2))))
    q = numpyro.sample("q", dist.Beta(2, 2))
    return Kernels([0.4, 0.6], MOVES, shows, revealed=q)


RANDOM: dict[str, Any] = {name: SIZES[name] for name in SIZES if name != "reward"}


@homdp(**RANDOM, reward_range=(-1, 2))
def paid():
    """Recorded rewards are evidence; their outcomes differ between states."""
    moves = numpyro.sample("moves", dist.Dirichlet(jnp.ones((2, 2, 2))))
    wins = numpyro.sample("wins", dist.Beta(jnp.array([2.0, 4.0]), 2.0))
    values = jnp.array([[-1.0, 2.0], [0.0, 2.0]])

    def reward(x, a, y):
        p = wins[x] * jnp.where(y == 1, 1.0, 1.0)
        return dist.MixtureSameFamily(
            dist.Categorical(probs=jnp.stack([1 - p, p])), dist.Delta(values[x])
        )

    return Kernels([0.4, 0.6], moves, SHOWS, reward=reward)


@homdp(**RANDOM, reward_range=(0, 1))
def measured():
    """Recorded rewards with a density, and a mechanism that depends on the state."""
    sharp = numpyro.sample("sharp", dist.Uniform(1.0, 5.0))
    return Kernels(
        [0.4, 0.6],
        MOVES,
        SHOWS,
        reward=lambda x, a: dist.Beta(1 + sharp * x, 1 + sharp * (1 - x) + a),
        revealed=lambda x: 0.2 + 0.3 * x,
    )


@homdp(
    states=3,
    observations=2,
    actions=2,
    horizon=3,
    reward=np.array([[0.2, 0.4], [0.6, 0.8], [0, 0]]),
    terminal=("x2",),
)
def ending():
    """Episodes end early; labels and a mechanism apply to the terminal state too."""
    moves = numpyro.sample("moves", dist.Dirichlet(jnp.ones((2, 2, 3))))
    q = numpyro.sample("q", dist.Beta(2, 2))
    stay = jnp.array([[[0.0, 0, 1]] * 2])
    return Kernels(
        [0.5, 0.5, 0.0],
        jnp.concatenate([moves, stay]),
        [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]],
        label=[[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]],
        revealed=lambda x, y: 0.3 + 0.5 * (x == 2) if y is None else jnp.where(x == y, q, 0.4),
    )


def _right(p, h, x, y, a):
    if a is None:
        return float(p["last"]) if x == 0 else 0.5
    return float(p["right"]) if x == y else 0.1 + 0.2 * a


def _ending(p, h, x, y, a):
    if y is None:
        return 0.8 if x == 2 else 0.3
    return float(p["q"]) if x == y else 0.4


def _wins(p, x, y, a, r):
    low = -1.0 if x == 0 else 0.0
    return float(p["wins"][x]) if r == 2.0 else float(1 - p["wins"][x]) if r == low else 0.0


def _beta(p, x, y, a, r):
    sharp = float(p["sharp"])
    return float(stats.beta(1 + sharp * x, 1 + sharp * (1 - x) + a).pdf(r))


def _error(p, x, z):
    return float(p["error"]) if x != z else 1 - float(p["error"])


MODELS: dict[str, tuple[HOMDP, Known]] = {
    "noisy": (noisy, Known(label=lambda p, x, z: float(p["confusion"][x, z]))),
    "coarse": (coarse, Known(label=lambda p, x, z: float(z == (0, 1, 1)[x]))),
    "chosen": (chosen, Known(revealed=_right)),
    "later": (later, Known(_error, lambda p, h, x, y, a: float(p["slope"]) * (h - x))),
    "coin": (coin, Known(revealed=lambda p, h, x, y, a: float(p["q"]))),
    "coins": (coins, Known(revealed=lambda p, h, x, y, a: float(p["q"]), by_episode=True)),
    "paid": (paid, Known(reward=_wins)),
    "measured": (measured, Known(revealed=lambda p, h, x, y, a: 0.2 + 0.3 * x, reward=_beta)),
    "ending": (
        ending,
        Known(lambda p, x, z: [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]][x][z], _ending),
    ),
}


def simulated(world: World, number: int, seed: int = 1) -> Episodes:
    """Simulated episodes as hindsight shows them; without a mechanism, a coin hides some items."""
    found = rollout(jax.random.split(jax.random.key(seed), number), world, uniform_policy(world))
    form = world.homdp.hindsight_form
    if form is not None and form.revealed is not None:
        return found
    kept = np.random.default_rng(seed).random(found.revealed.shape) < 0.6
    return Episodes(
        found.observations,
        found.actions,
        found.states,
        found.revealed & kept,
        found.rewards,
        found.rewards_known,
        found.labels,
        None if found.labels_known is None else found.labels_known & kept,
        length=found.length,
        ended=found.ended,
    )


def weighed_paths(world: World, known: Known, episodes: Any, k: int):
    """All paths of one episode that agree with what was revealed, with their probabilities."""
    tables, p, spaces = tables_of(world), dict(world.parameters), world.spaces
    form, A, L = tables.form, len(spaces.actions), int(episodes.length[k])
    y, a = episodes.observations[k], episodes.actions[k]
    hidden = [h for h in range(L + 1) if not episodes.revealed[k, h]]
    items = episodes.revealed[k] if known.label is None else episodes.labels_known[k]
    for values in product(range(len(spaces.states)), repeat=len(hidden)):
        x = episodes.states[k, : L + 1].copy()
        x[hidden] = values
        if episodes.ended[k] == "terminal" and not spaces.ends[x[L]]:
            continue
        weight = tables.initial[x[0]]
        for h in range(L):
            before = a[h - 1] if h else A
            weight = weight * tables.emission[form.emission_index(h, before, x[h], y[h])]
            weight = weight * tables.transition[form.transition_index(h, x[h], a[h], x[h + 1])]
            if known.reward is not None and episodes.rewards_known[k, h]:
                weight = weight * known.reward(p, x[h], y[h], a[h], episodes.rewards[k, h])
        for h in range(L + 1):
            if known.label is not None and episodes.labels_known[k, h]:
                weight = weight * known.label(p, x[h], int(episodes.labels[k, h]))
            if known.revealed is not None and not (known.by_episode and h):
                seen = (y[h], a[h]) if h < L else (None, None)
                chance = known.revealed(p, h + 1, x[h], *seen)
                weight = weight * (chance if items[h] else 1 - chance)
        yield x, weight


def enumerated(world: World, known: Known, episodes: Episodes) -> float:
    """The log probability of episodes: the sum over all paths of each."""
    sums = [
        sum(p for _, p in weighed_paths(world, known, episodes, k)) for k in range(len(episodes))
    ]
    return float(np.log(sums).sum())

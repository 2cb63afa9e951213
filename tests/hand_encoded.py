"""Models of the zoo as they were before declarations had the features that their stories need.

Observations depend on the state only, so the state includes the last action or its result; the end
of an episode is an absorbing state. The models of the zoo must agree with these.
"""

from itertools import product

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.nn import sigmoid
from scipy.special import expit

from homdp_ppl import Kernels, World, homdp
from homdp_ppl.models import rocksample as rocks_of
from homdp_ppl.models import screening as patients
from homdp_ppl.models.flat import flat_table
from homdp_ppl.precision import Array

# Tiger: a state is (listened?, tiger)

HEARD = {0: 2, 1: 3, 2: 2, 3: 3}  # the state after listening


def tiger_listen(horizon: int = 5, accuracy: float = 0.85) -> World:
    """The tiger that growls only after listening, with four states."""
    moves = np.zeros((4, 3, 4))
    for state, heard in HEARD.items():
        moves[state, 0, heard] = 1.0  # listening leaves the tiger where it is
        moves[state, 1:, :2] = 0.5  # opening a door puts it behind a random door

    @homdp(
        states=("left, unheard", "right, unheard", "left, heard", "right, heard"),
        observations=("silence", "growl left", "growl right"),
        actions=("listen", "open left", "open right"),
        horizon=horizon,
        reward=np.array([[0.9, 0.0, 1.0], [0.9, 1.0, 0.0]] * 2),
    )
    def tiger_listen() -> Kernels:
        accuracy = numpyro.sample("accuracy", dist.Beta(8, 2))
        left = jnp.array([0.0, accuracy, 1 - accuracy])
        right = jnp.array([0.0, 1 - accuracy, accuracy])
        silence = jnp.array([1.0, 0.0, 0.0])
        return Kernels([0.5, 0.5, 0, 0], moves, jnp.stack([silence, silence, left, right]))

    return tiger_listen.at(accuracy=accuracy)


# Screening: a state is (test just taken, type, condition)


def screening(horizon: int = 5, hierarchy: bool = True) -> World:
    """Screening for two stages of the disease, with 18 states."""

    @homdp(
        states=tuple(
            f"{condition} {kind}, {test}"
            for test in ("no test", "mammogram", "biopsy")
            for kind in "AB"
            for condition in ("healthy", "early", "advanced")
        ),
        observations=patients.RESULTS,
        actions=patients.ACTIONS,
        horizon=horizon,
        reward=np.tile([1.0, 0.5, 0.1], 6)[:, None] * (1 - patients.BURDEN),
    )
    def screening() -> Kernels:
        if hierarchy:
            pace = numpyro.sample("pace", dist.Normal(-1.0, 1.0))
            rates = sigmoid(
                numpyro.sample("logit_rates", dist.Normal(pace, 0.5).expand([2]).to_event(1))
            )
        else:
            rates = numpyro.sample("rates", dist.Beta(np.ones(2), np.full(2, 2.0)).to_event(1))
        response = numpyro.sample("response", dist.Beta(6, 4))
        sensitivity = numpyro.sample(
            "sensitivity", dist.Beta(np.array([6.0, 9.0]), np.array([4.0, 1.0])).to_event(1)
        )
        specificity = numpyro.sample("specificity", dist.Beta(9, 1))
        start = np.concatenate([np.tile([0.25, 0.25, 0.0], 2), np.zeros(12)])
        return Kernels(start, _moves(rates, response), _results(sensitivity, specificity))

    logits = np.array([-1.7, 0.0])
    rates = {"pace": -1.0, "logit_rates": logits} if hierarchy else {"rates": expit(logits)}
    world: World = screening.at(
        **rates, response=0.8, sensitivity=np.array([0.7, 0.95]), specificity=0.95
    )
    return world


def screening_table(horizon: int = 5) -> World:
    """The same patients for a learner who knows no structure, with 18 states."""
    return flat_table(screening(horizon))


def _moves(rates: Array, response: Array) -> Array:
    """T(x' | x, a) from the rates, (stages,), and the probability that the right drug helps."""
    n = len(rates) + 1  # conditions
    worsens = jnp.diag(jnp.append(1 - rates, 1.0)) + jnp.diag(rates, 1)
    helps = worsens.at[1:].set((1 - response) * np.eye(n)[1:] + response * np.eye(n, k=-1)[1:])
    alone = jnp.kron(np.eye(2), worsens)  # both types, untreated
    drugs = [
        jnp.kron(np.diag(own), helps) + jnp.kron(np.diag(1 - own), worsens) for own in np.eye(2)
    ]
    # the next state includes the test taken
    ends = [(0, alone), (1, alone), (2, alone), *((0, drug) for drug in drugs)]
    # (2 n, A, 6 n)
    after = jnp.stack([jnp.kron(np.eye(3)[[test]], rows) for test, rows in ends], axis=1)
    return jnp.tile(after, (3, 1, 1))


def _results(sensitivity: Array, specificity: Array) -> Array:
    """O(y | x) from the mammogram's sensitivity at each stage, (stages,), and its specificity."""
    shadow = jnp.tile(jnp.append(1 - specificity, sensitivity), 2)  # both types look alike
    mammogram = jnp.stack([1 - shadow, shadow], axis=1)
    stages = len(sensitivity)
    biopsy = np.eye(6)[np.array([3] + [4] * stages + [3] + [5] * stages)]
    return jnp.concatenate(
        [np.eye(6)[[0] * len(shadow)], jnp.pad(mammogram, ((0, 0), (1, 3))), biopsy]
    )


# RockSample: a state is (place, rocks, last reading), or gone


def rocksample(half_distance: float = 4.0, horizon: int = 6) -> World:
    """RockSample with 4 x 4 places and 2 rocks: 193 states, rewards rescaled to [0, 1]."""
    size, rocks, start = 4, [(1, 1), (3, 2)], (0, 2)
    # column, row, and quality of the rocks: bit k is set if rock k is good
    situations = list(product(range(size), range(size), range(4)))
    moves, reward = _drives(size, rocks)
    good = np.array([[quality >> rock & 1 for rock in range(2)] for *_, quality in situations])
    distance = np.array(
        [[np.hypot(c - column, r - row) for column, row in rocks] for c, r, _ in situations]
    )
    initial = np.array(
        [(c, r) == start and not reading for c, r, _ in situations for reading in range(3)]
        + [False]
    )

    @homdp(
        states=3 * len(situations) + 1,
        observations=rocks_of.READINGS,
        actions=(*rocks_of.STEPS, "sample", "check rock 1", "check rock 2"),
        horizon=horizon,
        reward=reward,
    )
    def rocksample() -> Kernels:
        half_distance = numpyro.sample("half_distance", dist.LogNormal(1.0, 1.0))
        right = (1 + 2 ** (-distance / half_distance)) / 2
        checks = _checks(jnp.where(good, right, 1 - right))
        emission = np.eye(3)[[*range(3)] * len(situations) + [0]]
        return Kernels(initial / initial.sum(), jnp.concatenate([moves, checks], axis=1), emission)

    return rocksample.at(half_distance=half_distance)


def _drives(size: int, rocks: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """T(x' | x, a) of moves and of sampling, (X, 5, X), and the reward of all actions, (X, A)."""
    qualities = 2 ** len(rocks)
    X = 3 * size**2 * qualities + 1
    gone = X - 1
    moves, reward = (
        np.zeros((X, len(rocks_of.STEPS) + 1, X)),
        np.full((X, len(rocks_of.STEPS) + 1 + len(rocks)), 0.5),
    )
    moves[gone, :, gone] = 1.0

    def state(column: int, row: int, quality: int) -> int:
        return int(3 * ((column * size + row) * qualities + quality))

    for column, row, quality in product(range(size), range(size), range(qualities)):
        here = state(column, row, quality)
        readings = slice(here, here + 3)
        for action, (east, north) in enumerate(rocks_of.STEPS.values()):
            c, r = column + east, row + north
            inside = 0 <= c < size and 0 <= r < size
            moves[
                readings, action, gone if c == size else state(c, r, quality) if inside else here
            ] = 1.0
            if c == size:
                reward[readings, action] = 1.0
        after = quality & ~(1 << rocks.index((column, row))) if (column, row) in rocks else quality
        moves[readings, rocks_of.SAMPLE, state(column, row, after)] = 1.0
        reward[readings, rocks_of.SAMPLE] = float(after != quality)
    return moves, reward


def _checks(says_good: Array) -> Array:
    """T(x' | x, check), (X, rocks, X), from the probability of a good reading, (S, rocks)."""
    situations, rocks = says_good.shape
    # (S, rocks, 3)
    readings = jnp.stack([jnp.zeros_like(says_good), says_good, 1 - says_good], axis=-1)
    blocks = jnp.eye(situations)[:, None, :, None] * readings[:, :, None, :]  # (S, rocks, S, 3)
    stays = jnp.repeat(blocks.reshape(situations, rocks, 3 * situations), 3, axis=0)
    return (
        jnp.zeros((3 * situations + 1, rocks, 3 * situations + 1))
        .at[:-1, :, :-1]
        .set(stays)
        .at[-1, :, -1]
        .set(1.0)
    )

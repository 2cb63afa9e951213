"""Policies do not depend on what they must not see, and unused features change nothing."""

from collections.abc import Callable
from functools import cache, partial
from itertools import product
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import HOMDP, Kernels, World, explorers, homdp, learn
from homdp_ppl.declare.kernels import tabulate
from homdp_ppl.planners import history_tree
from tests.random_rewards import CHANCES, native
from tests.richer import FEATURES, richer
from tests.runs import TREE
from tests.sensors import worlds

EPISODES = 12


def planned(world: World):
    return history_tree()(world.pomdp, allowed=world.homdp.allowed)


def decisions(world: World) -> dict[tuple[int, ...], list[float]]:
    """Action probabilities of the optimal policy after every history of two steps."""
    policy, (_, Y, A, _) = planned(world).policy, world.spaces.sizes
    histories: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((y,), ()) for y in range(Y)]
    histories += [((y, z), (a,)) for y, a, z in product(range(Y), range(A), range(Y))]
    return {
        (*seen, *done): policy.act(np.array(seen), np.array(done, dtype=int)).tolist()
        for seen, done in histories
    }


def run(world: World, rule):
    return learn(world, rule, TREE, EPISODES, seed=5, compiled=False)


# A hidden bit


def doubled(model: HOMDP, bit: int) -> HOMDP:
    """The same model with a bit in the state that nothing depends on; it always has this value."""
    spaces, value = model.spaces, np.eye(2)[bit]
    Y = spaces.sizes[1]
    ends = np.repeat(spaces.ends, 2)
    seen = Y - 1 if ends.any() else Y  # without the observation "ended"

    def function() -> Kernels:
        kernels: Any = model.function()
        initial, transition, emission = tabulate(kernels, spaces)[:3]
        moves = jnp.repeat(jnp.kron(transition, value), 2, axis=-3)
        shows: Any = jnp.repeat(emission[..., :seen], 2, axis=-2)
        shows = jnp.where(ends[:, None], 1 / seen, shows)
        if spaces.sensors:
            shows = {
                name: jnp.repeat(kernels.emission[name], 2, axis=-2) for name in spaces.sensors
            }
        pays: Any = kernels.reward
        return Kernels(
            jnp.kron(initial, value),
            moves,
            shows,
            reward=pays and (lambda x, a: pays(x // 2, a)),
        )

    known = model.rewards.law is None
    return homdp(
        states=tuple(f"{x}, {b}" for x in spaces.names[0] for b in "01"),
        observations=dict(spaces.sensors) or spaces.names[1][:seen],
        actions=spaces.actions,
        horizon=spaces.horizon,
        reward=np.repeat(model.reward, 2, axis=1) if known else None,
        reward_range=None if known else model.reward_range,
        terminal=tuple(f"{x}, {b}" for x in spaces.terminal for b in "01"),
        allowed=model.allowed,
    )(function)


ALL: dict[str, Callable[[], World]] = {
    **{name: partial(richer, name) for name in FEATURES},
    "sensors": lambda: worlds("plain")[0],
    "random rewards": lambda: native().at(p=CHANCES, accuracy=0.8),
}
QUICK = ("answers", "ends")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ALL],
)
def test_hidden_bits_change_no_decision(name):
    """Two worlds with equal observations and different states: the same policies, the same runs."""
    world = ALL[name]()
    pair = [doubled(world.homdp, bit).at(**world.parameters) for bit in (0, 1)]
    assert decisions(pair[0]) == decisions(pair[1]) == decisions(world)
    first, second = (run(other, explorers.greedy()) for other in pair)
    np.testing.assert_array_equal(first.record.actions, second.record.actions)
    np.testing.assert_array_equal(first.record.observations, second.record.observations)
    np.testing.assert_allclose(first.values, second.values, rtol=0, atol=1e-12)
    ours, theirs = (np.asarray(one.record.states) for one in (first, second))
    np.testing.assert_array_equal(ours + 1, theirs)  # the states themselves differ


def test_a_policy_that_sees_the_bit_is_caught():
    """Planted: the bit is part of the observation, and the decisions differ."""

    def leaking(bit: int) -> World:
        shows = np.array([[0.9, 0.1], [0.1, 0.9]])
        model = homdp(states=2, observations=2, actions=2, horizon=2, reward=np.eye(2))(
            lambda: Kernels([0.5, 0.5], np.repeat(np.eye(2)[:, None], 2, 1), shows[[bit, 1 - bit]])
        )
        return model.at()

    assert decisions(leaking(0)) != decisions(leaking(1))


# Features that have no effect

MOVES = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.5, 0.5]]])
REWARD = np.array([[0.4, 1.0], [0.6, 0.0]])
BASE: dict[str, Any] = {
    "states": ("left", "right"),
    "observations": 2,
    "actions": 2,
    "horizon": 3,
    "reward": REWARD,
}


def declared(make: Callable[[Any], Kernels], **changes: Any) -> HOMDP:
    """A declaration with one unknown accuracy, from its emission table."""

    def program() -> Kernels:
        p = numpyro.sample("p", dist.Beta(4, 2))
        return make(jnp.array([[p, 1 - p], [1 - p, p]]))

    return homdp(**{**BASE, **changes})(program)


def plain(shows: Any) -> Kernels:
    return Kernels([0.5, 0.5], MOVES, shows)


def unreachable(shows: Any) -> Kernels:
    moves = np.concatenate([np.pad(MOVES, ((0, 0), (0, 0), (0, 1))), np.full((1, 2, 3), 1 / 3)])
    return Kernels([0.5, 0.5, 0.0], moves, jnp.concatenate([shows, jnp.full((1, 2), 0.5)]))


def by_step(shows: Any) -> Kernels:
    return Kernels(
        [0.5, 0.5],
        np.stack([MOVES] * 3),
        lambda x, h: dist.Categorical(probs=shows[x]),
    )


def by_action(shows: Any) -> Kernels:
    return Kernels([0.5, 0.5], MOVES, lambda x, a: dist.Categorical(probs=shows[x]), shows)


def certain(shows: Any) -> Kernels:
    paid = jnp.asarray(REWARD)
    return Kernels([0.5, 0.5], MOVES, shows, reward=lambda x, a: dist.Delta(paid[x, a]))


def with_sensor(shows: Any) -> Kernels:
    return Kernels([0.5, 0.5], MOVES, {"ear": shows, "eye": np.ones((2, 1))})


def everything(observations, actions):
    return np.ones(2, dtype=bool)


UNUSED: dict[str, Callable[[], HOMDP]] = {
    "an end that is never reached": lambda: declared(
        unreachable,
        states=("left", "right", "over"),
        reward=np.vstack([REWARD, [0.5, 0.5]]),
        terminal=("over",),
    ),
    "steps": lambda: declared(by_step),
    "previous actions": lambda: declared(by_action),
    "all actions allowed": lambda: declared(plain, allowed=everything),
    "rewards by step": lambda: declared(plain, reward=np.stack([REWARD] * 3)),
    "rewards by observation": lambda: declared(
        plain, reward=lambda x, y, a: REWARD[int(x), int(a)]
    ),
    "costs": lambda: declared(plain, reward=None, cost=-REWARD),
    "a certain law of rewards": lambda: declared(certain, reward=None, reward_range=(0, 1)),
    "a sensor with one outcome": lambda: declared(with_sensor, observations={"ear": 2, "eye": 1}),
}
MORE_ROWS = ("steps", "previous actions")  # counted separately by greedy, which ignores the prior
RULES = {rule.name: rule for rule in (explorers.greedy(), explorers.posterior_sampling())}


@cache
def base() -> World:
    return declared(plain).at(p=0.8)


@cache
def base_run(rule: str):
    return run(base(), RULES[rule])


@pytest.mark.parametrize("feature", UNUSED)
def test_unused_features_change_nothing(feature):
    world = UNUSED[feature]().at(p=0.8)
    assert planned(world).value == pytest.approx(planned(base()).value, abs=1e-12)
    ours = decisions(world)
    for history, chances in decisions(base()).items():
        assert ours[history] == chances
    for rule, explorer in RULES.items():
        if rule == "greedy" and feature in MORE_ROWS:
            continue
        found, expected = run(world, explorer), base_run(rule)
        np.testing.assert_array_equal(found.record.actions, expected.record.actions)
        np.testing.assert_array_equal(found.record.observations, expected.record.observations)
        np.testing.assert_array_equal(found.record.states, expected.record.states)
        np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found.optimistic, expected.optimistic, rtol=0, atol=1e-9)


def test_a_used_feature_is_caught():
    """Planted: the end can be reached after all."""

    def reachable(shows: Any) -> Kernels:
        kernels = unreachable(shows)
        moves = np.array(kernels.transition)
        moves[0, 0] = [0.8, 0.1, 0.1]
        return kernels._replace(transition=moves)

    world = declared(
        reachable,
        states=("left", "right", "over"),
        reward=np.vstack([REWARD, [0.5, 0.5]]),
        terminal=("over",),
    ).at(p=0.8)
    assert abs(planned(world).value - planned(base()).value) > 1e-3

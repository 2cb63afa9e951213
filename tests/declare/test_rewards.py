"""Rewards and costs of declarations: forms, units, misuse, and rewards by observation."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    DataError,
    DeclarationError,
    Episode,
    Kernels,
    ParameterError,
    PlanningError,
    Real,
    Trajectory,
    evaluate,
    explorers,
    homdp,
    learn,
    planners,
    rollout,
    tabular,
    uniform_policy,
    x64,
)
from homdp_ppl.evaluation import estimate, fast_informed_bound, mdp_values, qmdp, root_value
from homdp_ppl.explorers import EXPLORERS
from homdp_ppl.gym import HOMDPEnv
from homdp_ppl.planners import history_tree
from tests.raising import raises
from tests.rules import example
from tests.worlds import random_policy

X, Y, A, H = 2, 3, 2, 2
T = np.array([[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.5, 0.5]]])
O = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])  # noqa: E741
FULL = np.random.default_rng(0).normal(size=(H, X, Y, A)).round(3)


def declare(horizon=H, **given):
    return tabular(T=T, O=O, initial=[0.5, 0.5], horizon=horizon, **given)


def problems(**given):
    with pytest.raises(DeclarationError) as caught:
        declare(**given)
    return caught.value.problems


def test_rewards_in_the_unit_interval_are_not_rescaled():
    """Also if they do not fill it: scale 1, shift 0, the same bits."""
    given = np.array([[0.1, 0.25], [0.3, 1 / 3]])
    rewards = declare(reward=given).rewards
    assert (rewards.scale, rewards.shift, rewards.bounds) == (1.0, 0.0, (0.0, 1.0))
    assert np.array_equal(rewards.table, np.broadcast_to(given[:, None], (H, X, 1, A)))
    assert declare(reward=given).reward.tobytes() == rewards.table.tobytes()


@pytest.mark.parametrize(
    ("given", "scale", "shift"),
    [
        ({"reward": [[-100.0, 10.0], [0.0, 5.0]]}, 110.0, -100.0),
        ({"cost": [[100.0, -10.0], [0.0, -5.0]]}, 110.0, -100.0),
        ({"cost": [[0.0, 0.25], [1.0, 0.5]]}, 1.0, -1.0),
        ({"reward": np.full((2, 2), 7.0)}, 1.0, 7.0),
        ({"reward": [[0.0, 0.5], [0.5, 1.0]], "reward_range": (-1, 3)}, 4.0, -1.0),
        ({"cost": [[0.0, 0.5], [0.5, 1.0]], "reward_range": (0, 4)}, 4.0, -4.0),
        ({"cost": np.zeros((2, 2))}, 1.0, 0.0),
    ],
)
def test_units(given, scale, shift):
    model = declare(**given)
    sign, numbers = (1, given["reward"]) if "reward" in given else (-1, given["cost"])
    assert (model.rewards.scale, model.rewards.shift) == (scale, shift)
    table = model.rewards.table
    assert table.min() >= 0
    assert table.max() <= 1
    np.testing.assert_allclose(scale * table[0, :, 0] + shift, sign * np.array(numbers), atol=1e-12)
    np.testing.assert_array_equal(model.reward[0], sign * np.array(numbers))
    pomdp = model.at().pomdp
    assert (float(pomdp.scale), float(pomdp.shift)) == (scale, shift)
    again = declare(reward=model.reward, reward_range=model.reward_range)
    assert np.array_equal(again.rewards.table, table)
    assert (again.rewards.scale, again.rewards.shift) == (scale, shift)


FORMS = {
    "(X, A)": (FULL[0, :, 0], lambda x, a: FULL[0, x, 0, a]),
    "(H, X, A)": (FULL[:, :, 0], lambda x, a, h: FULL[h - 1, x, 0, a]),
    "(H, X, Y, A)": (FULL, lambda x, y, a, h: FULL[h - 1, x, y, a]),
    "only a": (FULL[:1, :1, 0].repeat(X, 1)[0], lambda a: FULL[0, 0, 0, a]),
    "another order": (FULL, lambda h, a, y, x, k=1: FULL[h - k, x, y, a]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("where", ["reward", "cost"])
def test_arrays_and_functions_agree(form, where):
    array, function = FORMS[form]
    one, two = declare(**{where: array}), declare(**{where: function})
    assert np.array_equal(one.rewards.table, two.rewards.table)
    assert one == two
    assert (one.rewards.scale, one.rewards.shift) == (two.rewards.scale, two.rewards.shift)
    assert np.array_equal(one.reward, two.reward)
    assert one.reward.shape == ((H, X, Y, A) if array.ndim == 4 else (H, X, A))


def test_functions_may_take_positions_only():
    assert declare(reward=lambda x, a, /: FULL[0, x, 0, a]) == declare(reward=FULL[0, :, 0])
    other = declare(reward=lambda state, action: FULL[0, state, 0, action])
    assert other == declare(reward=FULL[0, :, 0])


def test_the_repr_shows_the_range():
    assert "horizon 2, costs 0 to 9\n" in repr(declare(cost=[[0, 9], [1, 2]]))
    assert "horizon 2, rewards -9 to 2\n" in repr(declare(reward=[[0, -9], [1, 2]]))
    assert "horizon 2\n" in repr(declare(reward=[[0, 1], [1, 0]]))


def test_declarations_in_other_units_are_different():
    one, two = declare(reward=[[0, 1], [1, 0]]), declare(reward=[[0, 2], [2, 0]])
    assert np.array_equal(one.rewards.table, two.rewards.table)
    assert one != two
    assert one.cache is not two.cache


WRONG = {
    "both": ({"reward": FULL, "cost": FULL}, ["reward"]),
    "neither": ({}, ["reward"]),
    "shape": ({"cost": np.zeros((3, 2))}, ["cost"]),
    "one step too many": ({"reward": np.zeros((3, 2, 2))}, ["reward"]),
    "a rank too high": ({"reward": np.zeros((1, 2, 2, 3, 2))}, ["reward"]),
    "nan": ({"reward": [[0, np.nan], [np.inf, 1]]}, ["reward", "reward"]),
    "nan of a function": ({"cost": lambda x, a: np.nan if x else 1.0}, ["cost", "cost"]),
    "a distribution": ({"reward": dist.Normal()}, ["reward"]),
    "text": ({"cost": "much"}, ["cost"]),
    "other names": ({"reward": lambda state, action, step: 0.0}, ["reward"]),
    "text of a function": ({"reward": lambda x, a: "much"}, ["reward"]),
    "an infinite range": ({"reward": [[-1e308, 1e308], [0, 0]]}, ["reward"]),
    "outside the range": (
        {"reward": [[0, 3], [-1, 1]], "reward_range": (0, 2)},
        ["reward", "reward"],
    ),
    "a cost outside the range": ({"cost": [[0, 3], [1, 1]], "reward_range": (0, 2)}, ["cost"]),
    "range reversed": ({"reward": FULL, "reward_range": (2, 1)}, ["reward_range"]),
    "range of one number": ({"reward": FULL, "reward_range": 3.0}, ["reward_range"]),
    "range without end": ({"reward": FULL, "reward_range": (0, np.inf)}, ["reward_range"]),
    "range of text": ({"reward": FULL, "reward_range": ("a", "b")}, ["reward_range"]),
    "several at once": (
        {"reward": lambda state: 0.0, "reward_range": (1, 0)},
        ["reward", "reward_range"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_misuse(case):
    given, places = WRONG[case]
    found = problems(**given)
    assert [problem.where for problem in found] == places
    assert all(problem.expected for problem in found)


def test_problems_name_the_place():
    wrong = FULL.copy()
    wrong[1, 0, 2, 1] = np.nan
    (problem,) = problems(reward=wrong)
    assert problem.at == "step 2, x0, y2, a1"


def test_rewards_are_reported_together_with_other_problems():
    with raises(DeclarationError, "horizon", "reward", "initial"):
        tabular(T=T, O=O, initial=[0.5, 0.6], horizon=0, reward=FULL, cost=FULL)


def test_traced_rewards_are_refused():
    with pytest.raises(ParameterError) as caught:
        jax.jit(lambda c: declare(cost=c))(np.zeros((2, 2)))
    assert [problem.where for problem in caught.value.problems] == ["cost"]


# real-valued spaces


LINE = Real(1)


def walk(states=LINE, observations=LINE, **given):
    @homdp(states=states, observations=observations, actions=2, horizon=3, **given)
    def model():
        first = dist.Normal(0.0, 1.0)
        return Kernels(
            first if isinstance(states, Real) else [0.5, 0.5],
            (lambda x, a: dist.Normal(0.5 * x + a, 0.5))
            if isinstance(states, Real)
            else np.full((2, 2, 2), 0.5),
            lambda x: dist.Normal(x, 1.0),
        )

    return model


def quadratic(x, a):
    return jnp.clip(x**2, 0.0, 9.0) + a


def test_functions_of_real_states_need_a_range():
    with pytest.raises(DeclarationError) as caught:
        walk(cost=quadratic)
    (problem, *_) = caught.value.problems
    assert problem.where == "cost"
    assert "reward_range" in problem.remedy
    model = walk(cost=quadratic, reward_range=(0, 10))
    assert (model.rewards.scale, model.rewards.shift) == (10.0, -10.0)
    states = np.array([0.0, 2.0, 5.0, 1.0])
    episode = Episode(Trajectory(np.zeros(3), np.array([1, 0, 1])), states)
    np.testing.assert_allclose(model.rewards_of(episode), [-1, -4, -10], atol=1e-12)
    np.testing.assert_allclose(model.returns(episode), -15, atol=1e-12)
    again = walk(reward=model.reward, reward_range=model.reward_range)
    np.testing.assert_allclose(again.returns(episode), -15, atol=1e-12)
    assert again == model
    assert walk(cost=quadratic, reward_range=(0, 11)) != model


def test_returns_outside_the_range_are_refused():
    model = walk(reward=lambda x, a: jnp.where(jnp.abs(x) < 50, 0.0, x), reward_range=(-5, 5))
    far = Episode(Trajectory(np.zeros(3), np.zeros(3, int)), np.full(4, 99.0))
    with raises(DataError, "reward"):
        model.returns(far)


def test_rewards_of_real_observations_and_steps():
    model = walk(reward=lambda y, a, h: jnp.tanh(y) * h + a, reward_range=(-3, 4))
    seen = np.array([0.5, -1.0, 2.0])
    episode = Episode(Trajectory(seen, np.array([1, 0, 1])), np.zeros(4))
    expected = np.tanh(seen) * np.array([1, 2, 3]) + [1, 0, 1]
    np.testing.assert_allclose(model.rewards_of(episode), expected, atol=1e-12)
    assert walk(reward=lambda y, a, h: jnp.tanh(y) * h**2 / 3 + a, reward_range=(-3, 4)) != model
    with raises(DeclarationError, "horizon"):
        model.with_horizon(5)
    world = model.at()
    env = HOMDPEnv(world, per_step=True)
    first, _ = env.reset(seed=1)
    np.testing.assert_allclose(env.step(1)[1], np.tanh(first[0]) + 1, atol=1e-12)
    with raises(PlanningError, "reward"):
        planners.quantised()(walk(2, reward=lambda y, a: a * 0.5).at())


def test_tables_of_real_observations_may_have_steps():
    table = np.random.default_rng(1).normal(size=(3, 2, 2))
    world = walk(2, reward=table).at()
    other = walk(
        2,
        reward=lambda x, a, h: jnp.asarray(table)[h - 1, x, a],
        reward_range=(table.min(), table.max()),
    ).at()
    one, two = (planners.plan_on_cells(w, [0.0]) for w in (world, other))
    np.testing.assert_allclose(one.value, two.value, atol=1e-9)
    best = sum(table[h].mean(0).max() for h in range(3))  # the state is forgotten at every step
    assert one.value >= best - 1e-9


# rewards by observation


def guess(**given):
    """One state; the reward is 1 if the action repeats the observation."""
    return tabular(
        T=np.ones((1, 2, 1)),
        O=dist.Dirichlet(np.ones((1, 2))),
        initial=[1.0],
        horizon=2,
        **given,
    ).at(O=[[0.7, 0.3]])


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_the_reward_of_repeating_the_observation(scale):
    """The optimum is 1 per step; given the state only, it would be 0.7."""
    world = guess(reward=lambda y, a: scale * (a == y))
    plan = history_tree()(world.pomdp)
    assert plan.value == pytest.approx(2 * scale, abs=1e-12)
    assert [int(plan.policy.act([y], []).argmax()) for y in (0, 1)] == [0, 1]
    with x64():
        keys = jax.random.split(jax.random.key(0), 9)
    assert (world.returns(rollout(keys, world, plan.policy)) == 2 * scale).all()
    for bound in (mdp_values(world.pomdp)[:1], qmdp(world.pomdp)[0].T):
        assert root_value(world.pomdp, bound) == pytest.approx(2 * scale)
    env = HOMDPEnv(world, per_step=True)
    seen, _ = env.reset(seed=4)
    assert [env.step(seen)[1], env.step(1 - env._observations[-1])[1]] == [scale, 0.0]


@pytest.mark.parametrize("name", sorted(EXPLORERS))
def test_rules_with_rewards_by_observation(name):
    """In both loops where possible; after some episodes all rules that plan repeat observations."""
    world = guess(reward=lambda y, a: 5.0 * (a == y))
    run = learn(world, example(name, world), history_tree(), 8, compiled=False)
    assert run.optimum == pytest.approx(10.0)
    assert ((run.values >= -1e-9) & (run.values <= 10 + 1e-9)).all()
    if name in ("greedy", "posterior_sampling", "oracle", "hop_b", "tight"):
        np.testing.assert_allclose(run.values, 10.0)
        assert (run.returns == 10.0).all()
    if name in ("greedy", "hop_b"):
        again = learn(world, example(name, world), history_tree(), 8, compiled=True)
        np.testing.assert_allclose(again.values, run.values)
        np.testing.assert_allclose(again.optimistic, run.optimistic)


def by_enumeration(policy, world):
    """The value of a policy by summing over all trajectories."""
    pomdp, total = world.pomdp, 0.0
    reward = np.broadcast_to(world.homdp.reward.reshape(H, X, -1, A), (H, X, Y, A))
    for steps in product(product(range(X), range(Y), range(A)), repeat=H):
        chance, gained, seen, done = 1.0, 0.0, [], []
        for h, (x, y, a) in enumerate(steps):
            before = steps[h - 1]
            chance *= pomdp.initial[x] if h == 0 else T[before[0], before[2], x]
            seen.append(y)
            chance *= O[x, y] * policy.act(np.array(seen), np.array(done, dtype=int))[a]
            done.append(a)
            gained += reward[h, x, y, a]
        total += chance * gained
    return total


@pytest.mark.parametrize("given", [{"reward": FULL}, {"cost": FULL}])
def test_values_by_enumeration(given):
    world = declare(**given).at()
    policy = random_policy(world.spaces, 7)
    value = by_enumeration(policy, world)
    assert evaluate(policy, world.pomdp) == pytest.approx(value, abs=1e-12)
    with x64():
        key = jax.random.key(3)
    low, high = estimate(policy, world, key, 4000, level=1 - 1e-6).interval
    assert low <= value <= high
    plan = history_tree()(world.pomdp)
    best = by_enumeration(plan.policy, world)
    assert plan.value == pytest.approx(best, abs=1e-12)
    assert value <= best <= root_value(world.pomdp, fast_informed_bound(world.pomdp)[0].T) + 1e-9
    online = planners.particle_tree(200, particles=2000, tree_particles=256)(world).policy
    assert by_enumeration(online, world) >= best - 0.05 * world.homdp.rewards.scale


def test_a_planted_bug_of_the_observation_is_found(monkeypatch):
    """If returns used another observation, they would differ from the values."""
    world = declare(reward=FULL).at()
    rewards = world.homdp.rewards
    shifted = rewards._replace(table=np.roll(rewards.table, 1, axis=2))
    policy = random_policy(world.spaces, 7)
    with x64():
        key = jax.random.key(3)
    object.__setattr__(world.homdp, "rewards", shifted)
    low, high = estimate(policy, world, key, 4000, level=1 - 1e-6).interval
    assert not low <= evaluate(policy, world.pomdp) <= high


def test_foresight_needs_rewards_of_states():
    world = guess(reward=lambda y, a: 1.0 * (a == y))
    with raises(ParameterError, "foresight"):
        learn(world, explorers.greedy(), history_tree(), 3, foresight=True)


def ending(**given):
    """Episodes end in the third state with probability 0.3 after the first action."""
    moves = np.array([[[0.4, 0.3, 0.3], [0.5, 0.5, 0.0]], [[0.1, 0.6, 0.3], [0.7, 0.3, 0.0]]])
    moves = np.concatenate([moves, np.full((1, 2, 3), 1 / 3)])

    @homdp(
        states=("low", "high", "over"),
        observations=2,
        actions=2,
        horizon=3,
        terminal=("over",),
        **given,
    )
    def model():
        shows = [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]]
        return Kernels([0.5, 0.5, 0.0], moves, np.array(shows))

    return model


BY_OBSERVATION = np.random.default_rng(1).uniform(-7, -2, (3, 3, 2, 2))
ENDING = {
    "rewards above 0": ({"reward": [[3.0, 5.0], [4.0, 9.0], [np.nan, 7.0]]}, (0.0, 9.0)),
    "costs": ({"cost": [[3.0, 5.0], [4.0, 9.0], [1.0, 1.0]]}, (-9.0, 0.0)),
    "a range": (
        {"reward": [[3.0, 5.0], [4.0, 9.0], [0.0, 0.0]], "reward_range": (2, 10)},
        (0.0, 10.0),
    ),
    "in the unit interval": ({"reward": [[0.3, 0.5], [0.4, 0.9], [0.7, 0.7]]}, (0.0, 1.0)),
    "by observation": (
        {"reward": BY_OBSERVATION},
        (float(BY_OBSERVATION[:, :2].min()), 0.0),
    ),
    "a function of y": (
        {"reward": lambda x, y, a, h: BY_OBSERVATION[h - 1, x, y, a] if x < 2 else 1 / 0},
        (float(BY_OBSERVATION[:, :2].min()), 0.0),
    ),
}


@pytest.mark.parametrize("case", ENDING)
def test_terminal_states_earn_zero_in_the_declared_units(case):
    """The value is the mean return of episodes that end early, and the range contains 0."""
    given, bounds = ENDING[case]
    world = ending(**given).at()
    assert world.homdp.reward_range == bounds
    model = world.pomdp
    assert model.terminal.tolist() == [False, False, True]
    np.testing.assert_allclose(model.to_user(model.reward[:, 2], 1), 0, atol=1e-12)
    plan = history_tree()(model)
    assert planners.bounded_search(1e-6)(model).value == pytest.approx(plan.value, abs=1e-5)
    assert planners.alpha_vectors()(model).value == pytest.approx(plan.value, abs=1e-6)
    keys = jax.random.split(jax.random.key(0), 20_000)
    policy = uniform_policy(world)
    episodes = rollout(keys, world, policy)
    assert (episodes.ended == "terminal").any()
    returns = world.returns(episodes)
    np.testing.assert_allclose(returns, world.homdp.rewards_of(episodes).sum(-1), atol=1e-12)
    value = evaluate(policy, model)
    assert value < plan.value
    assert returns.mean() == pytest.approx(value, abs=4 * returns.std() / 20_000**0.5)
    declared = np.asarray(world.homdp.reward)
    for k in range(5):
        one = episodes[k]
        total = sum(
            declared[h, one.states[h], one.actions[h]]
            if declared.ndim == 3
            else declared[h, one.states[h], one.observations[h], one.actions[h]]
            for h in range(len(one.actions))
        )
        assert returns[k] == pytest.approx(total)


def test_numbers_outside_a_declared_range_with_terminal_states():
    with raises(DeclarationError, "reward[low, a0]"):
        ending(reward=[[1.0, 5.0], [4.0, 9.0], [0.0, 0.0]], reward_range=(2, 10))

"""Models with continuous states: by hand, on a grid, and with all tools of the package."""

from functools import cache

import jax
import numpy as np
import pytest
from numpyro.infer.util import log_density
from scipy.stats import binom, norm

from homdp_ppl import (
    POMDP,
    DeclarationError,
    Episode,
    Trajectory,
    evaluate,
    posterior,
    rollout,
    uniform_policy,
    x64,
)
from homdp_ppl.declare.paired import paired
from homdp_ppl.evaluation.simulation import estimate
from homdp_ppl.explorers._densities import candidates
from homdp_ppl.models import camera, light_dark
from homdp_ppl.planners import bounded_search, particle_tree
from tests.raising import raises

WORLDS = {"light_dark": cache(light_dark.structured), "camera": cache(camera.structured)}
SHORT = cache(lambda: light_dark.structured(horizon=3, light=2.0))
ALARM, SLACK = 1e-5, 0.03  # false-alarm rate on either side; loss of search and grid
each = pytest.mark.parametrize("name", WORLDS)


# By hand


def test_light_dark_by_hand():
    """Two steps to the right with a gain of 1.1, and a declaration near the goal that ends it."""
    world = light_dark.structured(horizon=2, gain=1.1, blur=0.3)
    states, seen = np.array([-2.0, 0.3, 99.9]), np.array([-1.0, 0.0])
    episode = Episode(Trajectory(seen, np.array([3, 4])), states)
    sight = 0.1 + 0.3 * np.array([7.0, 4.7])
    expected = norm.logpdf(-2.0, 2.0, 1.5) + norm.logpdf([0.3, 99.9], [0.2, 100.0], 0.05).sum()
    expected += norm.logpdf(seen, states[:2], sight).sum()
    assert density(world, episode) == pytest.approx(expected, rel=1e-12)
    assert world.homdp.returns(episode) == 1.0
    assert world.homdp.returns(Episode(episode.trajectory, np.array([-2.0, 0.7, 99.9]))) == 0.0


def test_camera_by_hand():
    """East with a drift until the box is within reach, then a grasp; loaded afterwards."""
    world = camera.structured(horizon=3, drift=(0.1, -0.1), scale=1.2)
    states = np.array([[0.9, 1.0], [2.0, 0.9], [100.0, 0.1], [100.0, 0.0]])
    seen = np.array([[1.0, 1.2], [2.0, 1.5], [120.0, 0.0]])
    episode = Episode(Trajectory(seen, np.array([2, 4, 0])), states)
    means = [[2.0, 0.9], [100.0, 0.0], [100.0, 0.0]]
    sight = 0.1 + 1 / (1 + np.exp(-8 * (states[:3, :1] - 1.5)))
    expected = (
        norm.logpdf(states[0], [0.0, 0.5], [0.1, 0.6]).sum()
        + norm.logpdf(states[1:], means, 0.05).sum()
    )
    expected += norm.logpdf(seen, 1.2 * states[:3], sight).sum()
    assert density(world, episode) == pytest.approx(expected, rel=1e-12)
    assert world.homdp.returns(episode) == 2.0
    assert (
        world.homdp.returns(
            Episode(episode.trajectory, states * [[1, 1], [1.3, 1], [-1, 1], [-1, 1]])
        )
        == 0.0
    )


def density(world, episode):
    """The log density of an episode's states and observations."""
    with x64():
        given = jax.tree.map(np.asarray, dict(world.parameters))
        return float(
            jax.jit(world.dynamics.log_likelihood)(
                given, episode.states, episode.observations, episode.actions
            )
        )


# All tools of the package


@each
def test_plays_and_is_conditioned_in_hindsight(name):
    """The density of the program, conditioned on revealed episodes, is that of the kernels, times
    those of the policy and the prior.
    """
    world = WORLDS[name]()
    model, H, A = world.homdp, world.spaces.horizon, len(world.spaces.actions)
    episodes = rollout(jax.random.split(jax.random.key(0), 3), world, uniform_policy(world))
    assert ((model.returns(episodes) >= 0) & (model.returns(episodes) <= H)).all()
    with x64():
        given = {name: np.asarray(value) for name, value in world.parameters.items()}
        both = jax.jit(
            lambda p: (
                log_density(model.hindsight(episodes), (), {}, p)[0],
                log_density(model.function, (), {}, p)[0],
            )
        )
        conditioned, prior = both(given)
    expected = sum(density(world, episodes[k]) for k in range(3)) + float(prior) - 3 * H * np.log(A)
    assert float(conditioned) == pytest.approx(expected, rel=1e-10)


@each
def test_sites_are_of_transitions_or_of_emissions(name):
    """Classes factorise: with the emissions of another world, transitions do not change, and vice
    versa.
    """
    first, second = candidates(WORLDS[name]().homdp, 2, jax.random.key(1))
    moving, seeing = ("drift", "scale") if name == "camera" else ("gain", "blur")
    mixed = WORLDS[name]().homdp.at(
        **{moving: first.parameters[moving], seeing: second.parameters[seeing]}
    )
    episode = rollout(jax.random.key(2), first, uniform_policy(first))
    assert density(paired(first, second), episode) == pytest.approx(
        density(mixed, episode), rel=1e-12
    )
    assert density(paired(second, first), episode) != pytest.approx(
        density(mixed, episode), rel=1e-3
    )


@each
@pytest.mark.slow
def test_particle_trees_plan_it(name):
    world = WORLDS[name]()
    policy = particle_tree(200)(world).policy
    episode = rollout(jax.random.key(3), world, policy)
    assert np.isfinite(episode.states).all()
    assert policy.statistics["searches"] == world.spaces.horizon - 1


@pytest.mark.slow
@each
def test_its_posterior_finds_the_truth(name):
    """After 60 episodes, the truth is within six posterior standard deviations in each of at most
    three numbers; false-alarm rate 6e-9 for a normal posterior.

    The parameters of another world are not.
    """
    world, other = WORLDS[name](), WORLDS[name]().homdp.draw(jax.random.key(6))
    episodes = rollout(jax.random.split(jax.random.key(4), 60), world, uniform_policy(world))
    belief = posterior(world.homdp, episodes, key=jax.random.key(5))
    assert belief.method == "nuts"
    draws = belief.dataset
    mean, deviation = draws.mean(("chain", "draw")), draws.std(("chain", "draw"))

    def found(world):
        return all(
            (np.abs(mean[site] - number) < 6 * deviation[site]).all()
            for site, number in world.parameters.items()
        )

    assert found(world)
    assert not found(other)
    assert all((deviation[site] < 0.1).all() for site in world.parameters)


def test_a_lamp_outside_the_range_raises_an_error():
    with raises(DeclarationError, "light"):
        light_dark.structured(light=11.0)


# On a grid


def grid(width, sight, reach=0.6):
    """SHORT with cells for places and cells for observations, all between -5 and 9.

    The last cell of each kind is far away. A cell is represented by five evenly spaced places; the
    reward is exact if the width divides 0.6.
    """
    edges, looks = (np.arange(round(-5 / w), round(9 / w) + 1) * w for w in (width, sight))
    left, spread = edges[:-1], (np.arange(5) + 0.5) / 5 * width
    X, Y = len(left) + 1, len(looks)
    transition, emission = np.zeros((X, 5, X)), np.zeros((X, Y))
    transition[-1, :, -1] = transition[:, 4, -1] = emission[-1, -1] = 1.0
    for a, move in enumerate(light_dark.MOVES[:4]):
        transition[:-1, a, :-1] = np.mean(
            [in_cells(edges, left + s + move, 0.05) for s in spread], axis=0
        )
    seen = [
        in_cells(looks, left + s, 0.1 + 0.5 * np.minimum(np.abs(left + s - 2.0), 10))
        for s in spread
    ]
    emission[:-1, :-1] = np.mean(seen, axis=0)
    reward = np.zeros((3, X, 5))
    reward[:, :-1, 4] = np.abs(left + width / 2) < reach
    return POMDP.of(np.append(in_cells(edges, 2.0, 1.5), 0.0), transition, emission, reward)


def in_cells(edges, mean, deviation):
    """Probabilities of the cells between edges; the outermost cells are unbounded."""
    mean, deviation = np.asarray(mean)[..., None], np.asarray(deviation)[..., None]
    return np.diff(norm.cdf(edges[1:-1], mean, deviation), prepend=0, append=1)


def optimum(model):
    """The optimum over all histories, with batches of unnormalised beliefs.

    There is no reward after a declaration.
    """
    _, T, O, reward = model.stationary()  # noqa: E741

    def best(beliefs, remaining):
        declared = beliefs @ reward[0, :, 4]
        if remaining == 0:
            return declared
        moved = [beliefs @ T[:, a] for a in range(4)]
        return np.max([declared, *(seen(after, remaining - 1) for after in moved)], axis=0)

    def seen(predicted, remaining):
        if remaining == 0:  # the last action is always to declare: observations do not matter
            return predicted @ reward[0, :, 4]
        return np.array([best(row * O.T, remaining).sum() for row in predicted])

    return float(best(model.initial * O.T, len(reward) - 1).sum())


def reached(simulations, episodes, **believed):
    """The number of episodes in which the particle planner reaches the goal if it plans for these
    parameters.
    """
    policy = particle_tree(simulations)(
        SHORT().homdp.at(**dict(SHORT().parameters) | believed)
    ).policy
    return round(estimate(policy, SHORT(), jax.random.key(0), episodes).mean * episodes)


def agrees(count, episodes, value):
    """Whether this number is plausible for a policy near the optimum."""
    return (
        binom.ppf(ALARM, episodes, value - SLACK)
        <= count
        <= binom.isf(ALARM, episodes, value + SLACK)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("simulations", "episodes"),
    [(300, 100), pytest.param(1000, 1000, marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_the_particle_planner_agrees_with_a_fine_grid(simulations, episodes):
    """Returns are 0 or 1, so the test uses exact binomial tails at 1e-5 on each side, around the
    grid's optimum with a slack of 0.03.

    Less than 0.01 of the slack is for the grid: with both widths twice as large, the optimum is as
    close.
    """
    coarse, fine = optimum(grid(0.2, 0.25)), optimum(grid(0.1, 0.125))
    assert abs(fine - coarse) < 0.01
    count = reached(simulations, episodes)
    assert agrees(count, episodes, fine)
    assert not agrees(reached(300, 40, gain=0.5), 40, fine)  # a planner for shorter steps
    assert not agrees(
        count, episodes, optimum(grid(0.1, 0.25, reach=0.2))
    )  # a grid with a smaller goal


@pytest.mark.slow
def test_a_certified_plan_on_a_grid_agrees_with_enumeration():
    model = grid(0.2, 0.5)
    plan = bounded_search(gap=0.005)(model)
    assert plan.value - 1e-9 <= optimum(model) <= plan.upper + 1e-9
    assert plan.upper - plan.value <= 0.005
    assert evaluate(plan.policy, model) == pytest.approx(plan.value, abs=1e-9)

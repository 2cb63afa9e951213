"""Processes that agents act in, and runs that agents must reproduce."""

from itertools import count

import jax
import numpy as np

from homdp_ppl import Agent, explorers, learn, models
from homdp_ppl.planners import quantised
from tests import rules
from tests.explorers.test_contract import FEWER, WORLD
from tests.runs import TREE, small

DENSITY = quantised(gap=0.03)
NOISES = (0.4, 1.0, 2.5)


def gaussian():
    """A world with real-valued observations, and worlds with other noise."""
    truth = models.load("gaussian_tiger", horizon=2)
    others = [
        truth.homdp.at(mean=np.array([-1.0, 1.0]), precision=np.full(2, noise**-2))
        for noise in NOISES
    ]
    return truth, others


def finite_case(name):
    """The world, rule and planner of a rule of the registry with finite spaces."""
    return WORLD, rules.example(name, WORLD, **FEWER.get(name, {})), TREE


DENSITIES = ("posterior_sampling", "uniform", "oracle", "hop_v", "hop_b_class")


def density_case(name):
    """The same with real-valued observations."""
    truth, ears = gaussian()
    made = {
        "posterior_sampling": explorers.posterior_sampling,
        "uniform": explorers.uniform,
        "oracle": lambda: explorers.oracle(truth),
        "hop_v": lambda: explorers.hop_v([truth], ears),
        "hop_b_class": lambda: explorers.hop_b_class(ears),
    }
    return truth, made[name](), DENSITY


def run_of(case, episodes, seed=0):
    """A run of the readable loop."""
    world, rule, planner = case
    compiled = False if world.spaces.finite else None
    return learn(world, rule, planner, episodes, seed, compiled=compiled)


def agent_of(case, episodes=None, path=None, seed=0, **options):
    world, rule, planner = case
    K = episodes if rule.about.needs_episodes else None
    return Agent(world.homdp, rule, planner, path, seed, K, **options)


def follow(agent, run, first=0, last=None, reveal=True):
    """Show an agent the observations and states of a run; returns the actions it takes."""
    last = len(run.played) if last is None else last
    taken = []
    for k in range(first, last):
        episode = agent.begin(f"e{k}")
        taken.append([episode.act(y) for y in run.record.observations[k]])
        if reveal:
            rewards = run.record.rewards
            agent.reveal(f"e{k}", run.record.states[k], None if rewards is None else rewards[k])
    names = agent.homdp.spaces.actions
    return np.array([[names.index(a) for a in row] for row in taken])


def play(agent, world, key, name=None):
    """Play one episode of an agent in a simulated world without revealing its states.

    Returns the id and the states.
    """
    episode, states = agent.begin(name), []
    with_key = (jax.random.fold_in(key, k) for k in count())
    generator = np.random.default_rng(np.asarray(jax.random.key_data(next(with_key))))
    pomdp, x = world.pomdp, None
    x = generator.choice(len(pomdp.initial), p=pomdp.initial)
    previous = None
    for h in range(world.spaces.horizon):
        states.append(int(x))
        y = generator.choice(pomdp.shows(h, previous).shape[1], p=pomdp.shows(h, previous)[x])
        previous = world.spaces.actions.index(episode.act(int(y)))
        x = generator.choice(len(pomdp.initial), p=pomdp.moves(h)[x, previous])
    return episode.id, [*states, int(x)]


def tiger(horizon=3):
    return small("tiger") if horizon == 3 else models.load("tiger", horizon=horizon)

"""Declarations that are right or wrong about a process, for tests of checks."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl import Agent, DataError, Kernels, explorers, homdp, models
from tests.runs import TREE

H = 4
RULE = explorers.replan_on_doubling(explorers.posterior_sampling())


def machine(repair):
    """A machine that breaks; it may be run or repaired. A repair works with probability repair."""

    @homdp(
        states=("fine", "broken"),
        observations=("hum", "rattle"),
        actions=("run", "repair"),
        horizon=H,
        reward=[[1.0, 0.5], [0.0, 0.2]],
    )
    def machine():
        wear = numpyro.sample("wear", dist.Beta(3, 7))
        ear = numpyro.sample("ear", dist.Beta(8, 2))
        moves = [
            [[1 - wear, wear], [1.0, 0.0]],
            [[0.0, 1.0], [repair, 1 - repair]],
        ]
        return Kernels([0.7, 0.3], jnp.array(moves), jnp.array([[ear, 1 - ear], [1 - ear, ear]]))

    return machine


ALWAYS, OFTEN = machine(1.0), machine(0.7)


@homdp(
    states=("well", "ill"),
    observations={"scan": ("clear", "shadow"), "blood": ("low", "high")},
    actions=("wait", "treat"),
    horizon=3,
    reward=[[1.0, 0.6], [0.0, 0.5]],
)
def two_sensors():
    """Two sensors, which are declared to err independently."""
    p = numpyro.sample("scan", dist.Beta(6, 3))
    q = numpyro.sample("blood", dist.Beta(6, 3))
    moves = np.array([[[0.8, 0.2], [0.95, 0.05]], [[0.1, 0.9], [0.6, 0.4]]])
    scan, blood = (jnp.array([[s, 1 - s], [1 - s, s]]) for s in (p, q))
    return Kernels([0.6, 0.4], moves, {"scan": scan, "blood": blood})


def tables_of(world):
    """The tables of a stationary world."""
    pomdp = world.pomdp
    return [np.asarray(part) for part in (pomdp.initial, pomdp.moves(0), pomdp.shows(0))]


def dependent(p=0.7, share=0.9):
    """Tables in which the blood test errs together with the scan, with probability share."""
    initial, moves, shows = tables_of(two_sensors.at(scan=p, blood=p))
    same = np.array([[p, 0, 0, 1 - p], [1 - p, 0, 0, p]])
    return initial, moves, (1 - share) * shows + share * same


def live(agent, tables, episodes, seed):
    """Play and reveal episodes; tables are (initial, moves, shows), or a function of the episode.

    Reveals that the declaration excludes are refused; these episodes stay pending.
    """
    generator = np.random.default_rng(seed)
    for k in range(episodes):
        initial, moves, shows = tables(k) if callable(tables) else tables
        episode, states = agent.begin(), [generator.choice(len(initial), p=initial)]
        for _ in range(agent.homdp.horizon):
            seen = int(generator.choice(shows.shape[1], p=shows[states[-1]]))
            action = agent.homdp.actions.index(episode.act(seen))
            states.append(generator.choice(len(initial), p=moves[states[-1], action]))
        try:
            agent.reveal(episode.id, [int(x) for x in states])
        except DataError:
            continue
    return agent


def agent_of(model, seed, rule=RULE, **options):
    return Agent(model, rule, TREE, seed=seed, **options)


TIGER = models.load("tiger").homdp
EPISODES = 60


def repairs(seed, episodes=EPISODES):
    """Repairs are declared to work always, and work in 70 %."""
    tables = tables_of(OFTEN.at(wear=0.3, ear=0.8))
    return live(agent_of(ALWAYS, seed), tables, episodes, seed)


def shared_errors(seed, episodes=EPISODES):
    """Two sensors err together."""
    return live(agent_of(two_sensors, seed), dependent(), episodes, seed)


def worse_ears(seed, episodes=EPISODES):
    """The accuracy of growls falls from 0.97 to 0.6."""

    def tables(k):
        return tables_of(TIGER.at(accuracy=0.97 - 0.37 * k / (episodes - 1)))

    return live(agent_of(TIGER, seed), tables, episodes, seed)


def right(seed, episodes=40):
    """One of three correct declarations, in a world drawn from its prior."""
    generator = np.random.default_rng(seed)
    wear, ear = generator.beta(3, 7), generator.beta(8, 2)
    p, q = generator.beta(6, 3, size=2)
    model, values = [
        (ALWAYS, {"wear": wear, "ear": ear}),
        (two_sensors, {"scan": p, "blood": q}),
        (TIGER, {"accuracy": ear}),
    ][seed % 3]
    return live(agent_of(model, seed), tables_of(model.at(**values)), episodes, seed)

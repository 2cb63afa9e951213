"""Valid calls of the names at the root: declarations, models, episodes."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import numpyro.distributions as dist

from homdp_ppl import (
    HOMDP,
    POMDP,
    Counts,
    Episode,
    Episodes,
    Kernels,
    Problem,
    Real,
    Spaces,
    Sparse,
    Trajectory,
    World,
    homdp,
    tabular,
)
from homdp_ppl.core.pomdp import Stationary
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, reading, recipe, record

KEY = things.KEY
T = np.full((2, 2, 2), 0.5)
O = np.array([[0.9, 0.1], [0.2, 0.8]])  # noqa: E741
START = np.array([0.5, 0.5])
REWARD = np.array([[0.0, 0.5], [1.0, 0.25]])


def _coin(**given):
    return homdp(**given)(lambda: Kernels(START, T, O))


def _program(program):
    return homdp(states=2, observations=2, actions=2, horizon=2, reward=REWARD)(program)


def declaring() -> Iterator[Recipe]:
    """Declarations and worlds."""
    tiger = things.tiger()
    model = tiger.homdp
    names = {"states": ("off", "on"), "observations": ("dark", "light"), "actions": ("wait", "go")}
    yield recipe("homdp", _coin, **names, horizon=2, reward=REWARD)
    yield recipe("homdp", _coin, **names, horizon=2, cost=REWARD, reward_range=(0.0, 1.0))
    yield recipe("homdp", _coin, states=2, observations=2, actions=2, horizon=2, reward=REWARD)
    yield recipe("homdp", _program, program=lambda: Kernels(START, T, O))
    yield recipe(
        "tabular",
        tabular,
        T=T,
        O=O,
        initial=START,
        reward=REWARD,
        horizon=2,
        states=["off", "on"],
        observations=["dark", "light"],
        actions=["wait", "go"],
        name="lamp",
    )
    yield recipe(
        "tabular",
        tabular,
        T=dist.Dirichlet(np.ones((2, 2, 2))),
        O=O,
        initial=START,
        reward=REWARD,
        horizon=2,
    )
    yield record("Kernels", Kernels, initial=START, transition=T, emission=O)
    yield record("Real", Real, dimension=1)
    yield from reading("Real", Real(1), "shape")
    yield recipe(
        "HOMDP",
        HOMDP,
        name="lamp",
        spaces=model.spaces,
        rewards=model.rewards,
        function=model.function,
        sites=model.sites,
    )
    yield recipe("HOMDP.at", model.at, accuracy=0.8)
    yield recipe("HOMDP.at", things.lamp().at, T=np.full((2, 1, 2), 0.5))
    yield recipe("HOMDP.counts", model.counts, episodes=things.episodes())
    yield recipe("HOMDP.counts", model.counts, episodes=[things.episodes()[0]])
    yield recipe("HOMDP.draw", model.draw, key=KEY)
    yield recipe("HOMDP.hindsight", model.hindsight, episodes=things.episodes())
    yield recipe("HOMDP.numbers", model.numbers, parameters={"accuracy": 0.8}, free="parameters")
    reference = tuple(model.structure.reference)
    yield recipe("HOMDP.model_of", model.model_of, tables=reference, free="tables")
    yield recipe("HOMDP.returns", model.returns, episodes=things.episodes())
    yield recipe("HOMDP.rewards_of", model.rewards_of, episodes=things.episodes())
    yield recipe("HOMDP.sample_prior", model.sample_prior, key=KEY)
    yield recipe("HOMDP.tables", model.tables, parameters={"accuracy": 0.8}, free="parameters")
    yield recipe(
        "HOMDP.counted_tables",
        model.counted_tables,
        parameters={"accuracy": 0.8},
        free="parameters",
    )
    yield recipe(
        "HOMDP.short_tables", model.short_tables, parameters={"accuracy": 0.8}, free="parameters"
    )
    yield recipe("HOMDP.with_horizon", model.with_horizon, horizon=3)
    yield from reading("HOMDP", model, "context", "form", "hindsight_form")
    yield from reading(
        "HOMDP",
        model,
        *[
            "actions",
            "cache",
            "dynamics",
            "fingerprint",
            "horizon",
            "observations",
            "program",
            "reward",
            "reward_range",
        ],
        *["states", "structure", "unrolled"],
    )
    yield recipe("World", World, homdp=model, parameters=dict(tiger.parameters))
    yield recipe(
        "World.play",
        tiger.play,
        keys=jax.random.split(KEY, 2),
        policy=things.policy(),
        actions=None,
    )
    yield recipe(
        "World.reveal", tiger.reveal, keys=jax.random.split(KEY, 2), episodes=things.episodes()
    )
    yield recipe("World.returns", tiger.returns, episodes=things.episodes())
    yield recipe("World.with_horizon", tiger.with_horizon, horizon=3)
    yield from reading(
        "World", tiger, *["cache", "dynamics", "fingerprint", "numbers", "pomdp", "spaces"]
    )
    yield from reading("World", tiger, "form", "name", "return_range")
    yield record(
        "Spaces",
        Spaces,
        states=("off", "on"),
        observations=("dark", "light"),
        actions=("wait",),
        horizon=2,
    )
    yield recipe("Spaces.entry", tiger.spaces.entry, table="emission", index=[0, 1])
    yield from reading(
        "Spaces", tiger.spaces, *["ends", "finite", "form", "names", "sensors", "sizes", "spaces"]
    )


def numbers() -> Iterator[Recipe]:
    """POMDPs, counts and episodes."""
    tiger = things.tiger()
    pomdp, episodes = tiger.pomdp, things.episodes()
    one = episodes[0]
    yield record("POMDP", POMDP, **pomdp._asdict())
    yield recipe(
        "POMDP.of",
        POMDP.of,
        initial=START,
        transition=T,
        emission=O,
        reward=REWARD,
        horizon=2,
        free="initial transition emission reward",
    )
    yield recipe(
        "POMDP.of",
        POMDP.of,
        initial=START,
        transition=T,
        emission=O,
        reward=np.stack([REWARD, REWARD]),
        terminal=np.array([False, True]),
        free="initial transition emission reward",
    )
    table = Sparse.of(T)
    yield record("Sparse", Sparse, values=table.values, pattern=table.pattern)
    yield recipe("Sparse.of", Sparse.of, table=T)
    yield recipe(
        "Sparse.rows",
        Sparse.rows,
        columns=np.zeros((2, 3, 1), dtype=int),
        probabilities=np.ones((2, 3, 1)),
        free="probabilities",
    )
    yield recipe("Sparse.dense", table.dense, subject="planner", free="subject")
    yield from reading("Sparse", table, "shape", "ndim", "dtype", "matrices", "by_action")
    yield recipe("POMDP.backup", pomdp.backup, v=np.array([0.0, 1.0]), h=0, free="v")
    yield recipe("POMDP.backup", pomdp.backup, v=np.ones((3, 2, 2)), h=0, free="v")
    yield recipe("POMDP.likelihood", pomdp.likelihood, y=0, a=1, h=0)
    yield recipe("POMDP.moves", pomdp.moves, h=1)
    yield recipe("POMDP.predict", pomdp.predict, b=START, a=1, h=0)
    yield recipe("POMDP.rewards", pomdp.rewards, h=1)
    yield recipe("POMDP.shows", pomdp.shows, h=0, a=1)
    yield recipe("POMDP.shows_after", pomdp.shows_after, h=0)
    yield recipe(
        "POMDP.stationary", pomdp.stationary, subject="planner", remedy="No.", free="remedy subject"
    )
    yield recipe("POMDP.to_user", pomdp.to_user, values=1.0, steps=1, free="values steps")
    yield recipe("POMDP.from_user", pomdp.from_user, values=1.0, free="values")
    yield recipe("POMDP.with_bonus", pomdp.with_bonus, bonus=np.ones((2, 3)))
    yield recipe(
        "POMDP.with_tables", pomdp.with_tables, emission=O, initial=START, free="emission initial"
    )
    yield from reading(
        "POMDP", pomdp, *["horizon", "is_stationary", "rewards_by_observation", "sizes", "spaces"]
    )
    yield from reading("POMDP", pomdp, "form", "unscaled", "dense", "is_sparse")
    yield record("Stationary", Stationary, **pomdp.stationary()._asdict())
    yield from reading("Stationary", pomdp.stationary(), "horizon", "pomdp")
    counts = things.counts()
    yield record("Counts", Counts, transition=counts.transition, emission=counts.emission)
    yield recipe("Counts.add", counts.add, episode=one)
    yield recipe("Counts.of", Counts.of, episodes=episodes, model=tiger)
    yield recipe("Counts.zero", Counts.zero, model=tiger)
    yield from reading("Counts", counts, "form", "reward", "state_action", "visits")
    trajectory = Trajectory(one.observations, one.actions)
    yield record("Trajectory", Trajectory, observations=one.observations, actions=one.actions)
    yield record("Episode", Episode, trajectory=trajectory, states=one.states)
    yield recipe(
        "Episode.of",
        Episode.of,
        observations=one.observations,
        actions=one.actions,
        states=one.states,
        model=tiger,
        id="patient 1",
        ended="horizon",
        free="id states",
    )
    yield recipe(
        "Episode.of",
        Episode.of,
        observations=["growl left", "growl left"],
        actions=["listen", "listen"],
        states=["left", "left", "left"],
        model=tiger,
        rewards=np.array([0.5, 0.5]),
        labels=np.array([0, 0, 0]),
        free="rewards labels",
    )
    yield from reading("Episode", one, "actions", "observations")
    columns = {
        "observations": np.array([[0, 1], [1, 1]]),
        "actions": np.array([[1, 0], [0, 0]]),
        "states": np.array([[0, 0, 1], [1, 0, 0]]),
    }
    yield recipe(
        "Episodes",
        Episodes,
        **columns,
        revealed=np.ones((2, 3), bool),
        rewards=np.zeros((2, 2)),
        labels=np.zeros((2, 3)),
        length=np.array([2, 2]),
        ended="horizon",
        ids=["one", "two"],
        behaviour="a nurse",
        free="ids behaviour observations actions states rewards labels",
    )
    yield recipe("Episodes.concatenate", Episodes.concatenate, parts=[episodes, episodes])
    yield recipe("Episodes.of", Episodes.of, data=episodes, model=tiger)
    yield recipe("Episodes.of", Episodes.of, data=[one, one], model=tiger.homdp)
    yield recipe(
        "Episodes.to_horizon",
        episodes.to_horizon,
        spaces=tiger.spaces,
        subject="me",
        free="subject",
    )
    yield recipe(
        "Episodes.require_revealed", episodes.require_revealed, subject="me", free="subject"
    )
    yield recipe("Episodes.same_as", episodes.same_as, other=episodes)
    yield from reading("Episodes", episodes, *["complete", "full_length", "horizon", "steps"])
    yield record("Problem", Problem, where="a", got="b", expected="c")

"""Valid objects of all types that public functions accept, each created once."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist

from homdp_ppl import (
    POMDP,
    Counts,
    Kernels,
    explorers,
    homdp,
    learn,
    models,
    posterior,
    rollout,
    study,
    tabular,
    uniform_policy,
    write_pomdp,
)
from homdp_ppl.planners import history_tree
from homdp_ppl.posteriors import predictive_check

KEY = jax.random.key(0)


@cache
def folder() -> Path:
    """A temporary folder of this process."""
    return Path(tempfile.mkdtemp(prefix="mistakes"))


@cache
def tiger() -> Any:
    """A world with two steps, two states, two observations and three actions."""
    return models.load("tiger", horizon=2)


def only_listening(observations: Any, actions: Any) -> Any:
    """A restriction of the actions of the tiger problem."""
    return np.array([True, False, False])


def always_listening(observations: Any, actions: Any) -> str:
    """A guideline for the tiger problem."""
    return "listen"


@cache
def lamp() -> Any:
    """A declaration with an unknown transition table."""
    return tabular(
        T=dist.Dirichlet(np.ones((2, 1, 2))),
        O=np.eye(2),
        initial=[0, 1],
        reward=[[0], [1]],
        horizon=2,
        name="lamp",
    )


@cache
def lit() -> POMDP:
    """A lamp that burns out."""
    return POMDP.of([0, 1], [[[1, 0]], [[0.5, 0.5]]], np.eye(2), [[0], [1]], horizon=3)


@homdp(states=1, observations=2, actions=1, horizon=1, reward=[[1]])
def bent_coin() -> Kernels:
    """A declaration whose posterior has no closed form."""
    heads = numpyro.sample("heads", dist.Uniform(0.5, 1.0))
    return Kernels([1.0], [[[1.0]]], lambda x: dist.Bernoulli(heads))


@cache
def gaussian() -> Any:
    """A world with real-valued observations."""
    return models.load("gaussian_tiger", horizon=2)


@cache
def policy() -> Any:
    """A policy that is a graph."""
    return uniform_policy(tiger())


@cache
def episodes() -> Any:
    """A few episodes of the tiger problem."""
    return rollout(jax.random.split(KEY, 6), tiger(), policy())


@cache
def counts() -> Counts:
    """The counts of these episodes."""
    return tiger().homdp.counts(episodes())


@cache
def belief() -> Any:
    """The posterior after these episodes."""
    return posterior(tiger().homdp, episodes())


@cache
def plan() -> Any:
    """The optimal plan for the tiger problem."""
    return history_tree()(tiger().pomdp)


@cache
def run() -> Any:
    """A short run."""
    return learn(tiger(), explorers.greedy(), history_tree(), 3, compiled=False)


@cache
def epochs() -> Any:
    """A run of HOP-V."""
    rule = explorers.hop_v([tiger()], [tiger(), models.load("tiger", horizon=2, accuracy=0.6)])
    return learn(tiger(), rule, history_tree(), 4, compiled=False)


@cache
def runs() -> Any:
    """The runs of two rules."""
    rules = [explorers.oracle(tiger()), explorers.uniform()]
    return study.side_by_side(tiger(), rules, history_tree(), episodes=3, seeds=[0, 1])


@cache
def check() -> Any:
    """A predictive check."""
    return predictive_check(KEY, belief(), episodes(), policy())


@cache
def finished() -> Any:
    """A small study on disk."""
    return study.compare(
        "tiger",
        ["greedy"],
        episodes=3,
        seeds=1,
        out=folder() / "study",
        workers=1,
        horizon=2,
        priors=["declared"],
    )


@cache
def pomdp_file() -> Path:
    """A model file."""
    path = folder() / "tiger.POMDP"
    write_pomdp(tiger(), path, discount=0.95)
    return path


@cache
def saved_policy() -> Path:
    """A policy file."""
    path = folder() / "policy.npz"
    policy().save(path)
    return path


@cache
def ours() -> dict[str, Any]:
    """One object of each type of this package, to pass where another type is expected."""
    return {
        "a World": tiger(),
        "a HOMDP": tiger().homdp,
        "a POMDP": tiger().pomdp,
        "Episodes": episodes(),
        "an Episode": episodes()[0],
        "a Trajectory": episodes()[0].trajectory,
        "Counts": counts(),
        "a Posterior": belief(),
        "a GraphPolicy": policy(),
        "a Plan": plan(),
        "a Run": run(),
        "an Explorer": explorers.tight(),
        "a factory of rules": explorers.tight,
        "a planner": history_tree(),
        "a factory of planners": history_tree,
        "Spaces": tiger().spaces,
        "a key": KEY,
        "a State": run().state,
        "Radii": explorers_radii(),
    }


@cache
def explorers_radii() -> Any:
    """Radii for the tiger problem."""
    from homdp_ppl import confidence

    return confidence.hop_b_radii(tiger().homdp, counts(), 100)

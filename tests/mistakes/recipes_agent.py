"""Recipes of agents; every call uses a new agent, because agents change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax

from homdp_ppl import Agent, LiveEpisode, explain, explorers
from homdp_ppl.gym import HOMDPEnv
from homdp_ppl.planners import history_tree
from tests.mistakes import things
from tests.mistakes.recipe import Recipe, reading, recipe

TREE = history_tree()


def agent(ended: str | None = None) -> Agent:
    """An agent with an open episode, and with one that ended if it has a name."""
    with jax.ensure_compile_time_eval():  # some calls are traced, but no agent can be
        made = Agent(things.tiger().homdp, explorers.posterior_sampling(), TREE)
        if ended is not None:
            episode = made.begin(ended)
            for _ in range(made.homdp.horizon):
                episode.act(0)
        made.begin("open")
    return made


def live() -> LiveEpisode:
    """An open episode."""
    return agent().episode("open")


def agents() -> Iterator[Recipe]:
    """Agents and live episodes."""
    tiger = things.tiger()
    states = ["left"] * (tiger.spaces.horizon + 1)
    yield recipe(
        "Agent",
        Agent,
        homdp=tiger.homdp,
        explorer=explorers.tight(),
        planner=TREE,
        path=None,
        seed=0,
        episodes=10,
        delay="any",
    )
    yield recipe("Agent.begin", lambda id: agent().begin(id), id="new")  # noqa: A006
    yield recipe("Agent.episode", lambda id: agent().episode(id), id="open")  # noqa: A006
    yield recipe("Agent.abandon", _abandon, id="open", reason="lost")
    yield recipe("Agent.reveal", _reveal, id="past", states=states)
    yield recipe("Agent.add", lambda episodes: agent().add(episodes), episodes=things.episodes())
    yield recipe("Agent.train", _train, env=HOMDPEnv(tiger), episodes=2, seed=0, patient="episodes")
    yield recipe("Agent.forget", lambda id: agent("past").forget(id), id="past")  # noqa: A006
    yield recipe("Agent.migrate", _migrate, homdp=tiger.homdp)
    yield recipe("Agent.expected_gap", lambda draws: agent().expected_gap(draws), **FEW)
    yield recipe("Agent.explain", lambda id, draws: agent("past").explain(id, draws), **PAST)  # noqa: A006
    yield recipe(
        "explain",
        explain,
        patient="draws",
        policy=things.policy(),
        model=tiger,
        observations=[0, 1],
        actions=[0],
        draws=2,
    )
    yield recipe("Agent.close", lambda: agent().close())
    yield from reading(
        "Agent", agent("past"), "homdp", "posterior", "policy", "pending", "status", "episodes"
    )
    yield recipe("LiveEpisode.act", lambda observation, step: live().act(observation, step), **SEEN)
    yield recipe("LiveEpisode.end", lambda reason: live().end(reason), reason="truncated")
    yield from reading("LiveEpisode", live(), "id", "trajectory", "ended")


SEEN: dict[str, Any] = {"observation": "growl left", "step": 1}
FEW: dict[str, Any] = {"draws": 2, "patient": "draws"}
PAST: dict[str, Any] = {"id": "past", **FEW}


def _abandon(id: str, reason: str) -> None:  # noqa: A002
    agent().abandon(id, reason)


def _reveal(id: str, states: Any) -> None:  # noqa: A002
    agent("past").reveal(id, states)


def _train(env: Any, episodes: int, seed: int) -> None:
    agent().train(env, episodes, seed=seed)


def _migrate(homdp: Any) -> None:
    closed = agent()
    closed.abandon("open")
    closed.migrate(homdp)

"""Saved policies: old formats load, cards survive, and histories past the horizon are refused."""

import json
from datetime import datetime
from pathlib import Path

import jax
import numpy as np
import pytest

from homdp_ppl import (
    Agent,
    GraphPolicy,
    PolicyError,
    __version__,
    evaluate,
    explorers,
    learn,
    models,
    uniform_policy,
)
from homdp_ppl.core.policy_card import PolicyCard
from tests.raising import raises
from tests.runs import TREE

TIGER = models.load("tiger", horizon=2)
OLD = Path(__file__).parent / "files" / "policy_1.npz"  # written by format 1


def saved(policy, tmp_path):
    policy.save(tmp_path / "policy.npz")
    return GraphPolicy.load(tmp_path / "policy.npz")


def test_old_files_load():
    """The first format has names and arrays, and no card."""
    policy = GraphPolicy.load(OLD)
    assert policy.names == (TIGER.spaces.observations, TIGER.spaces.actions)
    assert policy.card == PolicyCard()
    assert evaluate(policy, TIGER.pomdp) == pytest.approx(TREE(TIGER.pomdp).value)
    assert policy.act(["growl left"], []).argmax() == 0
    policy.act(["growl left"] * 2, ["listen"])


def test_cards_of_plans(tmp_path):
    plan = TREE(TIGER.pomdp).named(TIGER)
    again = saved(plan.policy, tmp_path)
    card = again.card
    assert (card.horizon, card.model, card.value, card.upper) == (
        2,
        "tiger",
        plan.value,
        plan.upper,
    )
    assert (card.lower, card.episodes, card.version) == (None, None, __version__)
    assert datetime.fromisoformat(card.date).tzinfo is not None
    assert again.named(models.load("tiger", horizon=2)).card.model == "tiger"


def test_cards_of_runs_and_agents(tmp_path):
    run = learn(TIGER, explorers.anytime(), TREE, 5, compiled=False)
    assert run.policy.card.lower is None
    run.certificate  # noqa: B018
    card = saved(run.policy, tmp_path).card
    assert (card.episodes, card.value) == (5, run.optimistic[-1])
    assert (card.lower, card.upper) == (run.certificate.lower[-1], run.certificate.upper[-1])
    agent = Agent(TIGER.homdp, explorers.posterior_sampling(), TREE)
    agent.add(run.episodes)
    card = saved(agent.policy, tmp_path).card
    assert (card.model, card.horizon, card.episodes, card.lower) == ("tiger", 2, 5, None)
    bounds = agent.certificate()
    assert saved(agent.policy, tmp_path).card[2:5] == (
        bounds.optimistic,
        bounds.lower,
        bounds.upper,
    )
    agent.begin()
    assert agent.policy.card.lower is None  # another policy may follow


def test_histories_past_the_horizon_are_refused(tmp_path):
    policy = saved(TREE(TIGER.pomdp).named(TIGER).policy, tmp_path)
    seen, done = ["growl left"] * 3, ["listen"] * 2
    policy.act(seen[:2], done[:1])
    for each in (policy, TREE(TIGER.pomdp).policy):
        with raises(PolicyError, "history"):
            each.act([0] * 3, [0] * 2)
    with raises(PolicyError, "history"):
        policy.act(seen, done)
    with raises(PolicyError, "observations"):
        policy.act(["roar"], [])


def test_cards_are_no_part_of_jax_values():
    """Policies with other cards share compiled code."""
    one, two = TREE(TIGER.pomdp).policy, uniform_policy(TIGER)
    assert jax.tree.structure(one) == jax.tree.structure(one.with_card(PolicyCard(7, "other")))
    assert jax.tree.map(np.asarray, one).card == PolicyCard()
    assert two.card == PolicyCard()


def test_numpy_reads_files(tmp_path):
    """Without the library: plain arrays, and JSON text."""
    TREE(TIGER.pomdp).named(TIGER).policy.save(tmp_path / "policy.npz")
    with np.load(tmp_path / "policy.npz", allow_pickle=False) as file:
        assert str(file["format"]) == "homdp_ppl policy 2"
        assert int(file["horizon"]) == 2
        about = json.loads(str(file["about"]))
        action = file["actions"][file["probabilities"][file["start"][0]].argmax()]
    assert (about["model"], action) == ("tiger", "listen")


@pytest.mark.parametrize(
    "about",
    [
        "[]",
        "{",
        '{"model": 3}',
        '{"value": "x"}',
        '{"value": NaN}',
        '{"episodes": -1}',
        "[" * 10**5,
    ],
)
def test_invalid_cards_are_refused(about, tmp_path):
    path = tmp_path / "policy.npz"
    TREE(TIGER.pomdp).policy.save(path)
    with np.load(path) as file:
        parts = {name: file[name] for name in file.files}
    np.savez(path, **{**parts, "about": np.array(about)})
    with raises(PolicyError, "about"):
        GraphPolicy.load(path)
    np.savez(path, **{**parts, "horizon": np.zeros(3)})
    with raises(PolicyError, "about"):
        GraphPolicy.load(path)

"""Declared terminal states, against a declaration with an absorbing state and its observation."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density

from homdp_ppl import (
    Episode,
    Episodes,
    Kernels,
    Real,
    evaluate,
    explorers,
    homdp,
    learn,
    posterior,
    rollout,
    uniform_policy,
    x64,
)
from homdp_ppl.errors import DataError, DeclarationError
from homdp_ppl.planners import history_tree
from tests.raising import raises

H, A = 4, 2
STATES, SEEN, ACTIONS = ("ill", "well", "gone"), ("low", "high"), ("wait", "treat")
REWARD = np.array([[0.0, 0.1], [1.0, 0.7], [0.9, 0.9]])  # the last row is not used


def tables():
    """Sites and transitions: how treatment of the ill works is unknown."""
    p = numpyro.sample("p", dist.Beta(2.0, 2.0))
    q = numpyro.sample("q", dist.Dirichlet(jnp.ones(3)))
    moves = jnp.array([[[0.6, 0.2, 0.2], [0, 0, 0]], [[0.1, 0.8, 0.1], [0, 0.9, 0.1]]])
    return p, moves.at[0, 1].set(q)


def native():
    @homdp(
        states=STATES,
        observations=SEEN,
        actions=ACTIONS,
        horizon=H,
        reward=REWARD,
        terminal=("gone",),
    )
    def clinic():
        p, moves = tables()
        unused = jnp.full((1, A, 3), jnp.nan)
        return Kernels(
            [0.5, 0.5, 0.0],
            jnp.concatenate([moves, unused]),
            lambda x: dist.Bernoulli(jnp.where(x == 1, p, jnp.where(x == 0, 1 - p, jnp.nan))),
        )

    return clinic


def encoded():
    reward = REWARD.copy()
    reward[2] = 0

    @homdp(states=STATES, observations=(*SEEN, "ended"), actions=ACTIONS, horizon=H, reward=reward)
    def clinic():
        p, moves = tables()
        stay = jnp.tile(jnp.array([0.0, 0.0, 1.0]), (1, A, 1))
        rows = jnp.array([[p, 1 - p, 0.0], [1 - p, p, 0.0], [0.0, 0.0, 1.0]])
        return Kernels([0.5, 0.5, 0.0], jnp.concatenate([moves, stay]), rows)

    return clinic


PARAMETERS = {"p": 0.7, "q": [0.2, 0.5, 0.3]}


@pytest.fixture(scope="module")
def played() -> Episodes:
    world = native().at(**PARAMETERS)
    return rollout(jax.random.split(jax.random.key(2), 60), world, uniform_policy(world))


def test_episodes_end(played):
    assert set(played.ended) == {"horizon", "terminal"}
    short = played.length < H
    assert short.any()
    for episode in played[short]:
        assert episode.states[-1] == 2
        assert 2 not in episode.states[:-1]
        assert len(episode.states) == len(episode.actions) + 1


def test_native_and_encoded_optimum_agree():
    plans = [history_tree()(model.at(**PARAMETERS).pomdp) for model in (native(), encoded())]
    assert plans[0].value == pytest.approx(plans[1].value, abs=1e-12)
    value = evaluate(plans[0].policy, encoded().at(**PARAMETERS).pomdp)
    assert value == pytest.approx(plans[0].value, abs=1e-12)


def test_native_and_encoded_posterior_agree(played):
    padded = played.to_horizon(native().spaces, "test")
    ours, theirs = posterior(native(), played), posterior(encoded(), padded)
    assert ours.method == theirs.method == "conjugate"
    assert np.allclose(ours.closed, theirs.closed, atol=1e-12)
    counts = native().counts(played)
    assert counts.emission[2].sum() == 0  # the end is not an observation of a step
    assert counts.transition[2].sum() == 0
    assert counts.transition[:, :, 2].sum() == (played.ended == "terminal").sum()


def test_native_and_encoded_density_agree(played):
    padded = played.to_horizon(native().spaces, "test")
    point = {"p": 0.6, "q": jnp.array([0.3, 0.3, 0.4])}
    with x64():
        ours, theirs = (
            float(log_density(model.hindsight(data), (), {}, point)[0])
            for model, data in ((native(), played), (encoded(), padded))
        )
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_returns_stop_at_the_end(played):
    by_hand = [REWARD[e.states[:-1], e.actions].sum() for e in played]
    assert np.allclose(native().returns(played), by_hand)


@pytest.mark.parametrize("name", ["hop_b", "tight", "quantile_backup", "posterior_sampling"])
def test_both_loops_learn_the_same(name):
    world, rule = native().at(**PARAMETERS), getattr(explorers, name)()
    readable, compiled = (
        learn(world, rule, history_tree(), 12, seed=1, compiled=each) for each in (False, True)
    )
    assert np.array_equal(readable.episodes.states, compiled.episodes.states)
    assert np.array_equal(readable.episodes.length, compiled.episodes.length)
    assert (readable.episodes.length < H).any()
    assert np.allclose(readable.values, compiled.values, atol=1e-12)
    counts = readable.state.counts, compiled.state.counts
    assert np.array_equal(*(each.transition for each in counts))
    assert np.array_equal(*(each.emission for each in counts))


def test_a_truncated_episode_counts_up_to_its_end():
    model = native()
    cut = Episode.of(
        ["low", "high"], ["wait", "treat"], ["ill", "ill", "well"], model, ended="truncated"
    )
    assert posterior(model, cut).counts.transition.sum() == 2
    with raises(DataError, "length"):
        model.hindsight(cut)


@pytest.mark.parametrize(
    ("states", "ended", "where"),
    [
        (["ill", "gone", "gone"], "terminal", "states"),
        (["ill", "ill", "well"], "terminal", "ended"),
        (["ill", "ill", "gone"], "truncated", "ended"),
    ],
)
def test_wrong_ends_raise(states, ended, where):
    model = native()
    episode = Episode.of(["low", "high"], ["wait", "treat"], states, model, ended=ended)
    with raises(DataError, where):
        Episodes.of(episode, model)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"terminal": ("dead",)}, "terminal"),
        ({"terminal": STATES}, "terminal"),
        ({"terminal": "gone"}, "terminal"),
        ({"observations": ("low", "ended")}, "observations"),
        ({"observations": Real(1)}, "terminal"),
    ],
)
def test_each_misuse_is_reported(changes, where):
    given = {
        "states": STATES,
        "observations": SEEN,
        "actions": ACTIONS,
        "horizon": H,
        "reward": REWARD,
        "terminal": ("gone",),
        **changes,
    }
    with raises(DeclarationError, where):
        homdp(**given)(lambda: Kernels([0.5, 0.5, 0], np.full((3, A, 3), 1 / 3), np.eye(3)[:, :2]))


def test_spaces_can_be_declared_again():
    """``spaces.declared`` leaves out "ended", with and without sensors; ``_asdict`` has it."""
    model = native()
    again = homdp(**model.spaces.declared, reward=REWARD)(model.function)
    assert again.spaces == model.spaces
    with raises(DeclarationError, "observations"):
        homdp(**model.spaces._asdict(), reward=REWARD)(model.function)
    given = {"states": STATES, "actions": ACTIONS, "horizon": H, "reward": REWARD}
    sensors = {"ear": ("low", "high"), "eye": 2}
    for terminal in ((), ("gone",)):
        several = homdp(**given, observations=sensors, terminal=terminal)(
            lambda: Kernels(
                [0.5, 0.5, 0.0],
                np.tile([0.2, 0.3, 0.5], (3, A, 1)),
                lambda x: {"ear": dist.Bernoulli(0.3), "eye": dist.Bernoulli(0.4)},
            )
        )
        assert homdp(**several.spaces.declared, reward=REWARD)(several.function).spaces == (
            several.spaces
        )

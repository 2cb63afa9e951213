"""The models whose observations answer actions agree with versions encoded by hand in the state."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.infer.util import log_density

from homdp_ppl import (
    DataError,
    Episodes,
    GraphPolicy,
    World,
    models,
    posterior,
    rollout,
    uniform_policy,
    x64,
)
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.models.rocksample import SAMPLE
from homdp_ppl.planners import auto
from homdp_ppl.posteriors import log_likelihood
from tests import hand_encoded

PAIRS = {
    "tiger_listen": {},
    "screening": {"horizon": 3, "hierarchy": False},
    "screening_table": {"horizon": 3},
    "rocksample": {"horizon": 5},
}
UNITS = {"rocksample": (20.0, -10.0)}  # the rewards encoded by hand are rescaled to [0, 1]
# states, and parameter rows: those of T and O that are not known
SIZES = {
    "tiger_listen": ((2, 2), (4, 2)),
    "screening": ((6, 28), (18, 72)),
    "screening_table": ((6, 66), (18, 108)),
    "rocksample": ((65, 120), (193, 360)),
}


@cache
def pair(name: str) -> tuple[World, World]:
    """A model of the zoo, and the same encoded by hand."""
    return models.load(name, **PAIRS[name]), getattr(hand_encoded, name)(**PAIRS[name])


def recoded(name: str, world: World, played: Episodes) -> Episodes:
    """The same episodes, to the horizon, with the states of the model encoded by hand."""
    x, a, y = played.states, played.actions, played.observations
    first = np.zeros((len(a), 1), int)
    if name == "tiger_listen":
        return Episodes(y, a, x + 2 * np.concatenate([first, a == 0], axis=1))
    if name.startswith("screening"):
        tests = np.where(a < 3, a, 0)
        return Episodes(y, a, x + 6 * np.concatenate([first, tests], axis=1))
    played = played.to_horizon(world.spaces, "test")  # after the end, the rover reads nothing
    y = played.observations * (played.observations < 3)
    x = 3 * played.states + np.concatenate([y, first], axis=1)
    return Episodes(y, played.actions, np.minimum(x, 192))


@cache
def episodes(name: str) -> tuple[Episodes, Episodes]:
    """Episodes of the model of the zoo, and the same for the model encoded by hand.

    No drive of RockSample has a check at the end: its reading would be in the last state encoded by
    hand, but is not observed.
    """
    native, _ = pair(name)
    keys = jax.random.split(jax.random.key(0), 80)
    if name != "rocksample":
        played = rollout(keys, native, uniform_policy(native))
    else:
        east = np.array([[0.05, 0.05, 0.0, 0.55, 0.05, 0.15, 0.15]])
        played = rollout(
            keys, native, GraphPolicy(np.zeros(4, int), east, np.zeros((1, 7, 4), int))
        )
        played = played[(played.actions[:, -1] <= SAMPLE) | (played.length < 5)]
        assert set(played.length) == {4, 5}
    return played, recoded(name, native, played)


@pytest.mark.parametrize("name", PAIRS)
def test_the_optimum_agrees(name):
    native, encoded = (auto()(world.pomdp) for world in pair(name))
    scale, shift = UNITS.get(name, (1.0, 0.0))
    H = pair(name)[0].spaces.horizon
    assert native.gap <= 1e-9
    assert native.value == pytest.approx(scale * encoded.value + H * shift, abs=1e-9)


@pytest.mark.parametrize("name", PAIRS)
def test_there_are_fewer_states_and_rows(name):
    for world, sizes in zip(pair(name), SIZES[name], strict=True):
        known = world.homdp.structure.known
        unknown = (~known.transition).sum() + (~known.emission).sum()
        assert (len(world.spaces.states), unknown) == sizes


def densities(name: str, given: tuple[Episodes, Episodes]) -> np.ndarray:
    """Log densities of both conditioned programs at three draws of the prior, (3, 2)."""
    found = np.zeros((3, 2))
    for k, (world, data) in enumerate(zip(pair(name), given, strict=True)):
        with x64():
            program = world.homdp.hindsight(data)
            density = jax.jit(lambda p, program=program: log_density(program, (), {}, p)[0])
            for n in range(3):
                point = world.homdp.draw(jax.random.key(n)).parameters
                found[n, k] = float(density({s: jnp.asarray(v) for s, v in point.items()}))
    return found


@pytest.mark.parametrize("name", ["tiger_listen", "screening", "rocksample"])
def test_program_densities_agree(name):
    native, encoded = densities(name, episodes(name)).T
    np.testing.assert_allclose(native, encoded, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["tiger_listen", "screening"])
def test_posteriors_agree(name):
    native, encoded = (
        posterior(world.homdp, data) for world, data in zip(pair(name), episodes(name), strict=True)
    )
    assert native.method == encoded.method == "conjugate"
    for site, mean in native.site_means.items():
        np.testing.assert_allclose(mean, encoded.site_means[site], rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.sort(native.closed), np.sort(encoded.closed), rtol=0, atol=1e-9)


def likelihood(homdp, data: Episodes, half_distance: float) -> float:
    """The log-likelihood of the counts of RockSample."""
    pomdp = homdp.tables({"half_distance": half_distance})
    tables = Tables(pomdp.initial, *homdp.form.short(pomdp.transition, pomdp.emission))
    return float(log_likelihood(tables, homdp.counts(data)))


def test_posteriors_without_closed_form_agree():
    """RockSample: the likelihoods of counts, which are sampled, agree on a grid."""
    native, encoded = (
        [likelihood(world.homdp, data, distance) for distance in np.geomspace(0.5, 20, 9)]
        for world, data in zip(pair("rocksample"), episodes("rocksample"), strict=True)
    )
    assert np.ptp(native) > 1
    np.testing.assert_allclose(native, encoded, rtol=0, atol=1e-9)


def test_an_answer_to_the_wrong_action_is_caught():
    """Planted: the state includes the test of the action before the last one."""
    played, recorded = episodes("screening")
    late = played.states.copy()
    late[:, 2:] += 6 * np.where(played.actions < 3, played.actions, 0)[:, :-1]
    with pytest.raises(DataError):
        densities("screening", (played, Episodes(recorded.observations, recorded.actions, late)))

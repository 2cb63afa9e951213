"""An unknown start agrees with a version encoded by hand: one more state and one more step."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer.util import log_density

from homdp_ppl import Episodes, Kernels, homdp, posterior, rollout, uniform_policy, x64
from homdp_ppl.planners import history_tree
from tests.richer import FEATURES, REWARD, richer

X, Y, A, H = 2, 2, 2, 3


@homdp(
    states=("before", "x0", "x1"),
    observations=("y0", "y1", "nothing"),
    actions=A,
    horizon=H + 1,
    reward=np.concatenate(
        [np.zeros((1, 3, A)), np.tile(np.pad(REWARD, ((1, 0), (0, 0))), (H, 1, 1))]
    ),
)
def encoded():
    """The first state is known, shows nothing, and leads to the start whatever is done."""
    rho = numpyro.sample("rho", dist.Dirichlet(jnp.ones(X)))
    shows = numpyro.sample("shows", dist.Dirichlet(jnp.ones((X, Y))))
    moves = numpyro.sample("moves", dist.Dirichlet(jnp.ones((X, A, X))))
    begin = jnp.tile(rho, (1, A, 1))
    transition = jnp.pad(jnp.concatenate([begin, moves]), ((0, 0), (0, 0), (1, 0)))
    emission = jnp.concatenate([np.eye(Y + 1)[[Y]], jnp.pad(shows, ((0, 0), (0, 1)))])
    return Kernels(np.eye(X + 1)[0], transition, emission)


@cache
def episodes() -> tuple[Episodes, Episodes]:
    """The same episodes for both declarations."""
    world = richer("start")
    played = rollout(jax.random.split(jax.random.key(3), 40), world, uniform_policy(world))
    first = np.zeros((len(played), 1), dtype=int)
    longer = Episodes(
        np.concatenate([first + Y, played.observations], axis=1),
        np.concatenate([first, played.actions], axis=1),
        np.concatenate([first, np.asarray(played.states) + 1], axis=1),
    )
    return played, longer


def densities(homdp, data: Episodes) -> np.ndarray:
    """The log density of the conditioned program at three draws of the prior."""
    with x64():
        program = homdp.hindsight(data)
        density = jax.jit(lambda p: log_density(program, (), {}, p)[0])
        points = [FEATURES["start"].draw(jax.random.key(n)).parameters for n in range(3)]
        return np.array(
            [float(density({s: jnp.asarray(v) for s, v in point.items()})) for point in points]
        )


def test_the_optimum_agrees_with_fewer_states_and_rows():
    world = richer("start")
    by_hand = encoded.at(**world.parameters)
    native, other = (history_tree()(each.pomdp).value for each in (world, by_hand))
    assert native == pytest.approx(other, abs=1e-9)
    sizes = []
    for each in (world, by_hand):
        known = each.homdp.structure.known
        rows = sum(np.sum(~np.asarray(part)) for part in known)
        sizes.append((len(each.spaces.states), int(rows)))
    assert sizes == [(2, 1 + 4 + 2), (3, 2 + 4 + 2)]


def test_densities_and_posteriors_agree():
    """Up to the probability of the first action, which depends on no parameter."""
    played, longer = episodes()
    difference = densities(FEATURES["start"], played) - densities(encoded, longer)
    np.testing.assert_allclose(difference, difference[0], rtol=0, atol=1e-9)
    native, other = posterior(FEATURES["start"], played), posterior(encoded, longer)
    assert native.method == other.method == "conjugate"
    for site, mean in native.site_means.items():
        np.testing.assert_allclose(mean, other.site_means[site], rtol=0, atol=1e-9)


def test_a_start_one_step_late_is_caught():
    """Planted: the first state is that of the second step."""
    played, longer = episodes()
    late = np.array(longer.states)
    late[:, 1] = late[:, 2]
    wrong = Episodes(longer.observations, longer.actions, late)
    difference = densities(FEATURES["start"], played) - densities(encoded, wrong)
    assert np.ptp(difference) > 0.1

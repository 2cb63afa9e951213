"""Posterior draws as datasets for ArviZ and netCDF: dimensions, names and attributes."""

import warnings
from functools import cache

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray as xr
from jax.nn import sigmoid, softmax
from numpyro import handlers

from homdp_ppl import Counts, Kernels, homdp, posterior, tabular
from homdp_ppl.posteriors import Gate, Sampling
from homdp_ppl.posteriors.dataset import to_dataset

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # ArviZ 0.23 announces version 1 once a day
    import arviz

NAMES = {
    "states": ("in", "out", "lost"),
    "actions": ("go", "stay"),
    "observations": ("dark", "light", "fog", "rain"),
}
REWARD = np.zeros((3, 2))
ANYWHERE, ANYTHING = np.full((3, 2, 3), 1 / 3), np.full((3, 4), 0.25)
SEEN = Counts(np.full((3, 2, 3), 5), np.zeros((3, 4)))
SOME = Sampling(chains=2, warmup=300, draws=800)


@cache
def sliding():
    """A sampled site: every transition depends on one logit."""

    @homdp(**NAMES, horizon=2, reward=REWARD)
    def sliding():
        slip = sigmoid(numpyro.sample("slip", dist.Normal(0, 1)))
        return Kernels(
            [1.0, 0.0, 0.0], (1 - slip) * jnp.eye(3)[:, None] + slip * ANYWHERE, ANYTHING
        )

    return sliding


@cache
def hybrid():
    """A discrete site that is summed over, and a site in closed form."""

    @homdp(**NAMES, horizon=2, reward=REWARD)
    def hybrid():
        slip = 0.2 + 0.6 * numpyro.sample("icy", dist.Bernoulli(0.5))
        sky = numpyro.sample("sky", dist.Dirichlet(np.ones(4)))
        return Kernels(
            [1.0, 0.0, 0.0],
            (1 - slip) * jnp.eye(3)[:, None] + slip * ANYWHERE,
            jnp.stack([sky] * 3),
        )

    return hybrid


@cache
def made(name):
    """The datasets by method of inference."""
    if name in ("known", "conjugate"):
        T = dist.Dirichlet(np.ones((3, 2, 3))) if name == "conjugate" else ANYWHERE
        return posterior(
            tabular(T=T, O=ANYTHING, initial=[1, 0, 0], horizon=2, reward=REWARD, **NAMES), []
        ).dataset
    if name == "mixed":
        return posterior(hybrid(), []).dataset
    gate = Gate(ess=1e9) if name == "forced" else None
    return posterior(sliding(), SEEN, sampling=SOME, gate=gate, force=name == "forced").dataset


def test_tables_have_the_names_of_the_model():
    tables = made("conjugate")
    assert tables.T.dims == ("chain", "draw", "state", "action", "next_state")
    assert list(tables.state.values) == list(tables.next_state.values) == list(NAMES["states"])
    assert list(tables.action.values) == list(NAMES["actions"])
    assert (tables.sizes["chain"], tables.sizes["draw"]) == (4, 500)
    assert np.allclose(tables.T.sum("next_state"), 1)
    assert float(tables.T.sel(state="in", action="go", next_state="out").mean()) == pytest.approx(
        1 / 3, abs=0.03
    )


@pytest.mark.slow
def test_chains_are_kept():
    """The first chain of a site is the first chain of the dataset, draw by draw."""
    belief = posterior(sliding(), SEEN, sampling=SOME)
    assert belief.dataset.slip.dims == ("chain", "draw")
    assert np.array_equal(belief.dataset.slip, belief.atoms.values["slip"].reshape(2, SOME.draws))


def test_discrete_sites_and_closed_forms():
    mixed = made("mixed")
    assert dict(mixed.sizes) == {"chain": 4, "draw": 500, "observation": 4}
    assert list(mixed.observation.values) == list(NAMES["observations"])
    assert np.issubdtype(mixed.icy.dtype, np.integer)
    assert set(np.unique(mixed.icy)) == {0, 1}


@pytest.mark.parametrize(
    ("name", "method", "forced"),
    [
        ("known", "known", 0),
        ("conjugate", "conjugate", 0),
        ("mixed", "mixed", 0),
        ("nuts", "nuts", 0),
        ("forced", "nuts", 1),
    ],
)
def test_attributes_describe_the_inference(name, method, forced):
    about = made(name).attrs
    assert (about["method"], about["forced"]) == (method, forced)
    assert about["explanation"]
    assert about["model"] in ("tabular", "hybrid", "sliding")
    assert ("divergences" in about) == (method == "nuts")


@pytest.mark.parametrize("name", ["known", "conjugate", "mixed", "nuts"])
def test_datasets_survive_a_file(name, tmp_path):
    made(name).to_netcdf(tmp_path / "posterior.nc")
    with xr.open_dataset(tmp_path / "posterior.nc") as read:
        assert read.identical(made(name))


@pytest.mark.parametrize("name", ["conjugate", "mixed", "nuts"])
def test_arviz_accepts_the_dataset(name):
    """Draws in closed form are independent: ArviZ reports R-hat near 1 and ESS near 2,000."""
    dataset = made(name)
    summary = arviz.summary(dataset)
    assert len(summary) == sum(
        int(np.prod(variable.shape[2:])) for variable in dataset.data_vars.values()
    )
    ratio, effective = arviz.rhat(dataset), arviz.ess(dataset)
    assert set(ratio.data_vars) == set(effective.data_vars) == set(dataset.data_vars)
    if name == "conjugate":
        assert "T[in, go, out]" in summary.index
        assert float(ratio.T.max()) < 1.02
        assert float(effective.T.min()) > 1200
    arviz.plot_forest(
        dataset, var_names=list(dataset.data_vars)[:1]
    )  # returns axes; from ArviZ 1 on, a collection of plots
    assert any(axes.lines for axes in plt.gcf().axes)


def test_no_unknowns_give_an_empty_dataset():
    assert not made("known").data_vars
    assert dict(made("known").sizes) == {"chain": 1, "draw": 2000}


def labelled(model, **values):
    """The names of the axes of sites with given values, after chain and draw."""
    chains = {
        site: np.stack([np.asarray(value)] * 6).reshape(2, 3, *np.shape(value))
        for site, value in values.items()
    }
    dataset = to_dataset(model, chains, {})
    for axis, names in (
        ("state", "states"),
        ("next_state", "states"),
        ("action", "actions"),
        ("observation", "observations"),
    ):
        found = [coordinate for coordinate in dataset.coords if coordinate.rstrip("_") == axis]
        assert all(
            list(dataset[coordinate].values) == list(getattr(model, names)) for coordinate in found
        )
    return {site: variable.dims[2:] for site, variable in dataset.data_vars.items()}


def test_used_names_and_slashes_are_replaced():
    """Sites with the names of dimensions, and a scoped site."""

    @homdp(**NAMES, horizon=2, reward=REWARD)
    def crowded():
        moves = sigmoid(numpyro.sample("state", dist.Normal(0, 1).expand([3]).to_event(1)))
        with handlers.scope(prefix="sky"):
            logits = numpyro.sample("logits", dist.Normal(0, 1).expand([3, 4]).to_event(2))
        shift = numpyro.sample("draw", dist.Normal(0, 1))
        rows = moves[:, None, None] * ANYWHERE + (1 - moves[:, None, None]) * jnp.eye(3)[:, None]
        return Kernels([1.0, 0.0, 0.0], rows, softmax(logits + shift * jnp.arange(4.0), axis=-1))

    dims = labelled(crowded, **{"state": np.zeros(3), "sky/logits": np.zeros((3, 4)), "draw": 0.5})
    assert dims == {"state": ("state_",), "sky.logits": ("state_", "observation"), "draw_": ()}


def test_axes_are_named_only_if_unambiguous():
    """The last axis of a distribution is its outcome; other vectors have no such axis.

    Axes that fit two ways, or none, are numbered.
    """

    @homdp(
        states=("a", "b"),
        actions=("l", "r"),
        observations=("u", "v"),
        horizon=2,
        reward=np.zeros((2, 2)),
    )
    def doubtful():
        row = numpyro.sample("row", dist.Normal(0, 1).expand([2]).to_event(1))
        chance = numpyro.sample("chance", dist.Normal(0, 1).expand([2]).to_event(1))
        sharp = numpyro.sample("sharp", dist.Normal(0, 1).expand([2]).to_event(1))
        both = numpyro.sample("both", dist.Normal(0, 1).expand([2]).to_event(1))
        moves = jnp.broadcast_to(softmax(row * sigmoid(chance) + both), (2, 2, 2))
        heard = sigmoid(sharp + both)
        return Kernels([0.5, 0.5], moves, jnp.stack([heard, 1 - heard], -1))

    vector, outcome = np.array([0.2, 0.3]), np.array([0.2, 0.8])
    assert labelled(doubtful, row=outcome)["row"] == ("next_state",)
    assert labelled(doubtful, chance=vector)["chance"] == (
        "chance_dim_0",
    )  # by state or by action?
    assert labelled(doubtful, sharp=vector)["sharp"] == ("state",)
    assert labelled(doubtful, sharp=outcome)["sharp"] == ("observation",)
    assert labelled(doubtful, both=outcome)["both"] == ("both_dim_0",)  # affects T and O
    assert labelled(doubtful, row=np.ones((4, 2)))["row"] == ("row_dim_0", "row_dim_1")


def test_two_rates_are_not_two_actions():
    """A site with as many entries as actions or states need not be indexed by them."""

    @homdp(**NAMES, horizon=2, reward=REWARD)
    def rates():
        worse = numpyro.sample("worse", dist.Beta(1, 1).expand([2]).to_event(1))
        heard = numpyro.sample("heard", dist.Beta(1, 1).expand([3]).to_event(1))
        first = jnp.stack([1 - worse[0], worse[0], 0.0])
        second = jnp.stack([0.0, 1 - worse[1], worse[1]])
        rows = jnp.stack([first, second, jnp.eye(3)[2]])
        shown = jnp.stack([heard.prod(), 1 - heard.prod(), 0.0, 0.0])
        return Kernels(
            [1.0, 0.0, 0.0],
            jnp.repeat(rows[:, None], 2, axis=1),
            jnp.stack([shown, jnp.eye(4)[2], jnp.eye(4)[3]]),
        )

    dims = labelled(rates, worse=np.array([0.2, 0.3]), heard=np.array([0.2, 0.3, 0.1]))
    assert dims == {"worse": ("worse_dim_0",), "heard": ("heard_dim_0",)}

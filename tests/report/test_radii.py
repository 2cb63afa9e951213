"""Comparison of radii: values from the formulas, the exact posterior quantile, table and plot."""

from functools import cache

import jax
import numpy as np
import pytest
import xarray as xr
from scipy.stats import beta

from homdp_ppl import Counts, DataError, ParameterError, rollout, uniform_policy
from homdp_ppl.report import compare_radii, draw_radii, radius_table
from tests.raising import raises
from tests.report.words import text_of
from tests.worlds import Parity, world

K, DELTA = 48, 0.1


@cache
def compared(name):
    # a policy without a graph, and one with
    policy = Parity(3) if name == "tiger" else uniform_policy(world(name))
    return compare_radii(jax.random.key(1), world(name), policy, episodes=K, delta=DELTA)


def collected(name, episodes):
    keys = jax.random.split(jax.random.fold_in(jax.random.key(1), 0), K)
    return Counts.of(
        rollout(keys, world(name), uniform_policy(world(name)))[:episodes], world(name)
    )


def test_stops_names_and_visits():
    seen = compared("tiger_table")
    assert list(seen.episodes.values) == [1, 2, 4, 8, 16, 32, 48]
    assert list(seen.rule.values) == ["hop_b", "weissman", "quantile"]
    assert list(seen.state.values) == ["left", "right"]
    for episodes in (1, 32, 48):
        counts = collected("tiger_table", episodes)
        assert np.array_equal(seen.emission_visits.sel(episodes=episodes), counts.visits)
        assert np.array_equal(seen.transition_visits.sel(episodes=episodes), counts.state_action)


def test_radii_and_errors_by_hand():
    """X = Y = 2, A = 3, H = 4: the radii of Algorithm 1, and Weissman for (X + XA) K H events."""
    seen, counts = compared("tiger_table").sel(episodes=K), collected("tiger_table", K)
    n, m = counts.emission.sum(1), counts.transition.sum(2)
    hop_b = np.minimum(np.sqrt(8 * 2 * np.log(2 * 2 * K * 4 / DELTA) / n), 2)
    assert seen.emission_radius.sel(rule="hop_b").values == pytest.approx(hop_b)
    hop_b = np.minimum(np.sqrt(4 * 4**3 * np.log(2 * 2 * 3 * 4 * K / DELTA) / m), 2 * 4)
    assert seen.transition_radius.sel(rule="hop_b").values == pytest.approx(hop_b)
    weissman = np.minimum(np.sqrt(2 * np.log((2**2 - 2) * (2 + 6) * K * 4 / DELTA) / n), 2)
    assert seen.emission_radius.sel(rule="weissman").values == pytest.approx(weissman)
    truth = world("tiger_table").pomdp.stationary()
    off = np.abs(counts.emission / n[:, None] - truth.emission).sum(1)
    assert seen.emission_error.sel(estimate="frequencies").values == pytest.approx(off)
    off = np.abs((counts.transition + 1) / (m[..., None] + 2) - truth.transition).sum(
        2
    )  # flat Dirichlet prior
    assert seen.transition_error.sel(estimate="mean").values == pytest.approx(off)


def test_the_posterior_quantile_has_its_level():
    """The posterior mass within the radius is as expected; false-alarm rate 1e-6.

    With delta' = 0.1 / 8 rows, the radius is the 791st smallest of 800 draws, so the mass below it
    has a Beta(791, 10) distribution. Planted bug: half the radius, as for |p - mean|, is detected.
    """
    seen, counts = compared("tiger_table").sel(episodes=K), collected("tiger_table", K)
    a, b = counts.emission[0] + 1
    mean = a / (a + b)

    def mass(radius):
        return beta.cdf(mean + radius / 2, a, b) - beta.cdf(mean - radius / 2, a, b)

    low, high = beta.ppf([5e-7, 1 - 5e-7], 791, 10)
    radius = float(seen.emission_radius.sel(rule="quantile", state="left"))
    assert low < mass(radius) < high
    assert mass(radius / 2) < low


def test_known_rows_are_left_out():
    seen = compared("tiger")
    assert np.isnan(seen.transition_radius).all()
    assert np.isfinite(seen.emission_radius).all()
    assert float(seen.emission_visits.sel(episodes=K).sum()) == 4 * K
    for show in (radius_table, draw_radii):
        with raises(DataError, "part"):
            show(seen, "transition")
        with raises(DataError, "part"):
            show(seen, "reward")


def test_the_table_contains_medians():
    text = text_of(radius_table(compared("tiger_table"), "transition"), width=160)
    last = [cell.strip() for cell in text.splitlines()[-2].split("│")[1:-1]]
    seen = compared("tiger_table").sel(episodes=K)
    assert last[0] == "48"
    assert float(last[1]) == pytest.approx(float(seen.transition_visits.median()), abs=0.51)
    assert float(last[2]) == pytest.approx(
        float(seen.transition_radius.sel(rule="hop_b").median()) / 4, rel=0.01
    )
    assert float(last[4]) == pytest.approx(
        float(seen.transition_radius.sel(rule="quantile").median()), rel=0.01
    )
    assert float(last[5]) == pytest.approx(
        float(seen.transition_error.sel(estimate="frequencies").median()), rel=0.01
    )


@pytest.mark.parametrize("part", ["emission", "transition"])
def test_the_plot_has_a_line_for_each_row_and_rule(part, tmp_path):
    seen = compared("tiger_table")
    axes = draw_radii(seen, part)
    rows = 2 if part == "emission" else 6
    lines = [line for line in axes.get_lines() if len(line.get_xdata()) == len(seen.episodes)]
    assert len(lines) == 3 * rows
    hop_b = seen[f"{part}_radius"].sel(rule="hop_b").values.reshape(len(seen.episodes), -1) / (
        1 if part == "emission" else 4
    )
    assert np.allclose([line.get_ydata() for line in lines[:rows]], hop_b.T)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[0] == ("HOP-B" if part == "emission" else "HOP-B / H (bounds values)")
    assert axes.get_xscale() == axes.get_yscale() == "log"
    axes.figure.savefig(tmp_path / "radii.png")
    assert (tmp_path / "radii.png").stat().st_size > 10_000
    assert draw_radii(seen, part, axes=axes) is axes


def test_a_comparison_can_be_saved(tmp_path):
    compared("tiger_table").to_netcdf(tmp_path / "radii.nc")
    assert xr.load_dataset(tmp_path / "radii.nc").identical(compared("tiger_table"))


def test_arguments_are_checked():
    made = world("tiger")
    with raises(ParameterError, "episodes", "delta"):
        compare_radii(jax.random.key(0), made, uniform_policy(made), episodes=0, delta=1)

"""Tables speak the model's names; pictures show the program's arrows and what was observed."""

import io

import jax
import matplotlib.pyplot as plt
import numpy as np
import pytest
from rich.console import Console

from homdp_ppl import DataError, rollout, uniform_policy
from homdp_ppl.posteriors import PredictiveCheck
from homdp_ppl.posteriors.predictive import Statistics
from homdp_ppl.report import check_table, draw_check, draw_program, models_table, revealed_table, seen_table
from homdp_ppl.report.program import _program_graph
from tests.worlds import world


def text_of(table):
    console = Console(width=100, file=io.StringIO())
    console.print(table)
    return console.file.getvalue()


def test_an_episode_is_told_before_and_after():
    made = world("tiger")
    episode = rollout(jax.random.key(0), made, uniform_policy(made))
    seen = text_of(seen_table(made.homdp, episode, "seen"))
    revealed = text_of(revealed_table(made.homdp, episode))
    for y, a in zip(episode.observations, episode.actions, strict=True):
        assert made.spaces.observations[y] in seen
        assert made.spaces.actions[a] in seen
    assert "latent" not in seen
    batch = rollout(jax.random.split(jax.random.key(0)), made, uniform_policy(made))
    for table in (seen_table, revealed_table):
        with pytest.raises(DataError, match=r"episodes\[0\]"):
            table(made.homdp, batch)
    assert "latent state" in revealed
    assert f"{made.homdp.returns(episode):.2f}" in revealed
    assert revealed.count("\n") == seen.count("\n")  # a title there, a last state here


def test_the_zoo_table_says_sizes_and_unknowns():
    text = text_of(models_table({"tiger": world("tiger"), "lock": world("lock")}))
    assert "2 states, 2 obs." in text
    assert "accuracy" in text
    assert "9 rows" in text


@pytest.mark.parametrize("name", ["tiger", "checkup"])
def test_the_picture_places_every_site(name, tmp_path):
    model = world(name).homdp
    graph, places, colours = _program_graph(model, 2)
    assert set(graph) == set(places) == set(colours)
    assert {site.name for site in model.sites} <= set(graph)
    assert ("y[1]", "a[2]") in graph.edges
    assert not any(parent.startswith("x") and child.startswith("a") for parent, child in graph.edges)
    axes = draw_program(model, steps=2)
    axes.figure.savefig(tmp_path / "program.png")
    assert (tmp_path / "program.png").stat().st_size > 5000
    plt.close(axes.figure)


def checked(observed):
    """A check of tiger with 200 replications of 100 episodes, half of them with a growl from the left; ``observed`` at step 1."""
    generator = np.random.default_rng(0)

    def growls(left):
        return np.stack([left, 1 - left], -1)

    replicated = Statistics(
        growls(generator.binomial(100, 0.5, (200, 4)) / 100),
        np.full((200, 2, 2), 0.25),
        generator.normal(2.5, 0.1, 200),
        generator.normal(0.9, 0.05, 200),
    )
    seen = Statistics(growls(np.array([observed, 0.5, 0.5, 0.5])), np.full((2, 2), 0.25), np.array(2.5), np.array(0.9))
    return PredictiveCheck(world("tiger").homdp, 100, seen, replicated)


@pytest.mark.parametrize(("observed", "labels"), [(0.5, set()), (0.8, {"growl left, step 1", "growl right, step 1"})])
def test_a_predictive_check_is_told_and_drawn(observed, labels, tmp_path):
    check = checked(observed)
    text = text_of(check_table(check))
    assert "100 episodes against 200 replications" in text
    assert (check.unusual == ("observations by step",)) == bool(labels)
    assert ("growl left at step 1" in text) or not labels
    for finding in check.findings:
        assert f"{finding.p:.3g}" in next(line for line in text.splitlines() if finding.what in line)
    frequencies, returns = draw_check(check)
    assert {text.get_text() for text in frequencies.texts} == labels
    assert "by step: p = 0.005" in frequencies.get_title() or not labels
    assert tuple(returns.get_lines()[0].get_xydata()[0]) == (2.5, 0.9)
    dots = frequencies.collections[-1].get_offsets()
    assert np.allclose(dots[:, 1], check.observed.frequency.ravel())
    frequencies.figure.savefig(tmp_path / "check.png")
    assert (tmp_path / "check.png").stat().st_size > 10_000
    plt.close(frequencies.figure)

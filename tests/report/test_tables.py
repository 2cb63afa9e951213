"""Tables use the names of the model."""

from fractions import Fraction
from math import inf, nan

import jax

from homdp_ppl import DataError, rollout, study, uniform_policy
from homdp_ppl.report import (
    comparison_table,
    differences_table,
    models_table,
    revealed_table,
    seen_table,
)
from tests.raising import raises
from tests.report.words import text_of
from tests.worlds import world


def test_tables_of_an_episode_before_and_after_it_is_revealed():
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
        with raises(DataError, "episode"):
            table(made.homdp, batch)
    assert "latent state" in revealed
    assert f"{made.homdp.returns(episode):.2f}" in revealed
    assert revealed.count("\n") == seen.count("\n")  # a title, and a row for the last state


def test_titles_are_not_markup():
    made = world("tiger")
    episode = rollout(jax.random.key(0), made, uniform_policy(made))
    for table in (
        seen_table(made.homdp, episode, "[bold]x"),
        revealed_table(made.homdp, episode, "[bold]x"),
        titled("[bold]x"),
    ):
        assert "[bold]x" in text_of(table)


ROW = study.Row(
    rule="greedy",
    soundness="none",
    seeds=1,
    regret=0.5,
    error=nan,
    per_episode=0.5,
    per_policy=0.5,
    gap=0.5,
    optimistic=1.0,
    width=0.1,
    needed=inf,
    seconds=0.1,
    less=0.0,
    interval=(nan, nan),
    estimated=False,
)


def titled(title):
    return comparison_table([ROW], title)


def test_a_rational_epsilon():
    found, expected = (comparison_table([ROW], epsilon=e) for e in (Fraction(1, 4), 0.25))
    assert text_of(found) == text_of(expected)


def test_rules_with_a_guarantee_are_marked():
    proved = ROW._replace(rule="tight", soundness="optimistic, frequentist")
    scaled = ROW._replace(rule="hop_b(scale=0.1)", soundness="none (scaled bonuses)")
    table = comparison_table([ROW, proved, scaled])
    assert list(table.columns[0].cells) == ["greedy", "tight *", "hop_b(scale=0.1)"]
    pair = study.Difference("tight", "greedy", 9, 1.0, (0.5, 1.5), 1, 0.01, 0.01, (True, False))
    for p, wanted in ((0.01, "[bold]tight * - greedy[/]"), (0.06, "tight * - greedy")):
        assert list(differences_table([pair._replace(adjusted=p)]).columns[0].cells) == [wanted]


def test_the_loss_per_policy_is_shown_only_where_it_differs():
    heads = [str(column.header) for column in comparison_table([ROW]).columns]
    assert "per policy" not in heads
    table = comparison_table([ROW, ROW._replace(per_policy=0.25)])
    cells = {str(column.header): list(column.cells) for column in table.columns}
    assert cells["per episode"] == ["0.5", "0.5"]
    assert cells["per policy"] == ["0.5", "0.25"]


def test_the_table_of_models_contains_sizes_and_unknowns():
    text = text_of(models_table({"tiger": world("tiger"), "lock": world("lock")}))
    assert "2 states, 2 obs." in text
    assert "accuracy" in text
    assert "9 rows" in text

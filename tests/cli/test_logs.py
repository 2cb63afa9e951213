"""``homdp evaluate`` and ``homdp choose``: tables, pages, saved policies, and errors."""

import csv

import jax
import pytest

from homdp_ppl import GraphPolicy, evaluate, models, rollout, uniform_policy
from homdp_ppl.cli.main import main
from homdp_ppl.planners import history_tree

TIGER = models.load("tiger", horizon=3)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A log of 200 episodes as CSV, and the saved best policy."""
    folder = tmp_path_factory.mktemp("logs")
    played = rollout(jax.random.split(jax.random.key(0), 200), TIGER, uniform_policy(TIGER))
    states, seen, acts = TIGER.spaces[:3]
    with open(folder / "log.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["patient", "step", "observation", "action", "state"])
        for k, one in enumerate(played):
            for h in range(3):
                y, a, x = one.observations[h], one.actions[h], one.states[h]
                rows.writerow([k, h + 1, seen[y], acts[a], states[x]])
            rows.writerow([k, 4, "", "", states[one.states[3]]])
    history_tree()(TIGER.pomdp).named(TIGER).policy.save(folder / "best.npz")
    return folder


LOG = ["--columns", "episode=patient"]


def test_evaluate(files, capsys):
    page = files / "evaluation.html"
    words = ["evaluate", "tiger:horizon=3", str(files / "log.csv"), *LOG]
    words += ["--policy", str(files / "best.npz"), "--page", str(page)]
    assert main(words) == 0
    out = capsys.readouterr().out
    for name in ("certified", "posterior", "doubly robust", "state is Markov"):
        assert name in out
    html = page.read_text()
    assert html.startswith("<!DOCTYPE html>")
    assert "certified at 90%" in html
    assert "http" not in html.replace("http://www.w3.org", "")


def test_policies_for_fewer_steps_are_refused(files, capsys):
    """The policy of the file has three steps."""
    words = ["evaluate", "tiger:horizon=4", str(files / "log.csv"), *LOG]
    assert main([*words, "--policy", str(files / "best.npz")]) == 2
    assert "for 3 steps; expected a policy for 4 steps" in capsys.readouterr().err


def test_choose_saves_a_better_policy(files, capsys):
    out, page = files / "chosen.npz", files / "choice.html"
    words = ["choose", "tiger:horizon=3", str(files / "log.csv"), *LOG]
    assert main([*words, "--out", str(out), "--page", str(page)]) == 0
    assert "deploy" in capsys.readouterr().out
    policy = GraphPolicy.load(out)
    better = evaluate(policy, TIGER.pomdp)
    assert better > evaluate(uniform_policy(TIGER), TIGER.pomdp)
    assert "chosen" in page.read_text()
    kept = [*words, "--out", str(files / "kept.npz"), "--baseline", str(files / "best.npz")]
    assert main(kept) == 0
    assert "keep the baseline" in capsys.readouterr().out
    assert evaluate(GraphPolicy.load(files / "kept.npz"), TIGER.pomdp) >= better - 1e-9


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["--columns", "patient"], "--columns"),
        (["--columns", "person=patient"], "person"),
        (["--out", "policy.txt"], "--out"),
        (["--page", "missing/page.html"], "--page"),
        (["--baseline", "missing.npz"], "missing.npz"),
        (["--delta", "2"], "delta"),
    ],
)
def test_what_is_refused(files, capsys, words, place):
    out = [] if "--out" in words else ["--out", str(files / "never.npz")]
    given = ["choose", "tiger:horizon=3", str(files / "log.csv"), *out]
    columns = [] if "--columns" in words else LOG
    assert main([*given, *columns, *words]) in (2, 4)
    assert place in capsys.readouterr().err
    assert not (files / "never.npz").exists()

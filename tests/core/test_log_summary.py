"""Summaries of logs against counts made episode by episode, and the story of a job log."""

import random

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import Episodes, explorers, learn, models, posterior, report, tabular
from homdp_ppl.core.log_summary import Share
from homdp_ppl.planners import history_tree
from tests.gaps import with_gaps
from tests.richer import RICHER, richer
from tests.tables import SPACES, some_episodes
from tests.worlds import world

JOBS = tabular(
    T=dist.Dirichlet(np.ones((3, 2, 3))),
    O=dist.Dirichlet(np.ones((3, 2))),
    initial=[1, 0, 0],
    reward=[[1, 0.5], [0.5, 0.5], [0, 0.5]],
    horizon=6,
    states=("fine", "worn", "broken"),
    observations=("quiet", "loud"),
    actions=("run", "repair"),
    name="jobs",
)


@pytest.mark.parametrize("kind", ["names", "terminal", "sensors"])
@pytest.mark.parametrize("seed", range(3))
def test_counts_agree_with_a_loop(kind, seed):
    spaces = SPACES[kind]
    single = some_episodes(kind, random.Random(seed), 30)
    summary = Episodes.of(single, spaces).summary(spaces)
    known = [np.ma.asarray(e.states).filled(-1) for e in single]
    assert summary.lengths.tolist() == [sum(len(e.actions) == h for e in single) for h in range(4)]
    assert sum(summary.ended.values()) == 30
    for h, share in enumerate(summary.by_step):
        here = [x[h] for x in known if len(x) > h]
        assert share == Share(sum(x >= 0 for x in here), len(here))
    for y, share in enumerate(summary.by_observation.values()):
        here = [
            x[h] for e, x in zip(single, known, strict=True)
            for h in range(len(e.actions)) if e.observations[h] == y
        ]  # fmt: skip
        assert share == Share(sum(x >= 0 for x in here), len(here))
    assert summary.rewards == Share(
        sum(int((~np.ma.getmaskarray(e.rewards)).sum()) for e in single),
        sum(len(e.actions) for e in single),
    )
    visits = {row.name: row.visits for row in summary.rows}
    for x, state in enumerate(spaces.states):
        for a, action in enumerate(spaces.actions):
            expected = sum(
                path[h] == x and e.actions[h] == a and path[h + 1] >= 0
                for e, path in zip(single, known, strict=True) for h in range(len(e.actions))
            )  # fmt: skip
            assert visits.get(f"transition ({state}, {action})", 0) == expected
    assert visits["initial"] == sum(x[0] >= 0 for x in known)
    assert not any("discharged" in name for name in visits) or not spaces.terminal


@pytest.mark.parametrize("name", ["tiger", "lock", "checkup", "answers", "steps", "everything"])
def test_rows_of_complete_logs_are_the_counts(name):
    """Tables by step and emissions by previous action included."""
    made = richer(name) if name in RICHER else world(name)
    log = with_gaps(made, 12, 1.0)
    rows = log.summary(made.homdp).rows
    counts = made.homdp.counts(log)
    assert sum(r.visits for r in rows if r.table == "transition") == counts.transition.sum()
    assert sum(r.visits for r in rows if r.table == "emission") == counts.emission.sum()
    known = made.homdp.structure.known
    listed = sum(r.known for r in rows if r.table == "emission")
    assert listed <= np.sum(known.emission)


def test_unvisited_rows_are_named():
    log = Episodes([["dark"] * 3], [["wait"] * 3], [["home"] * 4])
    summary = log.summary(SPACES["names"])
    assert [row.name for row in summary.unvisited if row.table == "emission"] == [
        "emission (ward)",
        "emission (discharged)",
    ]
    assert "unknown rows" in repr(summary)
    assert summary._repr_html_().startswith("<pre>")


def test_dependent_reveals_are_found():
    log = with_gaps(world("tiger"), 400, 1.0)
    known = np.ones(log.states.shape, dtype=bool)
    known[:, :-1] = log.observations == 0
    biased = Episodes(log.observations, log.actions, log.states, revealed=known)
    assert biased.summary(world("tiger")).association < 1e-6
    assert log.summary(world("tiger")).association is None
    assert log.summary().by_observation == {}


def test_an_empty_log_has_a_summary():
    empty = Episodes(np.zeros((0, 3), int), np.zeros((0, 3), int), np.zeros((0, 4), int))
    assert empty.summary(SPACES["names"]).states == Share(0, 0)
    assert "0 episodes" in repr(empty.summary())


@pytest.mark.parametrize("name", ["tiger", "gaussian_tiger"])
def test_a_picture(name):
    import matplotlib.pyplot as plt

    made = world("tiger") if name == "tiger" else models.load(name)
    H = made.spaces.horizon
    seen = np.zeros((2, H)) if name != "tiger" else np.zeros((2, H), dtype=int)
    log = Episodes(seen, np.zeros((2, H), int), np.zeros((2, H + 1), int))
    axes = report.draw_log(log, made.homdp)
    assert axes[0].get_xlabel() == "steps per episode"
    plt.close(axes[0].figure)


def jobs_table(number=500):
    """Recorded jobs: names, 3 to 6 steps, 20% of the states missing, half of the rewards."""
    rng = np.random.default_rng(0)
    table = {name: [] for name in ("job", "day", "noise", "did", "state", "paid", "operator")}
    for job in range(number):
        L, state = int(rng.integers(3, 7)), 0
        for h in range(L + 1):
            acted = h < L
            noise = ["quiet", "loud"][int(rng.random() < 0.3 + 0.3 * state)]
            action = int(rng.random() < 0.2 + 0.2 * state)
            table["job"].append(f"J{job:03}")
            table["day"].append(h)
            table["noise"].append(noise if acted else None)
            table["did"].append(("run", "repair")[action] if acted else None)
            table["state"].append(None if rng.random() < 0.2 else JOBS.states[state])
            pays = acted and rng.random() < 0.5
            table["paid"].append(float(JOBS.reward[h, state, action]) if pays else None)
            table["operator"].append("Kim")
            state = 0 if action else min(state + int(rng.random() < 0.3), 2)
    order = rng.permutation(len(table["job"]))
    return {name: [column[k] for k in order] for name, column in table.items()}


NAMES = {"episode": "job", "step": "day", "observation": "noise", "action": "did", "reward": "paid"}


def test_a_log_of_500_jobs_is_usable():
    """All episodes are read, described and learned from, in spite of what is missing."""
    log = Episodes.from_frame(jobs_table(), JOBS, **NAMES)
    summary = log.summary(JOBS)
    assert len(log) == 500
    assert set(np.flatnonzero(summary.lengths)) == {3, 4, 5, 6}
    assert 0.75 < summary.states.known / summary.states.total < 0.85
    assert 0.45 < summary.rewards.known / summary.rewards.total < 0.55
    assert not summary.unvisited
    belief = posterior(JOBS, log)
    assert belief.data.episodes == 500
    mean = belief.mean
    # 20% of the states are missing, and the true rates are inside of 5 standard deviations
    assert np.allclose(mean.emission[0, 0, :, 1], [0.3, 0.6, 0.9], atol=0.06)
    assert np.allclose(mean.transition[0, 0, 0], [0.7, 0.3, 0], atol=0.06)


def test_the_complete_jobs_start_a_rule():
    log = Episodes.from_frame(jobs_table(200), JOBS, **NAMES)
    present = np.arange(7) <= log.length[:, None]
    complete = log[(log.revealed | ~present).all(1)]
    made = JOBS.draw(jax.random.key(0))
    run = learn(made, explorers.greedy(), history_tree(), 2, log=complete, compiled=False)
    assert int(run.state.played) == 2 + len(complete) > 20

"""The same problem in other units: rewards r, rewards 10 r - 3, and costs 3 - 10 r.

Decisions must be the same, and values v' = 10 v - 3 H, to 1e-9, for every planner and rule.
"""

from functools import cache
from types import SimpleNamespace

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    POMDP,
    Counts,
    Kernels,
    Real,
    World,
    evaluate,
    evaluation,
    explorers,
    homdp,
    learn,
    models,
    planners,
    posterior,
    rollout,
    study,
    tabular,
    theory,
    write_pomdp,
)
from homdp_ppl.declare.rewards import Rewards
from homdp_ppl.explorers import EXPLORERS
from homdp_ppl.formats.reading import read_file
from homdp_ppl.gym import HOMDPEnv
from homdp_ppl.planners import PLANNERS, history_tree
from homdp_ppl.posteriors.predictive import predictive_check
from homdp_ppl.report import revealed_table
from homdp_ppl.theory import report
from tests.rules import example
from tests.worlds import random_policy

H, SCALE, SHIFT = 3, 10.0, -3.0
REWARD = np.array([[0.0, 0.3, 0.8], [1.0, 0.45, 0.1]])  # (X, A), between 0 and 1
UNITS = {
    "rewards": {"reward": SCALE * REWARD + SHIFT},
    "costs": {"cost": -(SCALE * REWARD + SHIFT)},
}
MOVES = np.array([[[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]], [[0.3, 0.7], [0.4, 0.6], [0.9, 0.1]]])
SHOWS = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
TREE = history_tree()


def near(found, inside, steps=H, atol=1e-9):
    """Whether numbers are 10 times the others, minus 3 per step."""
    np.testing.assert_allclose(found, SCALE * np.asarray(inside) + steps * SHIFT, 0, atol)


@cache
def table(kind="plain") -> World:
    """A finite world."""
    model = tabular(
        T=dist.Dirichlet(np.ones((2, 3, 2))),
        O=dist.Dirichlet(np.ones((2, 3))),
        initial=[0.6, 0.4],
        horizon=H,
        **UNITS.get(kind, {"reward": REWARD}),
    )
    return model.at(T=MOVES, O=SHOWS)


def heard(kind="plain", accuracy=1.0) -> World:
    """A world with two states and real-valued observations."""

    @homdp(
        states=2,
        observations=Real(1),
        actions=3,
        horizon=H,
        **UNITS.get(kind, {"reward": REWARD}),
    )
    def model():
        return Kernels([0.6, 0.4], MOVES, lambda x: dist.Normal((2 * x - 1) * accuracy, 1.0))

    return model.at()


PLANNING = {
    "alpha_vectors": (table, {}),
    "auto": (table, {}),
    "bounded_search": (table, {}),
    "history_tree": (table, {}),
    "particle_tree": (
        table,
        {"simulations": 30, "particles": 50, "tree_particles": 8, "episodes": 20},
    ),
    "quantised": (heard, {"relative_gap": 0.01}),
}  # for every planner a world and options
RULES = sorted(EXPLORERS)
SHORT = {"value_quantile": {"draws": 5}}


def same_policy(one, other, world):
    """Whether two policies take the same decisions."""
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(1), 20)
    first, second = rollout(keys, world, one), rollout(keys, world, other)
    return np.array_equal(first.actions, second.actions)


@pytest.mark.parametrize("kind", UNITS)
@pytest.mark.parametrize("name", PLANNERS)
def test_planners(name, kind):
    make, options = PLANNING[name]
    plain, other = make(), make(kind)
    planner = PLANNERS[name](**options)
    one, two = (
        planner(w if make is heard or name == "particle_tree" else w.pomdp) for w in (plain, other)
    )
    near(two.value, one.value)
    near(two.upper, one.upper)
    assert one.certified == two.certified == (name != "particle_tree")
    assert same_policy(one.policy, two.policy, plain)
    if name == "particle_tree":
        for which in ("low", "high"):
            near(two.statistics[which], one.statistics[which])
        spread = [plan.statistics["standard error"] for plan in (two, one)]
        near(spread[0], spread[1], steps=0)
        return
    np.testing.assert_allclose(two.gap, SCALE * one.gap, atol=1e-9)
    nodes = [plan.tree().nodes(data=True) for plan in (one, two)]
    for (_, inside), (_, found) in zip(*nodes, strict=True):
        near(found["value"], inside["value"], steps=H - max(0, inside["step"] - 1))
        assert inside["action"] == found["action"]


@pytest.mark.parametrize("name", ["auto", "bounded_search", "quantised"])
def test_the_gap_of_planners_is_in_the_users_units(name):
    make = heard if name == "quantised" else table
    worlds = [make(), make("rewards")]
    models_ = worlds if name == "quantised" else [w.pomdp for w in worlds]
    (one, two), factory = models_, PLANNERS[name]
    wide, scaled = factory(gap=0.2)(one), factory(gap=2.0)(two)
    np.testing.assert_allclose(scaled.gap, SCALE * wide.gap, atol=1e-9)
    relative = factory(relative_gap=0.2 / H)
    np.testing.assert_allclose(relative(two).gap, scaled.gap, atol=1e-9)
    np.testing.assert_allclose(relative(one).gap, wide.gap, atol=1e-9)
    if name != "auto":
        narrow = factory(gap=0.2)(two)
        assert narrow.gap <= min(0.2, scaled.gap)


@pytest.mark.parametrize("kind", [pytest.param("rewards", marks=pytest.mark.slow), "costs"])
@pytest.mark.parametrize("name", RULES)
def test_rules(name, kind):
    """Rules and planners see the same numbers inside."""
    plain, other = table(), table(kind)
    runs = [
        learn(w, example(name, w, **SHORT.get(name, {})), TREE, 6, compiled=False)
        for w in (plain, other)
    ]
    same_runs(*runs)


@pytest.mark.parametrize("name", ["hop_b", "tight", "posterior_sampling", "greedy"])
def test_rules_in_the_compiled_loop(name):
    runs = [learn(w, example(name, w), TREE, 6, compiled=True) for w in (table(), table("costs"))]
    same_runs(*runs)
    readable = learn(table("costs"), example(name, table("costs")), TREE, 6, compiled=False)
    np.testing.assert_allclose(runs[1].values, readable.values, atol=1e-9)
    np.testing.assert_allclose(runs[1].optimistic, readable.optimistic, atol=1e-9)
    half = learn(
        table("costs"), example(name, table("costs")), TREE, 6, stop_after=3, compiled=True
    )
    assert np.array_equal(half.resume().values, runs[1].values)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uniform", "oracle", "hop_v", "hop_b_class"])
def test_rules_with_real_observations(name):
    runs = []
    for kind in ("plain", "rewards"):
        world, others = heard(kind), [heard(kind), heard(kind, 0.3)]
        rule = {
            "uniform": lambda: explorers.uniform(),
            "oracle": lambda w=world: explorers.oracle(w),
            "hop_v": lambda w=world, o=others: explorers.hop_v([w], o),
            "hop_b_class": lambda w=world, o=others: explorers.hop_b_class(o),
        }[name]()
        planner = planners.quantised(relative_gap=0.05)
        runs.append(learn(world, rule, planner, 2 * H))
    same_runs(*runs)


def same_runs(one, two):
    """The same decisions, and values in the other units."""
    for part in ("observations", "actions", "states"):
        assert np.array_equal(getattr(one.record, part), getattr(two.record, part)), part
    near(two.optimum, one.optimum)
    near(two.values, one.values)
    near(two.played, one.played)
    near(two.optimistic, one.optimistic)
    near(two.mixture.value, one.mixture.value)
    near(two.returns, one.returns)
    near(two.gaps, one.gaps, steps=0)
    near(two.regret, one.regret, steps=0)
    assert np.array_equal(one.was_optimistic, two.was_optimistic)
    assert one.inexact == "" or two.inexact != ""
    near(np.array(two.return_range), np.array([0.0, H]))
    dataset = [run.to_dataset() for run in (two, one)]
    near(dataset[0]["regret"], dataset[1]["regret"], steps=0)


def test_foresight():
    runs = [
        learn(w, example("greedy", w), TREE, 5, foresight=True) for w in (table(), table("rewards"))
    ]
    same_runs(*runs)


@pytest.mark.parametrize("kind", UNITS)
def test_evaluation(kind):
    plain, other = table(), table(kind)
    policy = random_policy(plain.spaces, 3)
    near(evaluate(policy, other.pomdp), evaluate(policy, plain.pomdp))
    by_step = H - np.arange(H)
    for name in ("mdp_values", "qmdp", "fast_informed_bound"):
        found, inside = (getattr(evaluation, name)(w.pomdp) for w in (other, plain))
        near(found, inside, steps=by_step.reshape(-1, *(1,) * (inside.ndim - 1)))
    for name in ("best_blind", "best_memoryless"):
        found, inside = (getattr(evaluation, name)(w.pomdp) for w in (other, plain))
        near(found.value, inside.value)
    for h, (found, inside) in enumerate(
        zip(*(evaluation.policy_alphas(policy, w.pomdp) for w in (other, plain)), strict=True)
    ):
        near(found, inside, steps=H - h)
    near(planners.root_bounds(other.pomdp), planners.root_bounds(plain.pomdp))
    with jax.enable_x64(True):
        key = jax.random.key(0)
    estimates = [evaluation.estimate(policy, w, key, 50) for w in (other, plain)]
    near(estimates[0].mean, estimates[1].mean)
    near(estimates[0].interval, estimates[1].interval)
    alone = [evaluation.estimate(policy, w, key, 1).interval for w in (other, plain)]
    near(*alone)
    bent = [
        evaluation.simulation_lemma(policy, w.pomdp, w.pomdp.with_tables(emission=SHOWS[::-1]))
        for w in (other, plain)
    ]
    near(bent[0].difference, bent[1].difference, steps=0)
    assert bent[0].distance == bent[1].distance


def test_a_declaration_shows_its_own_units(tmp_path):
    world = table("costs")
    np.testing.assert_allclose(world.homdp.reward[0], SCALE * REWARD + SHIFT)
    assert world.homdp.reward_range == (-3.0, 7.0)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(2), 7)
    played = rollout(keys, world, random_policy(world.spaces, 1))
    each = world.homdp.rewards_of(played)
    expected = (SCALE * REWARD + SHIFT)[played.states[:, :-1], played.actions]
    np.testing.assert_allclose(each, expected, atol=1e-12)
    np.testing.assert_allclose(world.returns(played), expected.sum(1), atol=1e-12)
    cells = list(revealed_table(world.homdp, played[0]).columns[-1].cells)
    assert cells == [f"{value:.2f}" for value in (*expected[0], expected[0].sum())]
    write_pomdp(world, tmp_path / "table.POMDP")
    np.testing.assert_allclose(
        read_file(tmp_path / "table.POMDP").reward, SCALE * REWARD + SHIFT, atol=1e-12
    )
    flat = models.flat.flat_table(world)
    assert (flat.homdp.rewards.scale, flat.homdp.rewards.shift) == (SCALE, SHIFT)


@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("make", [table, heard])
def test_environments(make, per_step):
    rewards = []
    for kind in ("plain", "rewards"):
        env = HOMDPEnv(make(kind), per_step=per_step)
        env.reset(seed=3)
        rewards.append([env.step(a)[1] for a in (0, 1, 2)])
    inside, found = np.array(rewards[0]), np.array(rewards[1])
    steps = np.ones(H) if per_step else np.array([0, 0, H])
    near(found, inside, steps=steps)


def test_studies(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from tests.test_units import table\n\n\n"
        "def plain():\n    return table()\n\n\ndef costs():\n    return table('costs')\n"
    )
    done = study.compare(
        ["mine.py:plain", "mine.py:costs"],
        explorers=["tight", "greedy"],
        episodes=6,
        seeds=2,
        priors=["declared", "flat"],
        out="study",
        workers=1,
    )
    assert done.complete
    for model, prior, rule in done.runs:
        if model.endswith("plain"):
            one, two = done.runs[model, prior, rule], done.runs["mine.py:costs", prior, rule]
            for mine, theirs in zip(one, two, strict=True):
                near(theirs.values, mine.values)
                near(theirs.optimistic, mine.optimistic)
                near(theirs.regret, mine.regret, steps=0)
    rows = [
        study.summarise({"tight": done.runs[f"mine.py:{kind}", "declared", "tight"]}, epsilon=size)[
            0
        ]
        for kind, size in (("plain", 0.1), ("costs", 1.0))
    ]
    for column in ("regret", "error", "gap", "width"):
        near(getattr(rows[1], column), getattr(rows[0], column), steps=0)
    assert rows[0].needed == rows[1].needed
    assert rows[0].optimistic == rows[1].optimistic


def test_theory():
    for one, two in zip(
        report(table(), 100), report(table("rewards"), 100, accuracy=SCALE * H / 10), strict=True
    ):
        in_units = one.name.startswith(("regret", "gap"))
        assert two.value == pytest.approx((SCALE if in_units else 1.0) * one.value, rel=1e-12)
        assert (one.informative, one.since) == (two.informative, two.since)
    assert report(table("rewards"), 100) == report(table("rewards").pomdp, 100)
    assert report(table().spaces, 100, scale=SCALE)[0] == report(table("costs"), 100)[0]
    counts, policy = Counts.zero(table()), random_policy(table().spaces, 2)
    sides = [theory.hop_b_optimism(policy, table(k), counts, 10, 0.1) for k in ("plain", "costs")]
    np.testing.assert_allclose(sides[1].value, SCALE * sides[0].value)
    np.testing.assert_allclose(sides[1].slack, SCALE * sides[0].slack)


def test_predictive_checks():
    found = []
    for kind in ("plain", "rewards"):
        world = table(kind)
        with jax.enable_x64(True):
            keys = jax.random.split(jax.random.key(4), 10)
            key = jax.random.key(5)
        policy = random_policy(world.spaces, 1)
        episodes = rollout(keys, world, policy)
        found.append(predictive_check(key, posterior(world.homdp, episodes), episodes, policy, 200))
    near(found[1].observed.mean, found[0].observed.mean)
    near(found[1].replicated.mean, found[0].replicated.mean)
    near(found[1].replicated.deviation, found[0].replicated.deviation, steps=0)


def no_scale(self, values, steps=None):
    """Forget the scale."""
    return values + (self.horizon if steps is None else steps) * self.shift


def one_shift(self, values, steps=None):
    """Add the shift once instead of at each step."""
    return self.scale * values + self.shift


BUGS = {
    "scale of models": (POMDP, "to_user", no_scale),
    "shift of models": (POMDP, "to_user", one_shift),
    "scale of declarations": (Rewards, "to_user", lambda self, v, steps: v + steps * self.shift),
    "shift of declarations": (
        Rewards,
        "to_user",
        lambda self, v, steps: self.scale * v + self.shift,
    ),
    "inverse": (POMDP, "from_user", lambda self, values: values / self.scale),
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_found(bug, monkeypatch):
    """Every wrong conversion fails at least one of the comparisons above."""
    where, name, wrong = BUGS[bug]
    monkeypatch.setattr(where, name, wrong)
    checks = SimpleNamespace(
        plan=lambda: test_planners("history_tree", "costs"),
        run=lambda: test_rules("greedy", "rewards"),
        search=lambda: same_runs(
            *(
                learn(w, example("posterior_sampling", w), planners.bounded_search(), 3)
                for w in (table(), table("rewards"))
            )
        ),
    )
    failed = []
    for check, run in vars(checks).items():
        try:
            run()
        except AssertionError:
            failed.append(check)
    assert failed

"""What every exploration rule keeps to, whoever wrote it; and that writing one is little work."""

import inspect
import re

import jax
import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    Counts,
    Episode,
    HOMDPError,
    ParameterError,
    Trajectory,
    explorers,
    learn,
    models,
    tabular,
    x64,
)
from homdp_ppl.confidence import empirical
from homdp_ppl.explorers import EXPLORERS, Explorer, Pairs, Proposal
from homdp_ppl.explorers.explorer import one
from homdp_ppl.learning.rounds import Planning
from tests.explorers.plain import decide, sensor
from tests.planners.exact import optimum
from tests.runs import TREE

X = Y = A = H = 2
MODEL = tabular(
    T=dist.Dirichlet(np.ones((X, A, X))),
    O=dist.Dirichlet(np.ones((X, Y))),
    initial=[0.6, 0.4],
    reward=np.array([[1.0, 0.3], [0.0, 0.8]]),
    horizon=H,
)
T = np.random.default_rng(0).dirichlet(np.ones(X), (3, X, A))
O = np.random.default_rng(1).dirichlet(np.ones(Y), (2, X))  # noqa: E741
WORLD = MODEL.at(T=T[0], O=O[1])
NEEDED = {
    "hop_b_class": {"emissions": O},
    "hop_v": {"transitions": T, "emissions": O},
    "oracle": {"world": WORLD},
}
FEWER = {"value_quantile": {"draws": 1}}  # plans
EPISODE = Episode(Trajectory(np.array([0, 1]), np.array([1, 0])), np.array([0, 0, 1]))
KEY = jax.random.key(7)

every_rule = pytest.mark.parametrize("name", EXPLORERS)


def make(name, **options):
    return EXPLORERS[name](**NEEDED.get(name, {}), **options)


def leaves(tree):
    return [np.array(leaf) for leaf in jax.tree.leaves(tree)]


def same(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a, b) for a, b in zip(one, other, strict=True)
    )


# Pure functions of arrays


@every_rule
def test_functions_are_pure(name):
    """The same from the same, and nothing that was handed over is changed."""
    rule = make(name, **FEWER.get(name, {}))
    state = rule.init(MODEL, 50)
    assert same(leaves(state), leaves(rule.init(MODEL, 50)))
    assert state.played == 0
    for _ in range(H):
        before, shown = leaves(state), leaves(EPISODE)
        after = rule.update(state, EPISODE)
        assert same(leaves(after), leaves(rule.update(state, EPISODE)))
        assert not same(leaves(after), before)
        assert same(leaves(state), before)
        assert same(leaves(EPISODE), shown)
        state = after
    before = leaves(state)
    assert same(leaves(rule.propose(KEY, state)), leaves(rule.propose(KEY, state)))
    assert same(leaves(state), before)


@every_rule
def test_proposals_are_arrays(name):
    """With a leading axis of candidates, the same for all; HOP-V's are factored instead."""
    rule = make(name, **FEWER.get(name, {}))
    state = rule.update(rule.init(MODEL, 50), EPISODE)
    proposal = rule.propose(KEY, state)
    assert all(
        isinstance(leaf, np.ndarray | jax.Array) and leaf.ndim >= 1
        for leaf in jax.tree.leaves(proposal)
    )
    if isinstance(proposal, Pairs):
        assert [len(part) for part in proposal[:4]] == [3, 2, 3, 2]
        return
    assert isinstance(proposal, Proposal)
    assert {len(leaf) for leaf in jax.tree.leaves(proposal)} == {1}
    short = proposal.models.stationary()
    initial, transition, emission, reward = (np.asarray(part) for part in short)
    assert (initial.shape, transition.shape, emission.shape, reward.shape) == (
        (1, X),
        (1, X, A, X),
        (1, X, Y),
        (1, H, X, A),
    )
    for rows in (initial, transition, emission):
        np.testing.assert_allclose(rows.sum(-1), 1.0, atol=1e-12)
    assert (reward >= MODEL.reward).all()
    support = rule.support(MODEL)
    assert all(
        np.all(allowed | (part[0] == 0))
        for allowed, part in zip(support, (initial, transition, emission), strict=True)
    )


@every_rule
def test_rules_that_can_be_compiled_can_be_traced(name):
    rule = make(name, **FEWER.get(name, {}))
    if not rule.compilable(MODEL):
        assert name in (
            "hop_v",
            "quantile_bonus",
        )  # version spaces; quantiles by draws (by the bound it can be)
        return
    state = rule.init(MODEL, 50)
    with x64():
        after, proposal = jax.eval_shape(
            lambda s: (rule.update(s, EPISODE), rule.propose(KEY, s)), state
        )
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert [leaf.shape for leaf in jax.tree.leaves(proposal)] == [
        leaf.shape for leaf in leaves(rule.propose(KEY, state))
    ]


@every_rule
def test_every_rule_learns(name):
    """A few episodes: exact gaps are never negative, and a rule that says so is optimistic."""
    run = learn(WORLD, make(name, **FEWER.get(name, {})), TREE, episodes=8, seed=0, compiled=False)
    assert len(run.played) == 8
    assert run.gaps.min() >= -1e-9
    if run.task.explorer.optimism == "frequentist" or name == "oracle":
        assert run.was_optimistic.all()
    if name == "oracle":
        np.testing.assert_allclose(run.gaps, 0.0, atol=1e-12)


def test_nothing_to_learn():
    """A declaration without unknown rows: rules plan in it as it is, whatever was seen."""
    known = tabular(T=T[0], O=O[0], initial=[0.6, 0.4], reward=MODEL.reward[0], horizon=H)
    value = optimum(known.at().pomdp)
    for rule in [
        explorers.quantile_bonus(bound=True),
        *(make(name) for name in EXPLORERS if name not in NEEDED),
    ]:
        decision = decide(rule, known, Counts.of([EPISODE], known))[1]
        assert decision.optimistic == pytest.approx(value, abs=1e-10), rule.name


# What they say of themselves

SOUNDNESS = {
    "epsilon_greedy": "none",
    "greedy": "none",
    "hop_b": "optimistic, frequentist",
    "hop_b_class": "optimistic, frequentist",
    "hop_v": "optimistic, frequentist",
    "oracle": "none",
    "posterior_sampling": "none",
    "quantile_backup": "none",
    "quantile_bonus": "optimistic, Bayesian",
    "tight": "optimistic, frequentist",
    "uniform": "none",
    "value_quantile": "optimistic, Bayesian",
}

OTHERS = {  # values that are no defaults
    "bound": True,
    "delta": 0.2,
    "draws": 3,
    "epsilon": 0.2,
    "known": False,
    "mass": 0.8,
    "q": 0.5,
    "scale": 0.5,
    "z": 1.0,
}


@every_rule
def test_every_rule_says_what_it_is(name):
    """One file a rule; origin or guarantee in the docstring; soundness in words."""
    factory, rule = EXPLORERS[name], make(name)
    assert factory.__module__ == f"homdp_ppl.explorers.{name}"
    assert getattr(explorers, name) is factory
    assert rule.rule == name
    assert rule.soundness == SOUNDNESS[name]
    told = inspect.getdoc(factory)
    assert re.search(r"Lee, Agarwal, Dann and Zhang \(2023\)|[Oo]ptimis|[Rr]egret|Sound", told)
    if rule.optimism != "none":
        assert re.search(r"probability 1 - \d? ?delta|>= 1 - delta|coverage", told)
    for parameter in inspect.signature(factory).parameters:
        assert re.search(rf"^[\w, ]*\b{parameter}\b[\w, ]*$", told, re.MULTILINE), parameter


@every_rule
def test_options_show_in_the_name(name):
    """Those that are not at their defaults, and only those; classes by their sizes."""
    needed = {"hop_b_class": "emissions=2", "hop_v": "transitions=3, emissions=2"}.get(name, "")
    assert make(name).name == (f"{name}({needed})" if needed else name)
    for option, parameter in inspect.signature(EXPLORERS[name]).parameters.items():
        if parameter.default is parameter.empty:
            continue
        value = OTHERS.get(option, "doubled" if parameter.default != "doubled" else "every episode")
        told = f"{needed}, {option}={value}" if needed else f"{option}={value}"
        rule = make(name, **{option: value})
        assert rule.name == f"{name}({told})"
        assert rule.soundness in repr(rule)
        assert rule.name in repr(rule)
        if option == "scale":
            assert rule.scaled
            assert rule.soundness == "none (scaled bonuses)"
        elif option == "mass":
            assert rule.soundness == "optimistic, Bayesian"
        else:
            assert rule.soundness == SOUNDNESS[name]


BY_DELTA = [
    name for name, make in EXPLORERS.items() if "delta" in inspect.signature(make).parameters
]


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        *((name, "delta", value) for name in BY_DELTA for value in (0, 1, "a")),
        *((name, "scale", value) for name in ("hop_b", "hop_b_class") for value in (-1, np.inf)),
        *(("quantile_backup", "z", value) for value in (-1.0, np.nan, "a")),
        *(("value_quantile", "q", value) for value in (0, 1, 2)),
        *(("value_quantile", "draws", value) for value in (0, 2.5)),
        *(("epsilon_greedy", "epsilon", value) for value in (0, 1.5)),
        *(("hop_v", "mass", value) for value in (0.0, 1.0)),
        *(
            (name, "replan", "sometimes")
            for name, make in EXPLORERS.items()
            if "replan" in inspect.signature(make).parameters
        ),
    ],
)
def test_options_are_checked(name, option, value):
    """When the rule is made, by the name that the option has."""
    with pytest.raises(ParameterError, match=rf"(?s){name}.*{option}: got ") as raised:
        make(name, **{option: value})
    assert [problem.where for problem in raised.value.problems] == [option]


def test_options_may_be_numpy_numbers():
    assert (
        explorers.value_quantile(q=np.float32(0.5), draws=np.int64(3)).name
        == "value_quantile(q=0.5, draws=3)"
    )
    assert explorers.quantile_backup(z=np.int64(2)).name == "quantile_backup(z=2)"


def test_the_oracle_needs_a_world():
    with pytest.raises(ParameterError, match=r"homdp\.at"):
        explorers.oracle(MODEL)
    with pytest.raises(ParameterError, match="the world that is acted in"):
        learn(models.load("tiger"), explorers.oracle(WORLD), TREE, episodes=3)


# Programs without a closed form

BAYESIAN = [
    explorers.posterior_sampling(),
    explorers.quantile_backup(),
    explorers.quantile_bonus(),
    explorers.value_quantile(draws=5),
]


@pytest.mark.parametrize("rule", BAYESIAN, ids=lambda rule: rule.rule)
def test_programs_without_a_closed_form(rule):
    """Draws from the prior, then reweighed: the rule believes what was seen, and stays pure."""
    state = rule.init(sensor(), 50)
    assert not rule.compilable(sensor())
    after = rule.update(state, EPISODE)
    assert after.memory.base is state.memory.base
    weights = after.memory.belief.atoms.probabilities
    heard = 1 / (
        1 + np.exp(-after.memory.atoms.values["ear"])
    )  # state 0 was heard right once, and wrong once
    assert np.corrcoef(weights, heard * (1 - heard))[0, 1] > 0.5
    assert state.memory.belief.atoms.weights is None
    proposal = rule.propose(KEY, after)
    assert same(leaves(proposal), leaves(rule.propose(KEY, after)))
    decision, plans = Planning(rule, TREE, sensor()).decide(proposal, after)
    assert plans == len(proposal.models.initial)
    assert 0 < decision.optimistic <= H


def test_the_bound_serves_dirichlet_rows_only():
    with pytest.raises(HOMDPError, match="Dirichlet rows only"):
        decide(explorers.quantile_bonus(bound=True), sensor(), Counts.zero(sensor()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule", [explorers.quantile_backup(), explorers.quantile_bonus()], ids=lambda rule: rule.rule
)
def test_learning_with_a_sampled_posterior(rule):
    """Enough episodes for NUTS to run again.

    What is believed in the end is near the truth, the gap is small.
    """
    world = sensor().at(ear=2.0, drift=-1.0)
    run = learn(world, rule, TREE, episodes=150, seed=0)
    assert run.state.memory.base.method == "nuts"
    assert abs(run.posterior.mean.shows(0)[0, 0] - world.pomdp.shows(0)[0, 0]) < 0.1
    assert run.gaps[-1] < 0.1
    assert "readable" in run.loop


@pytest.mark.slow
def test_the_maze():
    """A zoo program without a closed form."""
    run = learn(
        models.load("maze", horizon=3), explorers.posterior_sampling(), TREE, episodes=20, seed=0
    )
    assert run.gaps.min() >= -1e-9
    assert run.gaps[-1] < 0.05


# A new rule is one file and one line


def curious(weight: float = 1.0) -> Explorer:
    """Plan in the estimates with a bonus of weight / (1 + n(x, a))."""

    def propose(key, state):
        model = empirical(state.homdp, state.counts)
        return one(model.with_bonus(weight / (1 + state.counts.state_action)))

    return Explorer("curious", propose, "none", {"weight": weight})


def test_a_new_rule():
    """A function from counts to a model: the loop, the planner and the record do the rest.

    It can be traced as it stands.
    """
    run = learn(WORLD, curious(0.5), TREE, episodes=40, seed=0, compiled=False)
    assert run.to_dataset().attrs["explorer"] == "curious(weight=0.5)"
    assert run.optimistic[0] == pytest.approx(
        decide(explorers.greedy(), MODEL, Counts.zero(MODEL))[1].optimistic + 0.5 * H
    )
    assert (run.state.counts.state_action > 0).all()
    assert run.gaps[-10:].mean() < run.gaps[:10].mean()
    with x64():
        proposal = jax.eval_shape(curious().propose, KEY, run.state)
        assert proposal.models.reward.shape == (1, H, X, 1, A)

"""The contract of all registered rules; a new rule is one function and one line."""

import inspect
import pickle
import re
from dataclasses import FrozenInstanceError, fields, replace
from types import FunctionType

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
    study,
    tabular,
    x64,
)
from homdp_ppl.cli.main import main
from homdp_ppl.confidence import empirical
from homdp_ppl.core.bound import Bound, bind
from homdp_ppl.explorers import EXPLORERS, About, Explorer, Pairs, Proposal
from homdp_ppl.explorers.state import one
from homdp_ppl.learning.compilable import traced_reason
from homdp_ppl.learning.learner import Learner
from tests import rules
from tests.explorers.plain import decide, sensor
from tests.planners.exact import optimum
from tests.raising import raises
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
FEWER = {"value_quantile": {"draws": 1}}  # plans
EPISODE = Episode(Trajectory(np.array([0, 1]), np.array([1, 0])), np.array([0, 0, 1]))
KEY = jax.random.key(7)

every_rule = pytest.mark.parametrize("name", EXPLORERS)


def make(name, **options):
    return rules.example(name, WORLD, **options)


def leaves(tree):
    return [np.array(leaf) for leaf in jax.tree.leaves(tree)]


def same(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a, b) for a, b in zip(one, other, strict=True)
    )


# Pure functions of arrays


@every_rule
def test_functions_are_pure(name):
    """Equal inputs give equal results, and arguments are not changed."""
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
    """All arrays have the same leading axis of candidates; HOP-V proposes pairs instead."""
    rule = make(name, **FEWER.get(name, {}))
    state = rule.update(rule.init(MODEL, 50), EPISODE)
    proposal = rule.propose(KEY, state)
    assert all(
        isinstance(leaf, np.ndarray | jax.Array) and leaf.ndim >= 1
        for leaf in jax.tree.leaves(proposal[:4] if isinstance(proposal, Pairs) else proposal)
    )
    if isinstance(proposal, Pairs):
        assert [len(part) for part in proposal[:4]] == [3, 3, 3, 3]
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
    support = rule.objective.support(MODEL)
    assert all(
        np.all(allowed | (part[0] == 0))
        for allowed, part in zip(support, (initial, transition, emission), strict=True)
    )


@every_rule
def test_whether_rules_can_be_traced(name):
    """Determined by tracing; traced and computed results have equal shapes."""
    rule = make(name, **FEWER.get(name, {}))
    state = rule.init(MODEL, 50)
    if traced_reason(Learner(MODEL, rule, TREE, 50), state):
        return
    with x64():
        after, proposal = jax.eval_shape(
            lambda s: (rule.update(s, EPISODE), rule.propose(KEY, s)), state
        )
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert [leaf.shape for leaf in jax.tree.leaves(proposal)] == [
        leaf.shape for leaf in leaves(rule.propose(KEY, state))
    ]


def test_most_rules_can_be_traced():
    """All but version spaces and quantiles by draws; quantiles by the bound can be traced."""
    learners = {name: Learner(MODEL, make(name), TREE, 50) for name in EXPLORERS}
    not_traced = {name for name, each in learners.items() if traced_reason(each, each.init())}
    assert not_traced == {"hop_v", "quantile_bonus"}


@every_rule
def test_equal_options_make_equal_rules(name):
    """Equal rules have equal hashes, other options make them differ, and they can be pickled."""
    rule, again = make(name), make(name)
    assert rule == again
    assert hash(rule) == hash(again)
    assert rule is not again
    assert pickle.loads(pickle.dumps(rule)) == rule
    others = [make(name, **{option: value}) for option, value in options_of(name)]
    assert len({rule, *others}) == 1 + len(others)


@every_rule
def test_rules_contain_no_closures(name):
    """All functions are module-level, possibly with options: closures never compare equal."""
    rule = make(name)
    for part in (rule, rule.objective):
        for value in (getattr(part, field.name) for field in fields(part)):
            function = value.function if isinstance(value, Bound) else value
            if isinstance(function, FunctionType):
                assert function.__closure__ is None
                assert "<locals>" not in function.__qualname__
    with pytest.raises(FrozenInstanceError):
        rule.about = About("other")


def test_arrays_are_compared_by_their_bytes():
    """They cannot be changed later, neither in the rule nor through the caller's array."""
    table = np.stack([O[0], O[1]])
    rule = explorers.hop_b_class(table)
    assert rule == explorers.hop_b_class(table.copy())
    assert rule != explorers.hop_b_class(np.nextafter(table, 1))
    table[0] = 0.5
    assert rule == explorers.hop_b_class(np.stack([O[0], O[1]]))
    with pytest.raises(ValueError, match="read-only"):
        rule.propose.options["emissions"][0] = 0.5


@every_rule
def test_every_rule_learns(name):
    """A few episodes: gaps are never negative, and rules with a guarantee are optimistic."""
    run = learn(WORLD, make(name, **FEWER.get(name, {})), TREE, episodes=8, seed=0, compiled=False)
    assert len(run.played) == 8
    assert run.gaps.min() >= -1e-9
    if run.task.explorer.about.guarantee == "frequentist" or name == "oracle":
        assert run.was_optimistic.all()
    if name == "oracle":
        np.testing.assert_allclose(run.gaps, 0.0, atol=1e-12)


def test_nothing_to_learn():
    """Without unknown rows, rules plan in the declared model for any data."""
    known = tabular(T=T[0], O=O[0], initial=[0.6, 0.4], reward=MODEL.reward[0], horizon=H)
    value = optimum(known.at().pomdp)
    for rule in [
        explorers.quantile_bonus(bound=True),
        *(make(name) for name in EXPLORERS if not rules.example_arguments(name, WORLD)),
    ]:
        decision = decide(rule, known, Counts.of([EPISODE], known))[1]
        assert decision.optimistic == pytest.approx(value, abs=1e-10), rule.name


# Names and guarantees

SOUNDNESS = {
    "anytime": "optimistic, frequentist",
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

OTHERS = {  # values that differ from the defaults
    "bound": True,
    "delta": 0.2,
    "draws": 3,
    "epsilon": 0.2,
    "known": False,
    "mass": 0.8,
    "mixture": "declared",
    "q": 0.5,
    "scale": 0.5,
    "unvisited": 2.5,
    "z": 1.0,
}


def options_of(name):
    """Every option of a rule with a value that is not its default."""
    parameters = inspect.signature(EXPLORERS[name]).parameters.values()
    return [(each.name, OTHERS[each.name]) for each in parameters if each.default is not each.empty]


@every_rule
def test_every_rule_documents_its_guarantee(name):
    """One file per rule; the docstring names the source or the guarantee."""
    factory, rule = EXPLORERS[name], make(name)
    assert factory.__module__ == f"homdp_ppl.explorers.{name}"
    assert getattr(explorers, name) is factory
    assert rule.about.name == name
    assert rule.about.soundness == SOUNDNESS[name]
    documentation = inspect.getdoc(factory)
    words = " ".join(documentation.split())
    assert re.search(r"Lee, Agarwal, Dann and Zhang \(2023\)|[Oo]ptimis|[Rr]egret|Sound", words)
    if rule.about.guarantee != "none":
        assert re.search(r"probability 1 - \d? ?delta|>= 1 - delta|coverage", words)
    for parameter in inspect.signature(factory).parameters:
        assert re.search(rf"^[\w, ]*\b{parameter}\b[\w, ]*$", documentation, re.MULTILINE), (
            parameter
        )


@every_rule
def test_options_show_in_the_name(name):
    """Only options that differ from their defaults; classes by their sizes."""
    needed = {"hop_b_class": "emissions=3", "hop_v": "transitions=3, emissions=3"}.get(name, "")
    assert make(name).name == (f"{name}({needed})" if needed else name)
    for option, value in options_of(name):
        label = f"{needed}, {option}={value}" if needed else f"{option}={value}"
        rule = make(name, **{option: value})
        assert rule.name == f"{name}({label})"
        guarantee = re.sub("^none", "no guarantee", rule.about.soundness)
        assert repr(rule) == f"Explorer {rule.name}: {guarantee}"
        expected = {"scale": "none (scaled bonuses)", "mass": "optimistic, Bayesian"}
        assert rule.about.soundness == expected.get(option, SOUNDNESS[name])


def test_which_rules_use_the_prior_and_the_number_of_episodes():
    rules_by = {
        fact: {name for name in EXPLORERS if getattr(make(name).about, fact)}
        for fact in ("uses_prior", "needs_episodes")
    }
    bayesian = {"posterior_sampling", "quantile_backup", "quantile_bonus", "value_quantile"}
    assert rules_by["uses_prior"] == bayesian
    assert rules_by["needs_episodes"] == {"hop_b", "hop_b_class", "hop_v", "tight"}
    for name in EXPLORERS:
        if name in rules_by["needs_episodes"]:
            with raises(ParameterError, "episodes"):
                Learner(MODEL, make(name), TREE)
        else:
            state = Learner(MODEL, make(name), TREE).init()
            make(name).propose(KEY, make(name).update(state, EPISODE))


def test_transforms():
    """They change the deployment and the name; the random numbers of the rule stay."""
    greedy, random = explorers.greedy(), explorers.with_random_actions
    assert random(greedy, 0.3).deployment.random_actions == 0.3
    assert random(greedy, 0.3).name == "greedy(random_actions=0.3)"
    assert replace(random(greedy, 0.1), about=About("epsilon_greedy")) == explorers.epsilon_greedy()
    assert explorers.replan_on_doubling(greedy).name == "greedy(replan=doubled)"
    assert explorers.replan_once(greedy).deployment.replan == "once"
    assert explorers.replan_every_episode(greedy) is greedy
    hop_b = explorers.replan_every_episode(explorers.hop_b(scale=0.1))
    assert hop_b.name == "hop_b(scale=0.1, replan=every episode)"
    assert hop_b != explorers.hop_b(scale=0.1)
    with raises(ParameterError, "random_actions"):
        random(greedy, 1.5)


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
    ],
)
def test_options_are_validated(name, option, value):
    """When the rule is created; the error names the option."""
    with raises(ParameterError, option) as raised:
        make(name, **{option: value})
    assert [problem.where for problem in raised.value.problems] == [option]


def test_options_may_be_numpy_numbers():
    assert (
        explorers.value_quantile(q=np.float32(0.5), draws=np.int64(3)).name
        == "value_quantile(q=0.5, draws=3)"
    )
    assert explorers.quantile_backup(z=np.int64(2)).name == "quantile_backup(z=2)"


def test_the_oracle_needs_a_world():
    with raises(ParameterError, "world"):
        explorers.oracle(MODEL)
    with raises(ParameterError, "world"):
        learn(models.load("tiger"), explorers.oracle(WORLD), TREE, episodes=3)


# Programs without a closed form

BAYESIAN = [
    explorers.posterior_sampling(),
    explorers.quantile_backup(),
    explorers.quantile_bonus(),
    explorers.value_quantile(draws=5),
]


@pytest.mark.parametrize("rule", BAYESIAN, ids=lambda rule: rule.about.name)
def test_programs_without_a_closed_form(rule):
    """Draws from the prior are reweighted by the data; the functions stay pure."""
    state = rule.init(sensor(), 50)
    assert not all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(state))
    after = rule.update(state, EPISODE)
    assert after.memory.base is state.memory.base
    weights = after.memory.belief.atoms.probabilities
    heard = 1 / (
        1 + np.exp(-after.memory.atoms.values["ear"])
    )  # state 0 was observed correctly once and wrongly once
    assert np.corrcoef(weights, heard * (1 - heard))[0, 1] > 0.5
    assert state.memory.belief.atoms.weights is None
    proposal = rule.propose(KEY, after)
    assert same(leaves(proposal), leaves(rule.propose(KEY, after)))
    decision = Learner(sensor(), rule, TREE).plan(proposal, after)
    assert decision.plans == len(proposal.models.initial)
    assert 0 < decision.optimistic <= H


def test_the_bound_requires_dirichlet_rows():
    with raises(HOMDPError, "rows"):
        decide(explorers.quantile_bonus(bound=True), sensor(), Counts.zero(sensor()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [explorers.quantile_backup(), explorers.quantile_bonus()],
    ids=lambda rule: rule.about.name,
)
def test_learning_with_a_sampled_posterior(rule):
    """There are enough episodes for NUTS to run again.

    The final posterior is near the true parameters, and the gap is small.
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


# A new rule is one function and one line


def curious(weight: float = 1.0) -> Explorer:
    """Plan in the estimates with a bonus of weight / (1 + n(x, a)). Optimism has no guarantee.

    Parameters
    ----------
    weight
        The weight of the bonus.
    """
    about = About("curious", {"weight": weight} if weight != 1.0 else {}, uses_prior=True)
    return Explorer(about, propose=bind(be_curious, weight=weight))


def be_curious(key, state, weight):
    model = empirical(state.homdp, state.counts)
    return one(model.with_bonus(weight / (1 + state.counts.state_action)))


@pytest.fixture
def registered(monkeypatch):
    """Register the new rule."""
    monkeypatch.setitem(EXPLORERS, "curious", curious)
    monkeypatch.setitem(OTHERS, "weight", 0.5)
    monkeypatch.setitem(SOUNDNESS, "curious", "none")
    return "curious"


@pytest.mark.parametrize(
    "contract",
    [
        test_functions_are_pure,
        test_proposals_are_arrays,
        test_whether_rules_can_be_traced,
        test_equal_options_make_equal_rules,
        test_rules_contain_no_closures,
        test_every_rule_learns,
        test_options_show_in_the_name,
    ],
)
def test_a_new_rule_keeps_the_contract(contract, registered):
    contract(registered)


def test_a_new_rule_learns_in_both_loops():
    """The rule is only a function from counts to a model."""
    run = learn(WORLD, curious(0.5), TREE, episodes=40, seed=0, compiled=False)
    assert run.to_dataset().attrs["explorer"] == "curious(weight=0.5)"
    assert run.optimistic[0] == pytest.approx(
        decide(explorers.greedy(), MODEL, Counts.zero(MODEL))[1].optimistic + 0.5 * H
    )
    assert (run.state.counts.state_action > 0).all()
    assert run.gaps[-10:].mean() < run.gaps[:10].mean()
    compiled = learn(WORLD, curious(0.5), TREE, episodes=40, seed=0, compiled=True)
    np.testing.assert_allclose(compiled.values, run.values, atol=1e-9)
    np.testing.assert_array_equal(compiled.record.actions, run.record.actions)


def test_a_new_rule_in_studies_and_on_the_command_line(registered, tmp_path, capsys):
    """It declares that it uses the prior, so it is run under several priors."""
    priors = ("declared", "flat")
    rules_ = ["greedy", "curious:weight=0.5", "curious:replan=doubled"]
    done = study.compare(
        "tiger", rules_, 3, 1, out=tmp_path / "study", workers=1, horizon=2, priors=priors
    )
    assert [(prior, rule) for _, prior, rule in done.runs] == [
        *(("declared", rule) for rule in rules_),
        *(("flat", rule) for rule in rules_[1:]),
    ]
    assert done.complete
    learned = ["learn", "tiger", "--horizon", "2", "--explorer", registered, "--episodes", "3"]
    assert main(learned) == 0
    assert "curious" in capsys.readouterr().out

"""Learning from declared labels and mechanisms of reveals."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    Agent,
    DataError,
    Kernels,
    ParameterError,
    Reveal,
    explorers,
    homdp,
    learn,
    posterior,
    study,
    uniform_policy,
)
from homdp_ppl.learning.declared import Declared
from homdp_ppl.learning.learner import Learner
from homdp_ppl.learning.replay import restore
from homdp_ppl.models.flat import flat_table
from homdp_ppl.planners import history_tree
from homdp_ppl.posteriors import Sampling, particles
from tests.hindsight import MODELS
from tests.raising import raises

TREE, PSRL, N = history_tree(), explorers.posterior_sampling(), 12
GRID, ERRORS = np.linspace(0.5, 0.95, 5), np.array([0.02, 0.1, 0.3])
MOVES = np.array([[[0.8, 0.1, 0.1], [0.3, 0.4, 0.3]]] * 3)
REWARD = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
SIZES = {"states": 3, "observations": 3, "actions": 2, "horizon": 3, "reward": REWARD}
COARSE = np.array([[1.0, 0], [0, 1], [0, 1]])


def spread(right):
    """Rows in which the diagonal has a given probability."""
    return right * np.eye(3) + (1 - right) / 2 * (1 - np.eye(3))


def after_a_right_one(x, y, a):
    """Mostly the states that the observation shows are revealed."""
    return 0.3 if y is None else jnp.where(x == y, 0.9, 0.1)


def seldom_the_first(x, y, a):
    return jnp.where(x == 0, 0.1, 0.8)


def declared(label=None, revealed=None, unknown=False, sizes=SIZES):
    """Three states, whose observations are right with a probability on a grid."""

    @homdp(**sizes)
    def model():
        which = numpyro.sample("which", dist.Categorical(jnp.ones(5) / 5))
        how = label
        if unknown:
            how = spread(
                1 - jnp.asarray(ERRORS)[numpyro.sample("error", dist.Categorical(jnp.ones(3) / 3))]
            )
        return Kernels(
            [0.4, 0.3, 0.3], MOVES, spread(jnp.asarray(GRID)[which]), label=how, revealed=revealed
        )

    return model


CASES = {
    "known errors": declared(spread(0.8)),
    "unknown errors": declared(unknown=True),
    "coarse": declared(COARSE),
    "mechanism": declared(revealed=after_a_right_one),
    "labels by a mechanism": declared(spread(0.9), seldom_the_first),
}


def world_of(name):
    further = {"error": 1} if name == "unknown errors" else {}
    return CASES[name].at(which=3, **further)


def run_of(world, rule=PSRL, episodes=N, seed=0, **options):
    return learn(world, rule, TREE, episodes, seed, **options)


def chances(belief):
    return belief.atoms.probabilities


@pytest.mark.parametrize("name", CASES)
def test_the_belief_is_the_exact_posterior(name):
    """All sites are discrete, so both are sums over all values."""
    world = world_of(name)
    run = run_of(world)
    exact = posterior(world.homdp, run.episodes)
    assert exact.method == "enumerated"
    assert np.allclose(chances(run.state.memory.belief), chances(exact), atol=1e-10)
    assert np.allclose(chances(run.posterior), chances(exact), atol=1e-12)
    assert run.task.hindsight == "partial"
    assert not run.compiled
    labels = world.homdp.hindsight_form.labels
    assert (run.episodes.labels is not None) == (labels > 0)
    assert run.episodes.revealed.any() == (labels == 0)
    assert not run.episodes.revealed.all()
    assert str(Declared(world)) in repr(run)


@pytest.mark.parametrize("name", ["known errors", "mechanism"])
def test_evidence_that_is_ignored_is_caught(name, monkeypatch):
    monkeypatch.setattr(particles, "hindsight_tables_at", lambda *_: {})
    run = run_of(world_of(name))
    exact = posterior(run.task.model, run.episodes)
    assert np.abs(chances(run.state.memory.belief) - chances(exact)).max() > 0.01


def test_labels_that_determine_the_state_are_states():
    world = declared(np.eye(3)).at(which=3)
    run = run_of(world)
    complete = replace(run, task=replace(run.task, reveal=None)).episodes
    assert np.array_equal(run.episodes.labels, complete.states)
    exact = posterior(declared(), complete)
    assert np.allclose(chances(run.state.memory.belief), chances(exact), atol=1e-10)


def test_a_model_without_the_mechanism_is_wrong():
    """Right observations are revealed nine times as often: the accuracy is overestimated."""
    world = CASES["mechanism"].at(which=0)
    right, wrong = (run_of(world, episodes=40, model=m) for m in (None, declared()))
    means = [
        chances(run.posterior) @ GRID[run.posterior.atoms.values["which"]] for run in (right, wrong)
    ]
    assert abs(means[0] - 0.5) < 0.1
    assert means[1] > 0.6


@pytest.mark.parametrize("name", ["unknown errors", "labels by a mechanism"])
def test_resuming_and_restoring(name):
    world = world_of(name)
    whole = run_of(world)
    part, start = (run_of(world, stop_after=k) for k in (5, 0))
    for again in (part.resume(), restore(start, part.record).resume()):
        assert again.record.same_as(whole.record)
        assert np.array_equal(
            chances(again.state.memory.belief), chances(whole.state.memory.belief)
        )


def test_terminal_states():
    """Also when a run is restored from a record, in which episodes have all their steps."""
    sizes = {**SIZES, "terminal": (2,), "states": ("left", "right", "over"), "horizon": 4}
    sizes["terminal"] = ("over",)
    world = declared(revealed=lambda x, y, a, h: 0.2 * h, sizes=sizes).at(which=3)
    whole = run_of(world)
    assert whole.episodes.length.min() < 4
    start, part = (run_of(world, stop_after=k) for k in (0, 8))
    again = restore(start, part.record)
    assert np.array_equal(chances(again.state.memory.belief), chances(part.state.memory.belief))
    assert again.resume().record.same_as(whole.record)
    exact = posterior(world.homdp, whole.episodes)
    assert np.allclose(chances(whole.state.memory.belief), chances(exact), atol=1e-10)


def test_what_is_shown_depends_on_seed_and_episode_only():
    world = world_of("labels by a mechanism")
    keys = jax.random.split(jax.random.key(0), 30)
    played, protocol = world.play(keys, uniform_policy(world)), Declared(world)
    whole = protocol.shown(played, 3)
    for k in (0, 7, 29):
        one = protocol.episode(played[k], 3, k)
        assert np.array_equal(np.ma.getmaskarray(one.labels), ~whole.labels_known[k])
        assert np.array_equal(np.ma.filled(one.labels, 0), whole.labels[k] * whole.labels_known[k])
    other = protocol.shown(played, 4)
    assert not np.array_equal(other.labels_known, whole.labels_known)
    same = world.play(keys[:1], uniform_policy(world))[np.zeros(30, dtype=int)]
    assert not protocol.shown(same, 3).labels_known.all(0).any()  # episodes differ


def test_frequencies_are_those_of_the_declaration():
    """False-alarm rate below 1e-4: each of 6 limits is 4.5 standard errors."""
    world = world_of("labels by a mechanism")
    keys = jax.random.split(jax.random.key(0), 1000)
    played = world.play(keys, uniform_policy(world))
    shown = Declared(world).shown(played, 0)
    for x, chance in enumerate((0.1, 0.8, 0.8)):
        here = played.states == x
        known = shown.labels_known & here
        for drawn, p, n in (
            (known.sum(), chance, here.sum()),
            ((shown.labels[known] == x).sum(), 0.9, known.sum()),
        ):
            assert abs(drawn - n * p) < 4.5 * np.sqrt(n * p * (1 - p))


@pytest.mark.parametrize("name", ["coarse", "mechanism"])
def test_the_learner_sees_what_is_revealed_only(name):
    """Hidden states are not in what is shown, not even below a mask."""
    world = world_of(name)
    run = run_of(world, explorers.uniform())
    for k in range(N):
        shown = run.task.shown(run._every_state[k], k)
        hidden = np.ma.getmaskarray(shown.states)
        assert not np.ma.getdata(shown.states)[hidden].any()
        assert hidden.all() == (name == "coarse")


@pytest.mark.parametrize(
    "rule",
    [
        explorers.value_quantile(draws=3),
        explorers.quantile_bonus(),
        explorers.replan_on_doubling(PSRL),
        explorers.uniform(),
    ],
    ids=str,
)
def test_rules_that_accept_labels_and_mechanisms(rule):
    for name in ("known errors", "mechanism"):
        run = run_of(world_of(name), rule, 4)
        assert np.isfinite(run.values).all()
        once = rule.deployment.replan == "once"
        assert run.record.planned.sum() == 1 if once else run.record.planned.sum() > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["noisy", "coarse", "chosen", "later", "coins"])
def test_other_declarations(name):
    """The mean is that of the posterior, within one standard deviation.

    That is four Monte Carlo errors of 16 particles: a false-alarm rate below 1e-3.
    """
    world = MODELS[name][0].draw(jax.random.key(4))
    run = run_of(world, episodes=25)
    belief = run.state.memory.belief
    exact = posterior(world.homdp, run.episodes, sampling=Sampling(draws=4000))
    for site, values in exact.atoms.values.items():
        distance = np.abs(belief.atoms.means()[site] - values.mean(0))
        assert np.all(distance < values.std(0) + 1e-9)


@pytest.mark.parametrize("rule", ["tight", "anytime", "greedy", "hop_b"])
@pytest.mark.parametrize(("name", "where"), [("coarse", "label"), ("mechanism", "revealed")])
def test_rules_that_count_refuse_them(rule, name, where):
    world = world_of(name)
    with raises(ParameterError, where) as caught:
        run_of(world, getattr(explorers, rule)())
    assert "biased" in caught.value.problems[0].remedy
    for options in (([world], [world]),):
        with raises(ParameterError, where):
            run_of(world, explorers.hop_v(*options))
    with raises(ParameterError, where):
        Learner(world.homdp, PSRL, TREE)  # the declaration does not reveal every state


def test_rules_that_count_refuse_a_mechanism_that_the_model_leaves_out():
    with raises(ParameterError, "reveal"):
        run_of(world_of("mechanism"), explorers.tight(), model=declared())


@pytest.mark.parametrize("name", ["coarse", "mechanism"])
def test_flat_tables_refuse_what_they_would_leave_out(name):
    with raises(ParameterError, "world"):
        flat_table(world_of(name))


def test_options_that_need_every_state():
    world = world_of("coarse")
    with raises(ParameterError, "foresight", "stop_when"):
        run_of(world, foresight=True, stop_when=0.1)
    with raises(ParameterError, "compiled"):
        run_of(world, compiled=True)
    with raises(ParameterError, "reveal"):
        run_of(world, reveal=Reveal(0.5))
    with raises(DataError, "states"):
        run_of(world).certificate  # noqa: B018


def test_models_with_other_labels():
    for world, model in (
        (world_of("coarse"), declared()),
        (declared().at(which=3), CASES["coarse"]),
        (world_of("coarse"), CASES["known errors"]),
    ):
        with raises(ParameterError, "model"):
            run_of(world, model=model)


def test_agents_refuse_them():
    for name, where in (("coarse", "label"), ("mechanism", "revealed")):
        with raises(ParameterError, where):
            Agent(CASES[name], PSRL, TREE)


FILE = """
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from homdp_ppl import Kernels, homdp


@homdp(states=2, observations=2, actions=2, horizon=2, reward=[[1.0, 0.0], [0.0, 1.0]])
def noisy():
    p = numpyro.sample("p", dist.Beta(8, 2))
    table = jnp.array([[p, 1 - p], [1 - p, p]])
    return Kernels([0.5, 0.5], jnp.full((2, 2, 2), 0.5), table, label=[[0.9, 0.1], [0.1, 0.9]])


world = noisy.at(p=0.8)
"""


def test_studies(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    name = f"{file}:world"
    options = {"episodes": 3, "seeds": 2, "workers": 1, "priors": ["declared"]}
    finished = study.compare(
        name, ["posterior_sampling", "uniform"], out=tmp_path / "one", **options
    )
    assert finished.complete
    found = finished.runs[name, "declared", "posterior_sampling"]
    world = study.find_world(name, None)
    for seed, run in enumerate(found):
        alone = learn(world, PSRL, study.find_planner("auto", world), 3, seed)
        assert run.values == pytest.approx(alone.values)
    for rule, where in (("tight", "label"), ("posterior_sampling:reveal=0.5", "reveal")):
        with raises(ParameterError, where):
            study.compare(name, [rule], out=tmp_path / "two", **options)
    with raises(ParameterError, "reveal"):
        study.hindsight(world, [PSRL], episodes=2, shares=[0.5, 1])

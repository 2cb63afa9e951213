"""Learning with partial hindsight: what the learner sees, and which rules accept it."""

from dataclasses import replace

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import (
    DataError,
    Kernels,
    ParameterError,
    Real,
    Reveal,
    evaluate,
    explorers,
    homdp,
    learn,
    models,
    posterior,
)
from homdp_ppl.core.counts import Counts
from homdp_ppl.core.reveal import revealed
from homdp_ppl.explorers._believing import update_belief
from homdp_ppl.learning.learner import Learner
from homdp_ppl.learning.replay import restore
from homdp_ppl.planners import history_tree
from homdp_ppl.posteriors import Gate, Sampling
from tests.declare.test_terminal import native
from tests.posteriors import programs
from tests.raising import raises

TREE = history_tree()
HALF = Reveal(0.5)
LAST = Reveal(states="last")


@pytest.fixture(scope="module")
def tiger():
    return models.load("tiger_table", horizon=3)


def run_of(world, rule=None, episodes=12, seed=0, **options):
    rule = explorers.posterior_sampling() if rule is None else rule
    return learn(world, rule, TREE, episodes, seed, **options)


CASES = [("tight", True), ("tight", False), ("posterior_sampling", False), ("hop_v", False)]


@pytest.mark.parametrize(("name", "compiled"), CASES)
def test_a_share_of_one_is_the_run_without_a_protocol(tiger, name, compiled):
    options = ([tiger], [tiger]) if name == "hop_v" else ()
    rule = getattr(explorers, name)(*options)
    without = run_of(tiger, rule, compiled=compiled)
    for reveal in (Reveal(), Reveal(unit="episode")):
        with_it = run_of(tiger, rule, compiled=compiled, reveal=reveal)
        assert with_it.record.same_as(without.record)
        assert with_it.about == without.about
        assert with_it.loop == without.loop


def test_the_learner_sees_revealed_states_only(tiger):
    """Hidden states are changed before the update; the state of the rule stays the same."""
    episode = run_of(tiger).episodes[3]
    other = replace(episode, states=1 - np.asarray(episode.states))
    mask = HALF.mask(0, 3, 3)
    mixed = replace(episode, states=np.where(mask, episode.states, other.states))
    assert not mask.all()
    for rule in (explorers.posterior_sampling(), explorers.tight()):
        learner = Learner(tiger.homdp, rule, TREE, 10, hindsight="coin")
        one, two = (
            learner.update(learner.init(), revealed(HALF, each, 0, 3), simulated=True)
            for each in (episode, mixed)
        )
        assert np.array_equal(one.counts.transition, two.counts.transition)
        assert np.array_equal(one.counts.emission, two.counts.emission)
        if one.memory is not None:
            assert np.array_equal(one.memory.entries, two.memory.entries)


def test_a_coin_lets_counting_rules_count_revealed_steps_and_pairs(tiger):
    run = run_of(tiger, explorers.tight(), reveal=HALF)
    moves, shows = np.zeros((2, 3, 2), int), np.zeros((2, 2), int)
    for k in range(12):
        mask = HALF.mask(0, k, 3)
        x, y, a = run.record.states[k], run.record.observations[k], run.record.actions[k]
        for h in range(3):
            shows[x[h], y[h]] += mask[h]
            moves[x[h], a[h], x[h + 1]] += mask[h] & mask[h + 1]
    assert np.array_equal(run.state.counts.transition, moves)
    assert np.array_equal(run.state.counts.emission, shows)
    assert 0 < moves.sum() < 36


def test_episodes_of_a_run_have_gaps(tiger):
    run = run_of(tiger, reveal=HALF)
    masks = np.array([HALF.mask(0, k, 3) for k in range(12)])
    assert np.array_equal(run.episodes.revealed, masks)
    assert run.about["reveal"] == "50% of the states"
    assert "50% of the states" in repr(run)
    assert len(run.returns) == 12
    assert np.isfinite(run.returns).all()
    assert run.policy_at(5) is run.policies[5]
    with raises(DataError, "states"):
        Counts.of(run.episodes, tiger)


def test_random_numbers_of_the_world_are_the_same(tiger):
    whole, some = (run_of(tiger, explorers.uniform(), reveal=r) for r in (None, LAST))
    assert np.array_equal(whole.record.states, some.record.states)
    assert np.array_equal(whole.record.observations, some.record.observations)


@pytest.mark.parametrize("rule", [explorers.posterior_sampling(), explorers.tight()], ids=str)
def test_resuming_and_restoring(tiger, rule):
    whole = run_of(tiger, rule, reveal=HALF)
    part = run_of(tiger, rule, reveal=HALF, stop_after=5)
    assert part.resume().record.same_as(whole.record)
    start = run_of(tiger, rule, reveal=HALF, stop_after=0)
    again = restore(start, part.record).resume()
    assert again.record.same_as(whole.record)


def test_policies_of_counting_rules_are_planned_again(tiger):
    run = run_of(tiger, explorers.tight(), reveal=HALF)
    for index in (3, 9):
        value = float(run.values[index])
        assert evaluate(run.policy_at(index), tiger.pomdp) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    "rule",
    [
        explorers.value_quantile(draws=3),
        explorers.quantile_bonus(),
        explorers.quantile_backup(),
        explorers.replan_on_doubling(explorers.posterior_sampling()),
        explorers.uniform(),
    ],
    ids=str,
)
def test_rules_that_accept_every_protocol(tiger, rule):
    for reveal in (LAST, Reveal(0.0)):
        run = run_of(tiger, rule, episodes=3, reveal=reveal)
        assert np.isfinite(run.values).all()


def test_declarations_without_closed_form():
    world = programs.one_of_two().draw(jax.random.key(0))
    run = run_of(world, reveal=HALF, episodes=4)
    assert run.state.memory.belief.method == run.posterior.method == "enumerated"
    weights = run.state.memory.belief.atoms.probabilities
    assert np.allclose(weights, run.posterior.atoms.probabilities)


def test_nothing_unknown():
    world = programs.nothing_unknown().at()
    assert run_of(world, reveal=LAST, episodes=3).regret[-1] == pytest.approx(0)


@pytest.mark.slow
def test_terminal_states():
    world = native().draw(jax.random.key(3))
    run = run_of(world, reveal=HALF, episodes=8)
    assert run.episodes.length.min() < world.spaces.horizon
    assert len(run.values) == 8


@pytest.mark.parametrize("reveal", [LAST, Reveal(episodes=2)], ids=str)
@pytest.mark.parametrize("rule", ["hop_b", "tight", "anytime", "greedy"])
def test_rules_that_count_need_a_coin(tiger, rule, reveal):
    with raises(ParameterError, "reveal"):
        run_of(tiger, getattr(explorers, rule)(), reveal=reveal)


def test_rules_that_need_every_state(tiger):
    for reveal in (HALF, LAST):
        with raises(ParameterError, "reveal"):
            run_of(tiger, explorers.hop_b_class([tiger]), reveal=reveal)


def test_options_that_need_every_state(tiger):
    with raises(ParameterError, "foresight", "stop_when"):
        run_of(tiger, reveal=HALF, foresight=True, stop_when=0.1)
    with raises(ParameterError, "compiled"):
        run_of(tiger, reveal=HALF, compiled=True)
    with raises(ParameterError, "bound"):
        run_of(tiger, explorers.quantile_bonus(bound=True), reveal=HALF)
    with raises(ParameterError, "unvisited"):
        run_of(tiger, explorers.quantile_backup(unvisited=2.0), reveal=HALF)
    with raises(ParameterError, "reveal"):
        run_of(tiger, reveal=0.5)
    with raises(DataError, "states"):
        run_of(tiger, explorers.tight(), reveal=HALF).certificate  # noqa: B018


def test_real_valued_spaces_need_every_state():
    @homdp(states=2, observations=Real(1), actions=2, horizon=1, reward=np.eye(2))
    def guess():
        return Kernels([0.5, 0.5], np.full((2, 2, 2), 0.5), lambda x: dist.Normal(x, 1.0))

    with raises(ParameterError, "reveal"):
        run_of(guess.at(), reveal=HALF)


def test_learners_of_live_systems_validate_gaps(tiger):
    episode = revealed(HALF, run_of(tiger).episodes[3], 0, 3)
    learner = Learner(tiger.homdp, explorers.posterior_sampling(), TREE, hindsight="partial")
    assert int(learner.update(learner.init(), episode).played) == 1
    complete = Learner(tiger.homdp, explorers.posterior_sampling(), TREE)
    with raises(DataError, "states"):
        complete.update(complete.init(), episode)
    assert complete.explorer.update is update_belief


def coined(chance, unit="step"):
    """The tiger that listens, whose states are revealed by an unknown coin."""

    @homdp(states=2, observations=2, actions=2, horizon=3, reward=np.eye(2), reveal_unit=unit)
    def model():
        moves = numpyro.sample("moves", dist.Dirichlet(np.ones((2, 2, 2))))
        shows = numpyro.sample("shows", dist.Dirichlet(np.ones((2, 2))))
        q = numpyro.sample("q", dist.Beta(2, 2))
        return Kernels([0.5, 0.5], moves, shows, revealed=q)

    tables = np.full((2, 2, 2), 0.5), np.array([[0.8, 0.2], [0.3, 0.7]])
    return model.at(moves=tables[0], shows=tables[1], q=chance)


@pytest.mark.parametrize("unit", ["step", "episode"])
@pytest.mark.parametrize("name", ["tight", "anytime", "greedy", "posterior_sampling"])
def test_a_declared_coin_is_the_protocol(name, unit):
    """What is revealed, and the counts of the rule, are those of the protocol of the same share."""
    world, reveal = coined(0.4, unit), Reveal(0.4, unit)
    run = run_of(world, getattr(explorers, name)())
    masks = np.array([reveal.mask(0, k, 3) for k in range(12)])
    assert np.array_equal(run.episodes.revealed, masks)
    assert run.about["reveal"] == str(reveal)
    assert run.state.counts.emission.sum() == masks[:, :3].sum()
    assert run.state.counts.transition.sum() == (masks[:, :-1] & masks[:, 1:]).sum()
    shown = masks.sum() if unit == "step" else masks.all(1).sum()
    total = masks.size if unit == "step" else len(masks)
    loose = Gate(r_hat=2, ess=1)
    belief = posterior(world.homdp, run.episodes, sampling=Sampling(chains=2), gate=loose)
    spread = belief.atoms.values["q"].std() / 10
    assert abs(belief.site_means["q"] - (2 + shown) / (4 + total)) < spread


def test_a_declared_coin_and_a_protocol_are_refused():
    with raises(ParameterError, "reveal"):
        run_of(coined(0.4), reveal=HALF)

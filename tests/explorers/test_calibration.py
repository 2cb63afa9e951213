"""How often rules are optimistic in worlds drawn from the prior, with exact expected frequencies.

Every replica draws a world, plays some episodes of the uniform policy in it, and compares the
rule's optimistic value with the world's optimum. There is one comparison per world, because the
episodes of one run depend on each other.
"""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from homdp_ppl import POMDP, Counts, Kernels, explorers, homdp, posterior, tabular, x64
from homdp_ppl.confidence import confidence_sets, value_ranges
from homdp_ppl.declare.kernels import Tables
from homdp_ppl.explorers import State
from homdp_ppl.explorers.anytime import optimistic_proposal
from homdp_ppl.explorers.explorer import upper_value
from homdp_ppl.learning.planning import TablePlanning, choose_candidate
from homdp_ppl.planners import remaining_steps
from homdp_ppl.posteriors import Sampling
from homdp_ppl.posteriors.tracking import Tracked
from tests.chances import believable, enough
from tests.explorers.plain import decide, sensor
from tests.planners.exact import optimum
from tests.runs import TREE
from tests.worlds import simulate

X = Y = A = H = 2
ALPHA_T = np.array([[[2.0, 1], [1, 1]], [[1, 3], [1, 1]]])
ALPHA_O = np.array([[3.0, 1], [1, 2]])
INITIAL = np.array([0.55, 0.45])
REWARD = np.array([[1.0, 0.1], [0.0, 0.9]])
MODEL = tabular(
    T=dist.Dirichlet(ALPHA_T), O=dist.Dirichlet(ALPHA_O), initial=INITIAL, reward=REWARD, horizon=H
)

REPLICAS, EPISODES = 3000, 12
DELTA = 0.1


def worlds(alpha_T, alpha_O, seed, replicas=REPLICAS):
    generator = np.random.default_rng(seed)
    gamma = generator.standard_gamma(np.broadcast_to(alpha_T, (replicas, X, A, X)))
    seen = generator.standard_gamma(np.broadcast_to(alpha_O, (replicas, X, Y)))
    return gamma / gamma.sum(-1, keepdims=True), seen / seen.sum(-1, keepdims=True)


def episodes(T, O, seed):  # noqa: E741
    initial = np.broadcast_to(INITIAL, (len(T), X))
    return simulate(initial, T, O, H, EPISODES, np.random.default_rng(seed))


def count(played, weights):
    """Counts of every replica; ``weights`` (replicas, episodes) are multiplicities."""
    replica = np.arange(len(weights))[:, None, None]
    transition, emission = (
        np.zeros((len(weights), X, A, X), dtype=int),
        np.zeros((len(weights), X, Y), dtype=int),
    )
    before = played.states[..., :-1]
    np.add.at(
        transition, (replica, before, played.actions, played.states[..., 1:]), weights[..., None]
    )
    np.add.at(emission, (replica, before, played.observations), weights[..., None])
    return transition, emission


def first_episodes(seed):
    """Count only the first n episodes, with a different n, from 0 to all, in every replica."""
    n = np.random.default_rng(seed).integers(0, EPISODES + 1, REPLICAS)
    return (np.arange(EPISODES) < n[:, None]).astype(int)


@cache
def evaluator(rule):
    """The root values of all candidates of a rule, compiled for all replicas."""
    planning = TablePlanning(rule, TREE, MODEL)
    solve = planning.tree.compile(planning.support)

    def values(key, transition, emission):
        state = State(
            Counts(transition, emission, MODEL.spaces[:3]),
            jnp.zeros((), int),
            None,
            MODEL,
            EPISODES,
        )
        proposal = jax.tree.map(jnp.asarray, rule.propose(key, state))
        return jax.vmap(
            lambda model, parameters: planning.root(parameters, solve(model, parameters))
        )(*proposal)

    return jax.jit(jax.vmap(values))


def candidates(rule, counts, seed=0):
    """Root values of all candidates, (replicas, candidates)."""
    with x64():
        return np.asarray(
            evaluator(rule)(jax.random.split(jax.random.key(seed), len(counts[0])), *counts)
        )


@cache
def study(seed=0, right=True):
    """Worlds from the declared prior or from its mirror image, their optima and their episodes."""
    T, O = (  # noqa: E741
        worlds(ALPHA_T, ALPHA_O, seed)
        if right
        else worlds(ALPHA_T[..., ::-1], ALPHA_O[..., ::-1], seed)
    )
    solve = TREE.compile(MODEL.structure.support)
    with x64():
        best = jax.jit(
            jax.vmap(lambda T, shown: solve(POMDP.of(INITIAL, T, shown, MODEL.reward)).value)
        )(T, O)
    assert best[0] == pytest.approx(optimum(POMDP.of(INITIAL, T[0], O[0], MODEL.reward)), abs=1e-12)
    return np.asarray(best), episodes(T, O, seed + 1)


def counted_twice():
    """Half of the episodes, each counted twice."""
    weights = first_episodes(0)
    return weights * 2 * (np.arange(EPISODES) % 2 == 0)


SAMPLING = explorers.posterior_sampling()
QUANTILE = explorers.value_quantile(0.7, 4)


def test_posterior_sampling_is_optimistic_in_half_of_all_worlds():
    """False-alarm rate 1e-6. Worlds from a prior that was not declared are caught."""
    best, played = study()
    assert believable(candidates(SAMPLING, count(played, first_episodes(0)))[:, 0] >= best, 1 / 2)
    best, played = study(right=False)
    assert not believable(
        candidates(SAMPLING, count(played, first_episodes(0)))[:, 0] >= best, 1 / 2
    )


def planned(rule, **changes):
    """The rule with another objective."""
    return replace(rule, objective=replace(rule.objective, **changes))


def covered(rule, values, best):
    """Whether the candidate that the rule picks is optimistic."""
    return np.array([row[choose_candidate(rule, row)] for row in values]) >= best


@pytest.mark.slow
def test_the_coverage_of_value_quantile_is_exact():
    """Coverage ceil(q S)/(S + 1), here with S = 4. False-alarm rate 4e-6 in total.

    Planted: any other order statistic is caught, and so is half of the data counted twice, which
    the median cannot detect.
    """
    best, played = study()
    values = candidates(QUANTILE, count(played, first_episodes(0)))
    for q, place in ((0.1, 1), (0.5, 2), (0.51, 3), (0.99, 4)):
        rule = explorers.value_quantile(q, 4)
        assert believable(covered(rule, values, best), place / 5)
        for wrong in {1, 2, 3, 4} - {place}:
            assert not believable(covered(planned(rule, pick=wrong), values, best), place / 5)
    twice = candidates(QUANTILE, count(played, counted_twice()))
    assert not believable(covered(explorers.value_quantile(0.1, 4), twice, best), 1 / 5)


def shrunk(rule, factor):
    """The rule with its bonuses and its start term too small: a bug to plant."""

    def propose(key, state):
        proposal = rule.propose(key, state)
        certain = MODEL.reward[:, :, None]
        reward = certain + factor * (proposal.models.reward - certain)
        return proposal._replace(
            models=proposal.models._replace(reward=reward), parameters=factor * proposal.parameters
        )

    return replace(rule, propose=propose)


@pytest.mark.parametrize(
    "rule",
    [explorers.tight(DELTA), explorers.quantile_bonus(DELTA, bound=True)],
    ids=lambda r: r.about.name,
)
def test_bonuses_are_optimistic_often_enough(rule):
    """In at least 1 - delta of all worlds; in fact in nearly all, because the rules are loose.

    False-alarm rate 1e-6 each. Bonuses scaled by 1/50 are caught.
    """
    best, played = study()
    counts = count(played, first_episodes(0))
    assert enough(candidates(rule, counts)[:, 0] >= best, 1 - DELTA)
    assert not enough(candidates(shrunk(rule, 0.02), counts)[:, 0] >= best, 1 - DELTA)


def narrow(key, state):
    """The proposal of ``anytime`` with intervals a tenth as wide: a bug to plant."""
    sets = confidence_sets(state.homdp, state.counts, DELTA)
    up, down = (Tables(*(0.1 * part for part in side)) for side in (sets.up, sets.down))
    sets = sets._replace(up=up, down=down)
    return optimistic_proposal(sets, value_ranges(sets))


def test_anytime_is_optimistic_in_all_rounds_often_enough():
    """In at least 1 - delta of all worlds, which are from a prior that was not declared.

    False-alarm rate 1e-6. Intervals a tenth as wide are caught.
    """
    best, played = study(right=False)
    rounds = [
        count(played, np.broadcast_to(np.arange(EPISODES) < n, (REPLICAS, EPISODES)).astype(int))
        for n in (0, 1, 2, 4, 8, 12)
    ]

    def always(rule):
        return np.all([candidates(rule, counts)[:, 0] >= best - 1e-9 for counts in rounds], axis=0)

    rule = explorers.anytime(DELTA)
    assert enough(always(rule), 1 - DELTA)
    assert not enough(always(replace(rule, propose=narrow)), 1 - DELTA)


def test_quantile_bonus_by_draws_is_optimistic_often_enough():
    """As above, with quantiles of draws, in the readable loop.

    False-alarm rate 1e-6; bonuses scaled by 1/50 are caught.
    """
    best, played = study()
    counts = count(played, first_episodes(0))
    rule = explorers.quantile_bonus(DELTA)
    some = range(120)

    def optimistic(rule):
        values = [
            decide(rule, MODEL, Counts(counts[0][r], counts[1][r]), seed=r)[1].optimistic
            for r in some
        ]
        return np.array(values) >= best[: len(some)]

    assert enough(optimistic(rule), 1 - DELTA)
    assert not enough(optimistic(shrunk(rule, 0.02)), 1 - DELTA)


# Deterministic: all worlds in the confidence set are covered


def in_the_set(generator, estimate, radius):
    """Rows of two outcomes at the distance of the radius, or as far away as possible."""
    moved = generator.choice([-1, 1], radius.shape) * radius / 2
    first = np.clip(estimate[..., 0] + moved, 0, 1)
    return np.stack([first, 1 - first], axis=-1)


def folded(rule):
    """The start term inside the first reward, where it is clipped: a bug to plant."""

    def propose(key, state):
        proposal = rule.propose(key, state)
        reward = np.array(proposal.models.reward)
        reward[:, 0] += proposal.parameters[:, None, None, None]
        return proposal._replace(models=proposal.models._replace(reward=reward))

    return planned(replace(rule, propose=propose), root=upper_value)


def shortfalls(horizon, rules, trials=150, seed=0):
    """The largest excess of an optimum in the confidence set over each rule's optimistic value.

    K = 1 and delta = 1/2.
    """
    model, generator = MODEL.with_horizon(horizon), np.random.default_rng(seed)
    worst = np.full(len(rules), -np.inf)
    for _ in range(trials):
        counts = Counts(generator.integers(1, 500, (X, A, X)), generator.integers(1, 500, (X, Y)))
        tables = []
        for seen in (counts.transition, counts.emission):
            n = seen.sum(-1)
            radius = np.minimum(2, np.sqrt(2 * np.log(2 * (X + X * A) * horizon / 0.5) / n))
            tables.append(in_the_set(generator, seen / n[..., None], radius))
        best = optimum(POMDP.of(INITIAL, *tables, model.reward))
        worst = np.maximum(
            worst, [best - decide(rule, model, counts, episodes=1)[1].optimistic for rule in rules]
        )
    return worst


def test_the_confidence_set_is_covered():
    """No optimum in the confidence set exceeds the optimistic value of `tight`.

    With bonuses half as large, some do.
    """
    (once,) = shortfalls(1, [explorers.tight(0.5)])
    twice, wrong = shortfalls(
        2, [explorers.tight(0.5), planned(shrunk(explorers.tight(0.5), 0.5), caps=None)]
    )
    assert max(once, twice) <= 1e-12
    assert wrong > 0.01


def test_the_start_term_is_added_after_the_clip():
    """Horizon 1: the largest optimum in the confidence set equals the value of `tight`.

    The first observation reveals the first state, whose reward of 1 is the maximum. If the term
    were added to the reward, it would be clipped, and optimism would fail.
    """
    model = tabular(
        T=np.full((2, 2, 2), 0.5),
        O=dist.Dirichlet(np.ones((2, 3))),
        initial=[2 / 3, 1 / 3],
        reward=np.eye(2),
        horizon=1,
    )
    counts = Counts(np.zeros((2, 2, 2), dtype=int), np.array([[200, 100, 100], [0, 200, 200]]))
    eps = np.sqrt(2 * np.log((2**3 - 2) * (2 + 4) / 0.5) / 400)
    moved = np.array([[0, 1, -1], [0, -1, 1]]) * eps / 2
    worst = POMDP.of(
        np.array([2, 1]) / 3, np.full((2, 2, 2), 0.5), counts.emission / 400 + moved, model.reward
    )
    assert optimum(worst) == pytest.approx(2 / 3 + eps / 2)
    assert decide(explorers.tight(0.5), model, counts, episodes=1)[1].optimistic == pytest.approx(
        2 / 3 + eps / 2, abs=1e-12
    )
    assert (
        decide(folded(explorers.tight(0.5)), model, counts, episodes=1)[1].optimistic
        < 2 / 3 + eps / 2 - 0.02
    )


@homdp(
    states=("plain", "new", "left", "right", "far right"),
    observations=("nothing",),
    actions=("go left", "go right"),
    horizon=2,
    reward=np.array(
        [[[0, 0], [1, 1], [0, 0], [0, 0], [0, 0]], [[0, 0], [0, 0], [1, 0], [0, 1], [0, 1]]],
        dtype=float,
    ),
)
def fork():
    """From the plain state the next state is always left; from the new state it is unknown."""
    ways = numpyro.sample("ways", dist.Dirichlet(np.ones(3)))
    to = jnp.concatenate([jnp.zeros(2), ways])
    left = jnp.eye(5)[2]
    T = jnp.stack([left, to, *jnp.eye(5)[2:]])[:, None]
    return Kernels([0.2, 0.8, 0.0, 0.0, 0.0], jnp.repeat(T, 2, axis=1), np.ones((5, 1)))


@pytest.mark.parametrize("caps", [None, remaining_steps])
def test_clipped_values_stay_optimistic(caps):
    """Before any data every world is in the confidence set, so `tight` must cover all of them.

    The value of the new state is 2 for all continuations, because its bonus is clipped. The belief
    still makes the action go right for its sake, which earns nothing in the plain state. In the
    world where the new state leads left, the best policy goes left and earns 1.8.
    """
    world = fork.at(ways=[1.0, 0.0, 0.0])
    assert optimum(world.pomdp) == pytest.approx(1.8)
    _, decision = decide(planned(explorers.tight(), caps=caps), fork, Counts.zero(fork))
    assert decision.optimistic >= 1.8 - 1e-12


# Programs without a closed form


def sampling_is_above(truths, memory, length):
    """Whether posterior sampling is optimistic in each world after some episodes.

    Ties are decided by a fair coin.
    """
    model, coin, above = sensor(), np.random.default_rng(2), []
    start = replace(SAMPLING.init(model, EPISODES), memory=memory)
    for r, truth in enumerate(truths):
        world, state = model.tables(truth), start
        for episode in simulate(
            *(part[None] for part in world.stationary()[:3]), H, length, np.random.default_rng(r)
        )[0]:
            state = SAMPLING.update(state, episode)
        proposal = SAMPLING.propose(jax.random.key(r), state)
        value, best = TREE(POMDP(*(part[0] for part in proposal.models))).value, TREE(world).value
        above.append(value > best or (value == best and coin.integers(2) == 1))
    return np.array(above)


@pytest.mark.slow
def test_posterior_sampling_of_a_program():
    """A prior of 2,000 atoms, from which the worlds are drawn too.

    The frequency is 1/2 by symmetry, with ties decided by a coin. False-alarm rate 1e-6. Worlds
    that are better than most are caught.
    """
    belief = SAMPLING.init(sensor(), EPISODES).memory.belief
    memory = Tracked.of(replace(belief, atoms=replace(belief.atoms, complete=True)))
    atoms = memory.atoms.values
    chosen = np.random.default_rng(0).integers(len(atoms["ear"]), size=500)
    truths = [{name: value[k] for name, value in atoms.items()} for k in chosen]
    assert believable(sampling_is_above(truths[:250], memory, 2), 1 / 2)
    best = sorted(truths, key=lambda truth: TREE(sensor().tables(truth)).value)[-80:]
    assert not believable(sampling_is_above(best, memory, 2), 1 / 2)


@pytest.mark.slow
def test_posterior_sampling_by_nuts():
    """As above with worlds from the prior, eight episodes, and NUTS.

    False-alarm rate 1e-6, up to the error of the draws. Worlds from another prior are caught.
    """
    memory = Tracked.of(
        posterior(sensor(), Counts.zero(sensor()), sampling=Sampling(2, 100, 200), force=True)
    )
    generator = np.random.default_rng(0)
    right = [
        {"ear": generator.normal(1.0, 1.0), "drift": generator.normal(-0.5, 0.8)}
        for _ in range(300)
    ]
    wrong = [
        {"ear": generator.normal(2.5, 0.5), "drift": generator.normal(0.5, 0.5)} for _ in range(150)
    ]
    assert believable(sampling_is_above(right, memory, 8), 1 / 2)
    assert not believable(sampling_is_above(wrong, memory, 8), 1 / 2)

"""Planning with observations on the line: brackets against closed forms, fine grids, quadrature by scipy, and simulation."""

import importlib
from functools import cache
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.integrate import quad
from scipy.stats import binom, norm

from homdp_ppl import POMDP, GraphPolicy, Kernels, PlanningError, PolicyError, Real, homdp, rollout
from homdp_ppl.continuous.quadrature import cut, panels
from homdp_ppl.continuous.quantised_policy import QuantisedPolicy
from homdp_ppl.continuous.tabulation import cell_of, emission_table, quantised_pomdp
from homdp_ppl.planners import alpha_vectors, bounded_search, history_tree, plan_on_cells, quantised
from homdp_ppl.planners.cells import UNSEEN, _corners, _weights, spread

LISTEN = 0.85
MOVES = np.array([[[1, 0], [0.5, 0.5], [0.5, 0.5]], [[0, 1], [0.5, 0.5], [0.5, 0.5]]])
REWARD = np.array([[LISTEN, 0.0, 1.0], [LISTEN, 1.0, 0.0]])
MEANS = np.array([[-1.5, 1.0], [-1.0, 2.0], [0.0, 0.5]])
SCALES = np.array([[0.4, 1.0], [1.0, 0.5], [0.2, 1.5]])


@cache
def tiger():
    """A tiger that is heard as a number around -1 or 1; unknown is how clearly."""

    @homdp(
        states=("left", "right"), observations=Real(1), actions=("listen", "open left", "open right"), horizon=3, reward=REWARD
    )
    def gaussian_tiger():
        noise = numpyro.sample("noise", dist.HalfNormal(1.0))
        return Kernels([0.5, 0.5], MOVES, lambda x: dist.Normal(2.0 * x - 1, noise))

    return gaussian_tiger


@cache
def heard(horizon=3):
    """That tiger with noise 1."""
    return tiger().at(noise=1.0) if horizon == 3 else tiger().with_horizon(horizon).at(noise=1.0)


@cache
def door():
    """One door may be opened, once: the return is 0 or 1, and the optimum Phi(sqrt(H) / noise), after listening to the end."""
    stay = np.zeros((3, 3, 3))
    stay[:, 0] = np.eye(3)
    stay[:, 1:, 2] = 1
    reward = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])

    @homdp(states=("left", "right", "over"), observations=Real(1), actions=("listen", "left", "right"), horizon=3, reward=reward)
    def one_door():
        noise = numpyro.sample("noise", dist.HalfNormal(1.0))
        return Kernels([0.5, 0.5, 0.0], stay, lambda x: dist.Normal(jnp.array([-1.0, 1.0, 0.0])[x], noise))

    return one_door


@cache
def screens():
    """Three states and one look, through a mixture whose likelihood ratios go up and down."""
    reward = np.random.default_rng(0).uniform(size=(3, 3))

    @homdp(states=3, observations=Real(1), actions=3, horizon=1, reward=reward)
    def mixed():
        return Kernels(
            [0.2, 0.5, 0.3],
            np.full((3, 3, 3), 1 / 3),
            lambda x: dist.MixtureSameFamily(
                dist.Categorical(probs=np.array([0.4, 0.6])), dist.Normal(jnp.asarray(MEANS)[x], jnp.asarray(SCALES)[x])
            ),
        )

    return mixed.at(), reward


def screen_densities(y):
    """The densities of that mixture written out, (3, ...)."""
    mean, scale = (part[(..., *(None,) * np.ndim(y))] for part in (MEANS, SCALES))
    parts = np.exp(-0.5 * ((y - mean) / scale) ** 2) / (scale * np.sqrt(2 * np.pi))
    return 0.4 * parts[:, 0] + 0.6 * parts[:, 1]


@cache
def screen_optimum():
    """The optimum of one look: the integral of the best action's weight."""
    prior, (_, reward) = np.array([0.2, 0.5, 0.3]), screens()
    return integral(lambda y: (reward.T @ (prior * screen_densities(y))).max(), np.linspace(-4, 5, 46))


def integral(function, points):
    """The integral of a piecewise smooth function over [-14, 14], by scipy."""
    return sum(quad(function, a, b, epsabs=1e-11, limit=200)[0] for a, b in pairwise([-14.0, *points, 14.0]))


def nodes(panels=2000, low=-12.0, high=12.0):
    """Points and weights of Gauss's rule on many panels, for integrals of whole arrays."""
    place, weight = np.polynomial.legendre.leggauss(12)
    ends = np.linspace(low, high, panels + 1)
    half = (high - low) / panels / 2
    return ((ends[:-1] + half)[:, None] + half * place).ravel(), np.tile(half * weight, panels)


def last_look(belief):
    """What a belief in "left" is worth before the last observation: each door is opened beyond a threshold of y, in closed form.

    With noise 1, log(P(left | y) / P(right | y)) = log(belief / (1 - belief)) - 2 y, and a door is better than listening from
    log(LISTEN / (1 - LISTEN)) on.
    """
    prior, needed = np.log(belief / (1 - belief)), np.log(LISTEN / (1 - LISTEN))
    low, high = (prior - needed) / 2, (prior + needed) / 2
    left, right = norm(-1), norm(1)
    between = belief * (left.cdf(high) - left.cdf(low)) + (1 - belief) * (right.cdf(high) - right.cdf(low))
    return belief * left.cdf(low) + (1 - belief) * right.sf(high) + LISTEN * between


@cache
def two_looks():
    """The optimum of two steps with noise 1: an integral over the first observation of the better of listening and a door."""
    y, weights = nodes()
    left, right = 0.5 * norm.pdf(y, -1.0, 1.0), 0.5 * norm.pdf(y, 1.0, 1.0)
    total = left + right
    listen = total * (LISTEN + last_look(np.clip(left / total, 1e-12, 1 - 1e-12)))
    return np.maximum(listen, np.maximum(left, right) + total * last_look(0.5)) @ weights


def grid(horizon, cells):
    """The tiger on a uniform grid, by the normal distribution function."""
    edges = np.linspace(-6, 6, cells - 1)
    cumulative = np.array([[0.0, *norm.cdf(edges, mean), 1.0] for mean in (-1, 1)])
    return POMDP(np.array([0.5, 0.5]), MOVES, np.diff(cumulative), np.broadcast_to(REWARD, (horizon, 2, 3)).copy())


def test_one_step_against_quadrature():
    (world, _), optimum, gaps = screens(), screen_optimum(), []
    for gap in (1e-1, 1e-2, 1e-4, 1e-6):
        plan = quantised(gap)(world)
        assert plan.value - 1e-9 <= optimum <= plan.upper + 1e-9
        assert plan.gap <= gap
        gaps.append(plan.gap)
    assert gaps == sorted(gaps, reverse=True)
    assert plan.value == pytest.approx(optimum, abs=1e-6)
    assert plan.upper == pytest.approx(optimum, abs=1e-6)


def test_two_steps_against_the_closed_form():
    optimum = two_looks()
    for gap in (1e-2, 1e-4):
        plan = quantised(gap)(heard(2))
        assert plan.gap <= gap
        assert plan.value - 1e-6 <= optimum <= plan.upper + 1e-6
    assert history_tree()(grid(2, 100)).value == pytest.approx(optimum, abs=1e-3)  # the closed form itself


def test_three_steps_against_a_fine_grid():
    """200 cells of a grid are worth a little less than the numbers themselves."""
    fine = alpha_vectors(1e-8)(grid(3, 200)).value
    brackets = [quantised(gap)(heard()) for gap in (1e-1, 1e-2, 1e-3)]
    for plan, gap in zip(brackets, (1e-1, 1e-2, 1e-3), strict=True):
        assert plan.gap <= gap
        assert plan.value <= fine + gap
        assert fine <= plan.upper
        assert plan.statistics["cells"] == len(plan.edges) + 1 <= 64
    assert brackets[-1].value - 1e-3 <= fine <= brackets[-1].upper
    assert [plan.gap for plan in brackets] == sorted((plan.gap for plan in brackets), reverse=True)


def test_three_states_against_the_closed_form_with_other_parameters_on_the_same_cells():
    plan = quantised(3e-3)(door().at(noise=1.0))
    assert plan.gap <= 3e-3
    for noise in (1.0, 0.8, 1.5):
        world = door().at(noise=noise)
        again = plan_on_cells(world, plan.edges)
        assert again.value - 1e-9 <= norm.cdf(np.sqrt(3) / noise) <= again.upper + 1e-9
        assert again.gap < 0.02
        assert plan.policy.value(world) <= again.value + 1e-4  # the planner's own gap


@cache
def coins(known):
    """One of two sounds, and a coin that is tossed anew at every step and makes none; or the same without the coin.

    To be guessed is the sound, or the coin.
    """
    reward = np.array([[1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    moves = np.kron(np.array([[0.8, 0.2], [0.3, 0.7]]), np.full((2, 2), 0.5))
    if not known:
        reward, moves = reward.reshape(2, 2, 4).mean(1), np.array([[0.8, 0.2], [0.3, 0.7]])
    X = len(moves)

    @homdp(states=X, observations=Real(1), actions=4, horizon=2, reward=reward)
    def sounds():
        return Kernels(
            np.full(X, 1 / X), np.repeat(moves[:, None], 4, axis=1), lambda x: dist.Normal(2 * x // X, 1.0 + 2 * x // X)
        )

    return sounds.at()


@pytest.mark.slow
def test_of_states_with_one_density_nothing_but_the_kind_is_told():
    """Whoever is told the state knows the coin: the bound would then be above that of the world without it."""
    edges = [1.0]
    four, two = (plan_on_cells(coins(known), edges, history_tree()) for known in (True, False))
    assert four.statistics["told"] > 1e-3
    assert (four.value, four.upper) == pytest.approx((two.value, two.upper), abs=1e-7)
    assert four.upper < 1.9  # the coin alone would give 2
    above = spread(coins(True), cut(coins(True), panels(coins(True)), np.array(edges)), np.array(edges))
    assert above.told.shape == (2, 2)
    assert above.emission[[0, 2]].tolist() == above.emission[[1, 3]].tolist()


def test_the_masses_of_the_experiment_above_are_not_too_large():
    """Against a rule with many more points, wherever kinks are; a rule that looks at each piece once is 1e-6 off."""
    world, _ = screens()
    for seed in range(6):
        edges = np.sort(np.random.default_rng(seed).uniform(-3, 3, 20))
        pieces = cut(world, panels(world), edges)
        above = spread(world, pieces, edges)
        ends = np.linspace(pieces.breaks[:-1], pieces.breaks[1:], 65)[:-1].T.ravel()
        fine = cut(world, pieces, ends)
        _, inverse = _corners(world, pieces, edges)
        cell = cell_of(fine, edges)
        density = np.exp(fine.log)
        weights = _weights(density, above.corners[cell], inverse[cell])
        exact = np.zeros(above.mass.shape)
        np.add.at(exact, cell, fine.integrate(weights)[0])
        assert np.maximum(above.mass - exact, 0.0).sum() < UNSEEN / 4
        assert np.abs(above.mass - exact).sum() < 1e-6


def convexities(emission, draws=40):
    """How much less an experiment is worth than y for random convex functions of the likelihoods; at most 0 if it says more."""
    generator, (points, weights) = np.random.default_rng(0), nodes()
    likelihood = screen_densities(points) * weights
    assert likelihood.sum(1) == pytest.approx(1.0, abs=1e-9)
    shortfall = []
    for _ in range(draws):
        slopes = generator.normal(size=(4, len(emission)))
        shortfall.append((slopes @ likelihood).max(0).sum() - (slopes @ emission).max(0).sum())
    return np.array(shortfall)


def contracted(above):
    """A planted bug: corners that lie inside the cell, halfway to its middle; rows still sum to one."""
    weighted = (above.corners * above.mass[:, :, None]).sum(1, keepdims=True)
    middle = weighted / above.mass.sum(1)[:, None, None]
    return above._replace(corners=0.5 * above.corners + 0.5 * middle)


@pytest.mark.parametrize("cells", [3, 10, 40])
def test_the_experiment_above_says_more_for_every_convex_function(cells):
    """Blackwell's order, with integrals that are made here; experiments that do not say more are found out."""
    world, _ = screens()
    edges = np.linspace(-3.0, 3.3, cells - 1)
    above = spread(world, cut(world, panels(world), edges), edges)
    assert above.emission.sum(1) == pytest.approx(1.0, abs=1e-14)
    assert (above.emission >= 0).all()
    assert convexities(above.emission).max() <= 1e-7
    assert convexities(contracted(above).emission).max() > 1e-5
    assert convexities(emission_table(world, edges)).max() > 1e-5
    if cells == 3:  # what is told matters most where cells are wide
        untold = above.emission[:, :-3]
        assert convexities(untold / untold.sum(1, keepdims=True)).max() > 1e-5


def test_corners_from_inside_the_cells_are_caught(monkeypatch):
    """The planted bug: the bracket then lies below the optimum."""
    edges = [-1.0, 1.0]
    assert plan_on_cells(heard(2), edges).upper > two_looks()
    module = importlib.import_module("homdp_ppl.planners.quantised")
    monkeypatch.setattr(module, "spread", lambda *given: contracted(spread(*given)))
    assert plan_on_cells(heard(2), edges).upper < two_looks() - 1e-4


def wins(policy, world, episodes=2000, seed=0):
    """Episodes that end at the right door, of so many."""
    played = rollout(jax.random.split(jax.random.key(seed), episodes), world, policy)
    return int(world.homdp.returns(played).round(9).sum())


def rejected(count, chance, episodes=2000, level=1e-6):
    """Whether a binomial count is out of reach at the level of both tails together."""
    return min(binom.cdf(count, episodes, chance), binom.sf(count - 1, episodes, chance)) < level / 2


def test_the_value_is_that_of_simulated_episodes():
    """Returns are 0 or 1, so wins are binomial: false alarm 1e-6. A policy whose cells are shifted is caught."""
    world = door().at(noise=1.0)
    plan = quantised(3e-3)(world)
    assert not rejected(wins(plan.policy, world), plan.value)
    shifted = QuantisedPolicy(plan.edges + 1.0, plan.policy.graph)
    assert rejected(wins(shifted, world), plan.value)
    assert not rejected(wins(shifted, world), shifted.value(world))


def test_what_stops_it_is_told():
    assert "the gap of 0.1 is reached" in quantised(0.1)(heard()).planner
    few = quantised(1e-9, max_cells=6)(heard())
    assert few.gap > 1e-9
    assert few.statistics["cells"] == 6
    assert "6 cells, max_cells is reached before the gap of 1e-09" in few.planner
    small = quantised(1e-6, planner=history_tree(max_nodes=5000))(heard())
    assert "the planner refused" in small.planner
    assert small.value <= alpha_vectors()(grid(3, 200)).value <= small.upper
    rough = quantised(1e-2, planner=bounded_search(gap=0.5))(heard())
    assert "the finite planner leaves" in rough.planner
    assert rough.gap > 1e-2
    with pytest.raises(PlanningError, match="history_tree"):
        quantised(planner=history_tree(max_nodes=3))(heard())


def test_cells_to_begin_with():
    plan = quantised(1e-2)(heard())
    again = quantised(1e-2)(heard(), edges=plan.edges)
    assert again.statistics["rounds"] == 1
    assert (again.value, again.upper) == pytest.approx((plan.value, plan.upper), abs=2e-3)
    assert again.policy.graph.names == plan.policy.graph.names
    assert "history" in plan.less.tree(1).nodes[1]
    outside = plan_on_cells(heard(), [-1e6, 0.0, 1e6])  # cells that are never seen
    assert outside.value == pytest.approx(plan_on_cells(heard(), [0.0]).value, abs=1e-9)
    blind = plan_on_cells(heard(), [])
    assert blind.value == pytest.approx(3 * LISTEN, abs=1e-12)
    assert blind.upper > plan.upper


def test_policies_act_save_and_load(tmp_path):
    plan = quantised(1e-1)(heard())
    policy = plan.policy
    assert policy.act([-9.0], []).argmax() == 2  # the tiger is left
    assert policy.act([0.0], []).argmax() == 0
    assert policy.act([0.0, 9.0], [0]).argmax() == 1
    assert policy.value(heard()) == pytest.approx(plan.value, abs=1e-12)
    policy.save(tmp_path / "policy.npz")
    loaded = QuantisedPolicy.load(tmp_path / "policy.npz")
    assert (loaded.edges == policy.edges).all()
    assert (loaded.graph.successor == policy.graph.successor).all()
    assert loaded.graph.names == policy.graph.names
    assert repr(loaded) == repr(policy)
    policy.graph.save(tmp_path / "graph.npz")
    (tmp_path / "text.npz").write_text("no policy")
    for name in ("graph.npz", "text.npz"):
        with pytest.raises(PolicyError, match="homdp_ppl quantised policy 1"):
            QuantisedPolicy.load(tmp_path / name)
    with pytest.raises(PolicyError, match="one cell more than edges"):
        QuantisedPolicy([0.0], GraphPolicy([0], [[1.0]], np.zeros((1, 1, 1), int)))
    with pytest.raises(PolicyError, match="nan"):
        policy.act([np.nan], [])


def test_the_finite_planner_serves_learners():
    planner = quantised(1e-2, max_cells=32)
    assert (planner.gap, planner.max_cells) == (1e-2, 32)
    plan = planner(heard())
    again = planner.planner(quantised_pomdp(heard(), plan.edges))
    assert again.value == pytest.approx(plan.value, abs=1e-12)
    exact = alpha_vectors(1e-9)
    assert quantised(planner=exact).planner is exact


def test_wrong_options_are_refused():
    with pytest.raises(PlanningError, match=r"gap.*\n.*max_cells"):
        quantised(gap=0.0, max_cells=1)
    with pytest.raises(PlanningError, match="increasing"):
        plan_on_cells(heard(), [1.0, 0.0])

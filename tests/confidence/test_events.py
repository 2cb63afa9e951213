"""The good events of appendix C: by hand, on simulated runs, and with planted bugs."""

import math
from functools import cache

import numpy as np
import numpyro.distributions as dist
import pytest

from homdp_ppl import Counts, GraphPolicy, ParameterError, models, tabular, uniform_policy
from homdp_ppl.confidence import events
from homdp_ppl.confidence.events import (
    continuations,
    emission_event,
    relative_transition_event,
    tilde_epsilon,
    transition_event,
)
from homdp_ppl.core.alphas import layers, policy_alphas
from homdp_ppl.planners import history_tree
from tests.chances import enough
from tests.raising import raises
from tests.worlds import random_policy, simulate, world


def sharp():
    """A model without symmetry, with all rows unknown and rewards that depend on the state."""
    model = tabular(
        T=dist.Dirichlet(np.ones((3, 2, 3))),
        O=dist.Dirichlet(np.ones((3, 3))),
        initial=[0.5, 0.3, 0.2],
        reward=[[1.0, 0.8], [0.0, 0.1], [0.0, 0.0]],
        horizon=3,
    )
    T = [
        [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]],
        [[0.05, 0.9, 0.05], [0.3, 0.6, 0.1]],
        [[0.2, 0.1, 0.7], [0.6, 0.3, 0.1]],
    ]
    return model.at(T=T, O=[[0.8, 0.15, 0.05], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]])


WORLDS = {"tiger": lambda: models.load("tiger", horizon=3), "sharp": sharp}


@cache
def truth(name):
    return WORLDS[name]()


@cache
def optimal(name):
    model = truth(name).pomdp
    return continuations(history_tree()(model).policy, model)


def checks(name, counts, K, delta, known=False):
    """All three events in one round."""
    true = truth(name)
    return {
        "E_T": transition_event(true, counts, K, optimal(name), delta, known),
        "E_O": emission_event(true, counts, K, delta, known),
        "E_T^c": relative_transition_event(true, counts, K, 1.5, delta, known),
    }


def expected_counts(name, n, **rows):
    """Counts in the proportions of the true model, with some rows replaced."""
    model = truth(name).pomdp
    transition, emission = n * model.moves(0), n * model.shows(0)
    for (table, index), row in rows.get("rows", {}).items():
        (transition if table == "T" else emission)[index] = row
    return Counts(transition, emission)


def alpha_by_definition(policy, model, observations, actions):
    """alpha_{h, tau}(x) of appendix B by recursion over histories; uses only ``policy.act``."""
    h, alpha = len(observations), 0.0
    for a, chance in enumerate(policy.act(np.array(observations), np.array(actions, dtype=int))):
        onward = (
            model.moves(0)[:, a] @ continuation(policy, model, observations, actions, a)
            if h < model.horizon
            else 0.0
        )
        alpha = alpha + chance * (model.reward[h - 1, :, 0, a] + onward)
    return alpha


def continuation(policy, model, observations, actions, a):
    """g(x') = sum_y' O(y'|x') alpha_{h+1, tau'}(x')."""
    later = [
        alpha_by_definition(policy, model, (*observations, y), (*actions, a))
        for y in range(model.emission.shape[-1])
    ]
    return sum(model.shows(0)[:, y] * alpha for y, alpha in enumerate(later))


@pytest.mark.parametrize("kind", ["optimal", "random", "uniform"])
def test_continuations_after_every_history(kind):
    """The g of E_T against its definition at every node, also after actions that the policy never
    takes.
    """
    true = truth("sharp")
    model = true.pomdp
    policy = {
        "optimal": lambda: history_tree()(model).policy,
        "random": lambda: random_policy(true.spaces, 0),
        "uniform": lambda: uniform_policy(true),
    }[kind]()
    found = continuations(policy, model)
    assert [len(g) for g in found.values] == {
        "optimal": [3, 18],
        "random": [2, 3],
        "uniform": [1, 1],
    }[kind]
    for h, g in enumerate(found.values):
        for node in range(len(g)):
            for a in range(2):
                np.testing.assert_allclose(
                    g[node, a], continuation(policy, model, *history(found, h, node), a), rtol=1e-12
                )


def history(found, step, node):
    observations, actions = [], []
    for h in range(step, -1, -1):
        node, action, observation = found.arrivals[h][node]
        observations.append(observation)
        actions += [action] * (h > 0)
    return tuple(observations[::-1]), tuple(actions[::-1])


def test_continuations_agree_with_the_policys_own_alpha_vectors():
    """On histories that are possible under the policy, which are fewer than those of E_T."""
    model = truth("sharp").pomdp
    policy = history_tree()(model).policy
    found = continuations(policy, model)
    alphas, met = policy_alphas(policy, model), layers(policy, 3)
    by_step = [np.unique(policy.start)]
    by_step.append(np.unique(policy.successor[by_step[0]]))
    for h in range(2):
        assert h == 0 or len(met[h]) < len(by_step[h])
        places = np.searchsorted(by_step[h], met[h])
        onward = np.einsum("xaz,naz->nxa", model.moves(0), found.values[h][places])
        value = np.einsum(
            "na,nxa->nx", policy.probabilities[met[h]], model.reward[h, :, 0] + onward
        )
        np.testing.assert_allclose(value, alphas[h], rtol=1e-12)


def test_one_step_has_no_continuations():
    """At h = H the left side of E_T is zero: with H = 1 it always holds."""
    true = truth("sharp").with_horizon(1)
    found = continuations(uniform_policy(true), true.pomdp)
    assert found.values == ()
    counts = expected_counts("sharp", 100.0, rows={("T", (0, 0)): [1e9, 0, 0]})
    event = transition_event(true, counts, 10, found, 0.1)
    assert event.holds
    assert event.slack == pytest.approx(
        math.sqrt(4 * math.log(3 * 3 * 2 * 10 / 0.1) / 1e9), rel=1e-12
    )


def test_golden_slacks():
    """The slack of each event by its formula, for counts with one wrong row.

    X = Y = 3, A = 2, H = 3.
    """
    model, n, K, delta = truth("sharp").pomdp, 1e6, 50, 0.05
    row_t, row_o = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.3, 0.1])
    counts = expected_counts("sharp", n, rows={("T", (1, 0)): n * row_t, ("O", 2): n * row_o})
    found = checks("sharp", counts, K, delta)
    bound = math.sqrt(4 * 27 * math.log(3 * 3 * 2 * 3 * 50 / 0.05) / n)
    errors = [
        abs((model.moves(0)[1, 0] - row_t) @ g)
        for step in optimal("sharp").values
        for g in step[:, 0]
    ]
    assert found["E_T"].slack == pytest.approx(bound - max(errors), rel=1e-9)
    bound = math.sqrt(8 * 3 * math.log(3 * 3 * 50 * 3 / 0.05) / n)
    assert found["E_O"].slack == pytest.approx(
        bound - np.abs(model.shows(0)[2] - row_o).sum(), rel=1e-9
    )
    T = model.moves(0)[1, 0]
    bound = T / (2 * 1.5) + 2 * 1.5 * math.log(9 * 2 * 50 * 3 / 0.05) / n
    assert found["E_T^c"].slack == pytest.approx((bound - (row_t - T)).min(), rel=1e-9)
    assert [event.holds for event in found.values()] == [False, False, False]
    assert "T(. | x1, a0)" in found["E_T"].where
    assert found["E_T"].where.startswith("step ")
    assert found["E_O"].where == "O(. | x2)"
    assert found["E_T^c"].where == f"T(x{(bound - (row_t - T)).argmin()} | x1, a0)"


def test_golden_tilde_epsilon():
    model, K, delta = truth("sharp").homdp, 50, 0.05
    counts = expected_counts("sharp", 1.0)
    counts.transition[:] = 0
    counts.transition[0, 0, 1], counts.transition[2, 1, 0] = 700, 3
    found = tilde_epsilon(1.5, model, counts, K, delta)
    assert found[0, 0] == pytest.approx(
        2 * 1.5 * 3 * math.log(9 * 2 * 50 * 3 / 0.05) / 700, rel=1e-12
    )
    assert found[2, 1] == found[1, 1] == 2  # capped, and unvisited
    tiger = truth("tiger").homdp
    nothing = Counts.zero(tiger)
    assert (tilde_epsilon(1, tiger, nothing, K) == 0).all()
    assert (tilde_epsilon(1, tiger, nothing, K, known=False) == 2).all()


def test_both_signs_of_e_t_and_only_one_of_e_t_c():
    """Continuations that are too high or too low both violate E_T.

    Probabilities that are much too low do not violate E_T^c.
    """
    g = optimal("sharp").values[0][0, 0]
    for extreme in (g.argmax(), g.argmin()):
        row = np.eye(3)[extreme] * 1e6
        assert not checks(
            "sharp", expected_counts("sharp", 1e6, rows={("T", (0, 0)): row}), 100, 0.1
        )["E_T"].holds
    T = np.full((9, 1, 9), 0.0125)
    T[:, 0, 0] = 0.9
    flat = tabular(T=T, O=np.ones((9, 1)), initial=T[0, 0], reward=np.zeros((9, 1)), horizon=1).at()
    n = 150.0
    low = np.full((9, 1, 9), 0.1125)  # 0.8 too low at one state, 0.1 too high at eight
    low[:, 0, 0] = 0.1
    room = 2 * math.log(81 * 10 / 0.1) / n  # c = 1
    assert 0.1 < 0.0125 / 2 + room < 0.9 / 2 + room < 0.8
    assert relative_transition_event(
        flat, Counts(n * low, np.ones((9, 1))), 10, 1, 0.1, known=False
    ).holds
    high = np.broadcast_to(np.eye(9)[1], (9, 1, 9))
    assert not relative_transition_event(
        flat, Counts(n * high, np.ones((9, 1))), 10, 1, 0.1, known=False
    ).holds


def test_e_t_includes_actions_that_the_optimal_policy_never_takes():
    """A wrong row of an action that the policy avoids violates E_T, which covers all histories."""
    true = truth("sharp")
    A = 2
    lazy = GraphPolicy(
        [0, 0, 0], [[1.0, 0], [1.0, 0], [1.0, 0]], [[[1] * 3] * A, [[2] * 3] * A, [[2] * 3] * A]
    )
    found = continuations(lazy, true.pomdp)
    row = np.eye(3)[found.values[0][0, 1].argmax()] * 1e7
    event = transition_event(
        true, expected_counts("sharp", 1e7, rows={("T", (0, 1)): row}), 100, found
    )
    assert not event.holds
    assert event.where.endswith("T(. | x0, a1)")


def test_events_hold_without_data():
    for name in WORLDS:
        for event in checks(name, Counts.zero(truth(name)), 10, 0.1).values():
            assert event.holds
            assert event.slack == math.inf


def test_known_rows_are_exact():
    """The transitions of tiger are known. Counts that contradict them violate E_T and E_T^c only
    with ``known=False``.
    """
    counts = Counts(np.full((2, 3, 2), [10**6, 0]), np.zeros((2, 2)))
    assert all(event.holds for event in checks("tiger", counts, 10, 0.1, known=True).values())
    found = checks("tiger", counts, 10, 0.1, known=False)
    assert (found["E_T"].holds, found["E_T^c"].holds) == (False, False)


RUNS, ROUNDS, DELTA = 50, 30, 0.1


@cache
def simulated_runs(name):
    """Counts before each round for independent runs of the uniform policy, simulated in NumPy."""
    model = truth(name).pomdp.stationary()
    tables = (np.broadcast_to(table, (RUNS, *table.shape)) for table in model[:3])
    played = simulate(*tables, model.horizon, ROUNDS, np.random.default_rng(7))
    transition, emission = (
        np.zeros((RUNS, ROUNDS, *table.shape), int) for table in (model.transition, model.emission)
    )
    run, k = np.indices((RUNS, ROUNDS))[..., None]
    before, after = played.states[..., :-1], played.states[..., 1:]
    np.add.at(transition, (run, k, before, played.actions, after), 1)
    np.add.at(emission, (run, k, before, played.observations), 1)
    earlier = (n.cumsum(1) - n for n in (transition, emission))
    return [
        [Counts(*both) for both in zip(*tables, strict=True)]
        for tables in zip(*earlier, strict=True)
    ]


def runs_that_hold(name):
    """For each event, the runs in which it holds in all rounds."""
    runs = [[checks(name, counts, ROUNDS, DELTA) for counts in run] for run in simulated_runs(name)]
    return {
        event: np.array([all(found[event].holds for found in run) for run in runs])
        for event in ("E_T", "E_O", "E_T^c")
    }


@pytest.mark.parametrize("name", WORLDS)
def test_events_hold_as_often_as_they_should(name, monkeypatch):
    """Each holds with probability at least 1 - delta in a run.

    Exact binomial threshold, false-alarm rate 1e-6 per event.

    With radii 100 times too small, each fails in so many runs that the same threshold detects it.
    The exception is E_T in tiger: listening keeps the state, and after opening a door the
    continuation is the same for both states.
    """
    held = runs_that_hold(name)
    assert all(enough(runs, 1 - DELTA) for runs in held.values()), held
    judge = events._judge
    monkeypatch.setattr(
        events, "_judge", lambda error, bound, describe: judge(error, bound / 100, describe)
    )
    missed = [event for event, runs in runs_that_hold(name).items() if not enough(runs, 1 - DELTA)]
    assert missed == ["E_T"] * (name == "sharp") + [
        "E_O",
        "E_T^c",
    ]


def test_counts_along_the_wrong_axis_are_detected():
    """After a million draws from every row, the bounds are narrow.

    Correct counts satisfy them, counts of (x', a, x) or (y, x) do not. The events are checked at
    delta = 1e-6, which is the false-alarm rate of each.
    """
    generator, model, n = np.random.default_rng(3), truth("sharp").pomdp.stationary(), 10**6
    counts = Counts(
        generator.multinomial(n, model.transition), generator.multinomial(n, model.emission)
    )
    right = checks("sharp", counts, n, 1e-6)
    assert all(event.holds for event in right.values()), right
    transposed = Counts(np.swapaxes(counts.transition, 0, 2), counts.emission.T)
    wrong = checks("sharp", transposed, n, 1e-6)
    assert not any(event.holds for event in wrong.values()), wrong


def test_bad_arguments():
    true, nothing = truth("sharp"), Counts.zero(truth("sharp"))
    for call in (
        lambda: transition_event(true, nothing, 0, optimal("sharp"), 2.0),
        lambda: emission_event(true, nothing, 0, 2.0),
        lambda: relative_transition_event(true, nothing, 0, 1.0, 2.0),
        lambda: tilde_epsilon(1.0, true.homdp, nothing, 0, 2.0),
    ):
        with pytest.raises(ParameterError) as caught:
            call()
        assert [problem.where for problem in caught.value.problems] == ["episodes", "delta"]
    with raises(ParameterError, "c"):
        relative_transition_event(true, nothing, 3, 0.5)
    with raises(ValueError, "policy"):
        continuations(uniform_policy(world("tiger")), true.pomdp)

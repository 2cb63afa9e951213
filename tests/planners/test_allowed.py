"""Forbidden actions against enumeration and rational arithmetic, with planted bugs."""

import jax
import numpy as np
import pytest

from homdp_ppl import POMDP, evaluate, uniform_policy, x64
from homdp_ppl.errors import PlanningError
from homdp_ppl.planners import (
    PLANNERS,
    _allowed_search,
    _restricted,
    auto,
    bounded_search,
    history_tree,
    remaining_steps,
)
from tests.planners.exact import (
    DEPENDENT,
    best_by_enumeration,
    dependent_pomdp,
    random_pomdp,
    rational_optimum,
    rational_pomdp,
    signed_pomdp,
)
from tests.raising import raises

PLANNER = history_tree()


def once(observations, actions, A=3):
    """Each action at most once, the last one as often as you like."""
    return ~np.isin(np.arange(A), [a for a in actions if a != A - 1])


def by_hash(observations, actions, A=3):
    """An arbitrary but fixed subset of the actions after each history, never empty."""
    mixed = hash((tuple(map(int, observations)), tuple(map(int, actions)), A))
    mask = np.random.default_rng(abs(mixed)).uniform(size=A) < 0.5
    mask[mixed % A] = True
    return mask


RULES = {"once": once, "by_hash": by_hash}


def for_actions(rule, A):
    """The rule for a number of actions."""

    def allowed(observations, actions):
        return RULES[rule](observations, actions, A)

    return allowed


def small_models():
    for seed in range(4):
        yield random_pomdp(seed, 2, 2, 3, 2)
        yield random_pomdp(seed, 3, 2, 2, 2, zeros=0.4)
        yield dependent_pomdp(seed, A=2, H=2, zeros=0.2)
        yield random_pomdp(seed, 2, 1, 2, 4)


def errors_on_small_models(rule):
    """The largest difference to the best of all policies that the rule allows."""
    found = []
    for model in small_models():
        allowed = for_actions(rule, model.sizes[2])
        plan = PLANNER(model, allowed=allowed)
        found.append(abs(plan.value - best_by_enumeration(model, allowed)))
        found.append(abs(plan.upper - plan.value))
    return max(found)


@pytest.mark.parametrize("rule", RULES)
def test_best_of_all_allowed_policies(rule):
    assert errors_on_small_models(rule) < 1e-8


@pytest.mark.parametrize("rule", RULES)
def test_exact_rational_arithmetic(rule):
    for seed in range(6):
        model = rational_pomdp(seed, 2, 2, 3, 3)
        exact = float(rational_optimum(model, 12, RULES[rule]))
        plan = PLANNER(model, allowed=RULES[rule])
        assert plan.value == pytest.approx(exact, abs=1e-13)
        assert plan.upper == pytest.approx(exact, abs=1e-13)
        assert plan.value == pytest.approx(evaluate(plan.policy, model), abs=1e-12)


def ignored(table, allowed, seen, done, spaces, subject):
    return np.ones_like(table(allowed, seen, done, spaces, subject))


def of_the_last_step_ignored(table, allowed, seen, done, spaces, subject):
    mask = table(allowed, seen, done, spaces, subject)
    return mask if seen.shape[1] < spaces.horizon else np.ones_like(mask)


def one_step_late(table, allowed, seen, done, spaces, subject):
    late = max(1, seen.shape[1] - 1)
    return table(allowed, seen[:, :late], done[:, : late - 1], spaces, subject)


def of_the_wrong_action(table, allowed, seen, done, spaces, subject):
    return np.roll(table(allowed, seen, done, spaces, subject), 1, axis=1)


def of_reversed_histories(table, allowed, seen, done, spaces, subject):
    return table(allowed, seen[:, ::-1], done[:, ::-1], spaces, subject)


BUGS = (
    ignored,
    of_the_last_step_ignored,
    one_step_late,
    of_the_wrong_action,
    of_reversed_histories,
)


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_in_the_masks_are_found(bug, monkeypatch):
    table = _restricted.allowed_table
    monkeypatch.setattr(_restricted, "allowed_table", lambda *args: bug(table, *args))
    assert max(errors_on_small_models(rule) for rule in RULES) > 1e-3


@pytest.mark.parametrize("rule", RULES)
def test_policies_take_allowed_actions_only(rule):
    """After all histories that allowed actions lead to, also those that the policy avoids."""
    for seed in range(3):
        model = random_pomdp(seed, 3, 2, 3, 3, zeros=0.3)
        allowed = for_actions(rule, 3)
        plan = PLANNER(model, allowed=allowed)
        front = [((y,), ()) for y in range(2)]
        while front:
            seen, done = front.pop()
            chances = plan.policy.act(list(seen), list(done))
            assert chances.sum() == 1
            if _possible(model, seen, done):
                assert not (chances[~allowed(seen, done)] > 0).any()
            if len(seen) < 3:
                for a in np.flatnonzero(allowed(seen, done)):
                    front += [((*seen, y), (*done, int(a))) for y in range(2)]


def _possible(model, seen, done):
    joint = model.initial * model.likelihood(seen[0], None, 0)
    for h, (a, y) in enumerate(zip(done, seen[1:], strict=True)):
        joint = model.predict(joint, a, h) * model.likelihood(y, a, h + 1)
    return joint.sum() > 0


@pytest.mark.parametrize("rule", RULES)
def test_the_compiled_planner_and_the_scorer_agree(rule):
    allowed = for_actions(rule, 2)
    model = random_pomdp(5, 3, 2, 2, 4, zeros=0.3)
    plan = PLANNER(model, allowed=allowed)
    with x64():
        solution = jax.jit(PLANNER.compile(model, allowed=allowed))(model)
        score = PLANNER.scorer(model, model, allowed=allowed)(solution.policy)
    assert float(solution.value) == pytest.approx(plan.value, abs=1e-12)
    assert float(score) == pytest.approx(plan.value, abs=1e-12)
    assert np.array_equal(solution.policy.probabilities, plan.policy.probabilities)
    assert np.array_equal(solution.policy.successor, plan.policy.successor)
    assert np.array_equal(solution.allowed, plan.allowed)
    assert not (plan.policy.probabilities[~plan.allowed] > 0).any()


def optimistic(model):
    def backup(parameters, h, alpha_next):
        return np.asarray(model.backup(alpha_next, h - 1)) + parameters

    return history_tree(backup=backup)


@pytest.mark.parametrize("rule", RULES)
def test_optimistic_backups_and_clipping_respect_the_masks(rule):
    """A constant bonus adds up over the steps; clipping has no effect below its bound."""
    allowed = for_actions(rule, 2)
    for seed in range(3):
        model = dependent_pomdp(seed, H=3, kinds="to")
        plan = PLANNER(model, allowed=allowed)
        higher = optimistic(model)(model, 0.25, allowed=allowed)
        assert higher.value == pytest.approx(plan.value + 2 * 0.25, abs=1e-12)
        assert np.array_equal(higher.policy.probabilities, plan.policy.probabilities)
        clipped = history_tree(caps=remaining_steps)(model, allowed=allowed)
        assert clipped.value == pytest.approx(plan.value, abs=1e-12)
        large = model._replace(reward=model.reward + 10.0)
        assert history_tree(caps=remaining_steps)(large, allowed=allowed).value == pytest.approx(
            3.0
        )


def test_nothing_changes_if_everything_is_allowed():
    for seed in range(3):
        model = random_pomdp(seed, 3, 2, 2, 4, zeros=0.4)
        plan, same = PLANNER(model), PLANNER(model, allowed=lambda seen, done: np.ones(2, bool))
        assert plan.value == same.value
        assert plan.upper == same.upper
        assert np.array_equal(plan.policy.probabilities, same.policy.probabilities)
        assert np.array_equal(plan.policy.successor, same.policy.successor)
        assert plan.allowed is None
        assert same.allowed.all()


def test_masks_are_asked_once_for_each_possible_history():
    """They are not asked after forbidden actions or impossible observations."""
    asked = []

    def allowed(observations, actions):
        asked.append((tuple(observations.tolist()), tuple(actions.tolist())))
        observations[:] = actions[:] = 9  # copies
        return np.array([True, len(asked[-1][1]) == 0])

    model = random_pomdp(0, 2, 2, 2, 3)
    blind = model.with_tables(emission=np.array([[0.3, 0.7, 0.0], [0.8, 0.2, 0.0]]))
    PLANNER(blind, allowed=allowed)
    assert len(set(asked)) == 2 * (1 + 4 + 8)
    assert all(2 not in seen and 1 not in done[1:] for seen, done in asked)
    before = len(asked)
    PLANNER(blind._replace(reward=blind.reward / 2), allowed=allowed)
    assert len(asked) == before


MODEL = random_pomdp(0, 2, 2, 2, 3)
WRONG = {
    "empty": lambda seen, done: np.zeros(2, bool),
    "empty at the last step": lambda seen, done: np.full(2, len(seen) < 3),
    "too long": lambda seen, done: np.ones(3, bool),
    "a number": lambda seen, done: True,
    "numbers": lambda seen, done: [0, 1],
    "probabilities": lambda seen, done: np.array([0.5, 0.5]),
    "names": lambda seen, done: ["a0"],
    "nothing": lambda seen, done: None,
    "ragged": lambda seen, done: [[True], True],
    "masked": lambda seen, done: np.ma.array([True, True], mask=[True, False]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_invalid_masks_raise_planning_errors(wrong):
    with raises(PlanningError, "allowed") as caught:
        PLANNER(MODEL, allowed=WRONG[wrong])
    step = "step 3, after y0, a0, y0, a0, y0" if "last" in wrong else "step 1, after y0"
    assert caught.value.problems[0].at == step
    assert 1 < len(caught.value.problems) <= 8


def test_masks_that_depend_on_more_than_the_history_raise():
    calls = []

    def moody(observations, actions):
        calls.append(1)
        return np.array([True, len(calls) <= 5])

    with raises(PlanningError, "allowed") as caught:
        PLANNER(MODEL, allowed=moody)
    assert "same mask" in caught.value.problems[0].expected


@pytest.mark.parametrize("wrong", [3, "a0", np.ones(2, bool), dict], ids=str)
@pytest.mark.parametrize("name", ["history_tree", "alpha_vectors", "bounded_search", "auto"])
def test_restrictions_that_are_not_functions_raise(name, wrong):
    with raises(PlanningError, "allowed"):
        PLANNERS[name]()(MODEL, allowed=wrong)


@pytest.mark.parametrize("name", ["alpha_vectors", "particle_tree", "quantised"])
def test_planners_without_support_name_history_tree(name):
    with raises(PlanningError, "allowed") as caught:
        PLANNERS[name]()(MODEL, allowed=for_actions("once", 2))
    assert "history_tree" in caught.value.problems[0].remedy


def test_auto_uses_the_tree():
    model = random_pomdp(0, 2, 2, 3, 3)
    plan = auto()(model, allowed=once)
    assert plan.planner.startswith("history_tree, chosen because")
    assert plan.value == PLANNER(model, allowed=once).value


def test_long_horizons_are_planned_if_little_is_allowed():
    """The unrestricted tree has 10^13 histories."""
    model = random_pomdp(0, 2, 2, 5, 13)
    with raises(PlanningError, "horizon 13"):
        PLANNER(model)

    def rarely(observations, actions):
        mask = np.zeros(5, bool)
        mask[:] = len(observations) == 13
        mask[0] = True
        return mask

    plan = PLANNER(model, allowed=rarely)
    assert len(plan.policy.probabilities) == sum(2**h for h in range(1, 14))
    with raises(PlanningError, "horizon 13"):
        history_tree(max_nodes=1000)(model, allowed=rarely)
    with raises(PlanningError, "horizon 13"):
        history_tree(max_nodes=10_000)(model, allowed=lambda seen, done: np.ones(5, bool))


def test_uniform_over_allowed_actions():
    model = random_pomdp(1, 2, 2, 3, 2)
    policy = uniform_policy(model, allowed=once)
    assert policy.act([0], []).tolist() == [1 / 3] * 3
    assert policy.act([0, 1], [1]).tolist() == [0.5, 0.0, 0.5]
    by_hand = 0.0
    T, O, r = model.moves(0), model.shows(0), model.reward[:, :, 0]  # noqa: E741
    for y, a in np.ndindex(2, 3):
        joint = model.initial * O[:, y]
        by_hand += joint @ r[0][:, a] / 3
        for z in range(2):
            ahead = (joint @ T[:, a]) * O[:, z]
            left = [b for b in range(3) if b == 2 or b != a]
            by_hand += sum(ahead @ r[1][:, b] for b in left) / len(left) / 3
    assert evaluate(policy, model) == pytest.approx(by_hand, abs=1e-12)
    assert evaluate(policy, model) < PLANNER(model, allowed=once).value


def search_models():
    yield from small_models()
    for seed in range(2):
        for kinds in DEPENDENT:
            yield dependent_pomdp(seed, A=3, H=4, zeros=0.2, kinds=kinds)


@pytest.mark.parametrize("rule", RULES)
def test_bounded_search_agrees_within_its_certificate(rule):
    for model in search_models():
        allowed = for_actions(rule, model.sizes[2])
        plan = bounded_search(gap=1e-6)(model, allowed=allowed)
        best = PLANNER(model, allowed=allowed)
        assert plan.value - 1e-11 <= best.value <= plan.upper + 1e-11
        assert plan.gap <= 1e-6
        assert plan.value == pytest.approx(evaluate(plan.policy, model), abs=1e-12)


def test_certificates_of_bounded_search_hold_at_any_time():
    """Also before the first pass, and for rewards of both signs."""
    for seed in range(5):
        model = signed_pomdp(seed, zeros=seed % 2 == 1, A=3)
        best = PLANNER(model, allowed=by_hash).value
        for limit in (0.0, 0.002, 0.01):
            plan = bounded_search(gap=0.0, time_limit=limit)(model, allowed=by_hash)
            assert plan.value - 1e-11 <= best <= plan.upper + 1e-11


def test_bounded_search_takes_allowed_actions_only():
    for seed in range(3):
        model = random_pomdp(seed, 3, 2, 3, 4, zeros=0.3)
        plan = bounded_search()(model, allowed=by_hash)
        for seen in np.ndindex(2, 2, 2, 2):
            done = ()
            for h in range(1, 5):
                if not _possible(model, seen[:h], done):
                    break
                action = int(plan.policy.act(list(seen[:h]), list(done)).argmax())
                assert by_hash(seen[:h], done)[action]
                done = (*done, action)
        assert not (plan.policy.probabilities[~plan.allowed] > 0).any()


def everything(search, seen, done):
    return np.ones(search.pomdp.sizes[2], dtype=bool)


def the_rule_of_the_first_step(search, seen, done):
    return search.allowed(np.array(seen[:1]), np.array((), dtype=int))


@pytest.mark.parametrize("bug", [everything, the_rule_of_the_first_step])
def test_planted_bugs_in_the_search_are_found(bug, monkeypatch):
    monkeypatch.setattr(_allowed_search.RestrictedSearch, "_mask", bug)
    with pytest.raises(AssertionError):
        test_bounded_search_agrees_within_its_certificate("by_hash")


def diagnosis(tests, horizon):
    """Two states, tests with costs, and a diagnosis at the last step; each test at most once."""
    generator, A = np.random.default_rng(0), tests + 2
    right = generator.uniform(0.55, 0.95, (tests, 2))  # of each test in each state
    emission = np.full((A + 1, 2, 2), 0.5)
    emission[:tests, [0, 1], [0, 1]] = right
    emission[:tests, [0, 1], [1, 0]] = 1 - right
    reward = np.full((horizon, 2, A), 0.1)
    reward[:, :, :tests] -= generator.uniform(0.01, 0.1, tests)
    reward[-1] = 0.0
    reward[-1, [0, 1], [tests, tests + 1]] = 1.0
    moves = np.broadcast_to(np.eye(2)[:, None], (2, A, 2))

    def allowed(observations, actions):
        mask = np.ones(A, dtype=bool)
        mask[actions[actions < tests]] = False
        return mask

    return POMDP.of([0.7, 0.3], moves, emission, reward), allowed


def test_thirty_tests_each_at_most_once():
    """Exact for two tests; for more, auto searches and its certificate is closed or honest."""
    model, allowed = diagnosis(30, 3)
    exact = auto()(model, allowed=allowed)
    assert exact.planner.startswith("history_tree")
    search = bounded_search(gap=1e-9)(model, allowed=allowed)
    assert search.value == pytest.approx(exact.value, abs=1e-9)
    model, allowed = diagnosis(30, 4)
    plan = auto(gap=0.02)(model, allowed=allowed)
    assert plan.planner.startswith("bounded_search, chosen because")
    assert plan.gap <= 0.02
    model, allowed = diagnosis(30, 7)
    plan = bounded_search(time_limit=0.5)(model, allowed=allowed)
    assert 0.0 < plan.gap < 0.5


def test_bounded_search_refuses_what_it_cannot_do():
    model = random_pomdp(0, 2, 2, 3, 20)
    with raises(PlanningError, "horizon 20"):
        bounded_search(time_limit=0.1)(model, allowed=once)
    for name, wrong in WRONG.items():
        if "last" not in name:
            with raises(PlanningError, "allowed"):
                bounded_search()(MODEL, allowed=wrong)
    calls = []

    def moody(observations, actions):
        calls.append(1)
        return np.array([True, len(calls) <= 5])

    with raises(PlanningError, "allowed"):
        bounded_search()(MODEL, allowed=moody)

"""The six applications of the paper: their tables, the value of memory, and the value of
structure.
"""

from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from homdp_ppl import HOMDP, DeclarationError, World, explorers, learn, models
from homdp_ppl.evaluation.exact import occupancy
from homdp_ppl.evaluation.restricted import best_blind, best_memoryless
from homdp_ppl.models.flat import flat_table
from tests.models.by_name import begins, paid, row, shown
from tests.runs import TREE
from tests.worlds import world

MARGINS = {  # least losses of memoryless and blind policies, as shares of the optimum
    "sim_to_real": (0.05, 0.25),
    "fast_control": (0.03, 0.15),
    "meta_learning": (0.06, 0.30),
    "scheduling": (0.02, 0.08),
    "imitation": (0.15, 0.40),
    "screening": (0.04, 0.10),
}


# The value of memory


@pytest.mark.parametrize("name", MARGINS)
def test_partial_observability_matters(name):
    """The best policy with memory is better than the best memoryless policy, which is better than
    the best blind policy. The searches are exact.
    """
    pomdp = world(name).pomdp
    optimum = TREE(pomdp).value
    memoryless, blind = best_memoryless(pomdp).value, best_blind(pomdp).value
    assert (optimum - memoryless) / optimum > MARGINS[name][0]
    assert (optimum - blind) / optimum > MARGINS[name][1]
    assert blind < memoryless


def test_with_observed_states_no_memory_is_needed():
    """Planted: if the state is observed, there is no margin."""
    pomdp = world("imitation").pomdp
    seeing = pomdp.with_tables(emission=np.eye(9))
    assert best_memoryless(seeing).value == pytest.approx(5.0)  # acts like the expert at every step


@pytest.mark.parametrize("name", MARGINS)
def test_every_action_is_useful(name):
    """The optimal policy takes each action sometimes, except going west in the hall."""
    pomdp = world(name).pomdp
    used = occupancy(TREE(pomdp).policy, pomdp).sum((0, 1))
    unused = {"sim_to_real": {"west"}}.get(name, set())
    assert {
        action
        for action, share in zip(world(name).spaces.actions, used, strict=True)
        if share < 0.01
    } == unused


# The value of structure

LEARNING = {  # the gap to reach as a share of the optimum, and episodes
    "sim_to_real": (0.05, 10),
    "fast_control": (0.05, 12),
    "meta_learning": (0.05, 20),
    "scheduling": (0.02, 12),
    "imitation": (0.05, 25),
    "screening": (0.01, 20),
}
SEEDS, WINDOW = 8, 5


@cache
def learners(name: str, horizon: int = 3) -> tuple[World, HOMDP]:
    """A world with a closed-form posterior, and the declaration without its structure."""
    closed = {"hierarchy": False} if name == "screening" else {}
    made = models.load(name, horizon=horizon, **closed)
    return made, flat_table(made).homdp


def episodes_needed(truth: World, model: HOMDP, level: float, episodes: int) -> list[int]:
    """For each seed, the number of episodes after which the mean gap of the next five is below the
    level; all episodes if it never is.
    """
    runs = learn(truth, explorers.quantile_backup(1.645), TREE, episodes, range(SEEDS), model)
    means = np.array([np.convolve(run.gaps, np.ones(WINDOW) / WINDOW, "valid") for run in runs])
    below = means <= level * runs[0].optimum
    return [int(np.argmax(row)) if row.any() else episodes for row in below]


def fewer(ours: list[int], theirs: list[int]) -> bool:
    """Whether the first learner needs fewer episodes on paired seeds.

    This is an exact sign test at level 2^-8; a tie is not a win. Between equal learners, the
    probability of a win on a seed is at most 1/2: false alarm 0.4%.
    """
    wins = sum(a < b for a, b in zip(ours, theirs, strict=True))
    return bool(binom.sf(wins - 1, len(ours), 0.5) <= 0.5**SEEDS)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNING)
def test_structure_saves_episodes(name):
    """The same rule with common random numbers.

    Planted: a learner with the table instead of the structure does not win.
    """
    truth, table = learners(name)
    structured, flat = (
        episodes_needed(truth, model, *LEARNING[name]) for model in (truth.homdp, table)
    )
    assert fewer(structured, flat)
    assert not fewer(flat, flat)
    assert not fewer(flat, structured)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNING)
def test_structure_saves_most_episodes(name):
    """In longer runs, with a longer horizon if the history tree allows it, structure needs less
    than a third of the episodes.
    """
    truth, table = learners(name, horizon=3 if name == "screening" else 4)
    structured, flat = (
        np.median(episodes_needed(truth, model, LEARNING[name][0], 200))
        for model in (truth.homdp, table)
    )
    assert 3 * structured < flat


# The stories


@pytest.mark.parametrize("name", MARGINS)
def test_closed_forms_are_where_the_story_says(name):
    homdp = world(name).homdp
    sampled = {site.name for site in homdp.sites} - set(homdp.structure.conjugate.sites)
    assert sampled == ({"pace", "logit_rates"} if name == "screening" else set())
    closed = learners(name)[0].homdp
    assert {site.name for site in closed.sites} == set(closed.structure.conjugate.sites)


def test_sim_to_real_by_hand():
    made = world("sim_to_real")
    assert begins(made) == {"row 1, column 1": 0.5, "row 2, column 1": 0.5}
    assert row(made, "row 1, column 1", "east") == {"row 1, column 2": 0.8, "row 1, column 1": 0.2}
    assert row(made, "row 2, column 2", "north") == {"row 1, column 2": 0.8, "row 2, column 2": 0.2}
    assert row(made, "row 1, column 1", "west") == {"row 1, column 1": 1.0}
    assert row(made, "row 2, column 3", "grasp") == {"loaded": 1.0}
    assert row(made, "row 1, column 3", "grasp") == {"knocked over": 1.0}
    assert shown(made, "row 1, column 3") == {"seen in row 1, column 3": 0.9, "nothing": 0.1}
    assert all(shown(made, f"row {r}, column 2") == {"nothing": 1.0} for r in (1, 2))
    assert shown(made, "row 2, column 3") == {"nothing": 1.0}
    rewards = made.pomdp.reward[0]
    assert rewards.sum() == 6  # every action once loaded, and grasping the box
    assert paid(made, "row 2, column 3", "grasp") == 1


def test_fast_control_by_hand():
    made = world("fast_control")
    assert begins(made) == {"place +0, drift -1": 0.5, "place +0, drift +1": 0.5}
    assert row(made, "place +0, drift -1", "steer right") == {
        "place +0, drift +0": 0.8,
        "place -1, drift -1": 0.2,
    }
    assert row(made, "place +1, drift +0", "straight") == {
        "place +0, drift -1": 0.15,
        "place +1, drift +0": 0.7,
        "place +2, drift +1": 0.15,
    }
    assert row(made, "place +2, drift +1", "steer right") == {"place +2, drift +1": 1.0}
    assert row(made, "place +1, drift -1", "straight") == {"place +0, drift -1": 1.0}
    assert shown(made, "place -2, drift +1") == {"left": 0.8, "centre": 0.2}
    assert shown(made, "place +0, drift +1") == {"centre": 1.0}
    assert [paid(made, f"place {p:+d}, drift +0", "straight") for p in range(-2, 3)] == [
        0,
        0.5,
        1,
        0.5,
        0,
    ]


def test_meta_learning_by_hand():
    made = world("meta_learning")
    assert begins(made) == {f"task {k}, rung 0": 1 / 3 for k in (1, 2, 3)}
    assert row(made, "task 2, rung 0", "lever 2") == {"task 2, rung 1": 0.9, "task 2, rung 0": 0.1}
    assert row(made, "task 2, rung 1", "lever 3") == {"task 2, rung 2": 0.2, "task 2, rung 0": 0.8}
    assert row(made, "task 3, rung 2", "lever 3") == {"task 3, rung 2": 1.0}
    assert all(
        shown(made, f"task {k}, rung {n}") == {f"rung {n}": 1.0}
        for k, n in product((1, 2, 3), range(3))
    )
    assert [paid(made, f"task 1, rung {n}", "lever 2") for n in range(3)] == [0, 0.5, 1]


def test_scheduling_by_hand():
    made = world("scheduling")
    assert begins(made) == {f"A{a} B{b}": 1 / 16 for a, b in product(range(4), repeat=2)}
    assert row(made, "A0 B2", "to A") == {
        "A0 B1": 0.5,
        "A1 B1": 0.1,
        "A2 B1": 0.4,
    }  # starts immediately
    assert row(made, "A0 B1", "to B") == {
        "A0 B1": 0.5,
        "A0 B2": 0.1,
        "A0 B3": 0.4,
    }  # after the last step of another
    assert row(made, "A3 B2", "to B") == {"A2 B1": 1.0}  # turned away
    assert row(made, "A1 B0", "elsewhere") == {"A0 B0": 1.0}
    assert [paid(made, state, "to A") for state in ("A0 B3", "A1 B3", "A2 B3", "A3 B3")] == [
        1,
        1,
        0,
        0,
    ]
    assert paid(made, "A0 B0", "elsewhere") == 0.3
    assert [shown(made, state) for state in ("A0 B0", "A3 B0", "A0 B1", "A2 B1")] == [
        {seen: 1.0} for seen in ("idle", "A busy", "B busy", "A B busy")
    ]


def test_imitation_by_hand():
    made = world("imitation")
    assert begins(made) == {
        f"on course, expert {turn}": 1 / 3 for turn in ("left 1", "straight", "right 1")
    }
    habit = {"left 1": 0.15, "straight": 0.7, "right 1": 0.15}
    for action, course in (
        ("left 1", "left of course"),
        ("straight", "on course"),
        ("right 1", "right of course"),
    ):
        after = {f"{course}, expert {turn}": chance for turn, chance in habit.items()}
        assert row(made, "right of course, expert straight", action) == after
    assert shown(made, "left of course, expert right 1") == {
        "left of course": 0.9,
        "on course": 0.1,
    }
    assert shown(made, "on course, expert left 1") == {"on course": 1.0}
    assert [
        paid(made, "on course, expert left 1", action)
        for action in ("left 1", "straight", "right 1")
    ] == [
        1,
        0,
        0,
    ]


def test_screening_by_hand():
    made = world("screening")
    assert begins(made) == {
        f"{condition} {kind}": 0.25 for condition in ("healthy", "early") for kind in "AB"
    }
    onset = 1 / (1 + np.exp(1.7))
    assert row(made, "healthy B", "mammogram") == {"healthy B": 1 - onset, "early B": onset}
    for untreated in ("wait", "biopsy", "drug B"):
        assert row(made, "early A", untreated) == {"early A": 0.5, "advanced A": 0.5}
    assert row(made, "advanced A", "wait") == {"advanced A": 1.0}
    assert row(made, "early A", "drug A") == {"healthy A": 0.8, "early A": 0.2}
    assert row(made, "advanced B", "drug B") == {"early B": 0.8, "advanced B": 0.2}
    assert shown(made, "early A", after="mammogram") == {
        "mammogram clear": 0.3,
        "mammogram shadow": 0.7,
    }
    assert shown(made, "healthy B", after="mammogram") == {
        "mammogram clear": 0.95,
        "mammogram shadow": 0.05,
    }
    assert shown(made, "advanced B", after="biopsy") == {"biopsy type B": 1.0}
    assert shown(made, "healthy B", after="biopsy") == {"biopsy healthy": 1.0}
    for after in ("wait", "drug A", "drug B", None):
        assert shown(made, "advanced A", after) == {"no news": 1.0}
    assert paid(made, "early B", "biopsy") == pytest.approx(0.5 * 0.8)
    assert paid(made, "healthy A", "drug A") == pytest.approx(0.6)


# Other sizes


@pytest.mark.parametrize(
    ("name", "options", "sizes"),
    [
        ("sim_to_real", {"hall": ("..#*",), "horizon": 6}, (6, 3, 5, 6)),
        ("fast_control", {"half_width": 3}, (21, 3, 3, 5)),
        ("meta_learning", {"tasks": 2, "rungs": 4, "horizon": 3}, (8, 4, 2, 3)),
        ("scheduling", {"servers": 1, "lengths": [0.5, 0.5], "horizon": 7}, (3, 2, 2, 7)),
        ("imitation", {"actions": 5}, (15, 3, 5, 5)),
        ("screening", {"stages": 3, "horizon": 2}, (8, 6, 5, 2)),
    ],
)
def test_sizes_are_adjustable(name, options, sizes):
    made = models.load(name, **options)
    assert made.spaces.sizes == sizes
    assert 0 <= made.pomdp.reward.min() < made.pomdp.reward.max() <= 1


@pytest.mark.parametrize(
    ("name", "options", "where"),
    [
        ("sim_to_real", {"hall": ("#?", "#")}, ["hall", "hall", "hall"]),
        ("fast_control", {"half_width": 0}, ["half_width"]),
        ("meta_learning", {"tasks": 1, "rungs": 1}, ["tasks", "rungs"]),
        ("scheduling", {"servers": 0}, ["servers"]),
        ("imitation", {"actions": 4}, ["actions"]),
        ("screening", {"stages": 0}, ["stages"]),
    ],
)
def test_impossible_sizes_raise_an_error(name, options, where):
    with pytest.raises(DeclarationError) as caught:
        models.load(name, **options)
    assert [problem.where for problem in caught.value.problems] == where

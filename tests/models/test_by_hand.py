"""The models lock, checkup and tiger_listen follow their stories, and reject sizes of zero."""

import numpy as np
import pytest

from homdp_ppl import DeclarationError, models
from tests.models.by_name import begins, paid, row, shown
from tests.worlds import world


def test_lock_by_hand():
    lock = world("lock")
    assert begins(lock) == {"stage 1": 1.0}
    assert row(lock, "stage 1", "dial 1") == {"stage 2": 0.9, "jammed": 0.1}
    assert row(lock, "stage 1", "dial 2") == {"stage 2": 0.05, "jammed": 0.95}
    assert row(lock, "stage 3", "dial 3") == {"open": 0.9, "jammed": 0.1}
    assert (
        row(lock, "stage 2", "leave")
        == row(lock, "jammed", "leave")
        == row(lock, "home", "dial 1")
        == {"home": 1.0}
    )
    assert row(lock, "jammed", "dial 2") == {"jammed": 1.0}
    assert row(lock, "open", "leave") == {"open": 1.0}
    assert shown(lock, "stage 2") == {"green": 0.8, "red": 0.2}
    assert shown(lock, "jammed") == {"green": 0.2, "red": 0.8}
    assert [shown(lock, state) for state in ("open", "home")] == [{"open": 1.0}, {"home": 1.0}]
    assert [paid(lock, state, "dial 3") for state in ("stage 3", "jammed", "open", "home")] == [
        0,
        0,
        1,
        0.03,
    ]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("lock", ("length", "dials")), ("random", ("states", "observations", "actions"))],
)
def test_sizes_of_zero_raise_an_error(name, wrong):
    with pytest.raises(DeclarationError) as caught:
        models.load(name, **dict.fromkeys(wrong, 0))
    assert tuple(problem.where for problem in caught.value.problems) == wrong


def test_checkup_by_hand():
    checkup, (onset, progression) = world("checkup"), 1 / (1 + np.exp([1.7, 0.6]))
    assert begins(checkup) == {"healthy, no test": 0.8, "early, no test": 0.2}
    assert row(checkup, "healthy, biopsy", "scan") == {
        "healthy, scan": 1 - onset,
        "early, scan": onset,
    }
    assert row(checkup, "early, scan", "wait") == {
        "early, no test": 1 - progression,
        "advanced, no test": progression,
    }
    assert row(checkup, "advanced, no test", "biopsy") == {"advanced, biopsy": 1.0}
    assert row(checkup, "healthy, scan", "treat") == {"healthy, no test": 1.0}
    assert (
        row(checkup, "early, biopsy", "treat")
        == row(checkup, "treated early", "scan")
        == {"treated early": 1.0}
    )
    assert (
        row(checkup, "advanced, scan", "treat")
        == row(checkup, "treated late", "treat")
        == {"treated late": 1.0}
    )
    assert shown(checkup, "healthy, scan") == {"scan clear": 0.9, "scan shadow": 0.1}
    assert shown(checkup, "early, scan") == {"scan clear": 0.4, "scan shadow": 0.6}
    assert shown(checkup, "advanced, biopsy") == {"biopsy advanced": 1.0}
    assert shown(checkup, "treated late") == shown(checkup, "early, no test") == {"no news": 1.0}
    assert paid(checkup, "early, no test", "biopsy") == pytest.approx(0.8 - 0.08)
    assert paid(checkup, "healthy, scan", "treat") == pytest.approx(0.2)
    assert paid(checkup, "treated late", "scan") == pytest.approx(0.4 - 0.02)


def test_tiger_listen_by_hand():
    tiger, either = world("tiger_listen"), {"left": 0.5, "right": 0.5}
    assert begins(tiger) == either
    assert row(tiger, "left", "listen") == {"left": 1.0}
    assert row(tiger, "right", "open left") == row(tiger, "left", "open right") == either
    assert shown(tiger, "left", after="listen") == {"growl left": 0.85, "growl right": 0.15}
    assert shown(tiger, "right", after="listen") == {"growl left": 0.15, "growl right": 0.85}
    for side in ("left", "right"):
        for after in ("open left", "open right", None):
            assert shown(tiger, side, after) == {"silence": 1.0}
    actions = tiger.spaces.actions
    assert [paid(tiger, "left", action) for action in actions] == [0.9, 0, 1]
    assert [paid(tiger, "right", action) for action in actions] == [0.9, 1, 0]

"""Requests to stop, and signals."""

import os
import signal
import threading
import time

import pytest

from homdp_ppl.study.pace import Pace, listening


def test_reasons_to_stop(tmp_path):
    assert Pace().stop == ""
    assert Pace(deadline=time.monotonic() - 1).stop == "the time limit is reached"
    assert Pace(deadline=time.monotonic() + 100).stop == ""
    pace = Pace(flag=tmp_path / "stop")
    assert pace.stop == ""
    (tmp_path / "stop").touch()
    assert pace.stop == "a stop was requested"
    pace.ask("tea is ready")
    pace.ask("later")
    assert pace.stop == "tea is ready"


def test_the_first_signal_requests_a_stop_and_the_second_interrupts():
    before = signal.getsignal(signal.SIGINT)
    pace = Pace()
    with listening(pace):
        os.kill(os.getpid(), signal.SIGINT)
        assert pace.stop == "SIGINT was received"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)  # requests a stop again
    assert signal.getsignal(signal.SIGINT) is before


def test_signal_handlers_are_not_changed_outside_the_main_thread():
    before = signal.getsignal(signal.SIGINT)
    found = []

    def work():
        with listening(Pace()):
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [before]

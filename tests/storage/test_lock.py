"""Locks of directories, with several processes."""

import json
import os
import pickle
import signal
import socket
import time

import pytest

from homdp_ppl.storage import lock as locking
from homdp_ppl.storage.atomic import StorageError
from homdp_ppl.storage.lock import DirectoryLock, Holder, LockedError, stale_locks
from tests.children import finish, kill, spawn
from tests.raising import raises

CONTENDER = """
import time
from homdp_ppl.storage import lock as locking
if "--slow" in sys.argv:  # without flock, all find the old lock before one takes it
    is_gone = locking.Holder.is_gone.fget
    locking.Holder.is_gone = property(lambda self: (is_gone(self), time.sleep(0.3))[0])
if "--no-flock" in sys.argv:
    locking.try_lock = lambda _: True
print("ready", flush=True)
for directory in iter(sys.stdin.readline, ""):
    lock = locking.DirectoryLock(directory.strip())
    try:
        lock.__enter__()
    except locking.StorageError as error:
        print(error, flush=True)
        sys.stdin.readline()
    else:
        print("won", flush=True)
        sys.stdin.readline()
        lock.__exit__(None, None, None)
    print("done", flush=True)
"""


def contenders(count, *options):
    """Processes that have imported everything and wait for the name of a directory."""
    children = [spawn(CONTENDER, *options) for _ in range(count)]
    assert all(child.stdout.readline() == "ready\n" for child in children)
    return children


def ask(children, word):
    for child in children:
        child.stdin.write(f"{word}\n")
        child.stdin.flush()
    return [child.stdout.readline().strip() for child in children]


def past_holder():
    """A process that has ended on this host."""
    child = spawn(
        "from homdp_ppl.storage.lock import Holder; import json; "
        "print(json.dumps(Holder.this_process()))"
    )
    return Holder(*json.loads(finish(child)))


def leave(directory, holder):
    path = directory / locking.NAME
    path.write_text(json.dumps(holder._asdict()))
    return path


@pytest.fixture
def killed(tmp_path):
    """A directory whose holder was killed."""
    (child,) = contenders(1)
    assert ask([child], tmp_path) == ["won"]
    kill(child)
    assert (tmp_path / locking.NAME).exists()
    return tmp_path


def test_the_lock_file_names_the_holder_and_is_removed(tmp_path):
    before = int(time.time())
    with DirectoryLock(tmp_path) as lock:
        found = json.loads((tmp_path / locking.NAME).read_text())
        assert found == lock.holder._asdict()
        assert (found["host"], found["pid"]) == (socket.gethostname(), os.getpid())
        assert (
            before
            <= time.mktime(time.strptime(found["since"][:19], "%Y-%m-%dT%H:%M:%S"))
            <= time.time()
        )
    assert lock.holder is None
    assert os.listdir(tmp_path) == []
    with lock:
        assert lock.holder.pid == os.getpid()


def test_the_error_of_a_second_process_names_host_and_pid(tmp_path):
    (child,) = contenders(1)
    with DirectoryLock(tmp_path) as lock:
        for other in (DirectoryLock(tmp_path), lock):
            with (
                raises(StorageError, f"{tmp_path}/.lock"),
                other,
            ):
                pass
        (message,) = ask([child], tmp_path)
        assert message == (
            f"{tmp_path / locking.NAME}: got a lock held by process {os.getpid()} on host "
            f"{socket.gethostname()} since {lock.holder.since}; expected a directory that no other "
            "process uses. Wait for this process, or end it."
        )
        assert ask([child], "") == ["done"]
        assert json.loads((tmp_path / locking.NAME).read_text())["pid"] == os.getpid()
    assert ask([child], tmp_path) == ["won"]
    with (
        raises(StorageError, f"{tmp_path}/.lock"),
        DirectoryLock(tmp_path),
    ):
        pass
    finish(child, "\n")


def test_the_lock_of_a_killed_process_is_taken_over(killed):
    leftover = killed / ".results.0123456789abcdef.partial.nc"
    leftover.touch()
    with DirectoryLock(killed) as lock:
        assert lock.holder.pid == os.getpid()
        assert not leftover.exists()
    assert os.listdir(killed) == []


@pytest.mark.parametrize(
    "change",
    ["none", "pid given to another", "after a reboot", "no start time", "no start time, pid lives"],
)
def test_whether_a_holder_is_gone(tmp_path, change):
    this, past = Holder.this_process(), past_holder()
    boot, tick = past.started.split()
    holder, gone = {
        "none": (past, True),
        "pid given to another": (past._replace(pid=os.getppid()), True),
        "after a reboot": (this._replace(pid=os.getpid(), started=f"0{boot} {tick}"), True),
        "no start time": (past._replace(started=""), True),
        "no start time, pid lives": (this._replace(pid=os.getppid(), started=""), False),
    }[change]
    assert holder.is_gone == gone
    path = leave(tmp_path, holder)
    if gone:
        with DirectoryLock(tmp_path) as lock:
            assert lock.holder.pid == os.getpid()
    else:
        with (
            raises(StorageError, f"{tmp_path}/.lock"),
            DirectoryLock(tmp_path),
        ):
            pass
        assert json.loads(path.read_text())["pid"] == holder.pid


def test_a_zombie_process_has_ended():
    child = spawn("")
    deadline = time.monotonic() + 30
    while not Holder(socket.gethostname(), child.pid, "", "").is_gone:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.communicate()


def test_without_proc_the_pid_decides(monkeypatch):
    monkeypatch.setattr(locking, "_started", lambda pid: "")
    assert not Holder.this_process().is_gone
    assert past_holder().is_gone


@pytest.mark.parametrize("pid", ["gone", "this"])
def test_locks_of_other_hosts_are_taken_over_only_on_request(tmp_path, pid):
    holder = past_holder()._replace(host="elsewhere")
    holder = holder if pid == "gone" else holder._replace(pid=os.getpid())
    path = leave(tmp_path, holder)
    before = path.read_bytes()
    for _ in range(2):
        with raises(LockedError, str(path)) as caught, DirectoryLock(tmp_path):
            pass
        assert caught.value.locks == ((path, holder),)
        assert not caught.value.here
        assert path.read_bytes() == before
    with DirectoryLock(tmp_path, take_over=True) as lock:
        assert lock.holder.pid == os.getpid()
    assert os.listdir(tmp_path) == []


def test_the_lock_of_a_running_process_is_never_taken_over(tmp_path):
    """Not even on request, if the process is stopped, or if the file names another host."""
    (child,) = contenders(1)
    assert ask([child], tmp_path) == ["won"]
    child.send_signal(signal.SIGSTOP)
    path = tmp_path / locking.NAME
    named = json.loads(path.read_text())
    for host in (named["host"], "elsewhere"):
        path.write_text(json.dumps({**named, "host": host}))
        with pytest.raises(LockedError) as caught, DirectoryLock(tmp_path, take_over=True):
            pass
        ((where, holder),) = caught.value.locks
        assert (where, holder.pid, holder.host) == (path, child.pid, host)
    path.write_text(json.dumps(named))
    child.send_signal(signal.SIGCONT)
    assert ask([child], "") == ["done"]
    finish(child)


def test_all_stale_locks_are_found_at_once(tmp_path):
    """Locks of other hosts and unreadable ones, but not those of this host or behind links."""
    for name in ("a", "b/c", "d", "e"):
        (tmp_path / "study" / name).mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    elsewhere = past_holder()._replace(host="elsewhere")
    leave(tmp_path / "study" / "a", elsewhere)
    leave(tmp_path / "study" / "b" / "c", elsewhere)
    leave(tmp_path / "study" / "d", past_holder())
    (tmp_path / "study" / "e" / locking.NAME).write_bytes(b"{")
    leave(outside, elsewhere)
    (tmp_path / "study" / "link").symlink_to(outside)
    found = stale_locks(tmp_path / "study")
    assert [
        (str(path.parent.relative_to(tmp_path / "study")), holder) for path, holder in found
    ] == [
        ("a", elsewhere),
        ("b/c", elsewhere),
        ("e", None),
    ]
    error = pickle.loads(pickle.dumps(LockedError(found, locking.ENDED)))
    assert [problem.where for problem in error.problems] == [str(path) for path, _ in found]
    assert len(str(error).splitlines()) == 1


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path):
    target = tmp_path / "target"
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / locking.NAME).symlink_to(target)
    path = tmp_path / "study" / locking.NAME
    with raises(StorageError, str(path)), DirectoryLock(tmp_path / "study"):
        pass
    assert not target.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"7",
        b'{"host": "a", "pid": Infinity, "started": "", "since": ""}',
        b'{"host": "a"}',
        b"[" * 4000,
        b"\xff",
        b"x" * 10_000,
    ],
)
def test_an_unreadable_lock_file_is_taken_over_only_on_request(tmp_path, content):
    path = tmp_path / locking.NAME
    path.write_bytes(content)
    with raises(LockedError, str(path)) as caught, DirectoryLock(tmp_path):
        pass
    assert caught.value.locks == ((path, None),)
    assert path.read_bytes() == content
    with DirectoryLock(tmp_path, take_over=True):
        pass


@pytest.mark.parametrize("content", [b"", bytes(100)])
def test_an_empty_lock_file_is_free(tmp_path, content):
    (tmp_path / locking.NAME).write_bytes(content)
    with DirectoryLock(tmp_path) as lock:
        assert lock.holder.pid == os.getpid()


def test_a_missing_directory_raises(tmp_path):
    with (
        raises(StorageError, f"{tmp_path}/none/.lock"),
        DirectoryLock(tmp_path / "none"),
    ):
        pass


def test_errors_release_the_lock(tmp_path):
    with pytest.raises(KeyboardInterrupt), DirectoryLock(tmp_path):
        raise KeyboardInterrupt
    with DirectoryLock(tmp_path):
        pass


def test_exactly_one_of_eight_processes_gets_the_lock(tmp_path, killed):
    """In a new directory, in one that was just released, and in one whose holder has ended."""
    children, past = contenders(8), past_holder()
    for number in range(12):
        if number % 3 == 2:
            leave(tmp_path, past)
        answers = ask(children, tmp_path)
        assert answers.count("won") == 1
        winner = children[answers.index("won")]
        holder = f"held by process {winner.pid} on host {socket.gethostname()}"
        assert sum(holder in answer for answer in answers) == 7
        assert ask(children, "") == ["done"] * 8
    for child in children:
        finish(child)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "safe"), [(["--slow"], True), (["--slow", "--no-flock"], False)]
)
def test_several_processes_find_a_stale_lock(tmp_path, options, safe):
    """All processes read the old lock file before one takes it over.

    Planted bug: without the lock of the operating system, several take it over.
    """
    leave(tmp_path, past_holder())
    children = contenders(4, *options)
    won = ask(children, tmp_path).count("won")
    ask(children, "")
    for child in children:
        finish(child)
    assert (won == 1) == safe

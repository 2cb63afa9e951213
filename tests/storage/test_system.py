"""Locks without ``fcntl``: with locked bytes as on Windows, and on systems without locks."""

from tests.children import finish, spawn

# An emulation of Windows' locks with POSIX locks, and of its process table.
WINDOWS = """
import ctypes, errno, fcntl, os, types

def locking(handle, mode, size):
    wanted = fcntl.LOCK_UN if mode == "unlock" else fcntl.LOCK_EX | fcntl.LOCK_NB
    try:
        fcntl.lockf(handle, wanted, size, os.lseek(handle, 0, os.SEEK_CUR))
    except BlockingIOError:
        raise PermissionError(errno.EACCES, "Permission denied") from None

def exit_code(process, code):
    code._obj.value = 259 if os.path.exists(f"/proc/{process}") else 0

kernel = types.SimpleNamespace(
    OpenProcess=lambda query, inherit, pid: pid if os.path.exists(f"/proc/{pid}") else 0,
    GetExitCodeProcess=exit_code, CloseHandle=lambda process: None)
ctypes.WinDLL = lambda name, use_last_error: kernel
ctypes.get_last_error = lambda: 87
import json, pathlib, socket, secrets, re, time  # imported before the platform changes
sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK="lock", LK_UNLCK="unlock")
sys.platform = "win32"
"""
HOLD = """
from homdp_ppl.storage.lock import DirectoryLock, StorageError
try:
    with DirectoryLock(sys.argv[1]):
        print("won", flush=True)
        sys.stdin.readline()
except StorageError as error:
    print(error, flush=True)
"""
NO_LOCKS = "sys.modules['fcntl'] = None\n"


def test_a_locked_byte_excludes_a_second_process(tmp_path):
    first = spawn(WINDOWS + HOLD, tmp_path)
    assert first.stdout.readline() == "won\n"
    message = finish(spawn(WINDOWS + HOLD, tmp_path))
    assert f"a lock held by process {first.pid} on host" in message
    finish(first, "\n")
    assert finish(spawn(WINDOWS + HOLD, tmp_path), "\n") == "won\n"


def test_the_locked_byte_of_a_killed_process_is_free(tmp_path):
    first = spawn(WINDOWS + HOLD, tmp_path)
    assert first.stdout.readline() == "won\n"
    first.kill()
    first.communicate()
    assert (tmp_path / ".lock").read_text() != ""
    assert finish(spawn(WINDOWS + HOLD, tmp_path), "\n") == "won\n"


def test_systems_without_locks_raise(tmp_path):
    message = finish(spawn(NO_LOCKS + HOLD, tmp_path))
    assert "got a system without file locks; expected a lock that can be taken" in message

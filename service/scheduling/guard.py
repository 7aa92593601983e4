"""Starts a program and ends it, with all that it started, as soon as its own stdin ends.

The scheduler runs it as a script, between the service and the program of a job: the service holds the
other end of stdin. Whether it closes that end at a run's timeout, or is killed, the guard sees the same. It
imports nothing of ours, and is never imported to do its work.

On Linux, orphans of the program become the guard's own children (so that none escapes), and the program is
killed if the guard is.
Source: prctl(2), PR_SET_CHILD_SUBREAPER and PR_SET_PDEATHSIG.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

import psutil

PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
CANNOT_START: Final = 127  # as a shell says it
STOPS: Final = (signal.SIGTERM, signal.SIGHUP)  # treated as the end of stdin
POLL_SECONDS: Final = 0.05  # between checks whether terminated processes have ended


def main(arguments: Sequence[str]) -> int:
    """Run a program; arguments: seconds that it has to end after SIGTERM, then its command line."""
    patience, *command = arguments
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    ended, wakes = socket.socketpair()
    wakes.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, *STOPS):
        signal.signal(number, lambda *_: None)  # the wakeup socket reports it
    try:
        child = _start(command)
    except OSError as exc:
        sys.stdout.write(f"{command[0]} cannot be run: {exc.strerror}\n")
        return CANNOT_START
    status = _wait(child, ended)
    if status is None:
        status = _end_requested(child, float(patience))
    _end_all()
    return status


def _start(command: Sequence[str]) -> int:
    """Start it in a session of its own, so that Ctrl-C in a terminal does not reach it directly."""
    guard = os.getpid()

    def die_with_guard() -> None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:  # it died before that was set
            os._exit(CANNOT_START)

    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=die_with_guard,  # noqa: PLW1509 - this process has one thread
    )
    child.returncode = 0  # it is waited for here, not there
    return child.pid


def _wait(child: int, ended: socket.socket) -> int | None:
    """Return the child's status when it ends, None if stdin ends before."""
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        selector.register(ended, selectors.EVENT_READ)
        while True:
            status = _reap(child)
            if status is not None:
                return status
            for key, _ in selector.select():
                read = ended.recv(4096) if key.fileobj is ended else _read_stdin()
                if read is None or any(number in read for number in STOPS):
                    return None


def _read_stdin() -> bytes | None:
    """Return empty bytes for input, which is ignored; None at its end."""
    return b"" if os.read(sys.stdin.fileno(), 4096) else None


def _end_requested(child: int, patience: float) -> int:
    """Terminate the program and wait for a while; return its status."""
    deadline = time.monotonic() + patience
    for process in _descendants():
        with contextlib.suppress(psutil.Error):
            process.terminate()
    status: int | None = None
    while time.monotonic() < deadline and _descendants():
        reaped = _reap(child)
        status = reaped if status is None else status
        time.sleep(POLL_SECONDS)  # noqa: TID251 - a process of its own, without our clock
    return 128 + signal.SIGTERM if status is None else status


def _end_all() -> None:
    """Kill what is left, repeatedly: a process that is being killed may just have started another."""
    while left := _descendants():
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        _reap(0)
        time.sleep(POLL_SECONDS)  # noqa: TID251 - as above


def _descendants() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if _status(child) != psutil.STATUS_ZOMBIE
    ]


def _status(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.NoSuchProcess:
        return str(psutil.STATUS_ZOMBIE)


def _reap(child: int) -> int | None:
    """Reap every process that ended; return the status of the child if it is among them."""
    reaped = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                reaped = code if code >= 0 else 128 - code
    return reaped


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

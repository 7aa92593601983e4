"""Start, observe and signal processes that outlive the command that started them.

A process is identified by its pid and its start time together: a pid that the system has reused
since is never signalled.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path

import psutil

from rules.errors import SandboxError
from service.runtime.children import FOLDER, child_environment
from service.runtime.clock import wait_until
from service.sandbox.cluster.state import ProcessId

SAME_START_SECONDS = 1.0  # start times are exact to a clock tick; boot time shifts a little
END_SECONDS = 5.0
IN_FOLDER = ("/bin/sh", "-c", 'cd "$0" && exec "$@"', FOLDER)  # posix_spawn itself cannot change it


class Liveness(StrEnum):
    """What a process is doing; `stopped` means that none was ever started or it ended in order."""

    RUNNING = "running"
    PAUSED = "paused"
    DEAD = "dead"
    STOPPED = "stopped"


def spawn(command: Sequence[str], *, output: Path) -> ProcessId:
    """Start a command in the root folder, in a session that Ctrl-C in this terminal spares."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    pid = os.posix_spawn(
        IN_FOLDER[0],
        [*IN_FOLDER, *command],
        child_environment(os.environ),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(output), flags, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
    )
    return ProcessId(pid=pid, started=psutil.Process(pid).create_time())


def run_to_end(command: Sequence[str], *, seconds: float, otherwise: str) -> None:
    """Run a command without input; raise with `otherwise` and its last line when it fails."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, check=False, cwd=FOLDER
    )
    if done.returncode != 0:
        raise SandboxError(f"{otherwise}: {last_words(done.stdout + done.stderr)}")


def last_words(text: str) -> str:
    """Return the last line of what a process has printed."""
    return (text.strip().splitlines() or ["it said nothing"])[-1]


def liveness(process: ProcessId | None) -> Liveness:
    """Return what a remembered process is doing."""
    if process is None:
        return Liveness.STOPPED
    handle = _find(process)
    if handle is None:
        return Liveness.DEAD
    paused = handle.status() == psutil.STATUS_STOPPED
    return Liveness.PAUSED if paused else Liveness.RUNNING


def usage(process: ProcessId | None) -> tuple[int, float] | None:
    """Return resident bytes and start time of a live process."""
    handle = None if process is None else _find(process)
    if handle is None:
        return None
    try:
        return handle.memory_info().rss, handle.create_time()
    except psutil.NoSuchProcess:
        return None


def pause(process: ProcessId) -> None:
    """Freeze a process and wait until it does not move."""
    _signal(process, signal.SIGSTOP)
    _await(process, Liveness.PAUSED, "freeze")


def resume(process: ProcessId) -> None:
    """Let a frozen process go on."""
    _signal(process, signal.SIGCONT)
    _await(process, Liveness.RUNNING, "go on")


def terminate(process: ProcessId) -> None:
    """Ask a process to end in order (SIGTERM)."""
    _signal(process, signal.SIGTERM)


def end(processes: Iterable[ProcessId]) -> None:
    """Kill processes at once (SIGKILL, frozen ones too) and wait until all are gone."""
    doomed = list(processes)
    for process in doomed:
        _signal(process, signal.SIGKILL)
    for process in doomed:
        _await(process, Liveness.DEAD, "end")


def find_marked(marker: str) -> list[ProcessId]:
    """Return this user's processes that carry `marker` as one of their arguments.

    This finds brokers whose state file was lost or was never written.
    """
    marked = []
    for candidate in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if marker in candidate.cmdline():
                marked.append(ProcessId(pid=candidate.pid, started=candidate.create_time()))
    return marked


def _find(process: ProcessId) -> psutil.Process | None:
    try:
        handle = psutil.Process(process.pid)
        if abs(handle.create_time() - process.started) >= SAME_START_SECONDS:
            return None
        # Its main thread dies first; the ports are free only when the last thread is gone.
        if handle.status() == psutil.STATUS_ZOMBIE and handle.num_threads() <= 1:
            _reap(process.pid)
            return None
    except psutil.NoSuchProcess:
        return None
    return handle


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):  # a child of an earlier command: init's task
        os.waitpid(pid, os.WNOHANG)


def _signal(process: ProcessId, number: signal.Signals) -> None:
    handle = _find(process)
    if handle is not None:
        with contextlib.suppress(psutil.NoSuchProcess):
            handle.send_signal(number)


def _await(process: ProcessId, expected: Liveness, verb: str) -> None:
    if not wait_until(lambda: liveness(process) is expected, timeout_seconds=END_SECONDS):
        raise SandboxError(f"process {process.pid} did not {verb} within {END_SECONDS:.0f} s")

"""Programs as jobs: real processes, which never outlive their run or the service."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final, TypeVar

import psutil
import pytest

from service.runtime.clock import wait_until
from service.runtime.threads import in_thread
from service.scheduling.command import KEPT_BYTES
from service.scheduling.job import Command, Ended, RunOutcome
from service.scheduling.performing import Performer
from tests.factories import at
from tests.unit.service.scheduling.given import job

pytestmark = pytest.mark.integration

T = TypeVar("T")
SECONDS: Final = 180.0
HERE: Final = Path(__file__).parent
FAMILY: Final = (sys.executable, str(HERE / "family.py"))


def attempt(_name: str, function: Callable[[], T], /) -> T | None:
    return function()


def perform(
    *argv: str, seconds: float = SECONDS, stop_when: Callable[[], bool] | None = None
) -> Ended:
    """Run a program as a job; `stop_when`: the service stops then."""

    async def run() -> Ended:
        stop = asyncio.Event()
        work = Command(argv, patience_seconds=0.3)
        one = job(work=work, timeout=timedelta(seconds=seconds))
        doing = asyncio.ensure_future(Performer(attempt, stop).perform(one, at(0), at(0)))
        if stop_when is not None:
            await in_thread(lambda: wait_until(stop_when, timeout_seconds=SECONDS))
            stop.set()
        return (await doing).ended

    return asyncio.run(run())


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


def are_gone(told: Path) -> bool:
    """Tell whether everybody whose ids are told there has ended."""
    return not any(lives(int(pid)) for pid in told.read_text(encoding="utf-8").split())


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_program_that_ends_well_tells_its_stats() -> None:
    code = """print("reading"); print('{"rows": 7, "from": "x", "no": [1]}')"""
    assert perform(*python(code)) == Ended(
        outcome=RunOutcome.SUCCEEDED, stats={"rows": 7, "from": "x"}
    )
    assert perform(*python("print('done')")) == Ended(outcome=RunOutcome.SUCCEEDED)


def test_a_program_that_fails_tells_what_it_wrote_last() -> None:
    ended = perform(*python("import sys; print('x' * 100_000); sys.exit('no space')"))
    assert ended.outcome is RunOutcome.FAILED
    assert ended.detail.startswith("it ended with status 1: ")
    assert ended.detail.endswith("no space")
    assert len(ended.detail) < KEPT_BYTES + 100


def test_why_a_program_failed_is_not_hidden_by_its_events() -> None:
    event = json.dumps({"event": "progress", "done": 1})
    code = f"import sys; print({event!r}, flush=True); sys.exit(sys.argv[1])"
    assert perform(*python(code), "no space").detail == "it ended with status 1: no space"
    assert perform(*python(code), "").detail == f"it ended with status 1: {event}"


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("/no/such/program",), "status 127: /no/such/program cannot be run: No such file"),
        (python("import os; os.kill(os.getpid(), 9)"), "status 137"),
    ],
    ids=["not there", "killed"],
)
def test_a_program_that_never_gets_anywhere_fails(argv: tuple[str, ...], told: str) -> None:
    ended = perform(*argv)
    assert ended.outcome is RunOutcome.FAILED
    assert told in ended.detail


def test_a_program_whose_time_is_up_is_ended() -> None:
    ended = perform(*python("import signal; signal.pause()"), seconds=0.3)
    assert ended.outcome is RunOutcome.TIMED_OUT
    assert ended.detail == "it did not end within 0:00:00.300000"


def test_a_service_that_stops_ends_the_program_with_all_that_it_started(tmp_path: Path) -> None:
    """Neither of them heeds SIGTERM, and one has a session of its own."""
    told = tmp_path / "told"
    ended = perform(*FAMILY, str(told), "wait", stop_when=told.exists)
    assert ended == Ended(outcome=RunOutcome.INTERRUPTED, detail="the service stopped")
    assert are_gone(told)


def test_what_a_program_leaves_behind_is_ended(tmp_path: Path) -> None:
    told = tmp_path / "told"
    assert perform(*FAMILY, str(told), "end").outcome is RunOutcome.SUCCEEDED
    assert are_gone(told)


def test_a_program_does_not_outlive_a_killed_service(tmp_path: Path) -> None:
    told = tmp_path / "told"
    service = started_service(told)
    service.kill()
    service.wait(SECONDS)
    assert wait_until(lambda: are_gone(told), timeout_seconds=SECONDS)


def test_a_program_does_not_outlive_a_killed_guard(tmp_path: Path) -> None:
    told = tmp_path / "told"
    service = started_service(told)
    (guard,) = psutil.Process(service.pid).children()
    program, *others = map(int, told.read_text(encoding="utf-8").split())
    try:
        guard.kill()
        assert wait_until(lambda: not lives(program), timeout_seconds=SECONDS)
    finally:
        for pid in others:  # they have no guard any more
            os.kill(pid, signal.SIGKILL)
    service.wait(SECONDS)


def started_service(told: Path) -> subprocess.Popen[bytes]:
    """Start a service, and return when its program has children."""
    root = HERE.parents[2]
    command = [sys.executable, "-m", "tests.integration.scheduling.service", *FAMILY]
    service = subprocess.Popen([*command, str(told), "wait"], cwd=root)
    assert wait_until(told.exists, timeout_seconds=SECONDS)
    return service

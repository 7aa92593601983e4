"""What holds for every test: Ctrl-C is heard, JSON that a command prints is of its schema, and a second try begins on
whole parts.

CI alone gives a failed test a second try (`RERUNS` in the Makefile).
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Generator, Iterator
from typing import Final

import pytest

from service.terminal import answer
from tests.kafka_release import is_left_out
from tests.schemas import validated_text

Mend = Callable[[], object]

MENDS: Final = pytest.StashKey[list[Mend]]()
LIMIT: Final = pytest.StashKey[object]()  # what pytest-timeout made of the settings


def pytest_configure(config: pytest.Config) -> None:
    """Hear Ctrl-C, which a shell lets what it starts in the background ignore; hold documents against schemas."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[MENDS] = []
    patch = pytest.MonkeyPatch()
    patch.setattr(answer, "json_text", validated_text)
    config.add_cleanup(patch.undo)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what the run's Kafka release cannot do (SANDBOX_KAFKA_VERSION)."""
    left_out = [item for item in items if is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@contextlib.contextmanager
def mending(config: pytest.Config, mend: Mend) -> Iterator[None]:
    """Have what a session fixture made mended before a second try, as long as it is there.

    A fixture of the session is not made anew for a second try, whatever the first one broke.
    """
    config.stash[MENDS].append(mend)
    try:
        yield
    finally:
        config.stash[MENDS].remove(mend)


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: object) -> None:
    """Remember a test's time limit; pytest-timeout, asked after this, sets the timer."""
    item.stash[LIMIT] = settings


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give a second try whole parts and a time limit of its own: the timer is of both tries."""
    if getattr(item, "execution_count", 1) == 1:
        return
    if LIMIT in item.stash:
        item.ihook.pytest_timeout_cancel_timer(item=item)
        item.ihook.pytest_timeout_set_timer(item=item, settings=item.stash[LIMIT])
    for mend in item.config.stash[MENDS]:
        mend()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say with every failure how busy the machine was: that is what most flakes come of."""
    report = yield
    if report.failed:
        load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
        report.sections.append(("Machine", f"load {load} on {os.cpu_count()} cores"))
    return report

"""Ctrl-C and SIGTERM for commands that clean up after themselves or finish drawing."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Yield an event that the first Ctrl-C or SIGTERM sets; a second one interrupts as usual."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        restore()

    for number in before:
        signal.signal(number, note)
    try:
        yield stop
    finally:
        restore()


@contextlib.contextmanager
def interrupt_afterwards() -> Iterator[None]:
    """Put off the first Ctrl-C until the end of the block; a second one interrupts as usual."""
    before = signal.getsignal(signal.SIGINT)
    was_interrupted = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal was_interrupted
        was_interrupted = True
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if was_interrupted:
            signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def ended_in_order() -> Iterator[None]:
    """Let the first SIGTERM interrupt as Ctrl-C does, so that open resources are closed."""
    before = signal.getsignal(signal.SIGTERM)

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, before)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)

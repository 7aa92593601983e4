"""What SIGTERM does to a command that has something to close."""

from __future__ import annotations

import signal

import pytest

from service.terminal.stopping import ended_in_order


def test_sigterm_interrupts_once_so_that_what_is_open_is_closed() -> None:
    before = signal.getsignal(signal.SIGTERM)
    closed = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            closed.append(signal.getsignal(signal.SIGTERM))

    with pytest.raises(KeyboardInterrupt), ended_in_order():
        work()
    assert closed == [before], "a second one ends it at once"


def test_sigterm_is_as_before_where_none_came() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ended_in_order():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before

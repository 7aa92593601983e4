"""Rounds again and again: what ends them, what does not, and that nothing is half drawn."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout

import pytest

from rules.errors import AuthenticationError, CollectError, UnreachableError
from rules.facts.snapshot import Snapshot
from service.cli.collect.live import LiveView
from service.terminal.stopping import interrupt_afterwards
from tests.factories import at, commits, group, offsets, partitions, snapshot

Outcome = Snapshot | Exception
AWAY = UnreachableError("no bootstrap address answered")
REJECTED = AuthenticationError("wrong password")


def reading(outcomes: Sequence[Outcome]) -> tuple[Callable[[], Snapshot], Callable[[], bool]]:
    """Return a reader of these outcomes, and whether there are more."""
    left = list(outcomes)

    def read() -> Snapshot:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return read, lambda: bool(left)


def run(outcomes: Sequence[Outcome]) -> None:
    read, unfinished = reading(outcomes)
    with LiveView(as_json=True, all_rows=False) as view:
        view.run(read, interval_seconds=0, unfinished=unfinished)


@pytest.mark.parametrize("error", [AWAY, REJECTED, CollectError("no answer")])
def test_a_view_that_saw_the_cluster_once_survives_every_error_of_a_round(
    error: CollectError, capsys: pytest.CaptureFixture[str]
) -> None:
    run([snapshot(), error, snapshot()])
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 2
    assert told.err == f"tidemark: {error}\n"


def test_a_cluster_that_is_away_at_first_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    run([AWAY, snapshot()])
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_rejection_at_first_ends_the_view() -> None:
    with pytest.raises(AuthenticationError):
        run([REJECTED, snapshot()])


def test_an_error_that_is_not_of_a_round_ends_the_view() -> None:
    with pytest.raises(ZeroDivisionError):
        run([snapshot(), ZeroDivisionError()])


class Interrupting(io.StringIO):
    """A stream during whose first write somebody presses Ctrl-C."""

    is_terminal = False
    was_pressed = False

    def write(self, text: str) -> int:
        if not self.was_pressed:
            self.was_pressed = True
            signal.raise_signal(signal.SIGINT)
        return super().write(text)

    def isatty(self) -> bool:
        return self.is_terminal


@contextmanager
def interrupting_output(*, is_terminal: bool = False) -> Iterator[Interrupting]:
    """Put the stream in stdout's place, with Python's own answer to Ctrl-C."""
    stream, before = Interrupting(), signal.signal(signal.SIGINT, signal.default_int_handler)
    stream.is_terminal = is_terminal
    try:
        with redirect_stdout(stream):
            yield stream
    finally:
        signal.signal(signal.SIGINT, before)


def test_ctrl_c_lets_a_line_be_written_to_its_end() -> None:
    with interrupting_output() as stream, pytest.raises(KeyboardInterrupt):
        run([snapshot(), snapshot()])
    [line] = stream.getvalue().splitlines()
    assert json.loads(line)["cluster"] == "default"


def test_ctrl_c_lets_a_table_be_drawn_to_its_end() -> None:
    with interrupting_output() as stream:
        view = LiveView(as_json=False, all_rows=False)
        with pytest.raises(KeyboardInterrupt), view:
            view.show(snapshot())
    assert "all read" in stream.getvalue()


def test_a_table_tells_from_the_second_round_on_how_long_offsets_wait(
    capsys: pytest.CaptureFixture[str],
) -> None:
    groups, one = (group(), group("idle")), partitions({"orders": 1})
    rounds = [
        snapshot(
            taken_at=at(seconds),
            partitions=one,
            offsets=offsets(1, high_watermark=[end], last_stable_offset=[end]),
            groups=groups,
            commits=commits((0, 0, committed)),
        )
        for seconds, end, committed in ((0, 100, 50), (5, 104, 102), (10, 104, 102))
    ]
    with LiveView(as_json=False, all_rows=False) as view:
        for seen in rounds:
            view.show(seen)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    told = [line[-3:] for line in lines if line and line[0] == "billing"]
    assert told == [[">", "0.0", "s"], ["-", "2.0", "s"], ["-", "7.0", "s"]]


def test_ctrl_c_leaves_a_terminal_with_its_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with interrupting_output(is_terminal=True) as stream:
        view = LiveView(as_json=False, all_rows=False)
        with pytest.raises(KeyboardInterrupt), view:
            view.show(snapshot())
    hidden, shown = stream.getvalue().rfind("\x1b[?25l"), stream.getvalue().rfind("\x1b[?25h")
    assert -1 < hidden < shown


def test_a_second_ctrl_c_is_not_put_off() -> None:
    done: list[str] = []
    with interrupting_output(), pytest.raises(KeyboardInterrupt):
        interrupt_twice(done)
    assert done == ["once"]


def interrupt_twice(done: list[str]) -> None:
    with interrupt_afterwards():
        for word in ("once", "twice"):
            signal.raise_signal(signal.SIGINT)
            done.append(word)


def test_the_handler_that_was_there_gets_its_signal_afterwards() -> None:
    got: list[str] = []
    before = signal.signal(signal.SIGINT, lambda *_: got.append("signal"))
    try:
        with interrupt_afterwards():
            signal.raise_signal(signal.SIGINT)
            got.append("block")
    finally:
        signal.signal(signal.SIGINT, before)
    assert got == ["block", "signal"]

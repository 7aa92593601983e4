"""Log lines: one per event whatever names contain, and a stream that fails stops nothing."""

from __future__ import annotations

import io
import json
import logging
import threading
from typing import Any

import pytest

from service.runtime.events import Event
from service.runtime.log import LibraryHandler, LineWriter, Log, QueuedWriter, make_log

FORGED = "billing\n2025-06-02T12:00:00Z [error    ] service_stopped"
NAMES = {
    "newline": FORGED,
    "return": "a\rb",
    "clears the terminal": "a\x1b[2Jb",
    "one character that a terminal obeys": "a\x9b2Jb",
    "next line": "a\x85b",
    "line separator": "a\u2028b",
    "right to left": "a\u202eb",
    "delete": "a\x7fb",
    "nul": "a\0b",
    "half a character": "a\ud800b",
    "not ASCII": "zähler-über-全部-😀",
    "blanks": "a b=c",
}


class Stream(io.StringIO):
    """A stream that fails while it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception | None = None

    def write(self, text: str) -> int:
        if self.error is not None:
            raise self.error
        return super().write(text)


def log_to(stream: io.TextIOBase, *, as_json: bool, level: str = "info") -> Log:
    return make_log(LineWriter(stream), as_json=as_json, level=level)  # type: ignore[arg-type]


def lines_of(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()  # breaks at more than newlines, as some readers do


def raised(error: Exception, log: Log, secret: str) -> None:
    """Log an error while `secret` is a variable of a frame of it."""
    try:
        assert secret
        raise error
    except type(error):
        log.exception(Event.TASK_DIED)


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "console"])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_no_name_breaks_a_line_or_reaches_a_terminal_raw(name: str, *, as_json: bool) -> None:
    stream = io.StringIO()
    log_to(stream, as_json=as_json).info(Event.ROUND, group=name)
    (line,) = lines_of(stream)
    assert line.isprintable()
    line.encode("utf-8")
    if as_json:
        assert json.loads(line)["group"] == name


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "console"])
def test_names_that_can_be_read_stay_readable(*, as_json: bool) -> None:
    stream = io.StringIO()
    log_to(stream, as_json=as_json).info(Event.ROUND, group="zähler")
    assert "zähler" in stream.getvalue()


def test_a_line_is_an_object_with_time_level_and_event() -> None:
    stream = io.StringIO()
    log_to(stream, as_json=True).warning(Event.STORE_UNAVAILABLE, why="rejected")
    told = json.loads(stream.getvalue())
    assert told.pop("time").endswith("Z")
    assert told == {"level": "warning", "event": "store_unavailable", "why": "rejected"}


def test_an_exception_is_part_of_its_json_line() -> None:
    stream = io.StringIO()
    raised(ValueError(FORGED), log_to(stream, as_json=True), "x")
    (line,) = lines_of(stream)
    (error,) = json.loads(line)["exception"]
    assert (error["exc_type"], error["exc_value"]) == ("ValueError", FORGED)


def test_no_line_of_a_traceback_observations_like_a_line_of_the_log() -> None:
    stream = io.StringIO()
    raised(ValueError(FORGED + "\x1b[2J"), log_to(stream, as_json=False), "x")
    first, *others = lines_of(stream)
    assert "task_died" in first
    assert any("ValueError: billing" in line for line in others)
    assert all(line.startswith("    ") and line.isprintable() for line in others)


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "console"])
def test_a_traceback_shows_no_values_of_variables(*, as_json: bool) -> None:
    stream = io.StringIO()
    raised(ValueError("broken"), log_to(stream, as_json=as_json), "hunter" + "2")
    assert "broken" in stream.getvalue()
    assert "hunter2" not in stream.getvalue()


def test_a_level_leaves_out_what_is_below_it() -> None:
    stream = io.StringIO()
    log = log_to(stream, as_json=True, level="warning")
    log.info(Event.ROUND)
    log.warning(Event.ROUND)
    assert len(lines_of(stream)) == 1


@pytest.mark.parametrize(
    "error",
    [OSError(28, "No space left on device"), BrokenPipeError(), ValueError("I/O on closed file")],
    ids=["full", "no reader", "closed"],
)
def test_lines_that_cannot_be_written_are_counted_and_the_next_is_tried(error: Exception) -> None:
    stream = Stream()
    writer = LineWriter(stream)
    log = make_log(writer, as_json=True, level="info")
    stream.error = error
    log.info(Event.ROUND, number=1)
    log.info(Event.ROUND, number=2)
    assert writer.lost == 2
    stream.error = None
    log.info(Event.ROUND, number=3)
    assert writer.lost == 2
    assert [json.loads(line)["number"] for line in lines_of(stream)] == [3]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_locale_without_a_name_s_letters_loses_no_line(encoding: str) -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding=encoding)
    writer = LineWriter(stream)
    make_log(writer, as_json=True, level="info").info(Event.ROUND, group="全部-😀")
    make_log(writer, as_json=False, level="info").info(Event.ROUND, group="全部-😀")
    first, second = written.getvalue().decode("ascii").splitlines()
    assert json.loads(first)["group"] == "全部-😀"
    assert "group=\\u5168\\u90e8-\\ud83d\\ude00" in second
    assert writer.lost == 0


def library(stream: io.StringIO) -> logging.Logger:
    made = logging.Logger("some.library", level=1)  # noqa: LOG001 - not in the tree of all
    made.addHandler(LibraryHandler(log_to(stream, as_json=True)))
    return made


def parse_body(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines_of(stream)]


def test_what_libraries_warn_of_comes_as_an_event() -> None:
    stream = io.StringIO()
    log = library(stream)
    log.info("nothing of interest")
    log.warning("port %d is odd", 9093)
    (event,) = parse_body(stream)
    del event["time"]
    assert event == {
        "level": "warning",
        "event": Event.LIBRARY,
        "library": "some.library",
        "message": "port 9093 is odd",
    }


def test_a_library_s_exception_comes_with_its_traceback() -> None:
    stream = io.StringIO()
    try:
        _ = 1 // 0
    except ZeroDivisionError:
        library(stream).exception("oh")
    (event,) = parse_body(stream)
    assert event["level"] == "error"
    assert event["exception"][0]["exc_type"] == "ZeroDivisionError"


def test_an_exception_flag_without_an_exception_is_no_exception() -> None:
    stream = io.StringIO()
    library(stream).error("oh", exc_info=True)
    assert "exception" not in parse_body(stream)[0]


@pytest.mark.parametrize(("number", "level"), [(35, "warning"), (45, "error"), (50, "error")])
def test_a_level_of_a_library_s_own_is_told_as_the_one_below(number: int, level: str) -> None:
    stream = io.StringIO()
    library(stream).log(number, "oh")
    assert parse_body(stream)[0]["level"] == level


def test_a_message_whose_placeholders_do_not_fit_is_told_as_it_is() -> None:
    stream = io.StringIO()
    library(stream).warning("%d of %s", "many")
    assert parse_body(stream)[0]["message"] == "%d of %s"


class Stalled(io.StringIO):
    """A stream that takes nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.may_go = threading.Event()
        self.is_queried = threading.Event()

    def write(self, text: str) -> int:
        self.is_queried.set()
        assert self.may_go.wait(10)
        return super().write(text)


def test_a_reader_that_stalls_holds_up_nobody_and_what_finds_no_room_is_counted() -> None:
    stream = Stalled()
    writer = QueuedWriter(LineWriter(stream), limit=3)
    writer.msg("first")
    assert stream.is_queried.wait(10), "the thread waits for the reader, the caller does not"
    for line in ("second", "third", "fourth", "fifth", "sixth"):
        writer.msg(line)
    assert writer.lost == 2
    stream.may_go.set()
    writer.close()
    assert stream.getvalue().split() == ["first", "second", "third", "fourth"]


def test_closing_does_not_wait_for_a_reader_for_ever() -> None:
    stream = Stalled()
    writer = QueuedWriter(LineWriter(stream), limit=1)
    writer.msg("first")
    assert stream.is_queried.wait(10)
    writer.msg("second")
    writer.close(0.01)
    assert stream.getvalue() == ""
    stream.may_go.set()

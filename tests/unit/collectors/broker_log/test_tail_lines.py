"""Bytes become whole lines; of one without an end only the first megabyte is held."""

from __future__ import annotations

import pytest

from collectors.broker_log.log_reading import MAX_LINE, Cut, cut


@pytest.mark.parametrize(
    ("piece", "lines", "consumed"),
    [
        pytest.param(b"", [], 0, id="nothing"),
        pytest.param(b"a\nb\n", [b"a", b"b"], 4, id="whole lines"),
        pytest.param(b"a\nb", [b"a"], 2, id="a begun line is left"),
        pytest.param(b"b", [], 0, id="only a begun line"),
        pytest.param(b"\n\n", [b"", b""], 2, id="empty lines are lines"),
        pytest.param(b"a\r\n", [b"a\r"], 3, id="other line ends are the parser's matter"),
        pytest.param(b"\xff\x00\n", [b"\xff\x00"], 3, id="any bytes"),
    ],
)
def test_whole_lines_are_taken(piece: bytes, lines: list[bytes], consumed: int) -> None:
    assert cut(piece, is_skipping=False) == Cut(lines=lines, consumed=consumed)


def test_a_line_that_fills_a_piece_is_taken_and_its_rest_is_skipped_and_counted() -> None:
    first = cut(b"x" * MAX_LINE, is_skipping=False)
    assert first == Cut(lines=[b"x" * MAX_LINE], consumed=MAX_LINE, is_skipping=True)
    second = cut(b"y" * MAX_LINE, is_skipping=True)
    assert second == Cut(lines=[], consumed=MAX_LINE, lost=MAX_LINE, is_skipping=True)
    third = cut(b"yyy\nb\nc", is_skipping=True)
    assert third == Cut(lines=[b"b"], consumed=6, lost=3)


def test_a_line_of_almost_a_megabyte_is_waited_for() -> None:
    begun = b"x" * (MAX_LINE - 1)
    assert cut(begun, is_skipping=False) == Cut(lines=[], consumed=0)
    assert cut(b"z\n" + begun[2:], is_skipping=True) == Cut(lines=[], consumed=2, lost=1)

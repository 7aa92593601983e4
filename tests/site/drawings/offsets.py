"""The offsets of a partition, and what lies between them."""

from __future__ import annotations

from tests.site.drawings.canvas import CELL, Canvas

LEFT = 60


def draw_offsets() -> str:
    """Return the log of one partition with its five positions and the spans between them."""
    canvas = Canvas(
        760,
        330,
        "A partition's log from log start 10 to log end 26: committed offset 13, last stable offset 18, "
        "high watermark 23; the lags and spans lie between them",
    )
    canvas.text(LEFT, 30, "Partition orders-0, as its leader has it", "bold")
    canvas.cells(LEFT, 110, 10, "dddddMddooooouuu")
    places = (
        (0, "log start 10", 62),
        (3, "committed 13", 82),
        (8, "LSO 18", 62),
        (13, "HWM 23", 82),
        (16, "LEO 26", 62),
    )
    for number, words, top in places:
        canvas.pointer(_x(number), top, words, 107)
    canvas.span(_x(3), _x(8), 160, "read_committed lag 5")
    canvas.span(_x(8), _x(13), 160, "open span 5")
    canvas.span(_x(13), _x(16), 160, "unreplicated span 3")
    canvas.span(_x(3), _x(13), 205, "read_uncommitted lag 10")
    _draw_legend(canvas)
    return canvas.svg()


def _x(number: int) -> int:
    return LEFT + CELL * number


def _draw_legend(canvas: Canvas) -> None:
    rows = (
        ("good", "decided: delivered to every reader"),
        (
            "open",
            "open transaction, and all behind its first record: only read_uncommitted readers get it",
        ),
        (
            "plain",
            "above the high watermark: not yet on every replica in sync, and delivered to nobody",
        ),
        ("marker", "C: a commit marker; it uses an offset, and no reader gets it"),
    )
    for number, (style, words) in enumerate(rows):
        y = 242 + 20 * number
        canvas.box(LEFT, y, 16, 13, style)
        canvas.text(LEFT + 26, y + 11, words, "small")

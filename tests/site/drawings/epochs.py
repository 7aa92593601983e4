"""What a change of leader leaves, by leader epochs."""

from __future__ import annotations

from tests.site.drawings.canvas import CELL, Canvas

LEFT = 150


def draw_epochs() -> str:
    """Return the log that was observed in epoch 4, and that of the leader of epoch 5."""
    canvas = Canvas(
        720,
        395,
        "Broker 1 led in epoch 4 up to log end 18; broker 2 was elected with epoch 4 ending at 12: offsets "
        "12 to 15 are certainly lost, 15 to 18 possibly, later ones are unknown",
    )
    canvas.text(24, 30, "Last observation, epoch 4: broker 1 leads", "bold")
    canvas.cells(LEFT, 85, 8, "ddddddduuu")
    canvas.cells(LEFT + 10 * CELL, 85, 18, "--")
    canvas.text(24, 105, "broker 1")
    canvas.pointer(_x(15), 60, "HWM 15", 82)
    canvas.pointer(_x(18), 60, "LEO 18", 82)
    canvas.text(_x(18) + 34, 61, "then it dies", "small")

    canvas.text(24, 165, "Now, epoch 5: broker 2 leads", "bold")
    canvas.cells(LEFT, 220, 8, "dddd")
    canvas.cells(_x(12), 220, 12, "uuuu")
    canvas.text(24, 240, "broker 2")
    canvas.pointer(_x(12), 195, "epoch 4 ends at 12", 217)
    canvas.text(_x(12) + 84, 195, "other records of epoch 5 from here on", "small")

    canvas.text(24, 310, "What is gone", "bold")
    canvas.box(_x(12), 290, 3 * CELL, 30, "bad")
    canvas.text(_x(12) + 3 * CELL // 2, 310, "certain", "", "middle")
    canvas.box(_x(15), 290, 3 * CELL, 30, "open")
    canvas.text(_x(15) + 3 * CELL // 2, 310, "possible", "", "middle")
    canvas.box(_x(18), 290, 3 * CELL, 30, "faint")
    canvas.text(_x(18) + 3 * CELL // 2, 310, "unknown", "", "middle")
    canvas.lines(_x(12) + 60, 340, "[12, 15)\nwas committed", "small", "middle")
    canvas.lines(_x(15) + 60, 340, "[15, 18)\ncommitted, if the\nISR had shrunk", "small", "middle")
    canvas.lines(_x(18) + 60, 340, "from 18 on\nnever observed", "small", "middle")
    return canvas.svg()


def _x(offset: int) -> int:
    return LEFT + CELL * (offset - 8)
